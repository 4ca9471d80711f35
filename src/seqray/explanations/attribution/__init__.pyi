from .alignment_methods import (
    ALIGNMENT_METHODS as ALIGNMENT_METHODS,
    score_alignment as score_alignment,
    score_pairs as score_pairs,
)
from .attention_rollout import attention_of_cls as attention_of_cls, rollout as rollout
from .axial_rollout import tied_maps as tied_maps
from .axial_trace import trace_alignment as trace_alignment
from .backbones import pooled_attention as pooled_attention
from .column_pairs import (
    SEPARATION as SEPARATION,
    PairTable as PairTable,
    Ranking as Ranking,
    Structure as Structure,
    helices as helices,
    pair_table as pair_table,
    structure_of as structure_of,
)
from .compute import (
    mean_scores as mean_scores,
    member_effects as member_effects,
    member_scores as member_scores,
)
from .forward_trace import trace as trace
from .heads import check_heads as check_heads, head_figures as head_figures
from .hiding import AlignmentTarget as AlignmentTarget, occlude_columns as occlude_columns
from .logodds import CALLED as CALLED, class_explained as class_explained, ensemble_score as ensemble_score
from .methods import (
    METHODS as METHODS,
    check_methods as check_methods,
    letters_of as letters_of,
)
from .seeds import generator_for as generator_for
