"""What is asked for, the ground it is taken from, and what came out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from seqray.core import Intervals, LabelledSequence
from seqray.datasets.negatives.genome import Genome
from seqray.datasets.negatives.sources import Annotation


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


@dataclass(frozen=True)
class Ground:
    """The genome that windows are cut from, and what is known of it.

    Attributes
    ----------
    genome
        Its letters.
    annotation
        Its genes; None where no recipe asks for them.
    near_starts
        By strand, letters near known starts.
    avoiding
        Recipes whose windows keep away from these; all keep away from positives.
    """

    genome: Genome
    annotation: Annotation | None = None
    near_starts: Mapping[str, Intervals] = field(default_factory=dict)
    avoiding: frozenset[str] = frozenset(("genome",))


@dataclass(frozen=True)
class NegativeSet:
    """Positives and the negatives made for them, in groups.

    Attributes
    ----------
    positives, negatives
        Examples; the negatives recipe by recipe, in the order of their positives.
    wanted, made
        Negatives by recipe.
    placed
        Positives that were found in the genome, None without one.
    """

    positives: tuple[LabelledSequence, ...]
    negatives: tuple[LabelledSequence, ...]
    wanted: Mapping[str, int]
    made: Mapping[str, int]
    placed: int | None
