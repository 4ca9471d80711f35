"""What a scan returns: its calls as columns with what lies around each, its counts, and its figures."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, overload

import numpy as np

from seqray.calibration.expected_precision import Expectation, ExpectedPrecision
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.boxes import BOXES, NO_BOX, BoxPattern, find_boxes
from seqray.core.card_parts import LocatorFacts
from seqray.core.records import Contig, Intervals, SequenceRecord
from seqray.core.results import TRUST, Box, Call, CallContext
from seqray.core.text import Brief, counted, format_number
from seqray.genome.genes import FIRST_BASES, Annotation, GeneIndex
from seqray.io.calls import call_ids, context_columns
from seqray.scanning.options import ScanOptions
from seqray.scanning.scorers import LETTERS_BEFORE

# --- The calls as columns, and what lies around each: genes, boxes, and what its score is worth

PROMOTERS = ("promoter", "TSS")  # classes of sites that may have boxes


class CallTable(Sequence[Call]):
    """A sequence of `Call`, made on access from columns: 25 bytes per call, and the letters around it."""

    def __init__(self, label: str, extent: tuple[int, int]) -> None:
        self.label, self.extent = label, extent
        self.boxes: Sequence[BoxPattern] = ()  # of the kingdom of a locator
        self._contigs: list[Contig] = []
        self._columns = {"contig": array("q"), "site": array("q"), "minus": array("b"), "score": array("d")}
        self._letters: list[Codes] = []
        self._context: Mapping[str, Sequence[Any]] = {}

    def add(self, contig: Contig, strands: Sequence[tuple[str, Ints, Floats, Codes]]) -> None:
        """Append a contig's calls within its parts: of each strand sign, sites, scores, letters (n, K)."""
        minus = np.concatenate([np.full(len(sites), strand == "-") for strand, sites, _, _ in strands])
        site, score, letters = (np.concatenate(column) for column in list(zip(*strands, strict=True))[1:])
        before, after = self.extent
        start = site - np.where(minus, after, before)
        start = start % contig.length if contig.circular else np.maximum(start, 0)
        order = np.lexsort((site, minus, start))
        order = order[contig.scanned.contains(site[order])]
        if not len(order):
            return
        numbers = np.full(len(order), len(self._contigs))
        self._contigs.append(contig)
        self._extend(contig=numbers, site=site[order], minus=minus[order], score=score[order])
        if letters.size:  # those of a locator; an empty array for each contig adds up
            self._letters.append(letters[order])

    def _extend(self, **columns: Any) -> None:
        for name, values in columns.items():
            column = self._columns[name]
            column.frombytes(np.ascontiguousarray(values, dtype=column.typecode).tobytes())

    @property
    def scores(self) -> Floats:
        """(n,) scores from 0 to 1: of a model of windows calibrated probabilities, of a locator not."""
        return np.array(self._columns["score"])

    @property
    def letters(self) -> Codes:
        """(n, K) codes around each call in reading direction: of a locator, else none."""
        return np.concatenate(self._letters) if self._letters else np.empty((len(self), 0), dtype=np.uint8)

    @property
    def contigs(self) -> dict[str, int]:
        """Length of each contig that has calls."""
        return {contig.name: contig.length for contig in self._contigs}

    @property
    def circular(self) -> frozenset[str]:
        """Names of the circular contigs that have calls."""
        return frozenset(contig.name for contig in self._contigs if contig.circular)

    def in_genes_of(self, annotation: Annotation | None) -> Bools:
        """(n,) whether the genes of the contig of each call are known."""
        known = [annotation is not None and contig.name in annotation.genes for contig in self._contigs]
        return np.array(known, dtype=bool)[np.array(self._columns["contig"], dtype=int)]

    def reaching(self, threshold: float | Floats) -> CallTable:
        """Return the calls whose score is at least the threshold, or at least that of each (n,)."""
        chosen = CallTable(self.label, self.extent)
        kept = np.flatnonzero(self.scores >= threshold)
        columns = {name: np.array(column)[kept] for name, column in self._columns.items()}
        numbers, columns["contig"] = np.unique(columns["contig"], return_inverse=True)
        chosen._contigs = [self._contigs[i] for i in numbers.tolist()]
        chosen._letters = [self.letters[kept]]
        chosen._extend(**columns)
        return chosen

    def describe(
        self,
        annotation: Annotation | None = None,
        expected: ExpectedPrecision | None = None,
        species: str | None = None,
    ) -> None:
        """Add what letters, genes and the figures ``expected`` say about each call, see `CallContext`."""
        self.boxes = expected.boxes if expected else BOXES["bacteria"]
        calls, contigs = list(self), [self._contigs[number] for number in self._columns["contig"]]
        if not calls:
            return
        known = self.in_genes_of(annotation)
        scores, letters = self.scores, self.letters
        precision, trust = np.full(len(calls), np.nan), np.full(len(calls), "", dtype=object)
        for genes, figures in product((True, False), [expected] if expected else []):
            own = known == genes
            values = figures.of_calls(scores[own], genes, species)
            if values is not None:
                precision[own] = values
                # the words and their lowest precision fall; a score below those measured is doubtful
                trust[own] = [next(w for w, low in TRUST.items() if p >= low) for p in np.nan_to_num(values)]
        columns: dict[str, Sequence[Any]] = {
            "precision": [None if np.isnan(value) else value for value in precision.tolist()],
            "trust": trust.tolist(),
        }
        rows = _beside_genes(calls, contigs, annotation)
        names = ("gene", "locus", "distance", "within", "within_strand")
        columns |= dict(zip(names, zip(*rows, strict=True), strict=True))
        if self.label in PROMOTERS and self.boxes:
            places, extended = find_boxes(letters, LETTERS_BEFORE, self.boxes)
            columns["boxes"] = [*map(self._found, calls, contigs, letters, places.tolist())]
            if len(self.boxes) == 2:
                length = len(self.boxes[1].weights)
                columns["spacer"] = [a - b - length if b != NO_BOX else None for a, b in places.tolist()]
            if self.boxes[0].extension:
                first = places[:, 0].tolist()
                columns["extended"] = [
                    e if n else None for n, e in zip(first, extended.tolist(), strict=True)
                ]
        self._context = columns

    def _found(self, call: Call, contig: Contig, letters: Codes, places: Sequence[int]) -> tuple[Box, ...]:
        """The boxes whose first letters lie so far from the site."""
        boxes = []
        for pattern, first in zip(self.boxes, places, strict=True):
            end = first + len(pattern.weights)
            start = call.site + first if call.strand == "+" else call.site - end + 1
            start = start % contig.length if contig.circular else start
            if first != NO_BOX:
                shown = DNA.decode(letters[LETTERS_BEFORE + first : LETTERS_BEFORE + end])
                boxes.append(Box(pattern.name, start, shown))
        return tuple(boxes)

    def __len__(self) -> int:
        return len(self._columns["site"])

    def __iter__(self) -> Iterator[Call]:
        return map(self._call, range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        places = range(len(self))[index]
        return self._call(places) if isinstance(places, int) else [*map(self._call, places)]

    def _call(self, i: int) -> Call:
        number, site, minus, score = (column[i] for column in self._columns.values())
        contig, (left, right) = self._contigs[number], self.extent[:: -1 if minus else 1]
        if contig.circular:
            start = (site - left) % contig.length
            end = start + left + right + 1
        else:
            start, end = max(site - left, 0), min(site + right + 1, contig.length)
        context = {name: column[i] for name, column in self._context.items()}
        about = CallContext(**context) if context else None
        return Call(contig.name, start, end, "-" if minus else "+", site, score, self.label, about)


def call_records(
    calls: CallTable, contigs: Iterable[SequenceRecord], upstream: int, downstream: int
) -> Iterator[SequenceRecord]:
    """The letters around the site of each call, on its strand; none lie beyond the end of a contig."""
    by_contig: dict[str, list[tuple[str, Call]]] = {}
    for name, call in call_ids(calls):
        by_contig.setdefault(call.contig, []).append((name, call))
    for contig in contigs if by_contig else ():
        letters, length = contig.sequence, len(contig)
        for name, call in by_contig.get(contig.id, ()):
            left, right = (upstream, downstream)[:: -1 if call.strand == "-" else 1]
            start, end = call.site - left, call.site + right + 1
            places = range(start, end)
            if call.contig not in calls.circular:
                places = range(max(start, 0), min(end, length))
            piece = "".join(letters[place % length] for place in places)
            context, lost = call.context or CallContext(), left + right + 1 - len(places)
            about = {
                "gene": "_".join(context.gene.split()),
                "distance": "" if context.distance is None else str(context.distance),
                "site": f"{call.contig}:{call.site + 1}({call.strand})",
                "score": format_number(call.score),
                "trust": context.trust,
                "cut": f"{counted(lost, 'base')} beyond the end of the contig" if lost else "",
            }
            text = " ".join(f"{key}={value}" for key, value in about.items() if value)
            yield SequenceRecord(name, reverse_complement(piece, DNA) if call.strand == "-" else piece, text)


def _beside_genes(
    calls: Sequence[Call], contigs: Sequence[Contig], annotation: Annotation | None
) -> Iterator[tuple[Any, ...]]:
    """Name, locus and distance of the gene downstream, then the gene that a site lies in, and its strand."""
    index, of = None, ""
    for call, contig in zip(calls, contigs, strict=True):
        if annotation is None or call.contig not in annotation.genes:
            yield "", "", None, "", ""
            continue
        if index is None or of != call.contig:
            of = call.contig
            index = GeneIndex(annotation.of(of), contig.length, circular=contig.circular)
        found = index.downstream(call.site, call.strand, inside=FIRST_BASES)
        downstream = (found[0].name, found[0].locus, max(found[1], 0)) if found else ("", "", None)
        if gene := index.containing(call.site, call.strand):
            yield *downstream, gene.name, "same"
        else:
            gene = index.antisense(call.site, call.strand)
            yield *downstream, gene.name if gene else "", "opposite" if gene else ""


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
    """Calls to expect by chance, ``per_mb`` million positions, with a Poisson 95 % interval."""

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

        One is added to the count in shuffled sequence (He et al. 2015, arXiv:1501.00537).
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


@dataclass(slots=True, kw_only=True, repr=False)
class ScanResult(Brief):
    """The calls of a scan, and the figures about it."""

    calls: CallTable
    threshold: float | None
    false_calls: FalseCalls | None = None
    scanned: Sequence[Contig] = ()
    counts: ScanCounts
    options: ScanOptions = field(default_factory=ScanOptions)
    genes: Annotation | None = None
    from_positions: bool = False
    expectation: Expectation | None = None
    lowest_measured: float | None = None
    recalls: tuple[float | None, float | None] = (None, None)
    species: str | None = None
    trust_basis: str = ""
    operons: bool = True  # whether the genes of the kingdom have some
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
        return self.counts.positions // len(self.options.strands)

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
        whole = not self.parts and self.options.strand == "both"
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
    genes: Annotation | None = None,
    figures: LocatorFacts | None = None,
    species: str | None = None,
    foreign: bool = False,
) -> ScanResult:
    """Choose the threshold, estimate the false calls to expect, and describe the calls that reach it."""
    null = NullScores(null_scores, counts.null_positions) if counts.null_positions else None
    positions = counts.positions // len(options.strands)
    scores = calls.scores
    threshold: float | None = lowest
    if options.fdr is not None:
        threshold = null.threshold_for(options.fdr, scores, positions) if null else None
    if options.per_kb is not None:  # more if scores are equal; all if there are not as many
        most = options.most_calls(positions)
        threshold = float(np.partition(scores, -most)[-most]) if most <= len(scores) else lowest
    known, expected = genes is not None, ExpectedPrecision(figures or LocatorFacts(), foreign=foreign)
    floors: float | Floats | None = threshold
    if options.trust is not None:
        how = {"species": species, "single": True}
        without, with_genes = (
            expected.threshold_for(TRUST[options.trust], mode, **how) for mode in (False, True)
        )
        threshold = with_genes if known else without
        floors = np.where(calls.in_genes_of(genes), with_genes or np.inf, without or np.inf)
    result = ScanResult(
        calls=calls.reaching(np.inf if floors is None else floors),
        threshold=threshold,
        false_calls=None if null is None or threshold is None else null.at(threshold, positions),
        scanned=list(scanned),
        counts=counts,
        options=options,
        genes=genes,
        from_positions=from_positions,
        operons=not (figures and figures.introns),
    )
    if from_positions:
        result.species, result.lowest_measured = species, expected.lowest_measured(known, species)
        result.trust_basis = expected.basis_of_calls(known, species)
        if threshold is not None and threshold >= (result.lowest_measured or 0):
            result.expectation = expected.at(threshold, known)
        without, with_genes = (expected.recall_at(1, mode, species) for mode in (False, True))
        result.recalls = without, with_genes
        result.calls.describe(genes, expected, species)
    return result
