from .alignment_scores import score_pairs as score_pairs
from .attention_layers import (
    AttentionLayer as AttentionLayer,
    SequenceLayer as SequenceLayer,
    Trace as Trace,
    WeightBlock as WeightBlock,
)
from .attention_rollout import (
    attention_from_start as attention_from_start,
    grad_rollout as grad_rollout,
    rollout as rollout,
    value_rollout as value_rollout,
)
from .axial_attention import row_maps as row_maps
from .column_pairs import (
    SEPARATION as SEPARATION,
    PairTable as PairTable,
    Ranking as Ranking,
    Structure as Structure,
    helices as helices,
    pair_table as pair_table,
    structure_of as structure_of,
)
from .forward_trace import trace as trace
from .heads import check_heads as check_heads, head_figures as head_figures
from .locator_scores import input_effects as input_effects
from .methods import (
    ALIGNMENT_METHODS as ALIGNMENT_METHODS,
    METHODS as METHODS,
    Method as Method,
    check_methods as check_methods,
    member_effects as member_effects,
    member_scores as member_scores,
    score_alignment as score_alignment,
)
from .occlusion import occlude_columns as occlude_columns
from .sequence_scores import letter_attention as letter_attention
from .shuffles import generator_for as generator_for, shuffled_copies as shuffled_copies
from .targets import (
    CALLED as CALLED,
    AlignmentTarget as AlignmentTarget,
    AttributionTarget as AttributionTarget,
    LetterTarget as LetterTarget,
    LocatorTarget as LocatorTarget,
    class_explained as class_explained,
    ensemble_score as ensemble_score,
    sequence_targets as sequence_targets,
    wanted_class as wanted_class,
)
