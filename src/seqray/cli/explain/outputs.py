"""The outputs of ``seqray explain``: what they need of the stream, and how they are written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.core import InputError, SequenceRecord
from seqray.explanations.checks import CHECKED_RECORDS, Reservoir
from seqray.io import open_output
from seqray.io.tables import write_checks, write_heads
from seqray.io.tracks import ScoreTrack, track_paths

if TYPE_CHECKING:
    from seqray.cli.common import Progress
    from seqray.cli.explain.arguments import ExplainRequest
    from seqray.core.results import Explanation, Faithfulness, HeadFigures, Motif
    from seqray.explanations import ExplainOptions
    from seqray.io import Staging
    from seqray.modelfile import TrainedModel

MOTIF_RECORDS = 5000  # explained records that motifs are sought in
PLOT_ENDS, MOTIF_ENDS = (".png", ".svg", ".pdf"), (".meme", ".jaspar", ".tsv")


@dataclass(frozen=True, slots=True)
class Outputs:
    """Names of the files, as the user gave them; None where one isn't wanted."""

    table: str
    faithfulness: str | None
    html: str | None
    plot: str | None
    heads: str | None
    motifs: tuple[str, ...]
    tracks: dict[str, tuple[str, ...]]
    """By method."""
    row_profile: str | None = None
    pairs: str | None = None

    @classmethod
    def of(cls, request: ExplainRequest) -> Outputs:
        """Plan the outputs, and refuse names that end wrongly.

        Raises
        ------
        InputError
            For a name whose end doesn't fit.
        """
        _expect(request.outputs.out, (".tsv", ".tsv.gz"), standard_output=True)
        _expect(request.outputs.html, (".html", ".htm"))
        _expect(request.outputs.plot, PLOT_ENDS)
        for path in (request.alignments.row_profile, request.alignments.pairs):
            _expect(path, (".tsv", ".tsv.gz"))
        for path in request.outputs.motifs:
            _expect(path, MOTIF_ENDS)
        faithfulness = request.checks.faithfulness
        if faithfulness is None and request.outputs.out != "-":
            faithfulness = f"{request.outputs.out.removesuffix('.gz').removesuffix('.tsv')}.faithfulness.tsv"
        methods = request.target.methods
        tracks = {
            method: tuple(_track_of(path, method, len(methods) > 1) for path in request.outputs.track)
            for method in methods
        }
        return cls(
            request.outputs.out,
            None if request.checks.no_check else faithfulness,
            request.outputs.html,
            request.outputs.plot,
            request.outputs.heads,
            tuple(request.outputs.motifs),
            tracks,
            request.alignments.row_profile,
            request.alignments.pairs,
        )

    def stage(self, staging: Staging) -> dict[str, Path]:
        """Where each of them waits; what can't be written shows itself here."""
        tracks = [path for paths in self.tracks.values() for path in paths]
        names = [*self._single(), *self.motifs, *tracks]
        return {name: Path(staging.path(name)) for name in names}

    def paths(self) -> list[str]:
        """Every file that will be written."""
        tracks = [
            str(p) for paths in self.tracks.values() for path in paths for p in track_paths(path).values()
        ]
        return [*self._single(), *self.motifs, *tracks]

    def _single(self) -> list[str]:
        files = (
            self.table,
            self.faithfulness,
            self.html,
            self.plot,
            self.heads,
            self.row_profile,
            self.pairs,
        )
        return [file for file in files if file]


def _expect(path: str | None, ends: Sequence[str], *, standard_output: bool = False) -> None:
    if path is None or (standard_output and path == "-") or path.lower().endswith(tuple(ends)):
        return
    raise InputError("does not name a format by its end", where=path, remedy=f"use {', '.join(ends)}")


def _track_of(path: str, method: str, several: bool) -> str:
    """Put the method's name before the end of a track's, where there are several."""
    plus = track_paths(path)["+"]
    end = plus.name.rpartition(".plus")[2]
    stem = path[: len(path) - len(end)]
    return f"{stem}.{method}{end}" if several else path


class Gathered:
    """What is kept of the explanations while they stream past.

    Parameters
    ----------
    request
        Of the command line.
    settings
        Of the run.
    """

    def __init__(self, request: ExplainRequest, settings: ExplainOptions) -> None:
        self.records = 0
        self.shown: list[Explanation] = []
        self.for_motifs: list[Explanation] = []
        self.tracks = {method: ScoreTrack() for method in settings.methods} if request.outputs.track else {}
        self._first = settings.methods[0]
        self._most_shown = request.outputs.shown
        self._motifs_wanted = bool(request.outputs.motifs or request.outputs.html)
        most = request.checks.check_records or CHECKED_RECORDS
        self._called: Reservoir[SequenceRecord] = Reservoir(most, request.checks.seed)
        self._any: Reservoir[SequenceRecord] = Reservoir(most, request.checks.seed)

    def watch(self, explanations: Iterable[Explanation], progress: Progress) -> Iterator[Explanation]:
        """Pass explanations on and keep what is needed."""
        for explanation in explanations:
            self._keep(explanation)
            progress.update(self.records)
            yield explanation

    def _keep(self, e: Explanation) -> None:
        if e.method == self._first and e.member == "mean":
            self.records += 1
            record = SequenceRecord(e.id, e.sequence)
            self._any.offer(record)
            if e.label == e.target:
                self._called.offer(record)
                if self._motifs_wanted and len(self.for_motifs) < MOTIF_RECORDS:
                    self.for_motifs.append(replace(e, attention=None, effects=None))
        if self.records <= self._most_shown:
            self.shown.append(e)
        if e.member == "mean" and e.method in self.tracks:
            self.tracks[e.method].add(e)

    @property
    def omitted(self) -> int:
        """Records that the page leaves out."""
        return max(0, self.records - self._most_shown)

    def sample(self) -> list[SequenceRecord]:
        """Records for the checks: of those called the class explained, or of all where none is."""
        return self._called.kept or self._any.kept


def write_outputs(
    outputs: Outputs,
    staged: Mapping[str, Path],
    gathered: Gathered,
    model: TrainedModel,
    provenance: Sequence[str],
    faithfulness: Faithfulness | None,
    heads: Sequence[HeadFigures],
) -> None:
    """Write what the user asked for beside the table.

    Parameters
    ----------
    staged
        Where each output waits, see `Outputs.stage`.
    """
    if outputs.faithfulness and faithfulness is not None:
        verdicts = [f"verdict: {verdict}" for verdict in faithfulness.verdicts.values()]
        write_checks(staged[outputs.faithfulness], faithfulness.checks, [*provenance, *verdicts])
    if outputs.heads:
        write_heads(staged[outputs.heads], heads, provenance)
    for method, paths in outputs.tracks.items():
        for path in paths:
            gathered.tracks[method].write(staged[path], provenance, f"{method} of {model.card.name}")
    motifs = _find_motifs(gathered, model) if outputs.motifs or outputs.html else ()
    if outputs.motifs:
        from seqray.explanations.motifs import background_of
        from seqray.io.tables import write_motifs

        background = background_of(gathered.for_motifs, model.alphabet)
        for path in outputs.motifs:
            write_motifs(staged[path], motifs, model.alphabet, provenance, background=background)
    if outputs.plot:
        from seqray.report.plots import plot_explanations

        plot_explanations(staged[outputs.plot], gathered.shown, model.alphabet, model.card.site)
    if outputs.html:
        page = _page(gathered, model, provenance, faithfulness, heads, motifs)
        with open_output(staged[outputs.html]) as handle:
            handle.write(page.encode())


def _find_motifs(gathered: Gathered, model: TrainedModel) -> Sequence[Motif]:
    from seqray.explanations.motifs import find_motifs

    return find_motifs(gathered.for_motifs, model.alphabet)


def _page(
    gathered: Gathered,
    model: TrainedModel,
    provenance: Sequence[str],
    faithfulness: Faithfulness | None,
    heads: Sequence[HeadFigures],
    motifs: Sequence[Motif],
) -> str:
    from seqray.report.pages import SequenceReport, render_sequences

    return render_sequences(
        SequenceReport(
            title=f"{model.card.name}: which positions the calls rest on",
            explanations=gathered.shown,
            alphabet=model.alphabet,
            card=model.card,
            site=model.card.site,
            provenance=provenance,
            faithfulness=faithfulness,
            heads=heads,
            motifs=motifs,
            omitted=gathered.omitted,
        )
    )
