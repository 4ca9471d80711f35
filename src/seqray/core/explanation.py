"""What explanations of sequences and alignments return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Floats, Ints
from seqray.core.records import Alignment
from seqray.core.results import Call
from seqray.core.text import Brief, counted

# --- Results of explanations, their checks and their motifs: plain, immutable values


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record lies: 0-based, half-open, on the plus strand of ``contig``, ``length`` letters long.

    It may exceed the ends, those of a circle across the origin. ``call`` is what the record was cut for.
    """

    contig: str
    start: int
    end: int
    strand: str
    length: int
    circular: bool = True
    call: Call | None = None

    def positions(self) -> npt.NDArray[np.int64]:
        """Position in the contig of each letter of the record, as it is read; -1 beyond a linear contig."""
        places = np.arange(self.start, self.end)
        beyond = (places < 0) | (places >= self.length)
        inside = np.where(beyond & (not self.circular), -1, places % self.length)
        return inside if self.strand == "+" else inside[::-1]

    def part(self, start: int, stop: int) -> Place:
        """Where a part of the record lies: its letters ``start`` to ``stop`` in reading direction."""
        size = self.end - self.start
        first, end = (start, stop) if self.strand == "+" else (size - stop, size - start)
        turns = (self.start + first) // self.length * self.length if self.circular else 0
        return replace(self, start=self.start + first - turns, end=self.start + end - turns)


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Scores of one record by one method.

    Attributes
    ----------
    record
        Number of the record in the input, from 0; identifiers may repeat.
    id, sequence
        Of the record; n letters, 5' to 3'. The model may have read a part of them, see `spread_over`.
    label, target
        The class called, and the class explained. Rollout and value-rollout are the same for every class.
    probability
        Calibrated probability of ``target``.
    method
        Its name, for example ``rollout``.
    member
        ``mean`` of all members, or the number of one, from 1.
    signed
        Whether a score below 0 speaks against ``target``; if not, scores are shares that sum to 1.
    scores
        (n,) float64, one a letter; 0 for an ambiguous letter of a signed method, nan for a letter that the
        model did not read.
    effects
        (n, A) float64: change of the log-odds of ``target`` when the letter is replaced by letter a of the
        alphabet; 0 for the letter itself, nan in rows of ambiguous letters and of letters that were not read.
        None if not computed.
    p, q
        (n,) empirical p-value of each score among shuffled copies of the record, and the same after
        Benjamini and Hochberg over the record; nan for letters that were not read. None if not computed.
    attention
        (layers, heads, n) attention of CLS, or of all tokens that the head reads, to each letter, the mean
        over members. None if not computed.
    place
        Where the record lies in a longer sequence, if known.
    first
        Index in the record of the first letter; above 0 for a part of a record.
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
    first: int = 0

    def __repr__(self) -> str:
        highest = np.argsort(-np.nan_to_num(np.abs(self.scores)), kind="stable")[:3]
        letters = [f"{self.sequence[i]}{self.first + i + 1} {self.scores[i]:.3g}" for i in highest]
        called = f"{self.target} {self.probability:.3g}"
        what = f"{self.method} of {counted(len(self.sequence), 'letter')}"
        return f"Explanation({self.id!r}, {called}, {what}: {', '.join(letters)}, ...)"

    def spread_over(self, kept: Ints) -> Explanation:
        """The same for all letters of the sequence, nan where it was not read, from those ``kept`` (n,)."""
        size = len(self.sequence)
        if len(kept) == size:
            return self
        spread_out = self._with_letters(lambda values: _spread(values, kept, size))
        if self.attention is None:
            return spread_out
        attention = np.zeros((*self.attention.shape[:2], size))
        attention[..., kept] = self.attention
        return replace(spread_out, attention=attention)

    def _with_letters(self, change: Callable[[Floats], Floats]) -> Explanation:
        """The same with other values of the letters, the first axis of all but the attention."""
        values = {name: getattr(self, name) for name in ("scores", "effects", "p", "q")}
        return replace(self, **{name: None if v is None else change(v) for name, v in values.items()})

    def part(self, start: int, stop: int) -> Explanation:
        """The same for a part of the record, its letters ``start`` to ``stop``."""
        cut = slice(start, stop)
        return replace(
            self._with_letters(lambda values: values[cut]),
            sequence=self.sequence[cut],
            attention=None if self.attention is None else self.attention[..., cut],
            place=None if self.place is None else self.place.part(start, stop),
            first=self.first + start,
        )


@dataclass(frozen=True, slots=True)
class Check:
    """One figure about a method over a set of records, with a 95 % interval from a bootstrap over records."""

    method: str  # that is judged
    # ``deletion_gain``, ``insertion_gain``, ``share_of_reference``, ``rank_correlation``, ``stability``,
    # ``randomised_weights``, ...
    measure: str
    against: str  # what it is compared with: ``random``, ``ism``, another method, ...
    value: float  # the figure and its interval; nan if undefined
    low: float
    high: float
    records: int  # number of records behind it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Curve(Brief):
    """Log-odds of the explained class while letters are replaced (deletion) or put back (insertion)."""

    # whose ranking decides the order (``random``: the mean of random ones); ``deletion`` or ``insertion``
    method: str
    kind: str
    shares: Floats  # (S,) share of letters replaced or put back, from 0 to 1
    mean: Floats  # (S,) over records, with a 95 % bootstrap interval
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Faithfulness:
    """Whether rankings are faithful, for this model and these records."""

    checks: tuple[Check, ...]  # the figures, and the conclusion for each method in a sentence or two
    curves: tuple[Curve, ...]
    verdicts: dict[str, str]

    def __repr__(self) -> str:
        return f"Faithfulness({'; '.join(text.split(': ')[0] for text in self.verdicts.values())})"


@dataclass(frozen=True, slots=True, eq=False)
class HeadFigures:
    """One attention head of one member, the means over records."""

    member: int  # counted from 1
    layer: int
    head: int
    # of the weights of a query, over its largest possible value: 0 for one key, 1 for equal weights
    entropy: float
    distance: float  # mean distance in letters between query and key, CLS left out
    cls_mass: float  # share of the weights of all queries that goes to CLS
    # change of the log-odds of the explained class when the head gives zeros; below 0 it supported it
    importance: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Motif(Brief):
    """A pattern of sites with high scores."""

    # ``motif_1`` for the one with the most sites; letters of the alphabet in the order of the columns
    name: str
    letters: str
    counts: Floats  # (w, A) count of each letter at each position of the aligned sites
    bits: Floats  # (w,) information content of each place over the background of the records
    sites: int  # number of sites
    positions: npt.NDArray[np.int64]  # (sites,) index in the record of each site's first place
    consensus: str  # most frequent letters, or IUPAC codes where no letter is in half of the sites
    # name of the known consensus that resembles it most, with the similarity; empty if none was given
    known: str = ""
    # mean over the places of the known consensus of the share of sites that agree with it, at the best shift;
    # nan if none was given
    similarity: float = float("nan")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class InputShares(Brief):
    """What the letters and the genes around a call add to its score."""

    record: int  # as in `Explanation`
    id: str
    place: Place
    target: str
    probability: float
    score: float  # log-odds of ``target``, the mean over the members
    # share of the letters in the sum of all absolute effects by gradient times input, the rest being that of
    # the gene tracks; letters are compared with the mean letter, tracks with those of unknown genes
    letters: float
    without_genes: float  # change of the score when the genes are hidden; 0 where they are not known
    # mean change of the score when a shuffled copy with the same dinucleotides replaces the letters
    shuffled: float
    # effect of each gene track by gradient times input, summed over the positions; its sign is that of the
    # change of the score
    tracks: dict[str, float]


# --- Explanations of alignments: scores of columns, rows and pairs of columns, in the file's coordinates


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlignmentScores(Brief):
    """Scores by one method of the R' rows and C' columns that a model has read."""

    method: str  # its name, and whether a score below 0 speaks against the class; if not, scores sum to 1
    signed: bool
    columns: Floats  # (C',) and (R',) scores; nan if a row has none, as the query has under occlusion
    rows: Floats
    grid: Floats | None = None  # (R', C') score of each cell; None if the method has none


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AlignmentExplanation(Brief):
    """Scores of one alignment by all methods."""

    # number in the input, from 0 (ids may repeat), and the alignment in the file: R rows, C columns
    record: int
    alignment: Alignment
    label: str  # the class called, and the class explained. Rollout is the same for every class
    target: str
    # calibrated probability of each class, in the order of the card, and that of ``target``
    probabilities: tuple[float, ...]
    probability: float
    rows: Ints  # (R',) and (C',) 0-based indices, ascending, of what the model has read; row 0 is the query
    columns: Ints
    scores: tuple[AlignmentScores, ...]  # by method, in the order requested

    @property
    def id(self) -> str:
        """Of the alignment."""
        return self.alignment.id

    def by_column(self, scores: AlignmentScores) -> Floats:
        """Score of every column of the file: (C,), nan if it wasn't read."""
        return _spread(scores.columns, self.columns, self.alignment.columns)

    def by_row(self, scores: AlignmentScores) -> Floats:
        """Score of every row of the file: (R,), nan if it has none."""
        return _spread(scores.rows, self.rows, self.alignment.rows)


def _spread(values: Floats, places: Ints, size: int) -> Floats:
    result = np.full((size, *values.shape[1:]), np.nan)
    result[places] = values
    return result
