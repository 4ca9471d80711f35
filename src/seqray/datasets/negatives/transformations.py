"""Negatives made from a positive: its letters shuffled, or most of its segments replaced."""

from __future__ import annotations

import numpy as np

from seqray.core import Codes, ConfigError, dinucleotide_shuffle


def shuffle_letters(codes: Codes, rng: np.random.Generator, words: int = 2) -> Codes:
    """Shuffle a sequence of codes (n,).

    ``words`` 1 keeps the count of each letter, 2 that of each dinucleotide.
    """
    if words not in (1, 2):
        raise ConfigError(f"shuffles that keep {words}-mers", remedy="give 1 or 2")
    return dinucleotide_shuffle(codes, rng) if words == 2 else rng.permutation(codes)


def segment_edges(length: int, segments: int) -> np.ndarray:
    """Borders of segments as even as possible: int64 (segments + 1,), from 0 to ``length``."""
    if not 1 <= segments <= length:
        raise ConfigError(
            f"{segments} segments of a sequence of {length} letters", remedy="give fewer segments"
        )
    return np.arange(segments + 1, dtype=np.int64) * length // segments


def substitute_segments(
    codes: Codes, rng: np.random.Generator, letters: int, segments: int = 20, keep: int = 8
) -> tuple[Codes, np.ndarray]:
    """Keep some segments of a sequence and fill the others with random letters.

    Raises a ConfigError for more segments than letters, or ``keep`` outside 0 to ``segments - 1``.

    Parameters
    ----------
    codes
        (n,) letter codes.
    letters
        Number of canonical letters, drawn with equal chances.
    segments, keep
        Number of segments, and how many of them stay where they are.

    Returns
    -------
    codes : uint8 (n,)
        The negative.
    kept : int64 (keep,)
        Numbers of the segments kept, ascending.

    References
    ----------
    Oubounyt et al. 2019, DeePromoter, Front. Genet. 10:286: 20 segments, 12 of them replaced, 8 kept.
    Segments there have ``n // 20`` letters and a remainder is one segment more; here they are as even as
    possible.
    """
    if not 0 <= keep < segments:
        raise ConfigError(f"{keep} of {segments} segments are kept", remedy="keep fewer than there are")
    edges = segment_edges(len(codes), segments)
    kept = np.sort(rng.choice(segments, keep, replace=False))
    fresh = rng.integers(0, letters, len(codes)).astype(np.uint8)
    stays = np.repeat(np.isin(np.arange(segments), kept), np.diff(edges))
    return np.where(stays, codes, fresh), kept
