"""Output files of ``seqray explain``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seqray.core import InputError
from seqray.explanations import MethodSettings

if TYPE_CHECKING:
    from seqray.annotation import Gene
    from seqray.core import SequenceRecord
    from seqray.io import Staging

    GenesOf = Callable[[SequenceRecord, bool], Sequence[Gene] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationFiles:
    """Names of the files, as the user gave them; None for a file that is not requested.

    Attributes
    ----------
    out
        The table of scores; ``-`` is standard output.
    faithfulness, html, plot, heads, motifs
        Figures of the checks, page, picture, attention heads, and what high scores share.
    track
        Scores along contigs; a file for each method and strand.
    row_profile, pairs
        Tables of the rows, and of pairs of columns, of alignments.
    inputs
        What letters and genes add to the scores of the calls of a locator.
    methods
        The methods of the run.
    """

    out: str = "-"
    faithfulness: str | None = None
    html: str | None = None
    plot: str | None = None
    heads: str | None = None
    motifs: tuple[str, ...] = ()
    track: tuple[str, ...] = ()
    row_profile: str | None = None
    pairs: str | None = None
    inputs: str | None = None
    methods: tuple[str, ...] = ("rollout",)

    def __post_init__(self) -> None:
        named = (self.out, self.row_profile, self.pairs, self.inputs)
        tables = [path for path in named if path and path != "-"]
        _check_suffixes(tables, ".tsv", ".tsv.gz")
        _check_suffixes([self.html], ".html", ".htm")
        _check_suffixes([self.plot], ".png", ".svg", ".pdf")
        _check_suffixes(self.motifs, ".meme", ".jaspar", ".tsv")

    def tracks(self, method: str) -> list[str]:
        """Names of the tracks of a method; with several methods, its name precedes the suffix."""
        from seqray.io.tracks import track_paths  # here, because it loads numpy, which help does without

        if len(self.methods) == 1:
            return list(self.track)
        named = []
        for path in self.track:
            suffix = track_paths(path)["+"].name.rpartition(".plus")[2]
            named.append(f"{path.removesuffix(suffix)}.{method}{suffix}")
        return named

    def stage(self, staging: Staging) -> dict[str, Path]:
        """Where each file is written until all are complete; fails for one that can't be written."""
        return {name: Path(staging.path(name)) for name in self.paths()}

    def paths(self) -> list[str]:
        """Every file that will be written."""
        from seqray.io.tracks import track_paths

        strands = [path for track in self._tracks() for path in track_paths(track).values()]
        return [*self._single(), *map(str, strands)]

    def _single(self) -> list[str]:
        files = (self.out, self.faithfulness, self.html, self.plot, self.heads)
        tables = (self.row_profile, self.pairs, self.inputs)
        return [*filter(None, (*files, *tables)), *self.motifs]

    def _tracks(self) -> list[str]:
        return [path for method in self.methods for path in self.tracks(method)]


def _check_suffixes(paths: Sequence[str | None], *suffixes: str) -> None:
    for path in filter(None, paths):
        if not path.lower().endswith(suffixes):
            remedy = f"use {', '.join(suffixes)}"
            raise InputError("does not end in the suffix of a known format", where=path, remedy=remedy)


@dataclass(frozen=True, kw_only=True)
class ExplanationRequest:
    """What is explained, checked and written; None where the kind of model decides.

    Attributes
    ----------
    files, method_settings
        Where the outputs go, and the settings of single methods.
    target, members, shuffles, seed, rows
        As in `seqray.explanations.ExplainOptions` and `AlignmentOptions`.
    calls, best_calls
        File of calls whose windows are explained, and how many of the best.
    allow_empty
        Whether a file of calls may hold none.
    top
        Positions of each record in the table, the best in rank.
    html_records
        Most records in the page and the plot.
    no_check, check_records
        Whether rankings go unchecked, and the most records that the checks use.
    pairs_by, best_pairs, separation
        What ranks pairs of columns, how many are written (0: all), and the smallest distance of the two.
    source
        Name of the input, for errors.
    genes, gene_source, circular
        For a locator: a contig, and whether it is circular, to its genes, None where they are not known;
        where they are from, in words; and the contigs that this source or the calls call circular.
    """

    files: ExplanationFiles = field(default_factory=ExplanationFiles)
    method_settings: MethodSettings = field(default_factory=MethodSettings)
    target: str | None = None
    members: Literal["mean", "each"] | None = None
    shuffles: int | None = None
    seed: int = 0
    rows: int | None = None
    calls: str | None = None
    best_calls: int | None = None
    allow_empty: bool = False
    top: int | None = None
    html_records: int = 100
    no_check: bool = False
    check_records: int | None = None
    pairs_by: Literal["attention", "covariation", "helix"] | None = None
    best_pairs: int | None = None
    separation: int | None = None
    source: str = ""
    genes: GenesOf | None = None
    gene_source: str = ""
    circular: Collection[str] = ()

    def __post_init__(self) -> None:
        if self.calls == "-":
            raise InputError("calls are read from a file", where="standard input")

    @property
    def pairs(self) -> bool:
        """Whether pairs of columns are scored."""
        return bool(self.files.pairs or self.files.html or self.files.plot)

    @property
    def shown(self) -> int:
        """Most records in the page and the plot."""
        return self.html_records if self.files.html or self.files.plot else 0
