"""What the verbs return: plain, immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
    id
        Identifier of the record.
    length
        Its length in letters.
    label
        The class called: the positive class where its probability reaches the model's threshold
        (two classes), else the class of highest probability.
    probabilities
        Calibrated probability per class, in the order of the model card; sums to 1.
    flags
        Reasons for caution, for example ``ambiguous=3``, ``short`` or ``out-of-domain``; empty if none.
    label_set
        Classes that can't be ruled out at the coverage asked for, in the order of the card; may be empty or
        all of them. None where no coverage was asked for.
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
    contig
        Name of the sequence scanned.
    start, end
        The window that was scored. On a circular contig ``end`` may exceed the contig's length: the
        window then runs across the origin.
    strand
        ``+`` or ``-``.
    site
        Position of the transcription start (or of the window's anchor) within the contig.
    score
        Calibrated probability of the positive class.
    label
        Name of the positive class.
    """

    contig: str
    start: int
    end: int
    strand: str
    site: int
    score: float
    label: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies: 0-based, half-open, on the plus strand of ``contig``, ``length`` letters long.

    ``end`` may exceed ``length``, as in `Call`: the record then runs across the origin of a circle.
    """

    contig: str
    start: int
    end: int
    strand: str
    length: int

    def positions(self) -> npt.NDArray[np.int64]:
        """Position in the contig of each letter of the record, in the order in which it is read."""
        inside = np.arange(self.start, self.end) % self.length
        return inside if self.strand == "+" else inside[::-1]


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """What one method says of one record.

    Attributes
    ----------
    record
        Number of the record in the input, from 0; identifiers may repeat.
    id, sequence
        Of the record; n letters, 5' to 3' as the model read them.
    label
        The class called.
    target
        The class explained. Rollout and value-rollout are the same for every class.
    probability
        Calibrated probability of ``target``.
    method
        Its name, for example ``rollout``.
    member
        ``mean`` of all members, or the number of one, from 1.
    signed
        Whether a score below 0 speaks against ``target``; if not, scores are shares that sum to 1.
    scores
        (n,) float64, one a letter; 0 for an ambiguous letter of a signed method.
    effects
        (n, A) float64: change of the log-odds of ``target`` when the letter is replaced by letter a of the
        alphabet; 0 for the letter itself, nan in rows of ambiguous letters. None where not computed.
    p, q
        (n,) empirical p-value of each score among shuffled copies of the record, and the same after
        Benjamini and Hochberg over the record. None where not computed.
    attention
        (layers, heads, n) attention of CLS to each letter, the mean over members. None where not computed.
    place
        Where the record lies in a longer sequence, if known.
    """

    record: int
    id: str
    sequence: str
    label: str
    target: str
    probability: float
    method: str
    member: str
    signed: bool
    scores: Floats
    effects: Floats | None = None
    p: Floats | None = None
    q: Floats | None = None
    attention: Floats | None = None
    place: Place | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """One figure about a method over a set of records, with a 95 % interval from a bootstrap over records.

    Attributes
    ----------
    method
        That is judged.
    measure
        ``deletion_gain``, ``insertion_gain``, ``share_of_ism``, ``rank_correlation``, ``stability``,
        ``randomised_weights``, ...
    against
        What it is compared with: ``random``, ``ism``, another method, ...
    value, low, high
        The figure and its interval; nan where it can't be had.
    records
        Number of records behind it.
    """

    method: str
    measure: str
    against: str
    value: float
    low: float
    high: float
    records: int


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """Log-odds of the explained class while letters are replaced (deletion) or put back (insertion).

    Attributes
    ----------
    method
        Whose ranking decides the order; ``random`` for the mean of random ones.
    kind
        ``deletion`` or ``insertion``.
    shares
        (S,) share of letters replaced or put back, from 0 to 1.
    mean, low, high
        (S,) over records, with a 95 % bootstrap interval.
    """

    method: str
    kind: str
    shares: Floats
    mean: Floats
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Faithfulness:
    """Whether rankings are worth believing, for this model and these records.

    Attributes
    ----------
    checks, curves
        The figures.
    verdicts
        For each method what they mean, in a sentence or two.
    """

    checks: tuple[Check, ...]
    curves: tuple[Curve, ...]
    verdicts: dict[str, str]


@dataclass(frozen=True, slots=True, eq=False)
class HeadFigures:
    """One attention head of one member, the means over records.

    Attributes
    ----------
    member, layer, head
        Counted from 1.
    entropy
        Of the weights of a query, over its largest possible value: 0 is one key, 1 is all keys alike.
    distance
        Mean distance in letters between query and key, CLS left out.
    cls_mass
        Share of the weights of all queries that goes to CLS.
    importance
        Change of the log-odds of the explained class when the head gives zeros; below 0 it supported it.
    """

    member: int
    layer: int
    head: int
    entropy: float
    distance: float
    cls_mass: float
    importance: float


@dataclass(frozen=True, slots=True, eq=False)
class Motif:
    """Sites that high scores have in common.

    Attributes
    ----------
    name
        ``motif_1`` for the one with the most sites.
    letters
        Letters of the alphabet in the order of the columns.
    counts
        (w, A) how often each letter stands at each place of the aligned sites.
    bits
        (w,) information content of each place over the background of the records.
    sites
        Number of sites.
    positions
        (sites,) index in the record of each site's first place.
    consensus
        Most frequent letters, or IUPAC codes where no letter is in half of the sites.
    known
        Name of the known consensus that resembles it most, with the similarity; empty if none was given.
    similarity
        Mean over the places of the known consensus of the share of sites that agree with it, at the best
        shift; nan where none was given.
    """

    name: str
    letters: str
    counts: Floats
    bits: Floats
    sites: int
    positions: npt.NDArray[np.int64]
    consensus: str
    known: str = ""
    similarity: float = float("nan")


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What one classifier says of N records.

    Attributes
    ----------
    source
        ``model``, ``against``, ``floor`` or the name of a rule.
    note
        What that is, in words.
    scores
        (N, K) a score per class; probabilities that sum to 1 where ``probabilities`` is true.
    calls
        (N,) index of the class called.
    probabilities
        False for scores of another kind: they rank and call, but have no calibration.
    threshold
        On the score of the positive class; None where the calls don't follow from one.
    """

    source: str
    note: str
    scores: Floats
    calls: npt.NDArray[np.int64]
    probabilities: bool = True
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of merit, or a difference of two, with its 95 % interval from a bootstrap over groups.

    Attributes
    ----------
    subset
        ``all``, or ``context:<name>``, or ``similarity:<range>``.
    source
        Whose figure: see `Answers`; ``model-floor`` for a difference.
    label
        The class that counts as positive; with more than two classes also ``all`` (a figure of the whole
        confusion table or of all probabilities) and ``macro`` (mean over the classes).
    metric
        Its name.
    value, low, high
        nan where undefined, the interval also where there are fewer than two groups.
    p
        Of a difference: two-sided, that it is 0; nan otherwise.
    n, positives, groups
        Records, those of the class among them (0 for ``all`` and ``macro``), and groups drawn from.
    """

    subset: str
    source: str
    label: str
    metric: str
    value: float
    low: float
    high: float
    p: float
    n: int
    positives: int
    groups: int


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How well predictions agree with labels.

    Attributes
    ----------
    classes
        Names [K] in the order of the scores.
    positive
        The class that the figures of two classes are about.
    labels
        (N,) class index of each record.
    answers
        The model first, then what stands beside it.
    figures
        All figures, those of all records first.
    split
        Name of the part of the data.
    subsets
        Number of records of each further subset.
    grouping
        What was drawn whole in the bootstrap, in words.
    draws, seed
        Of the bootstrap.
    notes
        What a reader of the figures must know.
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

    def figure(self, metric: str, source: str = "model", label: str = "", subset: str = "all") -> Figure:
        """Look a figure up; without a label that of the positive class (two classes), else of ``all``.

        Raises
        ------
        KeyError
            Where there is none.
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
