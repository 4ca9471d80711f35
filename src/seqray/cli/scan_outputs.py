"""The outputs of one scan: call tables by suffix, tracks while scanning, one header for all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqray.cli.inputs import check_suffix
from seqray.core.errors import ConfigError, InputError, OnProgress
from seqray.io.bed import write_bed
from seqray.io.calls import write_calls_tsv
from seqray.io.gff3 import write_gff3
from seqray.io.scores import TrackWriter, track_paths
from seqray.scanning.options import ScanCallbacks, ScanOptions
from seqray.scanning.results import ScanResult, ScoreProfile

if TYPE_CHECKING:
    from seqray.cli.scan_options import CallOutputs
    from seqray.cli.scan_page import ScanPage
    from seqray.io.files import Staging
    from seqray.io.records import Duplicates, OnSkip

GENBANK = "genbank"
FORMATS = {
    **{".gff3": "gff3", ".gff": "gff3", ".bed": "bed", ".tsv": "tsv"},
    **dict.fromkeys((".gb", ".gbk", ".gbff"), GENBANK),
}


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
        ConfigError
            For a format that no output has.
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
        from seqray.cli.scan_page import ScanPage

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
        """Write the calls in each format; GenBank needs ``sequences``."""
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

    ``path`` can be read once more.
    """

    path: str
    duplicates: Duplicates
    options: ScanOptions

    def write(self, path: str | Path, result: ScanResult, provenance: Sequence[str]) -> None:
        """Write them as GenBank, with the calls and the genes."""
        from seqray.genome.read import gene_features
        from seqray.io.genbank import write_genbank

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
