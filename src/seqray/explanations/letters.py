"""From the tokens of a network back to letters, and letters changed at random."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqray.core.alphabet import dinucleotide_shuffle
from seqray.core.arrays import Codes, Floats, Ints
from seqray.models.attention import PositionTerms
from seqray.models.layers import ConvolutionalStem
from seqray.models.locator import LETTERS, LocatorStem
from seqray.models.tokenizers import FIRST_LETTER, OwnTokenizer

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
    """Spread scores (N, ..., L) of tokens evenly over the letters of each, record by record: (N, ..., n).

    ``spans`` has for each record the half-open interval of letters of each token, (L_i, 2); empty for special
    tokens, whose scores are left out.
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
    """Spread relevance (B, 1 + T), CLS first, over the letters of tokens (B, 1 + N): (B, 1 + N).

    The sums stay, and CLS keeps its own. ``terms`` is what letters are worth at their places, if anything.
    """
    vectors = stem.letters(tokens[:, 1:])  # (B, N, width)
    mean = stem.letters.weight[FIRST_LETTER:].mean(dim=0).expand_as(vectors)
    read = lambda changed: stem.read(changed, None, terms)[0]  # noqa: E731
    changes, places = letter_changes(read, vectors, mean, stem.field, stem.stride)
    return torch.cat((relevance[:, :1], _spread(relevance[:, 1:], changes, places, vectors.shape[1])), dim=1)


@torch.no_grad()
def spread_over_stretch(relevance: Tensor, stem: LocatorStem, embedded: Tensor) -> Tensor:
    """Spread relevance (B, T) of the tokens of a locator over the letters that each has read: (B, N).

    ``embedded`` (B, N, 4 + tracks) is that of `LocatorTransformer.embed`; tracks get no share.
    """
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
    """How much each token of a stem changes when one of its letters is replaced.

    No token reads letters that are further apart than its field, so every F-th letter is changed at once, and
    F passes of the stem suffice.
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


def _spread(relevance: Tensor, changes: Tensor, places: Tensor, count: int) -> Tensor:
    """Relevance (B, T) of tokens to that of their letters (B, count), in proportion to changes (B, T, F)."""
    body = relevance[..., None] * changes / changes.sum(dim=-1, keepdim=True)
    result = relevance.new_zeros(len(relevance), count)
    return result.index_add_(1, places.clamp(0, count - 1).flatten(), body.flatten(1))


# --- Shuffled copies that belong to a record: the same letters give the same copies, in any batch


def generator_for(codes: Codes, *keys: int) -> np.random.Generator:
    """Generator of random numbers that depends on the letters (n,) and the keys alone."""
    digest = hashlib.blake2b(codes.tobytes(), digest_size=16).digest()
    return np.random.default_rng([int.from_bytes(digest, "little"), *keys])


def shuffled_copies(codes: Codes, copies: int, *keys: int) -> Codes:
    """Shuffle a record (n,), its dinucleotides kept: (copies, n)."""
    rng = generator_for(codes, *keys)
    return np.stack([dinucleotide_shuffle(codes, rng) for _ in range(copies)])
