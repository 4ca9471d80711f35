"""Models that read alignments."""

from __future__ import annotations

from collections.abc import Sequence

from seqray.core import Alignment, ConfigError, Example
from seqray.explanations import AlignmentOptions, explain_alignments
from seqray.inference import predict_alignments
from seqray.io.alignments import read_alignments
from seqray.io.tables import COLUMN_COLUMNS, column_lines
from seqray.kinds.alignment_explanations import AlignmentRun
from seqray.kinds.kind import Kind
from seqray.kinds.labeled import read_alignment_examples
from seqray.kinds.python_objects import as_alignments


def _adapt(examples: Sequence[Example], window: int) -> Sequence[Example]:
    if not all(isinstance(one, Alignment) for one in examples):
        raise ConfigError("the model reads alignments, and the data are sequences")
    return examples


ALIGNMENTS = Kind(
    unit="alignments",
    example=Alignment,
    pretraining_unit="alignments",
    reads_each_record=False,
    options=frozenset(
        {
            *("--rows", "--query-only", "--row-profile"),
            *("--pairs", "--pairs-by", "--best-pairs", "--separation"),
        }
    ),
    read=read_alignments,
    convert=as_alignments,
    read_labeled=lambda files, alphabet, on_skip=None: read_alignment_examples(files, alphabet),
    adapt=_adapt,
    unlabeled=lambda alignment: alignment,
    predict=lambda model, records, options, source: predict_alignments(model, records, options),
    explain=explain_alignments,
    explain_options=AlignmentOptions,
    explanation_columns=COLUMN_COLUMNS,
    explanation_rows=column_lines,
    explanation_run=AlignmentRun,
)
