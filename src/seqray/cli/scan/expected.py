"""What is said of the calls of a locator: the precision to expect, and when not to trust it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqray.calibration import Expectation, ExpectedPrecision
    from seqray.scanning import ScanOptions, ScanResult

SHORT_CONTIGS = 2000  # letters; a gene and what lies before it take about a thousand
FEW_GENES = 0.4  # per kb: bacteria and their viruses have about one
MANY_GENES = 1.6  # per kb: benchmarks/codon_tables.py finds 1.66 and more by a wrong codon table, else 1.46
GENOME_LETTERS = 20_000  # in fewer, numbers of genes and calls are left to chance
PRECISION_OFF = 0.05  # a difference of precisions that is mentioned
FACTOR = 2.0  # by which calls per kb may be beyond those of all genomes measured


def expected_precision(expectation: Expectation, species: str | None) -> str:
    """The precision to expect in one phrase.

    The spread over other species is reported if ``species`` was not measured.
    """
    own = expectation.of(species)
    if own is not None:
        return f"{own.precision:.2f} ({own.low:.2f} to {own.high:.2f}, {own.species})"
    others = "species that training did not see" if expectation.left_out else "species"
    if len(expectation.spread) == 1:
        [row] = expectation.spread
        return f"{row.precision:.2f} ({row.low:.2f} to {row.high:.2f}) as in {row.species}"
    of = f"median, lowest and highest of {len(expectation.spread)} {others}"
    return f"{expectation.median:.2f} ({expectation.low:.2f} to {expectation.high:.2f}, {of})"


def stated_precision(result: ScanResult) -> str:
    """The precision to expect of the calls of a locator, or why none is stated."""
    if not len(result.calls):
        return "not stated without calls"
    if result.expectation is not None:
        return expected_precision(result.expectation, result.species)
    lowest = result.lowest_measured
    return "not known" if lowest is None else f"not measured below a score of {lowest:.2g}"


def expected_precision_fact(result: ScanResult) -> str:
    """The same with its meaning, for the headers of outputs."""
    meaning = ": share of calls near a mapped site in held-out sequence; others count as false"
    return stated_precision(result) + (meaning if result.expectation and len(result.calls) else "")


def missed_without_genes(expected: ExpectedPrecision, species: str | None) -> str:
    """What a scan by letters alone costs, with figures where the card has them."""
    both = [expected.recall_at(1, genes, species) for genes in (False, True)]
    if None in both:
        return "without genes a locator finds fewer sites"
    return (
        f"without genes, at 1 call per kb, the model finds {both[0]:.2f} of the mapped sites on average, and "
        f"with genes {both[1]:.2f}"
    )


def other_precision(result: ScanResult, options: ScanOptions) -> Iterator[str]:
    """Say that ``--precision`` took other species where the input is like one that expects another figure."""
    if options.precision is None or options.species is not None or result.expectation is None:
        return
    own = result.expectation.of(result.species)
    if own is not None and abs(own.precision - options.precision) > PRECISION_OFF:
        yield (
            f"a precision of {options.precision:g} is the median of other species; in {own.species}, which "
            f"the input is like, this threshold has {own.precision:.2f}: give --species '{own.species}'"
        )


def locator_cautions(result: ScanResult) -> Iterator[str]:
    """Yield reasons to expect less, or something else, than the card of a locator says."""
    mean = result.mean_linear_length
    if mean is not None and mean < SHORT_CONTIGS:
        yield (
            f"the linear contigs have {mean:.0f} letters on average: genes are cut and sites at ends are "
            "missed, so expect less than in whole genomes"
        )
    if result.genes and result.letters_without_genes >= SHORT_CONTIGS:
        yield (
            f"{result.contigs_without_genes} of {result.contigs} sequences are not named in "
            f"{result.genes.source}: there the model reads letters alone, calls have no genes, and their "
            "'precision' is that without genes, but the threshold and the precision to expect are those with "
            "genes; scan these sequences by themselves with --genes predict or none"
        )
    if result.letters < GENOME_LETTERS:
        return
    genes = result.genes.count / result.letters * 1000 if result.genes else None
    if genes is not None and genes < FEW_GENES:
        yield f"{genes:.2g} genes per kb are known, and bacteria have about one: expect other figures here"
    if genes is not None and genes > MANY_GENES:
        yield (
            f"{genes:.2g} genes per kb are known, and bacteria have about one: a wrong codon table can cut "
            "genes to pieces; unless this is a virus, try '--genes predict' with --codon-table 4 or 11"
        )
    if result.expectation is not None and result.positions >= GENOME_LETTERS:
        yield from _frequency_cautions(result, result.expectation)


def _frequency_cautions(result: ScanResult, expectation: Expectation) -> Iterator[str]:
    found = result.calls_per_mb / 1000
    known = [row.calls_per_kb for row in expectation.rows]
    if not min(known) / FACTOR <= found <= max(known) * FACTOR:
        have = f"genomes that were measured have {min(known):.2g} to {max(known):.2g}"
        if len(known) == 1:
            have = f"{expectation.rows[0].species} has {known[0]:.2g}"
        yield f"{found:.2g} calls per kb, where {have} at this threshold: the precision may be another here"
