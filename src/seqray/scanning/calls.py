"""The calls of a scan as columns, and what lies around each: genes, boxes, and what its score is worth."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, overload

import numpy as np

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.arrays import Codes, Floats, Ints
from seqray.core.boxes import BOXES, NO_BOX, BoxPattern, find_boxes
from seqray.core.records import SequenceRecord
from seqray.core.results import TRUST, Box, Call, CallContext
from seqray.core.text import counted, format_number
from seqray.genome.genes import GeneIndex, Genome
from seqray.io.calls import call_ids
from seqray.scanning.contigs import Contig
from seqray.scanning.scorers import LETTERS_BEFORE

PROMOTERS = ("promoter", "TSS")
"""Classes of sites that may have boxes."""


class CallTable(Sequence[Call]):
    """A sequence of `Call`, made on access from columns: 25 bytes per call, and the letters around it.

    ``extent`` are the letters of a call before and after its site; it ends where a linear contig does.
    """

    def __init__(self, label: str, extent: tuple[int, int]) -> None:
        self.label, self.extent = label, extent
        self.boxes: Sequence[BoxPattern] = ()  # that the card of a locator has
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

    def reaching(self, threshold: float) -> CallTable:
        """Return the calls whose score is at least the threshold."""
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
        genome: Genome | None = None,
        expected: ExpectedPrecision | None = None,
        species: str | None = None,
    ) -> None:
        """Add what the letters and genes around each call of a locator say about it, see `CallContext`.

        ``genome`` is None, or without the name of a contig, where genes are not known; ``expected`` has the
        figures of the model's card, and ``species`` is the one of these that the input is like.
        """
        self.boxes = expected.boxes if expected else BOXES["bacteria"]
        calls, contigs = list(self), [self._contigs[number] for number in self._columns["contig"]]
        if not calls:
            return
        known = np.array([genome is not None and call.contig in genome.genes for call in calls], dtype=bool)
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
        rows = _beside_genes(calls, contigs, genome)
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
    calls: Sequence[Call], contigs: Sequence[Contig], genome: Genome | None
) -> Iterator[tuple[Any, ...]]:
    """Name, locus and distance of the gene downstream, then the gene that a site lies in, and its strand."""
    index, of = None, ""
    for call, contig in zip(calls, contigs, strict=True):
        if genome is None or call.contig not in genome.genes:
            yield "", "", None, "", ""
            continue
        if index is None or of != call.contig:
            of = call.contig
            index = GeneIndex(genome.of(of), contig.length, circular=contig.circular)
        found = index.downstream(call.site, call.strand)
        downstream = (found[0].name, found[0].locus, found[1]) if found else ("", "", None)
        if gene := index.containing(call.site, call.strand):
            yield *downstream, gene.name, "same"
        else:
            gene = index.antisense(call.site, call.strand)
            yield *downstream, gene.name if gene else "", "opposite" if gene else ""
