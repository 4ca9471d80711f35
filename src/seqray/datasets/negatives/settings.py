"""What is asked for, the ground it is taken from, and what came out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seqray.core import Intervals, LabelledSequence
from seqray.datasets.negatives.genome import Genome
from seqray.datasets.negatives.sources import Annotation


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
