"""Names of the files that ``seqray explain`` writes, as the user gave them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqray.core import InputError

if TYPE_CHECKING:
    from seqray.cli.explain.arguments import ExplainRequest


def check_names(request: ExplainRequest) -> None:
    """Refuse files whose suffix names no known format."""
    outputs, alignments = request.outputs, request.alignments
    named = (outputs.out, alignments.row_profile, alignments.pairs, outputs.inputs)
    tables = [path for path in named if path != "-"]
    _check_suffixes(tables, ".tsv", ".tsv.gz")
    _check_suffixes([outputs.html], ".html", ".htm")
    _check_suffixes([outputs.plot], ".png", ".svg", ".pdf")
    _check_suffixes(outputs.motifs, ".meme", ".jaspar", ".tsv")


def _check_suffixes(paths: Sequence[str | None], *suffixes: str) -> None:
    for path in filter(None, paths):
        if not path.lower().endswith(suffixes):
            remedy = f"use {', '.join(suffixes)}"
            raise InputError("does not end in the suffix of a known format", where=path, remedy=remedy)


def output_paths(request: ExplainRequest) -> list[str]:
    """Every file that will be written; ``-`` is standard output."""
    from seqray.io.tracks import track_paths  # here, because it loads numpy, which help does without

    outputs, alignments = request.outputs, request.alignments
    files = (outputs.out, faithfulness_path(request), outputs.html, outputs.plot, outputs.heads)
    tables = (alignments.row_profile, alignments.pairs, outputs.inputs)
    tracks = [track for method in request.target.methods for track in track_names(request, method)]
    strands = [str(path) for track in tracks for path in track_paths(track).values()]
    return [*filter(None, (*files, *tables)), *outputs.motifs, *strands]


def faithfulness_path(request: ExplainRequest) -> str | None:
    """The table of the checks, beside that of the scores unless it is named; None if there is none."""
    named, out = request.checks.faithfulness, request.outputs.out
    if request.checks.no_check:
        return None
    if named is None and out != "-":
        return f"{out.removesuffix('.gz').removesuffix('.tsv')}.faithfulness.tsv"
    return named


def track_names(request: ExplainRequest, method: str) -> list[str]:
    """Names of the tracks of a method; with several methods, its name precedes the suffix."""
    from seqray.io.tracks import track_paths

    if len(request.target.methods) == 1:
        return list(request.outputs.track)
    named = []
    for path in request.outputs.track:
        suffix = track_paths(path)["+"].name.rpartition(".plus")[2]
        named.append(f"{path.removesuffix(suffix)}.{method}{suffix}")
    return named
