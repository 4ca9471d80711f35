"""The outputs of one scan: call tables by suffix, tracks while scanning, one header for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqray.cli.common import check_suffix
from seqray.cli.scan.expected import (
    expected_precision,
    expected_precision_fact,
    locator_cautions,
    missed_without_genes,
    other_precision,
)
from seqray.core import ConfigError, InputError, OnProgress
from seqray.io.tracks import TrackWriter, track_paths, write_bed, write_calls_tsv, write_gff3
from seqray.scanning import Detector, ScanCallbacks, ScanOptions, ScanResult, ScoreProfile

if TYPE_CHECKING:
    from seqray.calibration import ExpectedPrecision
    from seqray.cli.scan.arguments import CallOutputs
    from seqray.cli.scan.page import ScanPage
    from seqray.core import Region
    from seqray.io import Staging
    from seqray.io.sequences import Duplicates, OnSkip

GENBANK = "genbank"
FORMATS = {
    **{".gff3": "gff3", ".gff": "gff3", ".bed": "bed", ".tsv": "tsv"},
    **dict.fromkeys((".gb", ".gbk", ".gbff"), GENBANK),
}

_MOST_PARTS = 5  # that a header names
# Of the windows of training sequences 0.5 % count as unlike them, by construction.
UNLIKE_LIMIT = 0.1


@dataclass(frozen=True)
class CallFiles:
    """Names of all outputs of a scan.

    Attributes
    ----------
    calls
        Files for calls, with the format of each: ``gff3``, ``bed``, ``tsv`` or ``genbank``.
    tracks, skipped
        Names of tracks, without the strand, and of the table of skipped records, if there is one.
    page
        Name of the page, if there is one.
    """

    calls: Sequence[tuple[str, str]]
    tracks: Sequence[str] = ()
    skipped: str | None = None
    page: str | None = None

    @classmethod
    def plan(cls, outputs: CallOutputs, skipped: str | None) -> CallFiles:
        """Find the format of each output; without any, a TSV on standard output.

        Raises
        ------
        InputError
            For a name without a known suffix where no format was chosen, and a page with that of a table.
        """
        calls = [(path, _format(path, outputs.format)) for path in outputs.out or ["-"]]
        if outputs.format and all(form != outputs.format for _, form in calls):
            raise ConfigError(
                f"--format {outputs.format} and '{calls[0][0]}' are different formats",
                remedy="leave out --format",
            )
        check_suffix(outputs.html, ".html", ".htm")
        return cls(calls, outputs.track, skipped, outputs.html)

    def paths(self) -> list[str | None]:
        """Every file that will be written."""
        tracks = [str(path) for track in self.tracks for path in track_paths(track).values()]
        return [*(path for path, _ in self.calls), *tracks, self.skipped, self.page]

    @property
    def has_genbank(self) -> bool:
        """Whether the sequences are written as well."""
        return any(kind == GENBANK for _, kind in self.calls)

    @contextmanager
    def stage(self, staging: Staging, provenance: Sequence[str], name: str) -> Iterator[StagedCalls]:
        """Open the tracks and reserve the other files, so that one that can't be written fails at once.

        Parameters
        ----------
        staging
            Where the files wait until all are complete.
        provenance, name
            Header and name of tracks.
        """
        calls = [(staging.path(path), kind) for path, kind in self.calls]
        skipped = staging.path(self.skipped) if self.skipped else None
        page = self._open_page(staging, name)
        writers = [TrackWriter(path, provenance, name, staging.path) for path in self.tracks]
        with ExitStack() as stack:
            yield StagedCalls(calls, [stack.enter_context(writer) for writer in writers], skipped, page)

    def _open_page(self, staging: Staging, name: str) -> ScanPage | None:
        if self.page is None:
            return None
        from seqray.cli.scan.page import ScanPage

        return ScanPage(staging.path(self.page), name)


def _format(path: str, chosen: str | None) -> str:
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    known = FORMATS.get(suffix, chosen or ("tsv" if path == "-" else None))
    if known is None:
        raise InputError(
            "does not end in the suffix of a known format",
            where=path,
            remedy="use .gff3, .bed, .tsv or .gb (+ .gz), or --format",
        )
    return known


@dataclass(frozen=True)
class StagedCalls:
    """The same outputs, open."""

    calls: Sequence[tuple[str | Path, str]]
    tracks: Sequence[TrackWriter]
    skipped: str | Path | None
    page: ScanPage | None

    def callbacks(
        self, on_skip: OnSkip | None = None, on_progress: OnProgress | None = None
    ) -> ScanCallbacks:
        """Functions through which a scan writes its tracks and fills its page."""
        callbacks = ScanCallbacks(
            on_skip=on_skip,
            on_contig=self._begin if self.tracks else None,
            on_profile=self._add if self.tracks else None,
            on_progress=on_progress,
        )
        return callbacks if self.page is None else self.page.callbacks(callbacks)

    def _begin(self, contig: str, length: int) -> None:
        for writer in self.tracks:
            writer.begin(contig, length)

    def _add(self, profile: ScoreProfile) -> None:
        """Add a piece of a profile; each value holds up to the next site."""
        for start, values, span in _runs(profile):
            for writer in self.tracks:
                writer.add(profile.contig, profile.strand, start, values, span)

    def write(
        self, result: ScanResult, provenance: Sequence[str], sequences: Sequences | None = None
    ) -> None:
        """Write the calls in each format.

        Parameters
        ----------
        result, provenance
            Calls, and lines of the header.
        sequences
            For GenBank.
        """
        calls, described = result.calls, result.from_positions
        for path, kind in self.calls:
            if kind == "gff3":
                write_gff3(path, calls, provenance, contigs=calls.contigs, circular=calls.circular)
            elif kind == "bed":
                write_bed(path, calls, provenance, contigs=calls.contigs, described=described)
            elif kind == "tsv":
                write_calls_tsv(path, calls, provenance, described=described)
            elif sequences is not None:
                sequences.write(path, result, provenance)


@dataclass(frozen=True)
class Sequences:
    """The sequences that were scanned, for an output that holds them.

    Attributes
    ----------
    path, duplicates
        The input, which can be read once more, and how it was read.
    options
        Of the scan.
    """

    path: str
    duplicates: Duplicates
    options: ScanOptions

    def write(self, path: str | Path, result: ScanResult, provenance: Sequence[str]) -> None:
        """Write them as GenBank, with the calls and the genes."""
        from seqray.annotation import gene_features
        from seqray.io.tracks import write_genbank  # and Biopython

        genes, calls = result.genes, result.calls
        circular = {*calls.circular, *(genes.circular if genes else ()), *self.options.circular_ids}
        write_genbank(
            path,
            self.path,
            calls,
            provenance,
            genes=gene_features(genes) if genes else None,
            is_circular=lambda name: self.options.circular or name in circular,
            duplicates=self.duplicates,
        )


def _runs(profile: ScoreProfile) -> Iterator[tuple[int, np.ndarray, int]]:
    """Stretches of equally spaced, scored sites: start, scores, gap.

    What the last value of a circle covers beyond the origin, less than a stride, is cut by the writers.
    """
    known = np.flatnonzero(~np.isnan(profile.scores))
    sites, gaps, scores = profile.sites[known], profile.gaps[known], profile.scores[known]
    if not len(known):
        return
    breaks = np.flatnonzero((np.diff(sites) != gaps[:-1]) | (np.diff(gaps) != 0)) + 1
    for run in np.split(np.arange(len(sites)), breaks):
        yield int(sites[run[0]]), scores[run], int(gaps[run[0]])


def settings_facts(detector: Detector, options: ScanOptions) -> dict[str, str]:
    """Describe what was done, for the header of every output."""
    facts = {
        "strands": " and ".join(options.strands),
        **detector.facts(options),
        "peaks": f"sites on one strand lie at least {options.min_distance} apart",
    }
    if options.skip_soft_masked:
        facts["soft-masked"] = "sites in lower-case letters are not scored"
    if options.regions is not None:
        facts["parts"] = f"sites within {_named_parts(options.regions)} only"
    return facts


def _named_parts(regions: Sequence[Region]) -> str:
    named = ", ".join(map(str, regions[:_MOST_PARTS])) or "none"
    more = len(regions) - _MOST_PARTS
    return f"{named} and {more} more" if more > 0 else named


def result_facts(result: ScanResult, options: ScanOptions) -> dict[str, str]:
    """Describe what came out, for the header of every table of calls."""
    facts = {
        "threshold": _threshold(result, options),
        "scanned": f"{_sequences(result)}, {result.letters} letters, {result.positions} positions per strand"
        f"{_within_parts(result)}",
        "circular": f"{result.circular} of {result.contigs}",
        "calls": f"{len(result.calls)}, {_frequency(result)}",
    }
    if result.genes is not None:
        whole = " in the whole sequences" if result.parts else ""
        facts["genes known"] = f"{result.genes.count}{whole}, {result.genes.source}"
    if not result.from_positions:
        facts["expected false calls"] = false_calls(result)
    elif result.false_calls is not None:
        facts["evidence from letters"] = letter_evidence(result)
    if result.expectation is not None:
        facts["expected precision"] = expected_precision_fact(result.expectation, result.species)
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
    """Megabases searched, of those read: with ``--region`` or masks they are fewer."""
    searched, whole = (f"{letters / 1e6:.4g}" for letters in (result.positions, result.letters))
    if result.parts is None and searched == whole:
        return f"{whole} Mb"
    return f"{searched} of {whole} Mb searched{_within_parts(result)}"


def _within_parts(result: ScanResult) -> str:
    """In how many parts a scan of parts searched."""
    if result.parts is None:
        return ""
    parts = sum(len(found.starts) for found in result.parts.values())
    return " in 1 part" if parts == 1 else f" in {parts} parts"


def _precision_basis(result: ScanResult, options: ScanOptions) -> str:
    """Of which species the precision is that chose the threshold."""
    measured = [row.species for row in result.expectation.spread] if result.expectation else []
    if options.species or len(measured) == 1:
        return f"measured on {options.species or measured[0]}"
    left_out = result.expectation is not None and result.expectation.left_out
    return f"the median of species {'left out' if left_out else 'that were measured'}"


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
        return f"{result.threshold:.9g}, so that at most {options.per_kb:g} per kb are called"
    origin = "the model's" if options.threshold is None else "as asked"
    return f"{result.threshold:.9g}, {origin}"


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


def cautions(result: ScanResult, options: ScanOptions, expected: ExpectedPrecision) -> Iterator[str]:
    """Yield cautions about the calls.

    Parameters
    ----------
    result, options
        The scan.
    expected
        Figures of the model's card.
    """
    if options.fdr is not None and result.threshold is None:
        yield f"no threshold keeps expected false calls at {options.fdr:g} of all calls: the output is empty"
    null = None if result.from_positions else result.false_calls
    if null is not None and null.expected > len(result.calls) > 0:
        times = null.expected / len(result.calls)
        yield (
            f"shuffled sequence gives {times:.2g} times as many calls as the input itself, so expected false "
            "calls overstate the false calls here"
        )
    if result.unlike is not None and result.unlike > UNLIKE_LIMIT:
        yield (
            f"{100 * result.unlike:.0f} % of the windows differ in composition from the model's training "
            "data; its probabilities may mean little here"
        )
    if result.from_positions:
        yield from locator_cautions(result)
        yield from other_precision(result, options)
        if result.genes is None:
            yield missed_without_genes(expected, result.species)


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
    if result.expectation is not None:
        parts.append(f"precision to expect {expected_precision(result.expectation, result.species)}")
    return ", ".join(parts)
