from .kind import Kind as Kind
from .labeled import (
    LabeledFiles as LabeledFiles,
    ReadCallbacks as ReadCallbacks,
    SplitExamples as SplitExamples,
    in_inferred_alphabet as in_inferred_alphabet,
    queries as queries,
    read_inferred_examples as read_inferred_examples,
    read_parts as read_parts,
    read_sequence_examples as read_sequence_examples,
    with_named_splits as with_named_splits,
)
from .locators import tracks_reader as tracks_reader
from .python_objects import (
    as_alignments as as_alignments,
    as_records as as_records,
    has_unread_genes as has_unread_genes,
    holds_genes as holds_genes,
)
from .table import check_options as check_options, kind_of as kind_of
