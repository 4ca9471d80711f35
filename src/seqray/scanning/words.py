"""What a scan says: of itself in the header of its outputs and its last line, and against its calls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seqray.calibration.expected_precision import Expectation
from seqray.core.errors import setting
from seqray.core.text import counted, first_and_more
from seqray.inference.origin import CAUTION, MIN_GENOME, NO_FIGURES
from seqray.scanning.results import FalseCalls, ScanResult
from seqray.scanning.scorers import Scorer

# --- The precision to expect of the calls of a locator


def stated_precision(result: ScanResult) -> str:
    """The precision to expect, with its interval or its spread over other species, or why none is stated."""
    expectation, lowest = result.expectation, result.lowest_measured
    if not len(result.calls):
        return "not stated without calls"
    if expectation is None:
        return "not known" if lowest is None else f"not measured below a score of {lowest:.2g}"
    if own := expectation.of(result.species):
        return f"{own.precision:.2f} ({own.low:.2f} to {own.high:.2f}, {own.species})"
    if len(expectation.spread) == 1:
        [row] = expectation.spread
        return f"{row.precision:.2f} ({row.low:.2f} to {row.high:.2f}) as in {row.species}"
    others = "species that training did not see" if expectation.left_out else "species"
    of = f"median, lowest and highest of {len(expectation.spread)} {others}"
    return f"{expectation.median:.2f} ({expectation.low:.2f} to {expectation.high:.2f}, {of})"


def expected_spread(expectation: Expectation, species: str | None) -> str:
    """Where the precision to expect was measured, and how far it may be off; no species: like none."""
    row = expectation.of(species) or (expectation.spread[0] if len(expectation.spread) == 1 else None)
    if row is not None:
        left_out = row.held_out == "species"
        part = "which training left out" if left_out else "on a region that training left out"
        return f"{row.low:.2f} to {row.high:.2f} (95 % interval) in {row.species}, {part}"
    others = "species that training left out" if expectation.left_out else "species, on regions left out"
    spread = f"from {expectation.low:.2f} to {expectation.high:.2f}"
    return f"median of {len(expectation.spread)} {others}; they vary {spread}"


def noted_precision(result: ScanResult) -> tuple[str, str]:
    """For a page: the precision to expect, and how that is known; both may be empty."""
    expectation, chance = result.expectation, result.false_calls
    if expectation is not None and len(result.calls):
        return f"{result.expected_precision:.2f}", expected_spread(expectation, result.species)
    if result.lowest_measured is not None:
        return "", stated_precision(result)
    if chance is None or result.from_positions:
        return "", ""
    note = f"shuffled sequence of this length gives {chance.expected:.3g} calls; this sequence gave "
    return "", f"{note}{len(result.calls)}"


def trust_of_calls(basis: str) -> str:
    """What the words and the precision of single calls mean, and why they differ from that of all calls."""
    return (
        "high if at least 2 of 3 calls of about this score are near a mapped site ('precision' of the call), "
        f"medium from 1 of 3, else doubtful; this is {basis}; the expected precision is that of all "
        "calls together, in one species if it names one: another number, lower where few starts are mapped"
    )


# --- The header of the outputs, and the last line

_MAX_NAMED_PARTS = 5
_MIN_LETTERS_IN_MB = 10_000


def settings_facts(scorer: Scorer) -> dict[str, str]:
    """Describe what was done, for the header of every output."""
    options = scorer.options
    facts = {
        "strands": " and ".join(options.strands),
        **scorer.facts(),
        "peaks": f"sites on one strand lie at least {scorer.min_distance} apart",
    }
    if options.skip_soft_masked:
        facts["soft-masked"] = "lower-case sites are not scored"
    if options.regions is not None:
        open_ends = ((region, bool(region.start and region.end is None)) for region in options.regions)
        facts["parts"] = _named_parts([f"{region}{' to its end' * is_open}" for region, is_open in open_ends])
    return facts


def _named_parts(parts: Sequence[str]) -> str:
    return f"sites within {first_and_more(parts, _MAX_NAMED_PARTS) or 'none'} only"


def result_facts(result: ScanResult) -> dict[str, str]:
    """Describe what came out, for the header of every table of calls."""
    sequences = counted(len(result.scanned), "sequence")
    circular = sum(contig.circular for contig in result.scanned)
    facts = {
        "threshold": _threshold(result),
        "scanned": f"{sequences}, {result.letters} bases, {result.positions} positions per strand"
        f"{_within_parts(result)}",
        "circular": f"{circular} of {sequences}",
        "calls": f"{len(result.calls)}, {_frequency(result)}",
    }
    if result.parts:  # as they were searched: joined, with their ends
        parts = ((name, pair) for name, found in result.parts.items() for pair in found.pairs())
        facts["parts"] = _named_parts([f"{name}:{start + 1}-{end}" for name, (start, end) in parts])
    if result.genes is not None:
        whole = " in the whole sequences" if result.parts else ""
        facts["genes known"] = f"{result.genes.count}{whole}, {result.genes.source}"
    if result.from_positions:
        if result.false_calls is not None:
            facts["evidence from letters"] = _letter_evidence(result, result.false_calls)
        meaning = ": share of calls near a mapped site in held-out sequence; others count as false"
        stated = result.expectation is not None and len(result.calls)
        facts["expected precision"] = stated_precision(result) + (meaning if stated else "")
        if result.trust_basis:
            facts["trust"] = trust_of_calls(result.trust_basis)
    else:
        facts["expected false calls"] = _false_calls(result)
    if result.unlike is not None:
        facts["unlike training data"] = f"{100 * result.unlike:.3g} % of windows looked at"
    cautions = [text.removeprefix(CAUTION) for text in result.findings if text.startswith(CAUTION)]
    return facts | {f"caution {number}": text for number, text in enumerate(cautions, start=1)}


def _frequency(result: ScanResult) -> str:
    """Calls per Mb; of a locator per kb and per gene."""
    searched = " searched" if result.parts else ""
    if not result.from_positions:
        return f"{result.calls_per_mb:.4g} per Mb{searched}"
    per_gene = "" if result.calls_per_gene is None else f", {result.calls_per_gene:.3g} per gene"
    return f"{result.calls_per_mb / 1000:.4g} per kb{searched}{per_gene}"


def _within_parts(result: ScanResult) -> str:
    """In how many parts a scan of parts searched."""
    parts = sum(len(intervals.starts) for intervals in result.parts.values())
    return f" in {counted(parts, 'part')}" if result.parts else ""


def _threshold(result: ScanResult) -> str:
    """The threshold, and what chose it."""
    options = result.options
    if options.trust is not None:
        wanted = f"{options.trust} trust" + " or more" * (options.trust == "medium")
        none = result.threshold is None
        return f"none has {wanted}" if none else f"{result.threshold:.9g}, so that each call has {wanted}"
    if options.fdr is not None:
        wanted = f"at most {options.fdr:g} of all calls false"
        none = result.threshold is None
        return f"none keeps {wanted}" if none else f"{result.threshold:.9g}, so that {wanted}"
    if options.precision is not None:
        expectation, basis = result.expectation, "of other species"
        if options.species:
            basis = f"measured on {options.species}"
        elif expectation is None and result.lowest_measured is None:
            basis = "measured on genomes that may be unlike this one"
        elif expectation is not None and len(expectation.spread) == 1:
            basis = f"measured on {expectation.spread[0].species}"
        elif expectation is not None:
            basis = f"the median of species {'left out' if expectation.left_out else 'that were measured'}"
        return f"{result.threshold:.9g}, for an expected precision of {options.precision:g}, {basis}"
    if options.per_kb is not None:
        most = options.most_calls(result.positions)
        why = f"so that at most {options.per_kb:g} per kb are called"
        if len(result.calls) < most:
            why = f"the lowest that is searched; fewer than {options.per_kb:g} per kb reach it"
        elif 1000 * most != options.per_kb * result.positions:
            why += f", rounded to {most} in all"
        return f"{result.threshold:.9g}, {why}"
    origin = "the model's" if options.threshold is None else "as asked"
    return f"{result.threshold:.9g}, {origin}"


def _false_calls(result: ScanResult) -> str:
    """How many calls are expected by chance, and how that is estimated."""
    if result.false_calls is None:
        return "not estimated" if result.threshold is not None else "no threshold to estimate them for"
    rate = result.false_calls
    low, high = rate.expected_interval
    return (
        f"{rate.per_mb:.4g} per Mb (95 % interval {rate.low:.4g} to {rate.high:.4g}), that is "
        f"{rate.expected:.4g} ({low:.4g} to {high:.4g}) in {rate.scanned_mb:.4g} Mb; {rate.null_calls} calls "
        f"in {rate.null_mb:.4g} Mb of the input shuffled with its dinucleotides kept"
    )


def _letter_evidence(result: ScanResult, rate: FalseCalls) -> str:
    """How much rarer calls are where the letters between genes are shuffled and the genes stay."""
    per_kb = 1e-3
    return (
        f"{result.calls_per_mb * per_kb:.4g} calls per kb, and {rate.per_mb * per_kb:.4g} (95 % interval "
        f"{rate.low * per_kb:.4g} to {rate.high * per_kb:.4g}) with genes kept and the bases between them "
        f"shuffled, over {rate.null_mb:.4g} Mb; calls that genes alone explain are not false"
    )


def summary(result: ScanResult, skipped: int) -> str:
    """Summarize in one line what was scanned and found."""
    calls = len(result.calls)
    searched, whole = (
        f"{letters / 1e6:.4g} Mb" if letters >= _MIN_LETTERS_IN_MB else f"{letters} bases"
        for letters in (result.positions, result.letters)
    )
    size = whole
    if result.parts or searched != whole:  # with ``--region`` or masks they are fewer
        size = f"{searched} of {whole} searched{_within_parts(result)}"
    parts = [counted(len(result.scanned), "sequence"), *([f"{skipped} skipped"] if skipped else [])]
    parts.append(size if result.options.strand == "both" else f"{size}, {result.options.strand} strand")
    parts.append(f"{counted(calls, 'call')} ({_frequency(result)})")
    if result.false_calls is not None and not result.from_positions:
        rate = result.false_calls
        parts.append(f"expected false calls {rate.per_mb:.4g} per Mb ({rate.low:.4g} to {rate.high:.4g})")
    if result.threshold is not None:
        parts.append(f"threshold {result.threshold:.4g}")
    if calls and (result.expectation or result.lowest_measured):
        parts.append(f"precision to expect {stated_precision(result)}")
    return ", ".join(parts)


# --- When not to trust the calls

# Of the windows of training sequences 0.5 % count as unlike them, by construction.
MAX_UNLIKE_SHARE = 0.1
MIN_CONTIG_LETTERS = 2000  # a gene and what lies before it take about a thousand
MIN_GENES_PER_KB = 0.4  # bacteria and their viruses have about one
MAX_GENES_PER_KB = 1.6  # benchmarks/codon_tables.py finds 1.66 and more by a wrong codon table, else 1.46
MIN_GENOME_LETTERS = 20_000  # in fewer, numbers of genes are left to chance, and so are those of few calls
MIN_CALLS = 20
MAX_PRECISION_DIFFERENCE = 0.05
MAX_CALLS_FACTOR = 2.0  # by which calls per kb may be beyond those of all genomes measured


OF_BACTERIA = ("ecoli-promoter", "ecoli-sigma", "bacteria-promoter", "bacteria-promoter-fast")


def genome_cautions(model: str, letters: int | None) -> list[str]:
    """That a model for genomes exists, where a shipped model of windows scans a whole genome."""
    better = "'bacteria-genome' is made for genomes and finds more starts there"
    is_whole = model in OF_BACTERIA and (letters or 0) >= MIN_GENOME
    return [f"{CAUTION}'{model}' reads single windows; {better}"] if is_whole else []


def judge(result: ScanResult, findings: Sequence[str]) -> None:
    """Keep what was found of the sequences, and cautions; where another model is named, no precision."""
    if any(NO_FIGURES in text for text in findings):
        result.expectation = result.lowest_measured = None
    result.findings = [*findings, *call_cautions(result)]


def call_cautions(result: ScanResult) -> Iterator[str]:
    """Yield what speaks against the calls."""
    options = result.options
    texts = []
    if options.fdr is not None and result.threshold is None:
        texts.append(
            f"no threshold keeps expected false calls at {options.fdr:g} of all calls: the output is empty"
        )
    if options.trust is not None and result.threshold is None:
        why = f"no score has {options.trust} trust" if result.trust_basis else "no trust is known"
        texts.append(f"{why} for such sequences: the output is empty")
    if not result.positions and result.scanned:
        texts.append(
            "no position was searched: all bases are masked or ambiguous, or the parts are too short"
        )
    texts += _locator_cautions(result) if result.from_positions else _window_cautions(result)
    return (CAUTION + text for text in texts)


def _window_cautions(result: ScanResult) -> Iterator[str]:
    null = result.false_calls
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


def _locator_cautions(result: ScanResult) -> Iterator[str]:
    """Yield reasons to expect less, or something else, than the card of a locator says."""
    options = result.options
    linear = [contig.length for contig in result.scanned if not contig.circular]
    mean = sum(linear) / len(linear) if linear else None
    if mean is not None and mean < MIN_CONTIG_LETTERS:
        yield (
            f"the linear contigs have {mean:.0f} bases on average: genes are cut and sites at ends are "
            "missed, so expect less than in whole genomes"
        )
    if result.genes and sum(result.without_genes) >= MIN_CONTIG_LETTERS:
        yield (
            f"{len(result.without_genes)} of {len(result.scanned)} sequences are not named in "
            f"{result.genes.source}: there the model reads bases alone, calls have no genes, and their "
            "'precision' is that without genes, but the threshold and the precision to expect are those with "
            f"genes; scan these sequences by themselves with {setting('genes', 'predict')} or "
            f"{setting('genes', None)}"
        )
    many = result.positions >= MIN_GENOME_LETTERS or len(result.calls) >= MIN_CALLS
    if result.expectation is not None and many:
        per_kb, rows = result.calls_per_mb / 1000, result.expectation.rows
        measured = [row.calls_per_kb for row in rows]
        if not min(measured) / MAX_CALLS_FACTOR <= per_kb <= max(measured) * MAX_CALLS_FACTOR:
            have = f"genomes that were measured have {min(measured):.2g} to {max(measured):.2g}"
            have = f"{rows[0].species} has {measured[0]:.2g}" if len(rows) == 1 else have
            what = f"{per_kb:.2g} calls per kb, where {have} at this threshold"
            yield f"{what}: the precision may be another here"
    searched = result.letters if result.parts else min(result.letters, result.positions)  # which has no N
    if result.genes and searched >= MIN_GENOME_LETTERS:
        genes = result.genes.count / searched * 1000
        about = f"{genes:.2g} genes per kb are known, and bacteria have about one"
        if genes < MIN_GENES_PER_KB:
            yield f"{about}: expect other figures here"
        if genes > MAX_GENES_PER_KB:
            advice = "unless this is a virus, its genes may be cut to pieces"
            if not result.genes.source.startswith("predicted"):
                advice = "a wrong codon table can cut genes to pieces; unless this is a virus, try "
                advice += f"{setting('genes', 'predict')} with {setting('codon_table', 4)} or 11"
            yield f"{about}: {advice}"
    own = result.expectation.of(result.species) if result.expectation else None
    wanted = options.precision if options.species is None and own else None
    if wanted is not None and own and abs(own.precision - wanted) > MAX_PRECISION_DIFFERENCE:
        yield (
            f"a precision of {wanted:g} is the median of other species; in {own.species}, which the input is "
            f"like, this threshold has {own.precision:.2f}: give {setting('species', own.species)}"
        )
    if result.genes is None and result.scanned and None in result.recalls:
        yield "without genes a model for genomes finds fewer sites"
    elif result.genes is None and result.scanned:
        without, with_genes = result.recalls
        yield (
            f"without genes, at 1 call per kb, the model finds {without:.2f} of the mapped sites on average, "
            f"and with genes {with_genes:.2f}"
        )
