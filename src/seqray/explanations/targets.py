"""What is explained: a number that one network gives to letters. `METHODS` needs nothing else of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.card import Card
from seqray.core.errors import ConfigError
from seqray.explanations.options import Spread
from seqray.explanations.rollout import attention_from_start
from seqray.explanations.trace import Trace, embedding_of, trace
from seqray.inference.sequences import compute_precision, map_batches, micro_batch, pad_batch
from seqray.modelfile.backbones import BackboneTokenizer
from seqray.modelfile.file import OwnDraws, build_network
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import AxialTransformer
from seqray.models.attention import PositionTerms
from seqray.models.batches import collate
from seqray.models.layers import ConvolutionalStem
from seqray.models.locator import LETTERS, LocatorStem, LocatorTransformer
from seqray.models.sequence import BackboneClassifier, Network, SequenceNetwork, SequenceTransformer
from seqray.models.tokenizers import FIRST_LETTER, MASK, OwnTokenizer, size_buckets

CALLED = "called"  # in place of a class: the one that each record is called
TOKENS_AT_ONCE = 1 << 15
_SEED = 20_261_121  # of the network of random weights

Net = TypeVar("Net")
Tracks = npt.NDArray[np.uint8]
Relevance = Callable[[Trace], Tensor]
"""A traced pass to the relevance of its tokens (B, T), or cells (B, R, C)."""


def wanted_class(card: Card, target: str | None) -> str:
    """Name of the class to explain, or `CALLED`: as asked for, else the positive one of two classes."""
    if target is not None:
        return target
    return card.positive if len(card.classes) <= 2 else CALLED


def class_explained(model: TrainedModel, target: str | None, label: str) -> int:
    """Index of the class explained for a record that is called ``label``; ConfigError for an unknown one."""
    classes = model.card.classes
    wanted = wanted_class(model.card, target)
    name = label if wanted == CALLED else wanted
    if name not in classes:
        choices = ", ".join((*classes, CALLED))
        raise ConfigError(f"model '{model.card.name}' has no class '{name}'", remedy=f"known are {choices}")
    return classes.index(name)


def randomized_network(model: TrainedModel) -> Network:
    """A network of the model's shape with random weights."""
    with OwnDraws(_SEED):
        if isinstance(model.networks[0], BackboneClassifier):
            return model.networks[0].with_random_weights()
        return build_network(model.card.model).to(model.device).requires_grad_(False).eval()


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
        """Log-odds of the class, log p / (1 - p), of logits (B, K): (B,)."""
        scaled = logits.float() / self.model.card.temperature
        others = torch.cat((scaled[..., : self.target], scaled[..., self.target + 1 :]), dim=-1)
        return scaled[..., self.target] - torch.logsumexp(others, dim=-1)

    def linear_terms(self, codes: Codes) -> Floats:
        """What letters (N, n) add by a linear part; most networks have none, which is a ConfigError."""
        raise ConfigError(f"model '{self.model.card.name}' has no linear part", remedy="use another method")

    def _slope(self, tokens: Tensor, vectors: Tensor | None = None, site: int = 0) -> tuple[Tensor, Tensor]:
        """Gradient by the embedded tokens (B, N, width), or by ``vectors`` in their place, and those."""
        network: Any = self.network
        traced = trace(network, tokens, gradients=True, attention=False, embedded=vectors, site=site)
        [slope] = torch.autograd.grad(self.of_logits(traced.logits).sum(), traced.embedded)
        return slope, traced.embedded.detach()


def mean_slope(slope: Callable[[Tensor], Tensor], start: Tensor, end: Tensor, steps: int) -> Tensor:
    """Mean of the gradient at ``steps`` points on the straight way between two points, by the midpoint rule.

    Source: Sundararajan et al. 2017, Axiomatic Attribution for Deep Networks, equation 3.
    """
    total = torch.zeros_like(end)
    for step in range(steps):
        total += slope(start + (step + 0.5) / steps * (end - start))
    return total / steps


def _in_parts(score: Callable[[Codes], Floats], codes: Codes, size: int, device: torch.device) -> Floats:
    """Scores (N,) of codes (N, n), some rows at a time."""
    parts = [codes[start : start + size] for start in range(0, len(codes), size)]
    return np.concatenate([np.empty(0), *map_batches(score, parts, device)])


# --- Scores of tokens, as those of the letters that each represents


def to_letters(scores: npt.ArrayLike, tokenizer: OwnTokenizer, stride: int, letters: int) -> Floats:
    """Spread scores of a network's tokens evenly over the letters that they represent."""
    count = tokenizer.token_length(letters) - 1
    merged = -(-count // stride)
    body = np.asarray(scores, dtype=np.float64)[..., 1 : 1 + merged]
    sizes = np.full(merged, stride)
    sizes[-1] = count - stride * (merged - 1)
    tokens = np.repeat(body / sizes, sizes, axis=-1)  # (..., count)
    starts, ends = tokenizer.spans(letters)[1:].T
    result = np.zeros((*tokens.shape[:-1], letters))
    width = int((ends - starts).max())  # of every token alike
    for offset in range(width):
        result[..., offset : offset + count] += tokens / width
    return result


def spread_over_spans(scores: Floats, spans: Sequence[Ints], letters: int) -> Floats:
    """Spread scores (N, ..., L) of tokens evenly over the letters of their spans, if any: (N, ..., n)."""
    result = np.zeros((*scores.shape[:-1], letters))
    for i, places in enumerate(spans):
        for token in np.flatnonzero(places[:, 1] > places[:, 0]):
            start, end = places[token]
            result[i, ..., start:end] += scores[i, ..., token, None] / (end - start)
    return result


def shares(scores: Floats) -> Floats:
    """Scale (..., n) non-negative scores to sum to 1; where all are 0, every letter gets the same."""
    total = scores.sum(axis=-1, keepdims=True)
    even = np.full_like(scores, 1 / max(1, scores.shape[-1]))
    return np.where(total > 0, scores / np.where(total > 0, total, 1), even)


def without_cls(grid: Tensor) -> Tensor:
    """Take CLS out and scale the rest to sum to 1: (B, R, 1 + C) -> (B, R, C); even where nothing is left."""
    rest = grid[:, :, 1:]
    total = rest.sum(dim=(1, 2), keepdim=True)
    even = torch.full_like(rest, 1 / max(1, rest[0].numel()))
    return torch.where(total > 0, rest / torch.where(total > 0, total, 1.0), even)


# --- Relevance of tokens behind a stem, spread over all letters that each has read


@torch.no_grad()
def spread_by_sensitivity(
    relevance: Tensor, stem: ConvolutionalStem, tokens: Tensor, terms: PositionTerms | None = None
) -> Tensor:
    """Spread relevance (B, 1 + T), CLS first, over the letters of tokens (B, 1 + N): (B, 1 + N)."""
    vectors = stem.letters(tokens[:, 1:])  # (B, N, width)
    mean = stem.letters.weight[FIRST_LETTER:].mean(dim=0).expand_as(vectors)
    read = lambda changed: stem.read(changed, None, terms)[0]  # noqa: E731
    changes, places = letter_changes(read, vectors, mean, stem.field, stem.stride)
    return torch.cat((relevance[:, :1], _spread(relevance[:, 1:], changes, places, vectors.shape[1])), dim=1)


@torch.no_grad()
def spread_over_stretch(relevance: Tensor, stem: LocatorStem, embedded: Tensor) -> Tensor:
    """Spread relevance (B, T) of a locator's tokens over the letters that each has read: (B, N)."""
    changes, places = letter_changes(stem, embedded, without_letters(embedded), stem.field, stem.stride)
    return _spread(relevance, changes, places, embedded.shape[1])


def without_letters(embedded: Tensor) -> Tensor:
    """Put the mean letter in place of each known one: (B, N, 4 + tracks); tracks stay."""
    letters, tracks = embedded.split([LETTERS, embedded.shape[-1] - LETTERS], dim=-1)
    mean = letters.sum(dim=-1, keepdim=True).expand_as(letters) / LETTERS
    return torch.cat((mean, tracks), dim=-1)


def letter_changes(
    read: Callable[[Tensor], Tensor], vectors: Tensor, replaced: Tensor, field: int, stride: int
) -> tuple[Tensor, Tensor]:
    """How much each token of a stem changes with each letter: one pass for each place within its field."""
    count, reach = vectors.shape[1], (field - stride) // 2
    whole = read(vectors)
    lowest = torch.arange(whole.shape[1], device=vectors.device) * stride - reach  # (T,)
    places = lowest[:, None] + torch.arange(field, device=vectors.device)  # (T, F)
    changes = whole.new_zeros(*whole.shape[:2], field)
    for turn in range(min(field, count)):
        changed = vectors.clone()
        changed[:, turn::field] = replaced[:, turn::field]
        difference = (read(changed) - whole).float().norm(dim=-1)  # (B, T)
        changes.scatter_(2, ((turn - lowest) % field).expand_as(difference)[..., None], difference[..., None])
    inside = (places >= 0) & (places < count)
    own = (places >= lowest[:, None] + reach) & (places < lowest[:, None] + reach + stride) & inside
    changes = changes * inside
    return torch.where(changes.sum(dim=-1, keepdim=True) > 0, changes, own.to(changes.dtype)), places


def _spread(relevance: Tensor, changes: Tensor, places: Tensor, count: int) -> Tensor:
    """Relevance (B, T) of tokens to that of their letters (B, count), in proportion to changes (B, T, F)."""
    body = relevance[..., None] * changes / changes.sum(dim=-1, keepdim=True)
    result = relevance.new_zeros(len(relevance), count)
    return result.index_add_(1, places.clamp(0, count - 1).flatten(), body.flatten(1))


# --- Sequences


class SequenceTarget(_Target[SequenceNetwork]):
    """The log-odds of a class for sequences."""

    def of_codes(self, codes: Codes) -> Floats:
        """Letter codes (N, n) to log-odds (N,)."""
        return _in_parts(self._score, codes, self._at_once(codes), self.model.device)

    @torch.inference_mode()
    def _score(self, codes: Codes) -> Floats:
        padded = pad_batch(codes, self._at_once(codes))
        with compute_precision(self.model.device, "fp32"):
            tokens = torch.from_numpy(self.model.tokenizer.encode_codes(padded)).to(self.model.device)
            return self.of_logits(self.network(tokens).logits)[: len(codes)].double().cpu().numpy()

    def shares(
        self, codes: Codes, spread: Spread, relevance: Relevance, *, gradients: bool = False
    ) -> Floats:
        """Carry the relevance of tokens to the letters that they have read: (N, n), rows sum to 1."""
        network = self.network
        stem = network.embedding if isinstance(network, SequenceTransformer) else None

        def of_tokens(tokens: Tensor) -> Tensor:
            by_token = relevance(trace(network, tokens, gradients=gradients))
            if spread == "span" or not isinstance(stem, ConvolutionalStem):
                return by_token
            assert isinstance(network, SequenceTransformer)
            return spread_by_sensitivity(by_token, stem, tokens, network.position_terms(tokens))

        return shares(self._by_batches(codes, of_tokens))

    def effects(self, codes: Codes, steps: int = 0) -> Floats:
        """Gradient times (letter minus the mean letter), over ``steps`` points between them: (N, n).

        The mean removes what points off the simplex of sequences (Majdandzic et al. 2023).
        """

        def of_tokens(tokens: Tensor) -> Tensor:
            if steps:
                slope, end = None, trace(self.network, tokens, attention=False).embedded
            else:
                slope, end = self._slope(tokens)
            start, are_letters = self._mean_letters(tokens, end)
            if slope is None:
                slope = mean_slope(lambda vectors: self._slope(tokens, vectors)[0], start, end, steps)
            effect = ((end - start) * slope).sum(dim=-1) * are_letters
            return F.pad(effect, (tokens.shape[1] - effect.shape[1], 0))  # CLS, not embedded, has none

        return self._by_batches(codes, of_tokens)

    def linear_terms(self, codes: Codes) -> Floats:
        """What letters add to the log-odds by the linear part, exactly: (N, n).

        With more than two classes, the logit of the class less the mean of the others.
        """
        network = self.network
        if not isinstance(network, SequenceTransformer) or (linear := network.linear) is None:
            return super().linear_terms(codes)

        def of_tokens(tokens: Tensor) -> Tensor:
            logits = linear.contributions(*network.letters_of(tokens)) / self.model.card.temperature
            others = logits.sum(dim=-1) - logits[..., self.target]
            return F.pad(logits[..., self.target] - others / (logits.shape[-1] - 1), (1, 0))

        return self._by_batches(codes, of_tokens)

    def attention(self, codes: Codes) -> Floats:
        """Attention of CLS, or of all tokens that the head reads, to the letters: (N, layers, heads, n)."""
        return self._by_batches(codes, lambda tokens: attention_from_start(trace(self.network, tokens)))

    def batches(self, codes: Codes) -> Iterator[tuple[slice, Tensor]]:
        """Yield slices of the records (N, n), each with its tokens (B, L) on the device of the model."""
        size = self._at_once(codes)
        with compute_precision(self.model.device, "fp32"):
            for start in range(0, len(codes), size):
                tokens = self.model.tokenizer.encode_codes(codes[start : start + size])
                yield slice(start, start + size), torch.from_numpy(tokens).to(self.model.device)

    def _at_once(self, codes: Codes) -> int:
        return micro_batch(self.model.card.model, codes.shape[1], self.model.device)

    @torch.no_grad()
    def _mean_letters(self, tokens: Tensor, embedded: Tensor) -> tuple[Tensor, Tensor]:
        """The embedded tokens with their letters at the mean letter, and which are letters (B, N)."""
        table, tokenizer = embedding_of(self.network), self.model.tokenizer
        if isinstance(tokenizer, BackboneTokenizer):
            letters = torch.from_numpy(tokenizer.letter_tokens).to(self.model.device)
            are_letters = torch.isin(tokens, letters)
            return torch.where(are_letters[..., None], table(letters - 1).mean(dim=0), embedded), are_letters
        weight = table.weight
        assert isinstance(weight, Tensor)
        are_letters = tokens[:, -embedded.shape[1] :] >= FIRST_LETTER  # an ambiguous one has no effect
        return weight[FIRST_LETTER:].mean(dim=0).expand_as(embedded), are_letters

    def _by_batches(self, codes: Codes, compute: Callable[[Tensor], Tensor]) -> Floats:
        """Scores of tokens, (B, L) to (B, ..., L) or to (B, ..., T) behind a stem, as those of letters."""
        tokenizer, network, length, parts = self.model.tokenizer, self.network, codes.shape[1], []
        for rows, tokens in self.batches(codes):
            scores = compute(tokens).double().cpu().numpy()
            if isinstance(network, BackboneClassifier):
                assert isinstance(tokenizer, BackboneTokenizer)
                parts.append(spread_over_spans(scores, [tokenizer.spans(row) for row in codes[rows]], length))
            else:
                assert isinstance(tokenizer, OwnTokenizer)
                stride = 1
                if isinstance(network, SequenceTransformer) and scores.shape[-1] < tokens.shape[1]:
                    stride = network.embedding.stride
                elif scores.shape[-1] < tokens.shape[1]:
                    what = f"the network merges {tokens.shape[1]} tokens to {scores.shape[-1]}"
                    raise ConfigError(what, remedy="explain it by ism or occlusion")
                parts.append(to_letters(scores, tokenizer, stride, length))
        return np.concatenate(parts)


# --- Calls of a locator


@dataclass(frozen=True, slots=True, eq=False)
class LocatorTarget(_Target[LocatorTransformer]):
    """The score, a logit, of a class at the middle of a stretch around a call."""

    # (T, n) uint8 gene tracks of the stretch, where n is 2 radius + 1; None where no genes are known. They
    # stay as they are while letters change; what they add themselves is measured in `input_effects`
    tracks: Tracks | None
    # place of the first letter within its token: tokens are counted from the first letter of the strand
    phase: int

    def of_logits(self, logits: Tensor) -> Tensor:
        """Logits (B, K) to scores (B,): each class is a question of its own, not one of several answers."""
        return logits.float()[..., self.target] / self.model.card.temperature

    def of_codes(self, codes: Codes) -> Floats:
        """Letter codes (N, n) to scores (N,)."""
        return _in_parts(self._score, codes, self._at_once(codes), self.model.device)

    @torch.inference_mode()
    def _score(self, codes: Codes) -> Floats:
        with compute_precision(self.model.device, "fp32"):
            output = self.network(*self._read(codes))
            return self.of_logits(self.network.scores(output)[:, self._site]).double().cpu().numpy()

    def shares(
        self, codes: Codes, spread: Spread, relevance: Relevance, *, gradients: bool = False
    ) -> Floats:
        """As `SequenceTarget.shares`; what falls on unknown letters is taken out."""
        stem = self.network.stem

        def of_letters(letters: Tensor, tracks: Tensor | None) -> Tensor:
            traced = trace(self.network, letters, tracks, site=self._site, gradients=gradients)
            by_token = relevance(traced)
            if spread == "span":
                return (by_token / stem.stride).repeat_interleave(stem.stride, dim=1)
            return spread_over_stretch(by_token, stem, traced.embedded.detach())

        return shares(self._by_batches(codes, of_letters) * (codes < len(self.model.alphabet.letters)))

    def effects(self, codes: Codes, steps: int = 0) -> Floats:
        """As `SequenceTarget.effects`; the genes stay."""

        def of_letters(letters: Tensor, tracks: Tensor | None) -> Tensor:
            end = self.network.embed(letters, tracks)
            start = without_letters(end)
            slope_at = lambda vectors: self._slope(letters, vectors, self._site)[0]  # noqa: E731
            slope = mean_slope(slope_at, start, end, steps) if steps else slope_at(end)
            return ((end - start) * slope).sum(dim=-1)

        return self._by_batches(codes, of_letters)

    def input_effects(self, codes: Codes) -> tuple[Floats, Floats]:
        """Gradient times (input less mean letter or unknown genes): of letters (n,) and tracks (T, n)."""
        with compute_precision(self.model.device, "fp32"):
            letters, tracks = self._read(codes[None])
            end = self.network.embed(letters, tracks)
            start = without_letters(end)
            start[..., LETTERS:] = 0
            slope, _ = self._slope(letters, end, self._site)
            [effect] = ((end - start) * slope).double().cpu().numpy()  # (L, 4 + T)
        inside = effect[self.phase : self.phase + len(codes)]
        return inside[:, :LETTERS].sum(axis=1), inside[:, LETTERS:].T

    @property
    def _site(self) -> int:
        """Index of the middle in what the network reads."""
        return self.phase + self.network.radius

    def _at_once(self, codes: Codes) -> int:
        return max(1, TOKENS_AT_ONCE // codes.shape[1])

    def _read(self, codes: Codes) -> tuple[Tensor, Tensor | None]:
        """Codes (N, n) and their tracks as whole tokens: (N, L) and (N, T, L); what is added is unknown."""
        device = self.model.device
        added = self.phase, -(self.phase + codes.shape[1]) % self.network.stem.stride
        padded = np.pad(codes, ((0, 0), added), constant_values=self.model.alphabet.unknown)
        letters = torch.from_numpy(padded).to(device)
        if self.tracks is None:
            return letters, None
        tracks = torch.from_numpy(np.pad(self.tracks, ((0, 0), added))).to(device)
        return letters, tracks.expand(len(codes), -1, -1)

    def _by_batches(self, codes: Codes, compute: Callable[[Tensor, Tensor | None], Tensor]) -> Floats:
        """Scores (N, n) of the letters from those (N, L) of all that is read, some stretches at a time."""
        size, inside, parts = self._at_once(codes), slice(self.phase, self.phase + codes.shape[1]), []
        with compute_precision(self.model.device, "fp32"):
            for start in range(0, len(codes), size):
                scores = compute(*self._read(codes[start : start + size]))
                parts.append(scores[:, inside].double().cpu().numpy())
        return np.concatenate(parts)


LetterTarget = SequenceTarget | LocatorTarget
"""What is explained by scores of letters."""


def sequence_targets(
    model: TrainedModel, target: int, networks: Sequence[SequenceNetwork] | None = None
) -> list[SequenceTarget]:
    """Targets of each member of a model of sequences, or of other networks of its shape."""
    chosen = model.sequence_networks if networks is None else networks
    return [SequenceTarget(model, network, target) for network in chosen]


def ensemble_score(targets: Sequence[LetterTarget], codes: Codes) -> Floats:
    """Mean score over the members: (N,). With two classes, the log-odds of the model itself."""
    return np.mean([target.of_codes(codes) for target in targets], axis=0)


# --- Alignments


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentTarget(_Target[AxialTransformer]):
    """The log-odds of a class for the ``tokens`` (R, 1 + C) of an alignment."""

    tokens: Ints

    def shares(self, relevance: Relevance, *, gradients: bool = False) -> Floats:
        """Relevance of the cells (R, C), CLS taken out."""
        batch = torch.from_numpy(self.tokens)[None].to(self.model.device)
        with compute_precision(self.model.device, "fp32"):
            by_cell = relevance(trace(self.network, batch, gradients=gradients))
        return without_cls(by_cell)[0].double().cpu().numpy()

    def of_hidden(self, hidden: Bools) -> Floats:
        """Log-odds (N,) with columns hidden by the mask token: flags (N, C), CLS not counted."""
        variants = np.repeat(self.tokens[None], len(hidden), axis=0)
        variants[:, :, 1:] = np.where(hidden[:, None], MASK, variants[:, :, 1:])
        return self._score(list(variants))

    def of_rows(self, chosen: Bools) -> Floats:
        """Log-odds (N,) with some rows only, and the columns in which these have letters: flags (N, R)."""
        letters = self.letters()
        columns = [np.append(True, letters[rows].any(axis=0)) for rows in chosen]
        return self._score([self.tokens[rows][:, c] for rows, c in zip(chosen, columns, strict=True)])

    def letters(self) -> Bools:
        """Which cells hold a letter, not a gap: (R, C)."""
        return self.tokens[:, 1:] < FIRST_LETTER + len(self.model.alphabet.letters)  # gaps come after

    def _score(self, variants: Sequence[Ints]) -> Floats:
        result, device = np.empty(len(variants)), self.model.device

        def compute(indices: Ints) -> None:
            with compute_precision(device, "fp32"), torch.inference_mode():
                batch = collate([variants[i] for i in indices]).to(device)
                logits = self.network(batch.tokens, *batch.masks).logits
                result[indices] = self.of_logits(logits).double().cpu().numpy()

        sizes = [variant.shape for variant in variants]
        map_batches(compute, size_buckets(sizes, len(variants), TOKENS_AT_ONCE), device)
        return result
