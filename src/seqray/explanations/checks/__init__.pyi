from .faithfulness import (
    RANDOM_RANKINGS as RANDOM_RANKINGS,
    SHARES as SHARES,
    Evidence as Evidence,
    gather as gather,
    measure as measure,
    random_ranks as random_ranks,
)
from .sample import (
    CHECKED_ALIGNMENTS as CHECKED_ALIGNMENTS,
    CHECKED_RECORDS as CHECKED_RECORDS,
    Reservoir as Reservoir,
)
from .significance import p_values as p_values, q_values as q_values
from .verdict import conclude as conclude
