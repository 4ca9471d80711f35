"""Options of ``seqray evaluate``."""

from __future__ import annotations

from typing import Literal

from seqray.cli.labeled import UNKNOWN_LABELS, AlignmentLabelOptions, DataOptions, UnknownLabels
from seqray.cli.model import AUTO, BACKBONE, MODEL_HELP, TRUNCATE, DtypeOptions
from seqray.cli.options import Draws, Number, Options, Printable, Probability, Request, WholeNumber, option
from seqray.core.text import INTERVAL_DRAWS, Truncation


class PredictionOptions(Options, heading="predictions instead of a model"):
    """A table of predictions, and the labels to compare it with."""

    predictions: str | None = option(
        "--predictions FILE", "of 'seqray predict' or another tool; '-' is standard input"
    )
    labels: str | None = option(
        "--labels TABLE",
        "id, label[, sequence, group, split, context, subclass]; or two columns without a header",
    )
    id_column: str = option("--id-column NAME", "column of ids in the predictions", "id")
    score_column: str | None = option(
        "--score-column NAME", "column with the score of the positive class, on any scale"
    )
    positive: str | None = option("--positive LABEL", "the positive class, if the table does not name it")
    alphabet: Literal["dna", "rna", "protein"] | None = option(
        "--alphabet", "letters of the sequences in tables (default: what their letters show)"
    )


class MeasureOptions(Options, heading="measuring"):
    """What is measured, and how."""

    split: Literal["train", "validation", "test", "all"] | None = option(
        "--split", "part to evaluate (default: test if there is one, else all)"
    )
    map: tuple[str, ...] = option("--map LABEL=CLASS", "rename a label")
    unknown_labels: UnknownLabels = UNKNOWN_LABELS
    threshold: Number | None = option(
        "--threshold X", "call the positive class at or above this score (default: the model's)"
    )
    prior: Probability | None = option(
        "--prior P", "re-weight the model's probabilities to this share of positives"
    )
    context: str = option(
        "--context NAME|auto|none",
        "read all records as of this context; auto: as of those in the data, or if the model knows none of "
        "these, of the one that the records are like; none: of none",
        AUTO,
    )
    truncate: Truncation | None = TRUNCATE
    against: str | None = option("--against MODEL|TABLE", "compare with another model or its predictions")
    no_floor: bool = option("--no-floor", "do not fit the floor (simple rules), and say so")
    groups: Literal["auto", "column", "words", "none"] = option(
        "--groups",
        "what the bootstrap draws as a whole: the column 'group', sequences that share words, or nothing "
        "(default: the first of these that the data have)",
        "auto",
    )
    bootstrap: Draws = option(
        "--bootstrap N", "bootstrap samples for the intervals; 0 for none", INTERVAL_DRAWS
    )
    seed: WholeNumber = option("--seed N", "seed of samples and folds", 0)


class FigureOutputs(Options, heading="output"):
    """What is written."""

    out: str | None = option("--out -o FILE", "figures as .tsv or .tsv.gz; '-' is standard output")
    json: str | None = option("--json FILE", "the same as JSON, with facts of the model")
    html: str | None = option("--html FILE", "a page with curves and tables")
    multiqc: str | None = option("--multiqc FILE", "a table for MultiQC; ends in _mqc.json")
    sample: Printable | None = option(
        "--sample NAME", "row of the MultiQC table (default: name of the model)"
    )

    def files(self) -> tuple[str | None, ...]:
        """All files, ``-`` for standard output."""
        return self.out, self.json, self.html, self.multiqc


class EvaluateRequest(Request):
    """All options of ``seqray evaluate``."""

    model: str | None = option("--model -m NAME|FILE", MODEL_HELP)
    backbone: str | None = BACKBONE
    data: DataOptions
    labels: AlignmentLabelOptions
    given: PredictionOptions
    how: MeasureOptions
    outputs: FigureOutputs
    computing: DtypeOptions
