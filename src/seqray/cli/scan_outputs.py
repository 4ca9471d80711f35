"""The outputs of a scan, whole or gathered: tables of calls, tracks and a page, under one header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import numpy as np

from seqray.cli.inputs import GIVE_GENES, GenomeInput, check_suffix, format_of
from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError, OnProgress
from seqray.io.calls import write_bed, write_calls_tsv
from seqray.io.files import Staging, encode_text, open_output, write_file
from seqray.io.gff3 import write_features, write_gff3
from seqray.io.scores import TrackWriter, track_paths
from seqray.io.tables import write_table
from seqray.scanning.contigs import ScoreProfile
from seqray.scanning.options import DOWNSTREAM, UPSTREAM, ScanCallbacks
from seqray.scanning.results import ScanResult, call_records
from seqray.scanning.scorers import LETTERS_BEFORE
from seqray.scanning.shards import write_shard

if TYPE_CHECKING:
    from seqray.core.arrays import Floats
    from seqray.core.results import Call
    from seqray.io.records import OnSkip

GENBANK, FASTA, SHARD = "genbank", "fasta", "shard"
FORMATS = {
    **{".gff3": "gff3", ".gff": "gff3", ".bed": "bed", ".tsv": "tsv", ".csv": "tsv"},
    **dict.fromkeys((".fa", ".fasta", ".fna"), FASTA),
    **dict.fromkeys((".gb", ".gbk", ".gbff"), GENBANK),
}
SUFFIXES = ".gff3, .bed, .tsv, .csv, .fa or .gb (+ .gz)"
PROTEINS = ".faa"
SharesOf = Callable[[Sequence[int]], "dict[int, Floats]"]
"""Indices of calls to what each letter of the strip around them adds to the score."""


class CallFiles:
    """All outputs of a scan, or its shard; without any, a TSV on standard output."""

    def __init__(
        self,
        calls: Sequence[str],
        chosen: str | None,
        html: str | None,
        tracks: Sequence[str],
        skipped: str | None,
        *,
        genes: Sequence[str] = (),
        around: tuple[int | None, int | None] = (None, None),
        is_shard: bool = False,
    ) -> None:
        if is_shard and (len(calls) != 1 or not (calls[0] == "-" or calls[0].endswith(".shard"))):
            raise ConfigError("--shard needs one output", remedy="give --out FILE.shard")
        self._calls = [
            (path, SHARD if is_shard else format_of(path, FORMATS, chosen, SUFFIXES))
            for path in calls or ["-"]
        ]
        if chosen and all(form != chosen for _, form in self._calls):
            what = f"--format {chosen} and '{self._calls[0][0]}' are different formats"
            raise ConfigError(what, remedy="leave out --format")
        check_suffix(html, ".html", ".htm")
        check_suffix(skipped, ".tsv")
        self._tracks, self._skipped, self._html = tracks, skipped, html
        for path in genes:
            check_suffix(path, ".tsv", ".csv", ".gff3", ".gff", PROTEINS, decides=True)
        self._genes, kinds = genes, {kind for _, kind in self._calls}
        self.has_genbank, self.has_letters = GENBANK in kinds, not kinds.isdisjoint((GENBANK, FASTA))
        self.has_letters |= any(map(_has_proteins, genes))
        if around != (None, None) and FASTA not in kinds:
            what = "--upstream and --downstream are for calls as FASTA"
            raise ConfigError(what, remedy="give --out FILE.fa, too")
        before, after = around
        self._around = UPSTREAM if before is None else before, DOWNSTREAM if after is None else after
        self.staged_skipped: str | Path | None = None

    def paths(self) -> list[str | None]:
        """Every file that will be written."""
        tracks = [str(path) for track in self._tracks for path in track_paths(track).values()]
        return [*(path for path, _ in self._calls), *tracks, self._skipped, self._html, *self._genes]

    def check_genes(self, *, known: bool) -> None:
        """Raise `ConfigError` if genes are to be written where none are known."""
        if self._genes and not known:
            raise ConfigError("--genes-out needs genes", remedy=GIVE_GENES)

    @contextmanager
    def open(self, provenance: Sequence[str], name: str) -> Iterator[None]:
        """Open the tracks and reserve the other files; all appear together at the end of the block."""
        with Staging() as staging:
            self._staged = [(staging.path(path), kind) for path, kind in self._calls]
            self._staged_genes = [staging.path(path) for path in self._genes]
            self.staged_skipped = staging.path(self._skipped) if self._skipped else None
            self._page = ScanPage(staging.path(self._html), name) if self._html else None
            writers = [TrackWriter(path, provenance, name, staging.path) for path in self._tracks]
            with ExitStack() as stack:
                self._writers = [stack.enter_context(writer) for writer in writers]
                yield

    def callbacks(
        self, on_skip: OnSkip | None = None, on_progress: OnProgress | None = None
    ) -> ScanCallbacks:
        """Functions through which a scan writes its tracks and fills its page."""
        keeps = bool(self._writers or self._page)
        return ScanCallbacks(
            on_skip=on_skip,
            on_contig=self._begin if keeps else None,
            on_profile=self._add if keeps else None,
            on_progress=on_progress,
        )

    def _begin(self, contig: str, length: int) -> None:
        for writer in (*self._writers, *filter(None, [self._page])):
            writer.begin(contig, length)

    def _add(self, profile: ScoreProfile) -> None:
        """Add a piece of a profile, to tracks as stretches of equally spaced, scored sites."""
        if self._page is not None:
            self._page.add(profile)
        known = np.flatnonzero(~np.isnan(profile.scores))
        if not self._writers or not len(known):
            return
        sites, gaps, scores = profile.sites[known], profile.gaps[known], profile.scores[known]
        breaks = np.flatnonzero((np.diff(sites) != gaps[:-1]) | (np.diff(gaps) != 0)) + 1
        for run in np.split(np.arange(len(sites)), breaks):
            for writer in self._writers:
                start, gap = int(sites[run[0]]), int(gaps[run[0]])
                writer.add(profile.contig, profile.strand, start, scores[run], gap)

    def write(
        self,
        result: ScanResult,
        provenance: Sequence[str],
        model: Sequence[str],
        *,
        source: GenomeInput | None = None,
        shares_of: SharesOf = lambda shown: {},
        gene: tuple[str, Sequence[str]] = ("", ()),
    ) -> None:
        """Write the calls in each format, with the sequences of ``source``, the genes, and the page.

        The page begins with the ``gene`` of a name, and lines about it.
        """
        calls, context = result.calls, result.context_columns
        for path, kind in self._staged:
            if kind == "gff3":
                write_gff3(path, calls, provenance, contigs=calls.contigs, circular=calls.circular)
            elif kind == "bed":
                write_bed(path, calls, provenance, context, contigs=calls.contigs)
            elif kind == "tsv":
                write_calls_tsv(path, calls, provenance, context)
            elif kind == FASTA and source is not None:
                with open_output(path) as handle:
                    for record in call_records(calls, source, *self._around):
                        handle.write(encode_text(f">{record.id} {record.description}\n{record.sequence}\n"))
            elif kind == GENBANK and source is not None:
                self._write_genbank(path, result, provenance, source)
        if self._genes:
            self._write_genes(result, provenance, source)
        if self._page is not None:
            self._page.write(result, provenance, model, shares_of, gene)

    def _write_genes(self, result: ScanResult, provenance: Sequence[str], source: GenomeInput | None) -> None:
        from seqray.genome.find import gene_features, proteins
        from seqray.scanning.gene_starts import GENE_COLUMNS, gene_rows, gene_starts

        for path in map(str, self._staged_genes):
            if path.lower().removesuffix(".gz").endswith((".gff3", ".gff")) and result.genes:
                write_features(path, gene_features(result.genes), provenance, result.scanned)
            elif _has_proteins(path) and result.genes and source is not None:
                with open_output(path) as handle:
                    for name, about, residues in proteins(result.genes, source):
                        handle.write(encode_text(f">{name} {about}\n{residues}\n"))
            else:
                write_table(path, GENE_COLUMNS, gene_rows(gene_starts(result)), provenance)

    def write_shard(self, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Write the only output of a share of a scan."""
        write_shard(self._staged[0][0], header, arrays)

    def _write_genbank(
        self, path: str | Path, result: ScanResult, provenance: Sequence[str], source: GenomeInput
    ) -> None:
        """Write the sequences with the calls and the genes."""
        from seqray.genome.find import gene_features
        from seqray.io.genbank import write_genbank

        genes, options = result.genes, result.options
        circular = {*result.calls.circular, *(genes.circular if genes else ()), *options.circular_ids}
        write_genbank(
            path,
            source.for_genbank(),
            result.calls,
            provenance,
            genes=gene_features(genes) if genes else None,
            is_circular=lambda name: options.circular or name in circular,
            duplicates=source.duplicates,
        )


def _has_proteins(path: str) -> bool:
    return path.lower().removesuffix(".gz").endswith(PROTEINS)


# --- The page

_MAX_PROFILE_LETTERS = 50_000_000  # above, scores are not kept, which would take 4 bytes a letter
_NO_PROFILES = f"curves of scores are left out for inputs above {_MAX_PROFILE_LETTERS // 10**6} Mb"


class ScanPage:
    """Keeps contigs and scores of a scan, and writes its page."""

    def __init__(self, path: str | Path, label: str) -> None:
        self._path, self._label = path, label
        self._lengths: dict[str, int] = {}
        self._letters = 0
        self._scores: dict[tuple[str, str], np.ndarray] = {}

    def begin(self, contig: str, length: int) -> None:
        """Begin a contig."""
        self._lengths[contig] = length
        self._letters += length
        if self._letters > _MAX_PROFILE_LETTERS:
            self._scores.clear()

    def add(self, profile: ScoreProfile) -> None:
        """Keep a piece of a profile; each value holds up to the next site."""
        if self._letters > _MAX_PROFILE_LETTERS:
            return
        key = (profile.contig, profile.strand)
        if key not in self._scores:
            self._scores[key] = np.full(profile.length, np.nan, dtype=np.float16)
        scores = self._scores[key]
        for step in range(int(profile.gaps.max(initial=0))):
            held = profile.gaps > step
            scores[(profile.sites[held] + step) % profile.length] = profile.scores[held]

    def write(
        self,
        result: ScanResult,
        lines: Sequence[str],
        model: Sequence[str],
        shares_of: SharesOf,
        gene: tuple[str, Sequence[str]],
    ) -> None:
        """Write the page."""
        from seqray.report.html import ModelText
        from seqray.report.pages.scan import ScanReport, render_scan, shown_calls
        from seqray.report.svg.genome import STRIP_END, STRIP_START
        from seqray.scanning.words import noted_precision, trust_of_calls

        calls, genes, letters = result.calls, result.genes, result.calls.letters
        strip = slice(LETTERS_BEFORE + STRIP_START, LETTERS_BEFORE + STRIP_END)
        shown = [i for group in shown_calls(calls.scores) for i in group]
        kept = self._letters <= _MAX_PROFILE_LETTERS
        contigs = result.scanned
        named = contigs[0].name if len(contigs) == 1 else f"{len(contigs)} sequences"
        parts = "parts of " if result.parts and not gene[0] else ""
        contexts = ((i, call.context) for i, call in enumerate(calls) if gene[0])
        precision, note = noted_precision(result)
        rows = result.expectation.rows if result.expectation and len(calls) else ()
        report = ScanReport(
            title=f"Scan for {self._label} {f'around {gene[0]} ' if gene[0] else ''}in {parts}{named}",
            calls=calls,
            boxes=calls.boxes,
            contigs=contigs,
            searched=result.positions,
            strand=result.options.strand,
            genes=dict(genes.genes) if genes else {},
            # only the names of files, as headers of outputs have them
            gene_source=" ".join(PurePath(word).name for word in genes.source.split(" ")) if genes else "",
            profiles={i: self._around(calls[i], calls.circular) for i in shown} if kept else {},
            letters={i: DNA.decode(letters[i, strip]) for i in shown} if letters.shape[1] else {},
            shares=shares_of(shown),
            threshold=result.threshold,
            expected_precision=precision,
            expected_note=note,
            trust=trust_of_calls(result.trust_basis) if result.trust_basis else "",
            about_gene=gene[1],
            of_gene=[i for i, context in contexts if context and gene[0] in (context.gene, context.locus)],
            expected=rows,
            cautions=[text.removeprefix("caution: ") for text in result.findings],
            provenance=[*lines, *([] if kept else [_NO_PROFILES])],
            model=ModelText(model[0], model[1], model[2:]),
        )
        write_file(self._path, render_scan(report))

    def _around(self, call: Call, circular: Iterable[str]) -> tuple[Floats, Floats]:
        """Scores of both strands around a call; nan beyond the ends of a linear contig, and on no strand."""
        from seqray.report.svg.genome import CALL_REACH

        length = self._lengths[call.contig]
        places = np.arange(call.site - CALL_REACH, call.site + CALL_REACH + 1)
        beyond = ((places < 0) | (places >= length)) & (call.contig not in circular)
        strands = []
        for strand in "+-":
            scores = self._scores.get((call.contig, strand), np.full(length, np.nan))
            strands.append(np.where(beyond, np.nan, scores[places % length].astype(np.float64)))
        return strands[0], strands[1]
