"""What a scan says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from seqray.calibration.expected_precision import Expectation
    from seqray.core.records import Region
    from seqray.scanning.detectors import Detector
    from seqray.scanning.options import ScanOptions
    from seqray.scanning.results import ScanResult


# --- What is said of the calls of a locator: the precision to expect


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


# --- What a scan says of itself: the header of its outputs and its last line

_MAX_NAMED_PARTS = 5
_MIN_LETTERS_IN_MB = 10_000


def settings_facts(detector: Detector, options: ScanOptions) -> dict[str, str]:
    """Describe what was done, for the header of every output."""
    facts = {
        "strands": " and ".join(options.strands),
        **detector.facts(options),
        "peaks": f"sites on one strand lie at least {detector.distance(options)} apart",
    }
    if options.skip_soft_masked:
        facts["soft-masked"] = "sites in lower-case letters are not scored"
    if options.regions is not None:
        facts["parts"] = _named_parts([_named_part(region) for region in options.regions])
    return facts


def _named_part(region: Region) -> str:
    return f"{region} to its end" if region.start and region.end is None else str(region)


def _named_parts(parts: Sequence[str]) -> str:
    more = len(parts) - _MAX_NAMED_PARTS
    named = ", ".join(parts[:_MAX_NAMED_PARTS]) or "none"
    return f"sites within {named}{f' and {more} more' if more > 0 else ''} only"


def result_facts(result: ScanResult, options: ScanOptions) -> dict[str, str]:
    """Describe what came out, for the header of every table of calls."""
    facts = {
        "threshold": _threshold(result, options),
        "scanned": f"{_sequences(result)}, {result.letters} letters, {result.positions} positions per strand"
        f"{_within_parts(result)}",
        "circular": f"{result.circular} of {_sequences(result)}",
        "calls": f"{len(result.calls)}, {_frequency(result)}",
    }
    if result.parts:  # as they were searched: joined, with their ends
        facts["parts"] = _named_parts(
            [f"{name}:{a + 1}-{b}" for name, found in result.parts.items() for a, b in found.pairs()]
        )
    if result.genes is not None:
        whole = " in the whole sequences" if result.parts else ""
        facts["genes known"] = f"{result.genes.count}{whole}, {result.genes.source}"
    if not result.from_positions:
        facts["expected false calls"] = false_calls(result)
    elif result.false_calls is not None:
        facts["evidence from letters"] = letter_evidence(result)
    if result.from_positions:
        facts["expected precision"] = expected_precision_fact(result)
    if result.unlike is not None:
        facts["unlike training data"] = f"{100 * result.unlike:.3g} % of windows looked at"
    return facts


def _frequency(result: ScanResult) -> str:
    """Calls per Mb; of a locator per kb and per gene."""
    searched = " searched" if result.parts else ""
    if not result.from_positions:
        return f"{result.calls_per_mb:.4g} per Mb{searched}"
    per_gene = "" if result.calls_per_gene is None else f", {result.calls_per_gene:.3g} per gene"
    return f"{result.calls_per_mb / 1000:.4g} per kb{searched}{per_gene}"


def _sequences(result: ScanResult) -> str:
    return "1 sequence" if result.contigs == 1 else f"{result.contigs} sequences"


def _searched(result: ScanResult) -> str:
    """Letters searched, of those read: with ``--region`` or masks they are fewer."""
    searched, whole = (_size(letters) for letters in (result.positions, result.letters))
    strand = "" if result.strand == "both" else f", {result.strand} strand"
    if result.parts is None and searched == whole:
        return f"{whole}{strand}"
    return f"{searched} of {whole} searched{_within_parts(result)}{strand}"


def _size(letters: int) -> str:
    return f"{letters / 1e6:.4g} Mb" if letters >= _MIN_LETTERS_IN_MB else f"{letters} letters"


def _within_parts(result: ScanResult) -> str:
    """In how many parts a scan of parts searched."""
    if result.parts is None:
        return ""
    parts = sum(len(found.starts) for found in result.parts.values())
    return " in 1 part" if parts == 1 else f" in {parts} parts"


def _precision_basis(result: ScanResult, options: ScanOptions) -> str:
    """Of which species the precision is that chose the threshold."""
    if options.species:
        return f"measured on {options.species}"
    if result.expectation is None:
        return "measured on genomes unlike this one" if result.lowest_measured is None else "of other species"
    if len(result.expectation.spread) == 1:
        return f"measured on {result.expectation.spread[0].species}"
    return f"the median of species {'left out' if result.expectation.left_out else 'that were measured'}"


def _threshold(result: ScanResult, options: ScanOptions) -> str:
    if options.fdr is not None:
        wanted = f"at most {options.fdr:g} of all calls false"
        return (
            f"none keeps {wanted}"
            if result.threshold is None
            else f"{result.threshold:.9g}, so that {wanted}"
        )
    if options.precision is not None:
        basis = _precision_basis(result, options)
        return f"{result.threshold:.9g}, for an expected precision of {options.precision:g}, {basis}"
    if options.per_kb is not None:
        return f"{result.threshold:.9g}, {_most_per_kb(options.per_kb, result, options)}"
    origin = "the model's" if options.threshold is None else "as asked"
    return f"{result.threshold:.9g}, {origin}"


def _most_per_kb(per_kb: float, result: ScanResult, options: ScanOptions) -> str:
    most = options.most_calls(result.positions)
    if len(result.calls) < most:
        return f"the lowest that is searched; fewer than {per_kb:g} per kb reach it"
    rounded = "" if 1000 * most == per_kb * result.positions else f", rounded to {most} in all"
    return f"so that at most {per_kb:g} per kb are called{rounded}"


def false_calls(result: ScanResult) -> str:
    """Report how many calls are expected by chance, and how that is estimated."""
    if result.false_calls is None:
        return "not estimated" if result.threshold is not None else "no threshold to estimate them for"
    rate = result.false_calls
    low, high = rate.expected_interval
    return (
        f"{rate.per_mb:.4g} per Mb (95 % interval {rate.low:.4g} to {rate.high:.4g}), that is "
        f"{rate.expected:.4g} ({low:.4g} to {high:.4g}) in {rate.scanned_mb:.4g} Mb; {rate.null_calls} calls "
        f"in {rate.null_mb:.4g} Mb of the input shuffled with its dinucleotides kept"
    )


def letter_evidence(result: ScanResult) -> str:
    """Report how much rarer calls are where the letters between genes are shuffled and the genes stay."""
    if result.false_calls is None:
        return "not estimated"
    rate, per_kb = result.false_calls, 1e-3
    return (
        f"{result.calls_per_mb * per_kb:.4g} calls per kb, and {rate.per_mb * per_kb:.4g} (95 % interval "
        f"{rate.low * per_kb:.4g} to {rate.high * per_kb:.4g}) with genes kept and the letters between them "
        f"shuffled, over {rate.null_mb:.4g} Mb; calls that genes alone explain are not false"
    )


def summary(result: ScanResult, skipped: int) -> str:
    """Summarize in one line what was scanned and found."""
    parts = [_sequences(result)]
    if skipped:
        parts.append(f"{skipped} skipped")
    parts.append(_searched(result))
    calls = len(result.calls)
    parts.append(f"{calls} {'call' if calls == 1 else 'calls'} ({_frequency(result)})")
    if result.false_calls is not None and not result.from_positions:
        rate = result.false_calls
        parts.append(f"expected false calls {rate.per_mb:.4g} per Mb ({rate.low:.4g} to {rate.high:.4g})")
    if result.threshold is not None:
        parts.append(f"threshold {result.threshold:.4g}")
    if calls and (result.expectation or result.lowest_measured):
        parts.append(f"precision to expect {stated_precision(result)}")
    return ", ".join(parts)
