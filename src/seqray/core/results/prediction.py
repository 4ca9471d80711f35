"""Results of reading, prediction and scanning: plain, immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


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
class Box:
    """A promoter element that the letters before a site show.

    Attributes
    ----------
    start
        0-based, of its left end on the plus strand of the contig, whatever the strand of the call.
    letters
        In the direction of reading.
    """

    start: int
    letters: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What the letters and genes around a call of a locator say about it.

    Attributes
    ----------
    probability
        Share of calls of such a score that lie near a mapped site, on held-out data; None if not measured.
    precision
        Share of such calls among all of at least this score, as the card leads to expect; None if not
        measured.
    gene, locus
        Name and locus tag of the gene that starts next on the strand of the call; empty if there is none.
    distance
        Letters from the site to the first letter of its start codon: 0 for a transcript without a leader.
    within, within_strand
        Name of the gene that the site lies in, and ``same`` or ``opposite``; empty if there is none.
    minus10, minus35
        Elements of a promoter of sigma 70; None if not found.
    spacer
        Letters between the two.
    extended
        Whether TG lies one letter before the -10 element.
    """

    probability: float | None = None
    precision: float | None = None
    gene: str = ""
    locus: str = ""
    distance: int | None = None
    within: str = ""
    within_strand: Literal["same", "opposite", ""] = ""
    minus10: Box | None = None
    minus35: Box | None = None
    spacer: int | None = None
    extended: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """A site found by scanning. Coordinates are 0-based, half-open, on the plus strand of ``contig``.

    Attributes
    ----------
    contig, start, end
        Name of the sequence scanned, and the window that was scored, or what a call of a locator spans. On a
        circular contig ``end`` may exceed the contig's length: it then runs across the origin.
    strand
        ``+`` or ``-``.
    site
        Position of the transcription start (or of the window's anchor) within the contig.
    score, label
        Calibrated probability of the positive class, and its name.
    context
        Of a call of a locator; None for others.
    id
        Name in the file or table that it was read from; empty for a call that was not read.
    """

    contig: str
    start: int
    end: int
    strand: str
    site: int
    score: float
    label: str
    context: CallContext | None = None
    id: str = field(default="", compare=False)
