"""What ``seqray explain`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from seqray.cli.common import (
    SEQUENCES_OR_ALIGNMENTS,
    DeviceOptions,
    ModelOptions,
    RecordOptions,
    Request,
    RowOptions,
    choice,
    flag,
    group,
    option,
    positional,
    positive_int,
    probability,
    repeated,
    whole_number,
)

METHODS = (
    *("rollout", "grad-rollout", "value-rollout"),
    *("input-x-gradient", "integrated-gradients", "ism", "occlusion"),
)


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """Which calls are explained, and by which methods."""

    title: ClassVar[str] = "what is explained"

    method: tuple[str, ...] = repeated(
        "--method",
        "METHOD",
        f"{', '.join(METHODS)}; for alignments rollout, grad-rollout and occlusion; may be repeated "
        "(default: rollout)",
        choices=METHODS,
    )
    target: str | None = option(
        "--class",
        "NAME",
        "the class explained; 'called': the one that each record is called (default: the positive one)",
    )
    members: Literal["mean", "each"] = choice(
        "--members", ("mean", "each"), "mean of the members of the model, or each as well", default="mean"
    )
    calls: str | None = option(
        "--calls",
        "FILE",
        "calls of 'seqray scan' as GFF3: SEQUENCES is the genome, each call is explained in its place",
    )
    best_calls: int | None = option(
        "--best-calls",
        "N",
        "with --calls: only the N calls of highest score, in descending order",
        type=positive_int,
    )

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods, or the default one."""
        return self.method or ("rollout",)


@dataclass(frozen=True, kw_only=True)
class ExplanationOutputs:
    """What is written."""

    title: ClassVar[str] = "output; all files appear together, or none"

    out: str = option("--out -o", "FILE", ".tsv or .tsv.gz (default: TSV on stdout)", default="-")
    top: int | None = option(
        "--top", "N", "write only the N best positions of each record", type=positive_int
    )
    html: str | None = option("--html", "FILE", "a page with everything, which needs no network")
    html_records: int = option(
        "--html-records",
        "N",
        "most records in the page and the plot, the first ones",
        type=positive_int,
        default=100,
    )
    plot: str | None = option("--plot", "FILE", ".png, .svg or .pdf of the first records")
    track: tuple[str, ...] = repeated(
        "--track",
        "FILE",
        "scores as .bw or .bedgraph[.gz], a file per strand: x.bw gives x.plus.bw and x.minus.bw; with "
        "several methods x.METHOD.plus.bw; may be repeated",
    )
    motifs: tuple[str, ...] = repeated(
        "--motifs", "FILE", "motifs shared by high scores, as .meme, .jaspar or .tsv; may be repeated"
    )
    heads: str | None = option("--heads", "FILE", "a TSV of what each attention head does")

    @property
    def shown(self) -> int:
        """Most records in the page and the plot."""
        return self.html_records if self.html or self.plot else 0


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """How rankings are checked."""

    title: ClassVar[str] = "checks"

    no_check: bool = flag("--no-check", "do not measure whether rankings can be trusted")
    faithfulness: str | None = option(
        "--faithfulness",
        "FILE",
        "figures of the checks as TSV (default: OUT.faithfulness.tsv where --out names a file)",
    )
    check_records: int | None = option(
        "--check-records",
        "N",
        "records that the checks use, drawn evenly from those called the class (default: 200, or 40 "
        "alignments)",
        type=positive_int,
    )
    shuffles: int = option(
        "--shuffles",
        "N",
        "shuffled copies of each record for p-values; 0 for none",
        type=whole_number,
        default=20,
    )
    seed: int = option("--seed", "N", "seed of the random draws", type=whole_number, default=0)


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Settings of single methods."""

    title: ClassVar[str] = "settings of single methods"

    residual: float = option(
        "--residual",
        "W",
        "rollouts: weight of the residual connection",
        type=probability,
        default=0.5,
    )
    heads_fused: Literal["mean", "max", "min"] = choice(
        "--fuse", ("mean", "max", "min"), "rollout: how heads are combined", default="mean"
    )
    spread: Literal["read", "span"] = choice(
        "--spread",
        ("read", "span"),
        "rollouts: a token's share goes to all letters that its convolutions read, in proportion to their "
        "effect on it (read), or evenly to those under its stride (span)",
        default="read",
    )
    steps: int = option(
        "--steps",
        "N",
        "integrated-gradients: points on the path",
        type=positive_int,
        default=32,
    )
    block: int | None = option(
        "--block",
        "N",
        "occlusion: letters or columns hidden at a time (default: 10 letters, 1 column)",
        type=positive_int,
    )


@dataclass(frozen=True, kw_only=True)
class AlignmentOutputs:
    """What is written of alignments alone."""

    title: ClassVar[str] = "output for models of alignments"

    row_profile: str | None = option("--row-profile", "FILE", "a TSV of what each row of an alignment adds")
    pairs: str | None = option(
        "--pairs",
        "FILE",
        "a TSV of pairs of columns: row attention, covariation and, of RNA and DNA, helices",
    )
    pairs_by: Literal["attention", "covariation", "helix"] | None = choice(
        "--pairs-by",
        ("attention", "covariation", "helix"),
        "what ranks the pairs (default: attention, the model's; helix finds far more base pairs)",
    )
    best_pairs: int | None = option(
        "--best-pairs",
        "N",
        "pairs of each alignment in the table; 0: all (default: as many as columns are read)",
        type=whole_number,
    )
    separation: int | None = option(
        "--separation",
        "N",
        "smallest distance between the two columns of a pair (default: 4)",
        type=positive_int,
    )


@dataclass(frozen=True, kw_only=True)
class ExplainRequest(Request):
    """All options of ``seqray explain``."""

    input: tuple[str, ...] = positional(
        "SEQUENCES",
        SEQUENCES_OR_ALIGNMENTS,
        nargs="+",
    )
    model: ModelOptions = group(ModelOptions)
    target: TargetOptions = group(TargetOptions)
    outputs: ExplanationOutputs = group(ExplanationOutputs)
    checks: CheckOptions = group(CheckOptions)
    settings: MethodOptions = group(MethodOptions)
    rows: RowOptions = group(RowOptions)
    alignments: AlignmentOutputs = group(AlignmentOutputs)
    records: RecordOptions = group(RecordOptions)
    computing: DeviceOptions = group(DeviceOptions)
