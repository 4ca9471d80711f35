"""Options for alignments: which rows are read, and where their labels are."""

from __future__ import annotations

from seqray.cli.common.argument_types import PositiveInt
from seqray.cli.common.arguments import Options, option
from seqray.core import ConfigError

TITLE = "alignments, for models that read them"


class RowOptions(Options, heading=TITLE):
    """What a model of alignments reads."""

    rows: PositiveInt | None = option(
        "--rows N", "read at most N rows, including the query (default: the model's)"
    )
    query_only: bool = option("--query-only", "read the first row alone, to see what the others add")

    def limit(self) -> int | None:
        """Most rows to read; None for the model's own number."""
        if self.query_only and self.rows not in (None, 1):
            raise ConfigError("--query-only and --rows disagree", remedy="give one of them")
        return 1 if self.query_only else self.rows


class AlignmentLabelOptions(Options, heading=TITLE):
    """Labels of alignments."""

    alignment_labels: str | None = option(
        "--alignment-labels TABLE",
        "labels of the alignments in the file --train (or --test): columns id, label[, group, split]; "
        "without it --train is a table with the columns file, label[, id, group, split]",
    )
    query_only: bool = option("--query-only", "take the first row alone, to see what the others add")
