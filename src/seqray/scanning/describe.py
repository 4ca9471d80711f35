"""What a scan says of its calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

from seqray.calibration.expected_precision import Expectation, ExpectedPrecision
from seqray.core.alphabet import DNA
from seqray.core.arrays import Codes
from seqray.core.card import Card
from seqray.core.results import Box, Call, CallContext
from seqray.genome.genes import Annotation, GeneIndex
from seqray.inference.origin import CAUTION
from seqray.scanning.calls import LENGTH, LETTERS_BEFORE, MISSING, find_boxes
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import ScanResult

# --- When not to trust the calls of a scan: what the model was not made for, and what the calls show

# Of the windows of training sequences 0.5 % count as unlike them, by construction.
MAX_UNLIKE_SHARE = 0.1
MIN_CONTIG_LETTERS = 2000  # a gene and what lies before it take about a thousand
MIN_GENES_PER_KB = 0.4  # bacteria and their viruses have about one
MAX_GENES_PER_KB = 1.6  # benchmarks/codon_tables.py finds 1.66 and more by a wrong codon table, else 1.46
MIN_GENOME_LETTERS = 20_000  # in fewer, numbers of genes are left to chance, and so are those of few calls
MIN_CALLS = 20
MAX_PRECISION_DIFFERENCE = 0.05
MAX_CALLS_FACTOR = 2.0  # by which calls per kb may be beyond those of all genomes measured


def model_limits(card: Card, options: ScanOptions) -> Iterator[str]:
    """Say what a model of windows was not made for."""
    if card.model.kind == "locator":
        return
    if (others := len(card.classes) - 1) > 1:
        yield f"only the class '{card.positive}' is searched, none of the {others} others"
    if card.site is None:
        yield "the model does not state where a site lies in its windows: calls state the middle"
    chosen = options.threshold is not None or options.fdr is not None
    if not chosen and "scan_threshold" not in card.info:
        yield (
            f"{CAUTION}the threshold {card.scan_threshold:.3g} is that for single windows, of which "
            f"{card.prevalence:.0%} were sites; in a genome nearly all are not, so most calls may be false: "
            "choose by fdr=... or threshold=..."
        )


def call_cautions(result: ScanResult, options: ScanOptions, expected: ExpectedPrecision) -> list[str]:
    """List cautions about the calls.

    Parameters
    ----------
    result, options
        The scan, described by `describe_result`.
    expected
        Figures of the model's card.
    """
    return [CAUTION + text for text in _call_cautions(result, options, expected)]


def _call_cautions(result: ScanResult, options: ScanOptions, expected: ExpectedPrecision) -> Iterator[str]:
    if options.fdr is not None and result.threshold is None:
        yield f"no threshold keeps expected false calls at {options.fdr:g} of all calls: the output is empty"
    if not result.positions and result.contigs:
        yield "no position was searched: all letters are masked or ambiguous, or the parts are too short"
    null = None if result.from_positions else result.false_calls
    if null is not None and null.expected_interval[1] >= len(result.calls) > 0:
        mean, low, high = (f"{count:.0f}" for count in (null.expected, *null.expected_interval))
        yield (
            f"shuffled sequence gives {mean} calls ({low} to {high}) where the input "
            f"has {len(result.calls)}: by their number, the calls can't be told from chance"
        )
    if result.unlike is not None and result.unlike > MAX_UNLIKE_SHARE:
        yield (
            f"{100 * result.unlike:.0f} % of the windows differ in composition from the model's training "
            "data; its probabilities may mean little here"
        )
    if result.from_positions:
        yield from _locator_cautions(result)
        yield from _other_precision(result, options)
        if result.genes is None:
            yield _missed_without_genes(expected, result.species)


def _missed_without_genes(expected: ExpectedPrecision, species: str | None) -> str:
    """What a scan by letters alone costs, with figures where the card has them."""
    both = [expected.recall_at(1, genes, species) for genes in (False, True)]
    if None in both:
        return "without genes a locator finds fewer sites"
    return (
        f"without genes, at 1 call per kb, the model finds {both[0]:.2f} of the mapped sites on average, and "
        f"with genes {both[1]:.2f}"
    )


def _other_precision(result: ScanResult, options: ScanOptions) -> Iterator[str]:
    """Say that ``precision`` took other species where the input is like one that expects another figure."""
    if options.precision is None or options.species is not None or result.expectation is None:
        return
    own = result.expectation.of(result.species)
    if own is not None and abs(own.precision - options.precision) > MAX_PRECISION_DIFFERENCE:
        yield (
            f"a precision of {options.precision:g} is the median of other species; in {own.species}, which "
            f"the input is like, this threshold has {own.precision:.2f}: give species='{own.species}'"
        )


def _locator_cautions(result: ScanResult) -> Iterator[str]:
    """Yield reasons to expect less, or something else, than the card of a locator says."""
    mean = result.mean_linear_length
    if mean is not None and mean < MIN_CONTIG_LETTERS:
        yield (
            f"the linear contigs have {mean:.0f} letters on average: genes are cut and sites at ends are "
            "missed, so expect less than in whole genomes"
        )
    if result.genes and result.letters_without_genes >= MIN_CONTIG_LETTERS:
        yield (
            f"{result.contigs_without_genes} of {result.contigs} sequences are not named in "
            f"{result.genes.source}: there the model reads letters alone, calls have no genes, and their "
            "'precision' is that without genes, but the threshold and the precision to expect are those with "
            "genes; scan these sequences by themselves with genes='predict' or genes=None"
        )
    if result.expectation is not None and (
        result.positions >= MIN_GENOME_LETTERS or len(result.calls) >= MIN_CALLS
    ):
        yield from _frequency_cautions(result, result.expectation)
    if result.letters < MIN_GENOME_LETTERS:
        return
    genes = result.genes.count / result.letters * 1000 if result.genes else None
    if genes is not None and genes < MIN_GENES_PER_KB:
        yield f"{genes:.2g} genes per kb are known, and bacteria have about one: expect other figures here"
    if genes is not None and genes > MAX_GENES_PER_KB:
        yield (
            f"{genes:.2g} genes per kb are known, and bacteria have about one: a wrong codon table can cut "
            "genes to pieces; unless this is a virus, try genes='predict' with codon_table=4 or 11"
        )


def _frequency_cautions(result: ScanResult, expectation: Expectation) -> Iterator[str]:
    found = result.calls_per_mb / 1000
    known = [row.calls_per_kb for row in expectation.rows]
    if not min(known) / MAX_CALLS_FACTOR <= found <= max(known) * MAX_CALLS_FACTOR:
        have = f"genomes that were measured have {min(known):.2g} to {max(known):.2g}"
        if len(known) == 1:
            have = f"{expectation.rows[0].species} has {known[0]:.2g}"
        yield f"{found:.2g} calls per kb, where {have} at this threshold: the precision may be another here"


# --- What lies around each call of a locator: genes, the boxes of a promoter, and what its score is worth

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
