"""Options and outputs of an explanation."""

from __future__ import annotations

from typing import Literal, TypeVar

from seqray.cli import options
from seqray.cli.inputs import (
    SEQUENCE_COLUMNS,
    SEQUENCES_OR_ALIGNMENTS,
    GeneOptions,
    RecordOptions,
    RowOptions,
    check_suffix,
)
from seqray.cli.model import TRUNCATE, DeviceOptions, ModelOptions
from seqray.cli.options import Options, Request, fill, option
from seqray.core.errors import InputError
from seqray.core.text import Truncation
from seqray.explanations.options import (
    COLUMN_BLOCK,
    GENOME_METHODS,
    LETTER_BLOCK,
    AlignmentOptions,
    ExplainOptions,
    MethodSettings,
)

# --- Options of ``seqray explain``

Wanted = TypeVar("Wanted", ExplainOptions, AlignmentOptions)

_SETTINGS = MethodSettings()
METHODS = ExplainOptions.known
SEQUENCES = "sequences or genomes"  # models of alignments have no use for these options
MAX_SHOWN = 100  # records in the page and the plot, the first ones


class TargetOptions(Options, heading="what is explained"):
    """Which calls are explained, and by which methods."""

    method: tuple[str, ...] = option(
        "--method METHOD",
        f"{', '.join(METHODS)}; for alignments rollout, grad-rollout and occlusion; may be repeated "
        f"(default: rollout, of alignments {AlignmentOptions.methods[0]}, of genomes {GENOME_METHODS[0]})",
        choices=METHODS,
    )
    target: str | None = option(
        "--class NAME",
        "the class explained; 'called': the one that each record is called (default: the positive one of two "
        "classes; with more, called)",
    )
    members: Literal["mean", "each"] | None = option(
        "--members",
        f"mean of the networks of the model, or each as well (default: {ExplainOptions.members})",
        only_for=SEQUENCES,
    )
    calls: str | None = option(
        "--calls FILE",
        "calls of 'seqray scan' as GFF3: SEQUENCES is the genome, each call is explained in its place",
        only_for=SEQUENCES,
    )
    gene: str | None = option(
        "--gene NAME", "with --calls: those of a gene (name or locus tag)", only_for=f"{SEQUENCES}, calls"
    )
    best_calls: options.PositiveInt | None = option(
        "--best-calls N",
        "with --calls: only the N calls of highest score, in descending order",
        only_for=f"{SEQUENCES}, calls",
    )

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, or the default one."""
        return self.method or ExplainOptions.methods


class ExplanationOutputs(Options, heading="output; all files appear together, or none"):
    """What is written."""

    out: str = option("--out -o FILE", ".tsv or .tsv.gz (default: TSV on stdout)", "-")
    top: options.PositiveInt | None = option("--top N", "write only the N best positions of each record")
    html: str | None = option(
        "--html FILE", f"a page of the first {MAX_SHOWN} records, which needs no network"
    )
    plot: str | None = option("--plot FILE", f".png, .svg or .pdf of the first {MAX_SHOWN} records")
    track: tuple[str, ...] = option(
        "--track FILE",
        "scores as .bw or .bedgraph[.gz], a file per strand: x.bw gives x.plus.bw and x.minus.bw; with "
        "several methods x.METHOD.plus.bw; may be repeated",
        only_for=SEQUENCES,
    )
    motifs: tuple[str, ...] = option(
        "--motifs FILE",
        "motifs shared by high scores, as .meme, .jaspar or .tsv; may be repeated",
        only_for=SEQUENCES,
    )
    heads: str | None = option("--heads FILE", "a TSV of what each attention head does", only_for="sequences")
    row_profile: str | None = option(
        "--row-profile FILE", "a TSV of what each row of an alignment adds", only_for="alignments"
    )
    inputs: str | None = option(
        "--inputs FILE",
        "a TSV of what bases and genes add to the score of each call of a model for genomes",
        only_for="genomes",
    )


class CheckOptions(Options, heading="checks"):
    """How rankings are checked."""

    no_check: bool = option("--no-check", "do not measure whether rankings can be trusted")
    faithfulness: str | None = option(
        "--faithfulness FILE",
        "figures of the checks as TSV (default: OUT.faithfulness.tsv where --out names a file)",
    )
    check_records: options.PositiveInt | None = option(
        "--check-records N",
        "records that the checks use, drawn at random from those called the class (default: 200, or 40 "
        "alignments or calls of a model for genomes)",
    )
    shuffles: options.Draws | None = option(
        "--shuffles N",
        f"shuffled copies of each record for p-values; 0 for none (default: {ExplainOptions.shuffles})",
        only_for=SEQUENCES,
    )
    seed: options.WholeNumber = option("--seed N", "seed of the random draws", ExplainOptions.seed)


class MethodOptions(Options, heading="settings of single methods"):
    """Settings of single methods."""

    residual: options.Probability = option(
        "--residual W", "rollouts: weight of the residual connection", _SETTINGS.residual, only_for="rollout"
    )
    heads_fused: Literal["mean", "max", "min"] | None = option(
        "--fuse",
        f"rollout: how heads are combined (default: {_SETTINGS.heads})",
        only_for=f"{SEQUENCES}, rollout",
    )
    spread: Literal["read", "span"] | None = option(
        "--spread",
        "rollouts: a token's share goes to all positions that its convolutions read, in proportion to their "
        "effect on it (read), or evenly to those under its stride (span) "
        f"(default: {_SETTINGS.spread})",
        only_for=f"{SEQUENCES}, rollout",
    )
    steps: options.Steps | None = option(
        "--steps N",
        f"integrated-gradients: points on the path (default: {_SETTINGS.steps})",
        only_for=f"{SEQUENCES}, integrated-gradients",
    )
    block: options.PositiveInt | None = option(
        "--block N",
        f"occlusion: positions hidden at a time (default: {LETTER_BLOCK}; {COLUMN_BLOCK} of an alignment)",
        only_for="occlusion",
    )

    def for_library(self) -> MethodSettings:
        """The same settings, for the library."""
        return fill(MethodSettings, self, heads=self.heads_fused or _SETTINGS.heads)


class ExplainRequest(Request):
    """All options of ``seqray explain``."""

    input: tuple[str, ...] = option("SEQUENCES+", SEQUENCES_OR_ALIGNMENTS)
    model: ModelOptions
    target: TargetOptions
    outputs: ExplanationOutputs
    checks: CheckOptions
    settings: MethodOptions
    truncate: Truncation | None = TRUNCATE
    columns: options.ColumnNames | None = SEQUENCE_COLUMNS
    rows: RowOptions
    genes: GeneOptions
    records: RecordOptions
    computing: DeviceOptions

    def for_library(self, options: type[Wanted], **own: object) -> Wanted:
        """The same request as options of the library; ``own`` are those of one kind of model."""
        own |= {"methods": self.target.methods, "settings": self.settings.for_library()}
        return fill(options, self.target, self.checks, **own)

    @property
    def shown(self) -> int:
        """Most records in the page and the plot."""
        return MAX_SHOWN if self.outputs.html or self.outputs.plot else 0


# --- Names of the files that ``seqray explain`` writes, as the user gave them


def check_names(request: ExplainRequest) -> None:
    """Refuse files whose suffix names no known format."""
    outputs = request.outputs
    out = None if outputs.out == "-" else outputs.out
    suffixes = {
        (".tsv", ".tsv.gz"): (out, outputs.row_profile, outputs.inputs),
        (".html", ".htm"): (outputs.html,),
        (".png", ".svg", ".pdf"): (outputs.plot,),
        (".meme", ".jaspar", ".tsv"): outputs.motifs,
    }
    for path in (outputs.heads, request.checks.faithfulness, request.records.skipped):
        check_suffix(path, ".tsv")
    for known, paths in suffixes.items():
        for path in filter(None, paths):
            if not path.lower().endswith(known):
                remedy = f"use {', '.join(known)}"
                raise InputError("does not end in the suffix of a known format", where=path, remedy=remedy)


def output_paths(request: ExplainRequest) -> list[str]:
    """Every file that will be written; ``-`` is standard output."""
    from seqray.io.scores import track_paths

    outputs = request.outputs
    files = (outputs.out, faithfulness_path(request), outputs.html, outputs.plot, outputs.heads)
    tracks = [track for method in request.target.methods for track in track_names(request, method)]
    strands = [str(path) for track in tracks for path in track_paths(track).values()]
    return [*filter(None, (*files, outputs.row_profile, outputs.inputs)), *outputs.motifs, *strands]


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
    from seqray.io.scores import track_paths

    if len(request.target.methods) == 1:
        return list(request.outputs.track)
    named = []
    for path in request.outputs.track:
        suffix = track_paths(path)["+"].name.rpartition(".plus")[2]
        named.append(f"{path.removesuffix(suffix)}.{method}{suffix}")
    return named
