from .outputs import (
    Output as Output,
    Tracks as Tracks,
    cautions as cautions,
    plan_outputs as plan_outputs,
    result_facts as result_facts,
    summary as summary,
    write_calls as write_calls,
)
from .shards import divide_words as divide_words
