"""What a scan counts and returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from seqray.calibration.expected_precision import Expectation, ExpectedPrecision
from seqray.core.arrays import Floats, Ints
from seqray.core.card_parts import LocatorFacts
from seqray.core.records import Intervals
from seqray.genome.genes import Genome
from seqray.io.calls import context_columns
from seqray.scanning.calls import CallTable
from seqray.scanning.contigs import Contig
from seqray.scanning.options import ScanOptions

LETTERS_PER_MB = 1e6

# --- How many calls would chance alone give? Those of the same scan over shuffled blocks of the input


def poisson_interval(count: int) -> tuple[float, float]:
    """Exact central 95 % interval of the mean of a Poisson variable of this value (Garwood 1936)."""
    from scipy.special import gammaincinv

    tail = (1 - 0.95) / 2
    low = float(gammaincinv(count, tail)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1 - tail))


@dataclass(frozen=True, slots=True)
class FalseCalls:
    """Calls to expect by chance at one threshold.

    ``per_mb`` million positions on the strands scanned, with a Poisson 95 % interval; ``scanned_mb`` of the
    input, and ``null_calls`` in ``null_mb`` of shuffled sequence.
    """

    per_mb: float
    low: float
    high: float
    scanned_mb: float
    null_calls: int
    null_mb: float

    @property
    def expected(self) -> float:
        """False calls to expect in the user's sequence."""
        return self.per_mb * self.scanned_mb

    @property
    def expected_interval(self) -> tuple[float, float]:
        """Poisson 95 % interval of `expected`."""
        return self.low * self.scanned_mb, self.high * self.scanned_mb


class NullScores:
    """Scores (n,) of all peaks in shuffled sequence, of which ``positions`` were scanned on each strand."""

    def __init__(self, scores: Floats, positions: int) -> None:
        self._sorted = np.sort(scores)
        self.mb = positions / LETTERS_PER_MB

    def count(self, thresholds: Floats) -> Ints:
        """Peaks that reach each threshold."""
        return len(self._sorted) - np.searchsorted(self._sorted, thresholds, "left")

    def at(self, threshold: float, positions: int) -> FalseCalls:
        """Calls to expect at a threshold where ``positions`` were scanned."""
        count = int(self.count(np.array([threshold]))[0])
        low, high = poisson_interval(count)
        return FalseCalls(
            count / self.mb, low / self.mb, high / self.mb, positions / LETTERS_PER_MB, count, self.mb
        )

    def threshold_for(self, fdr: float, scores: Floats, positions: int) -> float | None:
        """The lowest threshold at which false calls make up at most ``fdr`` of all calls; None if none does.

        The ``scores`` (n,) are of all peaks, ``positions`` scanned on each strand. One is added to the count
        in shuffled sequence (He et al. 2015, arXiv:1501.00537): none met doesn't show that there are none.
        """
        thresholds = np.unique(scores)
        calls = len(scores) - np.searchsorted(np.sort(scores), thresholds, "left")
        scale = positions / LETTERS_PER_MB / self.mb
        good = np.flatnonzero((self.count(thresholds) + 1) * scale <= fdr * calls)
        return float(thresholds[good[0]]) if len(good) else None


# --- The result


@dataclass(slots=True)
class ScanCounts:
    """Counts of a scan or of one shard; the first three are those of the whole scan, in every shard.

    Positions are summed over the strands; so many of the windows ``compared`` were ``unlike`` training data.
    """

    contigs: int = 0
    letters: int = 0
    null_positions: int = 0
    positions: int = 0
    windows: int = 0
    compared: int = 0
    unlike: int = 0


@dataclass(slots=True, kw_only=True)
class ScanResult:
    """The calls of a scan, and the figures about it."""

    calls: CallTable
    threshold: float | None
    false_calls: FalseCalls | None = None
    scanned: Sequence[Contig] = ()
    counts: ScanCounts
    strand: Literal["both", "plus", "minus"] = "both"
    genes: Genome | None = None
    from_positions: bool = False
    expectation: Expectation | None = None
    lowest_measured: float | None = None
    recalls: tuple[float | None, float | None] = (None, None)
    species: str | None = None
    trust_basis: str = ""
    findings: list[str] = field(default_factory=list)

    @property
    def context_columns(self) -> tuple[str, ...]:
        """Columns of tables for the contexts of the calls; only those of a locator have some."""
        return context_columns(self.calls.boxes) if self.from_positions else ()

    @property
    def letters(self) -> int:
        """Letters of the contigs scanned."""
        return self.counts.letters

    @property
    def positions(self) -> int:
        """Positions searched on each strand."""
        return self.counts.positions // (2 if self.strand == "both" else 1)

    @property
    def unlike(self) -> float | None:
        """Share of the windows compared that differ from the model's training data; None if unknown."""
        counts = self.counts
        return counts.unlike / counts.compared if counts.compared and self.positions else None

    @property
    def parts(self) -> dict[str, Intervals]:
        """By contig, the parts that ``ScanOptions.regions`` selected; empty if everything was searched."""
        return {contig.name: contig.parts for contig in self.scanned if contig.parts is not None}

    @property
    def without_genes(self) -> list[int]:
        """Letters of each contig whose genes are not known."""
        known = self.genes.genes if self.genes else {}
        return [contig.length for contig in self.scanned if contig.name not in known]

    @property
    def calls_per_mb(self) -> float:
        """Calls per million positions scanned."""
        return len(self.calls) / (self.positions / LETTERS_PER_MB) if self.positions else 0.0

    @property
    def expected_precision(self) -> float | None:
        """Precision to expect: of the species, or the median over others; None if nothing is known."""
        if self.expectation is None:
            return None
        own = self.expectation.of(self.species)
        return own.precision if own else self.expectation.median

    @property
    def calls_per_gene(self) -> float | None:
        """Calls per gene; None of parts or one strand, or if over a tenth is not scanned or annotated."""
        whole = not self.parts and self.strand == "both"
        known = self.letters - sum(self.without_genes)
        whole = whole and min(self.positions, known) >= 0.9 * self.letters
        return len(self.calls) / self.genes.count if whole and self.genes and self.genes.count else None


def finish_scan(
    calls: CallTable,
    null_scores: Floats,
    counts: ScanCounts,
    scanned: Iterable[Contig],
    options: ScanOptions,
    lowest: float,
    *,
    from_positions: bool,
    genes: Genome | None = None,
    figures: LocatorFacts | None = None,
    species: str | None = None,
    foreign: bool = False,
) -> ScanResult:
    """Choose the threshold, estimate the false calls to expect, and describe the calls that reach it.

    ``calls`` are peaks down to the score ``lowest``, ``null_scores`` (n,) those of shuffled sequence. A
    locator has ``from_positions``, genes, and the ``figures`` of its card; ``species`` is what the sequences
    are like, ``foreign`` that they are like nothing in its training.
    """
    null = NullScores(null_scores, counts.null_positions) if counts.null_positions else None
    positions = counts.positions // len(options.strands)
    scores = calls.scores
    threshold: float | None = lowest
    if options.fdr is not None:
        threshold = null.threshold_for(options.fdr, scores, positions) if null else None
    if options.per_kb is not None:  # more if scores are equal; all if there are not as many
        most = options.most_calls(positions)
        threshold = float(np.partition(scores, -most)[-most]) if most <= len(scores) else lowest
    result = ScanResult(
        calls=calls.reaching(np.inf if threshold is None else threshold),
        threshold=threshold,
        false_calls=None if null is None or threshold is None else null.at(threshold, positions),
        scanned=list(scanned),
        counts=counts,
        strand=options.strand,
        genes=genes,
        from_positions=from_positions,
    )
    if from_positions:
        known, expected = genes is not None, ExpectedPrecision(figures or LocatorFacts(), foreign=foreign)
        result.species, result.lowest_measured = species, expected.lowest_measured(known, species)
        result.trust_basis = expected.basis_of_calls(known, species)
        if threshold is not None and threshold >= (result.lowest_measured or 0):
            result.expectation = expected.at(threshold, known)
        without, with_genes = (expected.recall_at(1, mode, species) for mode in (False, True))
        result.recalls = without, with_genes
        result.calls.describe(genes, expected, species)
    return result
