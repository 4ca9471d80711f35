"""What predictions, evaluations and audits return."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Floats
from seqray.core.text import Brief, counted

# --- Results of reading, prediction and scanning: plain, immutable values


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
    """A promoter element that the letters before a site show."""

    name: str  # as in `BoxPattern`
    start: int  # 0-based, of its left end on the plus strand of the contig, whatever the strand of the call
    letters: str  # in the direction of reading


TRUST = {"high": 2 / 3, "medium": 1 / 3, "doubtful": 0.0}
"""Words for the precision of a call, and the lowest precision of each."""


class SpeciesRow(NamedTuple):
    """Figures of a locator in one species at a threshold."""

    species: str  # as in `SpeciesTable`
    held_out: str
    calls_per_kb: float  # on both strands
    recall: float  # share of the mapped sites that a call is near
    precision: float  # share of the calls near a mapped site, and its interval
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """What the letters and genes around a call of a locator say about it."""

    # share of calls of about this score that lie near a mapped site, on held-out data, and one of `TRUST` for
    # it; a score below those measured has the word alone. None and empty where nothing was measured
    precision: float | None = None
    trust: str = ""
    # name and locus tag of the gene that starts next on the strand of the call; empty if there is none
    gene: str = ""
    locus: str = ""
    # letters from the site to the first letter of its start codon: 0 for a transcript without a leader, which
    # may begin one or two letters inside
    distance: int | None = None
    # name of the gene that the site lies in, and ``same`` or ``opposite``; empty if there is none
    within: str = ""
    within_strand: Literal["same", "opposite", ""] = ""
    boxes: tuple[Box, ...] = ()  # those found, the one next to the site first
    spacer: int | None = None  # letters between two
    extended: bool | None = None  # whether the first is; None if it has no extension

    @property
    def before(self) -> str:
        """How far before its gene the site lies, in words; empty if there is none."""
        if self.distance == 0:
            return "at the first bases of the gene"
        return "" if self.distance is None else f"{counted(self.distance, 'base')} before the gene"


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

    @property
    def summary(self) -> str:
        """Gene, distance to it, trust, score and boxes, as far as they are known."""
        c = self.context or CallContext()
        named = f"{c.gene} ({c.locus})" if c.locus not in ("", c.gene) else c.gene
        side = "inside" if c.within_strand == "same" else "antisense to"
        inside = f"{side} {c.within}" if c.within not in ("", c.gene) else ""
        share = "" if c.precision is None else f" (precision {c.precision:.2f})"
        trust = f"trust {c.trust}{share}" if c.trust else ""
        boxes = [f"{box.name} {box.letters}" for box in reversed(c.boxes)]
        return ", ".join(filter(None, (named, c.before, inside, trust, f"score {self.score:.3g}", *boxes)))


# --- Results of evaluations: plain, immutable values


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answers(Brief):
    """Scores and calls of one classifier for N records."""

    source: str  # ``model``, ``against``, ``floor`` or the name of a rule, and its description
    note: str
    scores: Floats  # (N, K) a score per class; probabilities that sum to 1 where ``probabilities`` is true
    calls: npt.NDArray[np.int64]  # (N,) index of the class called
    # false for scores of another kind: they rank and call, but have no calibration
    probabilities: bool = True
    # on the score of the positive class; None if the calls don't follow from one
    threshold: float | None = None

    def reordered(self, classes: Sequence[str], order: Sequence[str]) -> Answers:
        """The same, of a classifier of ``classes``, in another order of these."""
        places = [classes.index(name) for name in order]
        calls = np.array([places.index(call) for call in self.calls.tolist()], dtype=np.int64)
        return replace(self, scores=self.scores[:, places], calls=calls)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of merit, or a difference of two, with its 95 % interval from a bootstrap over groups."""

    subset: str  # ``all``, or ``context:<name>``, or ``similarity:<range>``
    source: str  # whose figure: see `Answers`; ``model-floor`` for a difference
    # the class that counts as positive; with more than two classes also ``all`` (a figure of the whole
    # confusion table or of all probabilities) and ``macro`` (mean over the classes)
    label: str
    metric: str  # its name
    value: float  # nan if undefined, the interval also where there are fewer than two groups
    low: float
    high: float
    p: float  # of a difference: two-sided, that it is 0; nan otherwise
    n: int  # records, those of the class among them (0 for ``all`` and ``macro``), and groups drawn from
    positives: int
    groups: int


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How well predictions agree with labels.

    Attributes
    ----------
    classes, positive
        Names [K] in the order of the scores, and the class that the figures of two classes are about.
    labels
        (N,) class index of each record.
    answers
        The model first, then those it is compared with.
    figures
        All figures, those of all records first.
    split
        Name of the part of the data.
    subsets
        Number of records of each further subset.
    grouping
        What was drawn whole in the bootstrap, as text.
    draws, seed
        Of the bootstrap.
    notes
        Remarks on the figures.
    mcnemar
        Of each source that the model is compared with: records that the model alone and that the source alone
        calls right, and the exact p-value of McNemar's test.
    """

    classes: tuple[str, ...]
    positive: str
    labels: npt.NDArray[np.int64]
    answers: tuple[Answers, ...]
    figures: tuple[Figure, ...]
    split: str
    subsets: dict[str, int]
    grouping: str
    draws: int
    seed: int
    notes: tuple[str, ...] = ()
    mcnemar: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    def __repr__(self) -> str:
        label = self.positive if len(self.classes) == 2 else "all"
        shown = [f for f in self.figures if (f.subset, f.source, f.label) == ("all", "model", label)]
        values = ", ".join(f"{one.metric} {one.value:.3g}" for one in shown[:4])
        records = counted(len(self.labels), "record")
        return f"Evaluation({records}, {len(self.figures)} figures: {values}, ...)"

    def figure(self, metric: str, source: str = "model", label: str = "", subset: str = "all") -> Figure:
        """Find one figure; raises `KeyError` if there is none.

        Parameters
        ----------
        metric
            Name of the metric.
        source
            Source of the scores, see `Answers`.
        label
            Class; by default the positive class of two, or ``all`` of more.
        subset
            ``all`` or the name of a subset.
        """
        wanted = (subset, source, label or (self.positive if len(self.classes) == 2 else "all"), metric)
        for figure in self.figures:
            if (figure.subset, figure.source, figure.label, figure.metric) == wanted:
                return figure
        raise KeyError(wanted)

    def confusion(self, source: str = "model") -> npt.NDArray[np.int64]:
        """Count records by (true class, class called): (K, K)."""
        [calls] = [answers.calls for answers in self.answers if answers.source == source]
        size = len(self.classes)
        return np.bincount(self.labels * size + calls, minlength=size * size).reshape(size, size)


# --- Results of an audit: figures, histograms, and findings

SEVERITIES = ("leak", "shortcut", "caution", "note")
"""From worst to mildest: the order in which findings are reported."""

ALARMING = ("leak", "shortcut")


@dataclass(frozen=True, slots=True)
class AuditFigure:
    """One number of an audit."""

    section: str  # what it belongs to: ``counts``, ``copies``, ``rules`` and so on
    split: str  # part of the data it was measured on; ``test to train`` compares two parts
    label: str  # class it was measured on, ``*`` for all of them
    quantity: str  # its name
    value: float  # the number; shares lie between 0 and 1
    low: float = math.nan  # 95 % bootstrap interval; NaN if there is none
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem or fact to consider before training."""

    severity: str  # one of `SEVERITIES`
    kind: str  # short name of the rule that fired, as in docs/concepts/audit.md
    what: str  # one sentence with figures: what was found
    effect: str  # its effect on the measured performance
    remedy: str  # what to do about it


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of a quantity in bins, of one class in one part of the data."""

    quantity: str  # as in `AuditFigure`
    split: str
    label: str
    # edges of the bins, one more than there are bins; sequences in each, the last includes its upper edge
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit."""

    figures: Sequence[AuditFigure]  # what was measured
    histograms: Sequence[Histogram]
    findings: Sequence[Finding]  # worst first
    settings: Mapping[str, str]  # what the figures depend on, such as the length of the words: name and value

    def __repr__(self) -> str:
        shown = [f"{one.severity} {one.kind}" for one in self.findings[:4]]
        more = ["..."] * (len(self.findings) > len(shown))
        return f"Audit({counted(len(self.findings), 'finding')}: {', '.join(shown + more)})"

    @property
    def alarming(self) -> bool:
        """Whether a leak or a shortcut was found."""
        return any(finding.severity in ALARMING for finding in self.findings)
