"""What a scan is told, what it tells while it runs and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from seqray.core import Alphabet, Codes, ConfigError, Floats, Intervals, Ints, Region
from seqray.core.results import SkippedRecord
from seqray.scanning.calls import CallTable
from seqray.scanning.false_calls import LETTERS_PER_MB, FalseCalls
from seqray.scanning.windows import Scorer

STRANDS = {"both": ("+", "-"), "plus": ("+",), "minus": ("-",)}
# With an FDR to keep, calls are collected from here on, or from the model's threshold if that is lower.
LOWEST_SEARCHED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """How to scan.

    Attributes
    ----------
    stride
        Letters between the starts of neighbouring windows before refinement.
    strand
        ``both``, ``plus`` or ``minus``.
    threshold
        Probability at and above which a peak is called; None takes the model's, unless ``fdr`` is given.
    fdr
        Choose the lowest threshold at which expected false calls make up at most this share of all calls.
    min_distance
        Smallest distance between the sites of two calls on one strand. The default, 50, is twice the 25
        letters within which a call is counted as right, so that no site can be found twice.
    margin
        Log-odds units, per letter between the windows scored so far, by which a peak's score may still rise
        on closer look. With 0.3 and a stride of 10, a promoter scanner found 95 % of the calls of a scan at
        stride 1 and needed 1.3 windows per window of the grid, at one call per kb.
    circular, circular_ids
        Treat all contigs, or those named, as circles; so are those that their file says are.
    max_ambiguous
        Windows with a larger share of ambiguous letters aren't scored.
    skip_soft_masked
        Leave out windows whose site is a lower-case letter.
    regions
        Call sites within these parts only; None for everything. Windows reach beyond the parts.
    null_mb
        Most millions of letters of shuffled sequence to scan for the expected false calls; 0 for none.
    seed
        Of the shuffles.
    piece
        Letters whose window starts are held at a time.
    """

    stride: int = 10
    strand: Literal["both", "plus", "minus"] = "both"
    threshold: float | None = None
    fdr: float | None = None
    min_distance: int = 50
    margin: float = 0.3
    circular: bool = False
    circular_ids: tuple[str, ...] = ()
    max_ambiguous: float = 0.1
    skip_soft_masked: bool = False
    regions: tuple[Region, ...] | None = None
    null_mb: float = 1.0
    seed: int = 0
    piece: int = 100_000

    def __post_init__(self) -> None:
        _require(self.stride >= 1, "stride", "is 1 or more")
        _require(self.strand in STRANDS, "strand", "is both, plus or minus")
        _require(self.threshold is None or 0 <= self.threshold <= 1, "threshold", "lies between 0 and 1")
        _require(self.fdr is None or 0 < self.fdr < 1, "fdr", "lies between 0 and 1")
        _require(self.fdr is None or self.threshold is None, "threshold", "and 'fdr' can't both be given")
        _require(self.min_distance >= 1, "min-distance", "is 1 or more")
        _require(self.margin >= 0, "margin", "is 0 or more")
        _require(0 <= self.max_ambiguous <= 1, "max-ambiguous", "lies between 0 and 1")
        _require(self.null_mb >= 0, "null-mb", "is 0 or more")
        _require(self.fdr is None or self.null_mb > 0, "fdr", "needs shuffled sequence, so 'null-mb' above 0")
        _require(self.seed >= 0, "seed", "is 0 or more")
        _require(self.piece >= 1, "piece", "is 1 or more")

    @property
    def strands(self) -> tuple[str, ...]:
        """``+``, ``-`` or both."""
        return STRANDS[self.strand]

    def lowest_threshold(self, default: float) -> float:
        """Threshold down to which peaks are collected, given the model's own."""
        if self.fdr is not None:
            return min(default, LOWEST_SEARCHED)
        return default if self.threshold is None else self.threshold


def _require(condition: bool, key: str, rule: str) -> None:
    if not condition:
        raise ConfigError(f"'{key}' {rule}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """Anything that scores windows of fixed length.

    Attributes
    ----------
    score
        Codes (N, W) to probabilities of the positive class (N,).
    window
        Letters per window [W].
    site
        Index of the site within the window; None for the middle.
    threshold
        Probability at and above which it calls.
    label
        Name of the positive class.
    alphabet
        The letters it reads.
    outlying
        Codes (N, W) to booleans (N,): which windows are unlike its training data; None if unknown.
    """

    score: Scorer
    window: int
    site: int | None
    threshold: float
    label: str
    alphabet: Alphabet
    outlying: Callable[[Codes], npt.NDArray[np.bool_]] | None = None

    @property
    def anchor(self) -> int:
        """Index of the site within the window; the middle where the model has none."""
        return self.window // 2 if self.site is None else self.site


@dataclass(frozen=True, slots=True)
class Contig:
    """A sequence that is scanned, without its letters.

    Attributes
    ----------
    name, length, circular
        As in the input.
    parts
        Where sites are called; None for everywhere.
    """

    name: str
    length: int
    circular: bool
    parts: Intervals | None = None

    @property
    def scanned(self) -> Intervals:
        """Where sites are called."""
        return Intervals.merge([(0, self.length)]) if self.parts is None else self.parts


@dataclass(frozen=True, slots=True)
class Share:
    """Which share of the work of a scan is done: ``number`` (from 1) of ``total``."""

    number: int = 1
    total: int = 1

    def __post_init__(self) -> None:
        _require(1 <= self.number <= self.total, "shard", "is I/N with I from 1 to N")


@dataclass(slots=True)
class ScanCounts:
    """What a scan, or a share of one, has counted.

    Attributes
    ----------
    contigs, letters, null_positions
        Of everything, in every share alike.
    positions, windows, compared, unlike
        Of this share alone: positions are summed over the strands; of the windows ``compared`` with the
        training data, so many were ``unlike`` them.
    """

    contigs: int = 0
    letters: int = 0
    null_positions: int = 0
    positions: int = 0
    windows: int = 0
    compared: int = 0
    unlike: int = 0


@dataclass(frozen=True, slots=True)
class Profile:
    """Scores along one strand of a contig, in ascending order of site: what a track shows.

    Attributes
    ----------
    contig, length, strand
        Where.
    sites
        (n,) 0-based positions.
    gaps
        (n,) letters up to the next site.
    scores
        (n,) probabilities; NaN where a window wasn't scored.
    """

    contig: str
    length: int
    strand: str
    sites: Ints
    gaps: Ints
    scores: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Listeners:
    """Who wants to know what while a scan runs.

    Attributes
    ----------
    on_skip
        Is told of every contig that can't be scanned; where None, such a contig is an error.
    on_contig
        Is told the name and length of every contig that is scanned.
    on_profile
        Is given the scores, piece by piece.
    on_windows
        Is told the number of windows scored so far.
    """

    on_skip: Callable[[SkippedRecord], None] | None = None
    on_contig: Callable[[str, int], None] | None = None
    on_profile: Callable[[Profile], None] | None = None
    on_windows: Callable[[int], None] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanResult:
    """What a scan found.

    Attributes
    ----------
    calls
        In order of the input, then of start, then strand.
    threshold
        In force; None where no threshold keeps the FDR asked for, and then there are no calls.
    false_calls
        Calls to expect by chance; None where that wasn't estimated.
    contigs, letters
        Contigs scanned and their total length.
    positions
        Positions that a site was looked for at, on each strand.
    windows
        Windows scored, refinement and shuffled sequence included.
    unlike
        Share of the windows looked at that are unlike the model's training data; None if unknown.
    """

    calls: CallTable
    threshold: float | None
    false_calls: FalseCalls | None
    contigs: int
    letters: int
    positions: int
    windows: int
    unlike: float | None

    @property
    def calls_per_mb(self) -> float:
        """Calls per million positions scanned."""
        return len(self.calls) / (self.positions / LETTERS_PER_MB) if self.positions else 0.0
