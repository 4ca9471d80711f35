from .alignments import (
    AlignmentOptions as AlignmentOptions,
    check_alignments as check_alignments,
    explain_alignments as explain_alignments,
)
from .places import cut_calls as cut_calls
from .run import (
    ExplainOptions as ExplainOptions,
    check as check,
    explain_records as explain_records,
    heads as heads,
)
