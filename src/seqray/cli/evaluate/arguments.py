"""What ``seqray evaluate`` is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from seqray.cli.common import (
    MODEL_HELP,
    AlignmentLabelOptions,
    DataOptions,
    PrecisionOptions,
    Request,
    backbone_option,
    choice,
    flag,
    group,
    number,
    option,
    probability,
    repeated,
    whole_number,
)


@dataclass(frozen=True, kw_only=True)
class PredictionOptions:
    """A table of predictions, and the labels to compare it with."""

    title: ClassVar[str] = "predictions instead of a model"

    predictions: str | None = option(
        "--predictions", "FILE", "of 'seqray predict' or another tool; '-' is standard input"
    )
    labels: str | None = option(
        "--labels",
        "TABLE",
        "id, label[, sequence, group, split, context]; or two columns without a header",
    )
    id_column: str = option("--id-column", "NAME", "column of ids in the predictions", default="id")
    score_column: str | None = option(
        "--score-column", "NAME", "column with the score of the positive class, on any scale"
    )
    positive: str | None = option("--positive", "LABEL", "the positive class, if the table does not name it")
    alphabet: str | None = choice(
        "--alphabet", ("dna", "rna", "protein"), "letters of the sequences in tables (default: dna)"
    )


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """What is measured, and how."""

    title: ClassVar[str] = "measuring"

    split: str | None = choice(
        "--split",
        ("train", "validation", "test", "all"),
        "part to evaluate (default: test if there is one, else all)",
    )
    map: tuple[str, ...] = repeated("--map", "LABEL=CLASS", "rename a label")
    threshold: float | None = option(
        "--threshold",
        "X",
        "call the positive class at or above this score (default: the model's)",
        type=number,
    )
    prior: float | None = option(
        "--prior",
        "P",
        "re-weight the model's probabilities to this share of positives",
        type=probability,
    )
    no_context: bool = flag("--no-context", "hide the context of the records from the model")
    against: str | None = option("--against", "MODEL|TABLE", "compare with another model or its predictions")
    no_floor: bool = flag("--no-floor", "do not fit the floor (simple rules), and say so")
    groups: Literal["auto", "column", "words", "none"] = choice(
        "--groups",
        ("auto", "column", "words", "none"),
        "what the bootstrap draws as a whole: the column 'group', sequences that share words, or nothing "
        "(default: the first of these that the data have)",
        default="auto",
    )
    bootstrap: int = option(
        "--bootstrap",
        "N",
        "bootstrap samples for the intervals; 0 for none",
        type=whole_number,
        default=1000,
    )
    seed: int = option("--seed", "N", "seed of samples and folds", type=whole_number, default=0)


@dataclass(frozen=True, kw_only=True)
class FigureOutputs:
    """What is written."""

    title: ClassVar[str] = "output"

    out: str | None = option("--out -o", "FILE", "figures as .tsv or .tsv.gz; '-' is standard output")
    json: str | None = option("--json", "FILE", "the same as JSON, with facts of the model")
    html: str | None = option("--html", "FILE", "a page with curves and tables")
    multiqc: str | None = option("--multiqc", "FILE", "a table for MultiQC; ends in _mqc.json")
    sample: str | None = option("--sample", "NAME", "row of the MultiQC table (default: name of the model)")

    def files(self) -> tuple[str | None, ...]:
        """All files, ``-`` for standard output."""
        return self.out, self.json, self.html, self.multiqc


@dataclass(frozen=True, kw_only=True)
class EvaluateRequest(Request):
    """All options of ``seqray evaluate``."""

    model: str | None = option("--model -m", "NAME|FILE", MODEL_HELP)
    backbone: str | None = backbone_option()
    data: DataOptions = group(DataOptions)
    labels: AlignmentLabelOptions = group(AlignmentLabelOptions)
    given: PredictionOptions = group(PredictionOptions)
    how: MeasureOptions = group(MeasureOptions)
    outputs: FigureOutputs = group(FigureOutputs)
    computing: PrecisionOptions = group(PrecisionOptions)
