"""Options of negatives and their defaults; loads nothing heavy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class NegativeOptions:
    """What to make.

    Attributes
    ----------
    mix
        Share of each recipe, see `seqray.datasets.negatives.parse_mix`.
    ratio
        Negatives per positive.
    seed
        Of all that is drawn.
    label
        Of the negatives.
    shuffle_words
        2: shuffles keep dinucleotide counts, 1: letter counts; None: 2 for nucleotides, 1 for protein.
    segments, keep
        Of a substitution: segments of a positive, and how many of them stay.
    gc_bins
        Bins of GC content in which windows match positives; 0: they match in length alone.
    max_overlap
        Letters that two windows may share.
    block
        Letters of the genome that stay in one group.
    """

    mix: Mapping[str, Fraction]
    ratio: Fraction = Fraction(1)
    seed: int = 0
    label: str = "background"
    shuffle_words: int | None = None
    segments: int = 20
    keep: int = 8
    gc_bins: int = 20
    max_overlap: int = 0
    block: int = 10_000
