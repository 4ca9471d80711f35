"""The calls of a scan as columns, and what lies around each: genes, boxes, and what its score is worth."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple, overload

import numpy as np

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.records import SequenceRecord
from seqray.core.results import TRUST, Box, Call, CallContext
from seqray.core.text import counted, format_number
from seqray.genome.genes import GeneIndex, Genome
from seqray.io.calls import call_ids
from seqray.scanning.contigs import Contig
from seqray.scanning.scorers import LETTERS_BEFORE

PROMOTERS = ("promoter", "TSS")
"""Classes of sites that may have the boxes of sigma 70."""


class CallTable(Sequence[Call]):
    """A sequence of `Call`, made on access from columns: 25 bytes per call, and the letters around it.

    ``extent`` are the letters of a call before and after its site; it ends where a linear contig does.
    """

    def __init__(self, label: str, extent: tuple[int, int]) -> None:
        self.label, self.extent = label, extent
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
        if self.label in PROMOTERS and (expected is None or expected.boxes):
            found = find_boxes(letters, LETTERS_BEFORE)
            ten, thirty_five = found.minus10.tolist(), found.minus35.tolist()
            for name, firsts in (("minus10", ten), ("minus35", thirty_five)):
                columns[name] = list(map(_box, calls, contigs, letters, firsts))
            spacers = zip(ten, thirty_five, strict=True)
            columns["spacer"] = [None if b == NO_BOX else a - b - BOX_LENGTH for a, b in spacers]
            columns["extended"] = found.extended.tolist()
        self._context = columns

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
        return Call(
            contig=contig.name,
            start=start,
            end=end,
            strand="-" if minus else "+",
            site=site,
            score=score,
            label=self.label,
            context=CallContext(**context) if context else None,
        )


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


def _box(call: Call, contig: Contig, letters: Codes, first: int) -> Box | None:
    """The box whose first letter lies so far from the site."""
    if first == NO_BOX:
        return None
    start = call.site + first if call.strand == "+" else call.site - first - BOX_LENGTH + 1
    shown = DNA.decode(letters[LETTERS_BEFORE + first : LETTERS_BEFORE + first + BOX_LENGTH])
    return Box(start % contig.length if contig.circular else start, shown)


BOX_LENGTH = 6
BOX_THRESHOLD = 4.0
NO_BOX = 0  # no box begins at the site

# Counts of A, C, G and T at the six positions of each box.
_COUNTS_10 = (
    *((2, 10, 11, 89), (106, 2, 1, 3), (29, 16, 18, 49)),
    *((66, 14, 17, 15), (57, 22, 14, 19), (1, 3, 0, 108)),
)
_COUNTS_35 = (
    *((2, 7, 11, 92), (6, 6, 6, 94), (2, 11, 88, 11)),
    *((72, 18, 3, 19), (26, 60, 11, 15), (50, 8, 17, 37)),
)
_SPACERS = {15: 3.5, 16: 1.0, 17: 0.0, 18: 1.0, 19: 3.5}  # letters: bits, which give 16 to 18 a share of 92 %
# From the last letter of the -10 box to the site: bits, which give 6 to 8 a share of 75 %.
_DISTANCES = {4: 2.0, 5: 2.0, 6: 0.0, 7: 0.0, 8: 0.0, 9: 2.0, 10: 2.0}
BOX_REACH = (
    max(_DISTANCES) + BOX_LENGTH + max(_SPACERS) + BOX_LENGTH
)  # letters before the site that are looked at
_NEVER = -1e9


def _weights(counts: tuple[tuple[int, ...], ...]) -> Floats:
    """Bits of each letter at each position: (6, 5); the last column is for unknown letters."""
    table = np.array(counts, dtype=np.float64) + 1
    bits = np.log2(4 * table / table.sum(axis=1, keepdims=True))
    return np.concatenate((bits, np.full((BOX_LENGTH, 1), _NEVER)), axis=1)


_WEIGHTS_10, _WEIGHTS_35 = _weights(_COUNTS_10), _weights(_COUNTS_35)


class FoundBoxes(NamedTuple):
    """Letters from N sites to the first one of a box, below 0, or `NO_BOX`; ``extended``: TG before -10."""

    minus10: Ints
    minus35: Ints
    extended: Bools


def find_boxes(codes: Codes, site: int) -> FoundBoxes:
    """Find the boxes before sites, the index ``site`` of codes (N, W) of DNA in the direction of reading."""
    pairs, alone = [], []
    for distance, cost in _DISTANCES.items():
        ten = 1 - distance - BOX_LENGTH
        bits = _score(codes, site + ten, _WEIGHTS_10) - cost
        alone.append((bits, ten, NO_BOX))
        for spacer, more in _SPACERS.items():
            other = ten - spacer - BOX_LENGTH
            pairs.append((bits + _score(codes, site + other, _WEIGHTS_35) - more, ten, other))
    bits_of_pair, pair10, pair35 = _best(pairs)
    bits_alone, alone10, _ = _best(alone)
    two, one = bits_of_pair >= BOX_THRESHOLD, bits_alone >= BOX_THRESHOLD
    minus10 = np.select([two, one], [pair10, alone10], NO_BOX)
    rows, first = np.arange(len(codes)), site + minus10
    extended = (minus10 != NO_BOX) & (codes[rows, first - 3] == 3) & (codes[rows, first - 2] == 2)  # TG
    return FoundBoxes(minus10, np.where(two, pair35, NO_BOX), extended)


def _best(arrangements: Sequence[tuple[Floats, int, int]]) -> tuple[Floats, Ints, Ints]:
    """Bits and boxes of the best arrangement, of equals the first, before each of N sites."""
    bits = np.stack([bits for bits, _, _ in arrangements])
    boxes = np.array([boxes for _, *boxes in arrangements])[bits.argmax(axis=0)]
    return bits.max(axis=0), boxes[:, 0], boxes[:, 1]


def _score(codes: Codes, start: int, weights: Floats) -> Floats:
    """Bits of the letters from one index on: (N,)."""
    letters = np.minimum(codes[:, start : start + BOX_LENGTH], 4)
    bits = weights[np.arange(BOX_LENGTH), letters].sum(axis=1)
    return np.where(bits > 0, bits, _NEVER)
