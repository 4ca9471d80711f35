"""What is explained: the log-odds of a class, after the temperature, by one network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqray.core import Bools, Card, Codes, ConfigError, Floats, Ints
from seqray.inference import compute_precision, map_batches, micro_batch, pad_batch
from seqray.modelfile import SequenceNetwork, TrainedModel
from seqray.models import AxialTransformer, LocatorTransformer, collate, size_buckets
from seqray.models.tokenizers import FIRST_LETTER, MASK

CALLED = "called"
"""In place of a class: the one that each record is called."""
TOKENS_AT_ONCE = 1 << 15

Tracks = npt.NDArray[np.uint8]
Net = TypeVar("Net")


def wanted_class(card: Card, target: str | None) -> str:
    """Name of the class to explain, or `CALLED`.

    Parameters
    ----------
    card
        Of the model.
    target
        As asked for. None is the positive one of two classes; with more, the one that each record is called.
    """
    if target is not None:
        return target
    return card.positive if len(card.classes) <= 2 else CALLED


def class_explained(model: TrainedModel, target: str | None, label: str) -> int:
    """Index of the class explained for a record that is called ``label``.

    Parameters
    ----------
    model
        Gives the classes.
    target
        See `wanted_class`.
    label
        The class that the record is called.

    Raises
    ------
    ConfigError
        For a class that the model doesn't have.
    """
    classes = model.card.classes
    wanted = wanted_class(model.card, target)
    name = label if wanted == CALLED else wanted
    if name not in classes:
        known = ", ".join((*classes, CALLED))
        raise ConfigError(f"model '{model.card.name}' has no class '{name}'", remedy=f"known are {known}")
    return classes.index(name)


def log_odds(logits: Tensor, target: int, temperature: float = 1.0) -> Tensor:
    """Log-odds of one class, log p / (1 - p), of logits (..., K) divided by the temperature: (...)."""
    scaled = logits / temperature
    others = torch.cat((scaled[..., :target], scaled[..., target + 1 :]), dim=-1)
    return scaled[..., target] - torch.logsumexp(others, dim=-1)


@dataclass(frozen=True, slots=True, eq=False)
class _Target(Generic[Net]):
    """The log-odds of class ``target`` by one ``network`` of a ``model``."""

    model: TrainedModel
    network: Net
    target: int

    @property
    def class_name(self) -> str:
        """Name of the class."""
        return self.model.card.classes[self.target]

    def of_logits(self, logits: Tensor) -> Tensor:
        """Logits (B, K) to log-odds (B,)."""
        return log_odds(logits.float(), self.target, self.model.card.temperature)


def token_batches(model: TrainedModel, codes: Codes) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of the records (N, n), each with its tokens (B, L) on the device of the model."""
    size = _records_at_once(model, codes)
    with compute_precision(model.device, "fp32"):
        for start in range(0, len(codes), size):
            tokens = model.tokenizer.encode_codes(codes[start : start + size])
            yield slice(start, start + size), torch.from_numpy(tokens).to(model.device)


def _records_at_once(model: TrainedModel, codes: Codes) -> int:
    return micro_batch(model.card.model, codes.shape[1], model.device)


class AttributionTarget(_Target[SequenceNetwork]):
    """What is explained of sequences: the log-odds of class ``target`` by one ``network`` of a ``model``."""

    def of_codes(self, codes: Codes) -> Floats:
        """Letter codes (N, n) to log-odds (N,)."""
        return _in_parts(self._score, codes, _records_at_once(self.model, codes), self.model.device)

    @torch.inference_mode()
    def _score(self, codes: Codes) -> Floats:
        padded = pad_batch(codes, _records_at_once(self.model, codes))
        with compute_precision(self.model.device, "fp32"):
            tokens = torch.from_numpy(self.model.tokenizer.encode_codes(padded)).to(self.model.device)
            return self.of_logits(self.network(tokens).logits)[: len(codes)].double().cpu().numpy()


@dataclass(frozen=True, slots=True, eq=False)
class LocatorTarget(_Target[LocatorTransformer]):
    """What is explained of a call: the score, a logit, of class ``target`` at the middle of a stretch.

    Attributes
    ----------
    tracks
        (T, n) uint8 gene tracks of the stretch, where n is 2 radius + 1; None where no genes are known.
    phase
        Place of the first letter within its token: tokens are counted from the first letter of the strand.
    """

    tracks: Tracks | None
    phase: int

    @property
    def site(self) -> int:
        """Index of the middle in what the network reads, `letters_of`."""
        return self.phase + self.network.radius

    def of_logits(self, logits: Tensor) -> Tensor:
        """Logits (B, K) to scores (B,): each class is a question of its own, not one of several answers."""
        return logits.float()[..., self.target] / self.model.card.temperature

    def letters_of(self, codes: Codes) -> Tensor:
        """Codes (N, n) as whole tokens (N, L); what is added is unknown."""
        added = self._added(codes.shape[1])
        padded = np.pad(codes, ((0, 0), added), constant_values=self.model.alphabet.unknown)
        return torch.from_numpy(padded).to(self.model.device)

    def tracks_of(self, count: int) -> Tensor | None:
        """Tracks (N, T, L) beside the letters of N stretches."""
        if self.tracks is None:
            return None
        padded = np.pad(self.tracks, ((0, 0), self._added(self.tracks.shape[1])))
        return torch.from_numpy(padded).to(self.model.device).expand(count, -1, -1)

    def of_tokens(self, scores: Tensor, length: int) -> Floats:
        """Scores (N, L) of all that is read, as those of the n letters of the stretch."""
        return scores[:, self.phase : self.phase + length].double().cpu().numpy()

    def of_codes(self, codes: Codes) -> Floats:
        """Letter codes (N, n) to scores (N,)."""
        return _in_parts(self._score, codes, _stretches_at_once(codes), self.model.device)

    @torch.inference_mode()
    def _score(self, codes: Codes) -> Floats:
        with compute_precision(self.model.device, "fp32"):
            letters = self.letters_of(codes)
            logits = self.network.scores(self.network(letters, self.tracks_of(len(letters))))[:, self.site]
            return self.of_logits(logits).double().cpu().numpy()

    def batches(self, codes: Codes) -> Iterator[slice]:
        """Slices of the stretches that are computed at once."""
        size = _stretches_at_once(codes)
        with compute_precision(self.model.device, "fp32"):
            for start in range(0, len(codes), size):
                yield slice(start, min(start + size, len(codes)))

    def _added(self, length: int) -> tuple[int, int]:
        """Letters added before and behind."""
        return self.phase, -(self.phase + length) % self.network.stem.stride


def _stretches_at_once(codes: Codes) -> int:
    return max(1, TOKENS_AT_ONCE // codes.shape[1])


def _in_parts(score: Callable[[Codes], Floats], codes: Codes, size: int, device: torch.device) -> Floats:
    """Scores (N,) of codes (N, n), some rows at a time."""
    parts = [codes[start : start + size] for start in range(0, len(codes), size)]
    return np.concatenate([np.empty(0), *map_batches(score, parts, device)])


LetterTarget = AttributionTarget | LocatorTarget
"""What is explained by scores of letters."""


def sequence_targets(
    model: TrainedModel, target: int, networks: Sequence[SequenceNetwork] | None = None
) -> list[AttributionTarget]:
    """What is explained of sequences, by each member of a model or by other networks of its shape.

    Parameters
    ----------
    model
        A model of sequences.
    target
        Index of the class explained.
    networks
        In place of the model's own.
    """
    chosen = model.sequence_networks if networks is None else networks
    return [AttributionTarget(model, network, target) for network in chosen]


def ensemble_score(targets: Sequence[LetterTarget], codes: Codes) -> Floats:
    """Mean score over the members: (N,). With two classes, the log-odds of the model itself.

    Parameters
    ----------
    targets
        One for each member.
    codes
        (N, n) letter codes of records of one length.
    """
    return np.mean([one.of_codes(codes) for one in targets], axis=0)


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentTarget(_Target[AxialTransformer]):
    """What is explained of an alignment: the log-odds of class ``target`` for its ``tokens`` (R, 1 + C)."""

    tokens: Ints

    @property
    def batch(self) -> Tensor:
        """The tokens as a batch of one: (1, R, 1 + C)."""
        return torch.from_numpy(self.tokens)[None].to(self.model.device)

    def of_hidden(self, hidden: Bools) -> Floats:
        """Log-odds (N,) with columns hidden: flags (N, C), CLS not counted."""
        return self._score([self._hide(columns) for columns in hidden])

    def of_rows(self, kept: Bools) -> Floats:
        """Log-odds (N,) with some rows only: flags (N, R), the query always kept."""
        return self._score([self._keep(rows) for rows in kept])

    def letters(self) -> Bools:
        """Which cells hold a letter, not a gap: (R, C)."""
        return self.tokens[:, 1:] < FIRST_LETTER + len(self.model.alphabet.letters)  # gaps come after

    def _hide(self, columns: Bools) -> Ints:
        tokens = self.tokens.copy()
        tokens[:, 1:] = np.where(columns, MASK, tokens[:, 1:])
        return tokens

    def _keep(self, rows: Bools) -> Ints:
        return self.tokens[rows][:, np.append(True, self.letters()[rows].any(axis=0))]

    def _score(self, variants: Sequence[Ints]) -> Floats:
        result = np.empty(len(variants))
        device = self.model.device

        def compute(indices: Ints) -> None:
            with compute_precision(device, "fp32"), torch.inference_mode():
                batch = collate([variants[i] for i in indices]).to(device)
                logits = self.network(batch.tokens, *batch.masks).logits
                result[indices] = self.of_logits(logits).double().cpu().numpy()

        shapes = [one.shape for one in variants]
        map_batches(compute, size_buckets(shapes, len(variants), TOKENS_AT_ONCE), device)
        return result
