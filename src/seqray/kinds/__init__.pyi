from .explanation_files import ExplanationFiles as ExplanationFiles, ExplanationRequest as ExplanationRequest
from .explanation_run import ExplanationRun as ExplanationRun
from .kind import Kind as Kind
from .labeled import (
    LabeledFiles as LabeledFiles,
    read_labeled_sequences as read_labeled_sequences,
    read_parts as read_parts,
    with_named_splits as with_named_splits,
)
from .python_objects import as_alignments as as_alignments, as_records as as_records
from .table import check_options as check_options, kind_of as kind_of
