"""What a model answers of changed letters."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.card import Card
from seqray.core.errors import ConfigError
from seqray.core.letters import dinucleotide_shuffle
from seqray.explanations.options import LETTER_BLOCK
from seqray.inference.predictions import compute_precision, map_batches
from seqray.inference.sequences import micro_batch, pad_batch
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import Network, SequenceNetwork, build_network
from seqray.models.alignment import AxialTransformer
from seqray.models.batches import collate
from seqray.models.build import BackboneClassifier
from seqray.models.layers import ConvolutionalStem
from seqray.models.locator import LETTERS, LocatorStem, LocatorTransformer
from seqray.models.positions import PositionTerms
from seqray.models.tokenizers import FIRST_LETTER, MASK, OwnTokenizer, size_buckets

# --- What is explained: the log-odds of a class, after the temperature, by one network

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


# --- From tokens back to letters: CLS is taken out, and each token's score is spread over its letters


def to_letters(scores: npt.ArrayLike, tokenizer: OwnTokenizer, stride: int, letters: int) -> Floats:
    """Spread scores of a network's tokens evenly over the letters that they represent.

    Parameters
    ----------
    scores
        (..., 1 + T) with CLS first, where T = ceil(tokens / stride); longer for padding, which is cut.
    stride
        Tokens that the network's stem merges into one; 1 without a stem.
    letters
        Length n of the sequence.

    Returns
    -------
    array of float64, shape (..., n)
        Its sum is that of the scores without CLS and padding.
    """
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
    """Spread scores of tokens evenly over the letters of each, sequence by sequence.

    Parameters
    ----------
    scores
        (N, ..., L) of N sequences, padded at the end.
    spans
        For each sequence the half-open letter interval of each token, (L_i, 2); empty for special tokens,
        whose scores are left out.
    letters
        Length n of every sequence; the result is (N, ..., n).
    """
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


@torch.no_grad()
def spread_by_sensitivity(
    relevance: Tensor, stem: ConvolutionalStem, tokens: Tensor, terms: PositionTerms | None = None
) -> Tensor:
    """Spread relevance over the letters that each token has read.

    Parameters
    ----------
    relevance
        (B, 1 + T) with CLS first.
    tokens
        (B, 1 + N) letter tokens with CLS first, none padded.
    terms
        What letters are worth at their places, if the model has that.

    Returns
    -------
    Tensor
        (B, 1 + N) with the same sums; CLS keeps its own.
    """
    changes, letters = sensitivities(stem, tokens[:, 1:], terms)
    return torch.cat(
        (relevance[:, :1], _spread(relevance[:, 1:], changes, letters, tokens.shape[1] - 1)), dim=1
    )


@torch.no_grad()
def spread_over_stretch(relevance: Tensor, stem: LocatorStem, embedded: Tensor) -> Tensor:
    """Spread relevance of the tokens of a locator over the letters that each has read; tracks get none.

    Parameters
    ----------
    relevance
        (B, T).
    embedded
        (B, N, 4 + tracks) of `LocatorTransformer.embed`.

    Returns
    -------
    Tensor
        (B, N) with the same sums.
    """
    changes, letters = letter_changes(stem, embedded, without_letters(embedded), stem.field, stem.stride)
    return _spread(relevance, changes, letters, embedded.shape[1])


def without_letters(embedded: Tensor) -> Tensor:
    """Put the mean letter in place of each known one: (B, N, 4 + tracks); tracks stay."""
    letters, tracks = embedded.split([LETTERS, embedded.shape[-1] - LETTERS], dim=-1)
    mean = letters.sum(dim=-1, keepdim=True).expand_as(letters) / LETTERS
    return torch.cat((mean, tracks), dim=-1)


def sensitivities(
    stem: ConvolutionalStem, letters: Tensor, terms: PositionTerms | None = None
) -> tuple[Tensor, Tensor]:
    """How much each token changes when one of the letters that it reads becomes the mean letter.

    ``letters`` are (B, N) tokens, ``terms`` what letters are worth at their places, if the model has that.
    The result is that of `letter_changes`.
    """
    vectors = stem.letters(letters)  # (B, N, width)
    mean = stem.letters.weight[FIRST_LETTER:].mean(dim=0).expand_as(vectors)
    read = lambda changed: stem.read(changed, None, terms)[0]  # noqa: E731
    return letter_changes(read, vectors, mean, stem.field, stem.stride)


def letter_changes(
    read: Callable[[Tensor], Tensor], vectors: Tensor, replaced: Tensor, field: int, stride: int
) -> tuple[Tensor, Tensor]:
    """How much each token of a stem changes when one of its letters is replaced.

    No token reads letters that are further apart than its field, so every F-th letter is changed at once, and
    F passes of the stem suffice.

    Parameters
    ----------
    read
        The stem: vectors (B, N, width) to tokens (B, T, D).
    vectors, replaced
        (B, N, width), as they are, and what replaces each.
    field, stride
        Letters that a token reads [F], and those that it represents.

    Returns
    -------
    changes, places
        (B, T, F) norm of the change, and (T, F) the letter changed. Places beyond the ends have no weight.
        A token that nothing changes gets the same weight for each letter under its stride.
    """
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


def _spread(relevance: Tensor, changes: Tensor, letters: Tensor, count: int) -> Tensor:
    """Relevance (B, T) of tokens to that of their letters (B, count), in proportion to changes (B, T, F)."""
    body = relevance[..., None] * changes / changes.sum(dim=-1, keepdim=True)
    result = relevance.new_zeros(len(relevance), count)
    return result.index_add_(1, letters.clamp(0, count - 1).flatten(), body.flatten(1))


# --- In-silico mutagenesis: replace letters, run the network again, and measure the change of the score

AT_ONCE = 1 << 22  # letters of mutated sequences held at a time


def substitution_effects(codes: Codes, alphabet: Alphabet, score: Callable[[Codes], Floats]) -> Floats:
    """Change of the score for every single substitution.

    Parameters
    ----------
    codes
        (N, n) letter codes.
    score
        Codes (M, n) to the quantity explained (M,).

    Returns
    -------
    array of float64, shape (N, n, A)
        0 for the letter that is there; nan where the letter is ambiguous.
    """
    letters = len(alphabet.letters)
    count, length = codes.shape
    before = score(codes)
    effects = np.full((count, length, letters), np.nan)
    known = codes < letters
    effects[known] = 0.0
    places = np.argwhere(known)  # (S, 2): row, place
    at_once = max(1, AT_ONCE // length)
    for shift in range(1, letters):  # to each of the other letters in turn
        for start in range(0, len(places), at_once):
            row, place = places[start : start + at_once].T
            letter = (codes[row, place] + shift) % letters
            mutants = codes[row]
            mutants[np.arange(len(row)), place] = letter
            effects[row, place, letter] = score(mutants) - before[row]
    return effects


def loss_of_letters(effects: Floats) -> Floats:
    """How much the letters that are there support the target: (..., n, A) effects to (..., n).

    Minus the mean effect of the other letters; 0 for an ambiguous letter.
    """
    others = effects.shape[-1] - 1
    return np.nan_to_num(-effects.sum(axis=-1) / others)


# --- Shuffled copies that belong to a record: the same letters give the same copies, in any batch


def generator_for(codes: Codes, *keys: int) -> np.random.Generator:
    """Generator of random numbers that depends on the letters (n,) and the keys alone."""
    digest = hashlib.blake2b(codes.tobytes(), digest_size=16).digest()
    return np.random.default_rng([int.from_bytes(digest, "little"), *keys])


def shuffled_copies(codes: Codes, copies: int, *keys: int) -> Codes:
    """Shuffle a record (n,), its dinucleotides kept: (copies, n)."""
    rng = generator_for(codes, *keys)
    return np.stack([dinucleotide_shuffle(codes, rng) for _ in range(copies)])


# --- Occlusion: how much the log-odds of a class fall when a stretch of the input is hidden

REFERENCES = 4


def occlusion(
    codes: Codes, alphabet: Alphabet, score: Callable[[Codes], Floats], *, block: int = LETTER_BLOCK
) -> Floats:
    """How much the score falls when shuffled letters replace a stretch.

    Stretches of ``block`` letters are half a block apart; each record is shuffled `REFERENCES` times. The
    result (N, n) is for each letter the mean fall over the stretches that hold it, 0 for an ambiguous letter.
    ``score`` is as in `substitution_effects`.
    """
    rows = [_occlude(row, score, min(block, len(row))) for row in codes]
    return np.where(codes < len(alphabet.letters), np.array(rows).reshape(codes.shape), 0.0)


def _occlude(codes: Codes, score: Callable[[Codes], Floats], block: int) -> Floats:
    starts, places = _stretches(len(codes), block), np.arange(block)
    falls = np.zeros(len(starts))
    before = float(score(codes[None])[0])
    at_once = max(1, AT_ONCE // len(codes))
    for shuffled in shuffled_copies(codes, REFERENCES):
        for first in range(0, len(starts), at_once):
            some = slice(first, first + at_once)
            changed = starts[some, None] + places  # (S, block)
            hidden = np.tile(codes, (len(changed), 1))
            np.put_along_axis(hidden, changed, shuffled[changed], axis=1)
            falls[some] += (before - score(hidden)) / REFERENCES
    return _mean_over_stretches(falls, starts, block)


def occlude_columns(target: AlignmentTarget, block: int = 1) -> Floats:
    """Fall of the log-odds when a column is hidden in all rows: (C,), below 0 where it rises.

    Stretches of ``block`` columns are hidden, half a block apart; the score of a column is the mean over the
    stretches that hold it.
    """
    columns = target.tokens.shape[1] - 1
    block = min(block, columns)
    starts = _stretches(columns, block)
    place = np.arange(columns)
    hidden = (place >= starts[:, None]) & (place < starts[:, None] + block)  # (S, C)
    before = target.of_hidden(np.zeros((1, columns), dtype=bool))
    return _mean_over_stretches(before - target.of_hidden(hidden), starts, block)


def leave_rows_out(target: AlignmentTarget) -> Floats:
    """Fall of the log-odds when a row is left out: (R,).

    nan for the query, which can't be left out, and for a row without which no letter remains.
    """
    rows = len(target.tokens)
    falls = np.full(rows, np.nan)
    letters = target.letters().sum(axis=1)
    out = np.flatnonzero((letters.sum() > letters) & (np.arange(rows) > 0))
    if len(out):
        every = np.ones((1, rows), dtype=bool)
        falls[out] = target.of_rows(every) - target.of_rows(~np.eye(rows, dtype=bool)[out])
    return falls


def _stretches(length: int, block: int) -> Ints:
    """Starts of stretches that cover every place."""
    last = length - block
    return np.unique(np.append(np.arange(0, last + 1, max(1, block // 2)), last))


def _mean_over_stretches(falls: Floats, starts: Ints, block: int) -> Floats:
    """Falls (S,) of the stretches to the mean at each place (n,)."""
    total, covered = np.zeros(starts[-1] + block), np.zeros(starts[-1] + block)
    for start, fall in zip(starts, falls, strict=True):
        total[start : start + block] += fall
        covered[start : start + block] += 1
    return total / covered


# --- What the checks of every kind of model share: a network of random weights, and the name of the class

_SEED = 20_261_121


def randomized_network(model: TrainedModel) -> Network:
    """A network of the model's shape with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_SEED)  # a GPU's generator is left alone
        if isinstance(model.networks[0], BackboneClassifier):
            return model.networks[0].with_random_weights()
        return build_network(model.card.model).to(model.device).requires_grad_(False).eval()


def target_name(model: TrainedModel, target: str | None) -> str:
    """The class explained, for a sentence."""
    wanted = wanted_class(model.card, target)
    return "the called class" if wanted == CALLED else wanted
