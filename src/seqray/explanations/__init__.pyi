from .alignments import check_alignments as check_alignments, explain_alignments as explain_alignments
from .call_windows import best_calls as best_calls, extract_call_windows as extract_call_windows
from .calls import (
    check_calls as check_calls,
    explain_calls as explain_calls,
    input_shares as input_shares,
)
from .options import (
    COLUMN_BLOCK as COLUMN_BLOCK,
    LETTER_BLOCK as LETTER_BLOCK,
    AlignmentOptions as AlignmentOptions,
    ExplainOptions as ExplainOptions,
    MethodSettings as MethodSettings,
)
from .sequences import check as check, explain_records as explain_records, heads as heads
from .stretches import (
    Stretch as Stretch,
    TracksOf as TracksOf,
    check_explained_calls as check_explained_calls,
    cut_stretches as cut_stretches,
)
