"""When not to trust the calls of a scan: what the model was not made for, and what the calls show."""

from __future__ import annotations

from collections.abc import Iterator

from seqray.calibration import Expectation, ExpectedPrecision
from seqray.core import Card
from seqray.inference import CAUTION
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import ScanResult

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
