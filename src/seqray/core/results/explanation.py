"""Results of explanations, their checks and their motifs: plain, immutable values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Floats


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
    """Scores of one record by one method.

    Attributes
    ----------
    record
        Number of the record in the input, from 0; identifiers may repeat.
    id, sequence
        Of the record; n letters, 5' to 3' as the model read them.
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
        (n,) float64, one a letter; 0 for an ambiguous letter of a signed method.
    effects
        (n, A) float64: change of the log-odds of ``target`` when the letter is replaced by letter a of the
        alphabet; 0 for the letter itself, nan in rows of ambiguous letters. None if not computed.
    p, q
        (n,) empirical p-value of each score among shuffled copies of the record, and the same after
        Benjamini and Hochberg over the record. None if not computed.
    attention
        (layers, heads, n) attention of CLS to each letter, the mean over members. None if not computed.
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
        ``deletion_gain``, ``insertion_gain``, ``share_of_reference``, ``rank_correlation``, ``stability``,
        ``randomised_weights``, ...
    against
        What it is compared with: ``random``, ``ism``, another method, ...
    value, low, high
        The figure and its interval; nan if undefined.
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
    method, kind
        Whose ranking decides the order (``random``: the mean of random ones); ``deletion`` or ``insertion``.
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
    """Whether rankings are faithful, for this model and these records.

    Attributes
    ----------
    checks, curves, verdicts
        The figures, and the conclusion for each method in a sentence or two.
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
        Of the weights of a query, over its largest possible value: 0 for one key, 1 for equal weights.
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
    """A pattern of sites with high scores.

    Attributes
    ----------
    name, letters
        ``motif_1`` for the one with the most sites; letters of the alphabet in the order of the columns.
    counts
        (w, A) count of each letter at each position of the aligned sites.
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
        shift; nan if none was given.
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
