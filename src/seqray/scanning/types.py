"""What a scan works with, what it reports while it runs and what it returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core import Alphabet, Codes, Floats, Intervals, Ints
from seqray.core.results import SkippedRecord
from seqray.scanning.calls import CallTable
from seqray.scanning.false_calls import LETTERS_PER_MB, FalseCalls
from seqray.scanning.options import require
from seqray.scanning.windows import Scorer


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
        require(1 <= self.number <= self.total, "shard", "is I/N with I from 1 to N")


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
class ScanCallbacks:
    """Functions that are called while a scan runs.

    Attributes
    ----------
    on_skip
        Receives every contig that can't be scanned; where None, such a contig is an error.
    on_contig
        Receives the name and length of every contig that is scanned.
    on_profile
        Receives the scores, piece by piece.
    on_windows
        Receives the number of windows scored so far.
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
