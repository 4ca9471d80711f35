"""Results of reading, prediction and scanning: plain, immutable values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SkippedRecord:
    """A record that was read but not used, and why."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Prediction:
    """The classification of one record.

    Attributes
    ----------
    id, length
        Identifier of the record, and its length in letters.
    label
        The class called: the positive class where its probability reaches the model's threshold
        (two classes), else the class of highest probability.
    probabilities
        Calibrated probability per class, in the order of the model card; sums to 1.
    flags
        Reasons for caution, for example ``ambiguous=3``, ``short`` or ``out-of-domain``; empty if none.
    label_set
        Classes that can't be excluded at the requested coverage, in the order of the card; may be empty or
        all of them. None if no coverage was requested.
    """

    id: str
    length: int
    label: str
    probabilities: tuple[float, ...]
    flags: tuple[str, ...] = ()
    label_set: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A site found by scanning. Coordinates are 0-based, half-open, on the plus strand of ``contig``.

    Attributes
    ----------
    contig, start, end
        Name of the sequence scanned, and the window that was scored. On a circular contig ``end`` may exceed
        the contig's length: the window then runs across the origin.
    strand
        ``+`` or ``-``.
    site
        Position of the transcription start (or of the window's anchor) within the contig.
    score, label
        Calibrated probability of the positive class, and its name.
    """

    contig: str
    start: int
    end: int
    strand: str
    site: int
    score: float
    label: str
