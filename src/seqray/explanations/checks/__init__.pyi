from .faithfulness import SHARES as SHARES, Evidence as Evidence, curves as curves
from .sample import (
    CHECKED_ALIGNMENTS as CHECKED_ALIGNMENTS,
    CHECKED_CALLS as CHECKED_CALLS,
    CHECKED_RECORDS as CHECKED_RECORDS,
    Reservoir as Reservoir,
)
from .significance import p_values as p_values, q_values as q_values
from .verdict import conclude as conclude
