"""What lies around each call of a locator: genes, the boxes of a promoter, and what its score is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from seqray.annotation import Annotation, GeneIndex
from seqray.calibration import ExpectedPrecision
from seqray.core import DNA, Codes
from seqray.core.results import Box, Call, CallContext
from seqray.scanning.boxes import LENGTH, MISSING, find_boxes
from seqray.scanning.calls import LETTERS_BEFORE
from seqray.scanning.results import ScanResult

PROMOTERS = ("promoter", "TSS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What calls are described by.

    Attributes
    ----------
    lengths, circular
        Length of each contig that has calls, and names of the circular ones.
    genes
        By contig; None, or without the name of a contig, where they are not known.
    expected
        Figures of the model's card; None if it has none.
    species
        The one that the input is like, as the card names it; None if it is like none.
    boxes
        Whether to look for the boxes of sigma 70.
    """

    lengths: Mapping[str, int]
    circular: Collection[str] = frozenset()
    genes: Annotation | None = None
    expected: ExpectedPrecision | None = None
    species: str | None = None
    boxes: bool = True

    def knows_genes(self, contig: str) -> bool:
        """Whether the genes of a contig are known; it may have none."""
        return self.genes is not None and contig in self.genes.genes


def describe_result(
    result: ScanResult, expected: ExpectedPrecision, species: str | None = None
) -> ScanResult:
    """Describe the calls of a scan with a locator, and say what to expect of them; others are returned as is.

    Parameters
    ----------
    result
        Of `scan_sequences` or `gather_shards`.
    expected
        Figures of the model's card.
    species
        See `ScanResult`.
    """
    if not result.from_positions:
        return result
    calls = result.calls
    around = Surroundings(
        lengths=calls.contigs,
        circular=calls.circular,
        genes=result.genes,
        expected=expected,
        species=species,
        boxes=_shows_boxes(calls.label),
    )
    genes, threshold = result.genes is not None, result.threshold
    lowest = expected.lowest_measured(genes, species)
    return replace(
        result,
        calls=calls.describe(describe_calls(calls, calls.letters, around)),
        expectation=None if threshold is None or threshold < (lowest or 0) else expected.at(threshold, genes),
        lowest_measured=lowest,
        species=species,
    )


def _shows_boxes(label: str) -> bool:
    """Whether sites of a class may have the boxes of sigma 70."""
    return label in PROMOTERS


def describe_calls(calls: Sequence[Call], letters: Codes, around: Surroundings) -> list[CallContext]:
    """Describe calls, in their order.

    ``letters`` (n, K) are the codes around each site, as `CallTable.letters` has them; beyond the end of a
    linear contig they are unknown.
    """
    contexts = list(_contexts_with_precision(calls, around))
    indexes = _indexes(around)
    contexts = [
        _beside_genes(context, call, indexes(call.contig)) if around.knows_genes(call.contig) else context
        for context, call in zip(contexts, calls, strict=True)
    ]
    return list(_with_boxes(contexts, calls, letters, around)) if around.boxes and contexts else contexts


def _contexts_with_precision(calls: Sequence[Call], around: Surroundings) -> Iterator[CallContext]:
    """Contexts with probability and precision alone."""
    known = np.array([around.knows_genes(call.contig) for call in calls], dtype=bool)
    scores = np.array([call.score for call in calls])
    probabilities, precisions = np.full((2, len(scores)), np.nan)
    for genes, expected in product((True, False), [around.expected] if around.expected else []):
        chosen = known == genes
        values = expected.probability(scores[chosen], genes)
        probabilities[chosen] = np.nan if values is None else values
        values = expected.precisions(scores[chosen], genes, around.species)
        precisions[chosen] = np.nan if values is None else values
    for probability, precision in zip(probabilities.tolist(), precisions.tolist(), strict=True):
        yield CallContext(probability=_known(probability), precision=_known(precision))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _indexes(around: Surroundings) -> Callable[[str], GeneIndex]:
    @cache
    def index(contig: str) -> GeneIndex:
        genes = around.genes.of(contig) if around.genes else ()
        return GeneIndex(genes, around.lengths[contig], circular=contig in around.circular)

    return index


def _beside_genes(context: CallContext, call: Call, index: GeneIndex) -> CallContext:
    if found := index.downstream(call.site, call.strand):
        gene, distance = found
        context = replace(context, gene=gene.name, locus=gene.locus, distance=distance)
    if gene := index.containing(call.site, call.strand):
        return replace(context, within=gene.name, within_strand="same")
    if gene := index.antisense(call.site, call.strand):
        return replace(context, within=gene.name, within_strand="opposite")
    return context


def _with_boxes(
    contexts: Sequence[CallContext], calls: Sequence[Call], letters: Codes, around: Surroundings
) -> Iterator[CallContext]:
    found = find_boxes(letters, LETTERS_BEFORE)
    columns = zip(contexts, calls, letters, *(column.tolist() for column in found), strict=True)
    for context, call, row, ten, thirty_five, extended in columns:
        length = around.lengths[call.contig] if call.contig in around.circular else None
        minus10, minus35 = _box(call, row, ten, length), _box(call, row, thirty_five, length)
        spacer = ten - thirty_five - LENGTH if minus35 else None
        yield replace(context, minus10=minus10, minus35=minus35, spacer=spacer, extended=extended)


def _box(call: Call, row: Codes, first: int, around: int | None) -> Box | None:
    """The box whose first letter lies so far from the site; ``around`` is the length of a circle."""
    if first == MISSING:
        return None
    start = call.site + first if call.strand == "+" else call.site - first - LENGTH + 1
    letters = DNA.decode(row[LETTERS_BEFORE + first : LETTERS_BEFORE + first + LENGTH])
    return Box(start % around if around else start, letters)
