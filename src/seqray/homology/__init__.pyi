from .options import PARTS as PARTS, RelationOptions as RelationOptions, SplitOptions as SplitOptions
from .proof import QUANTILES as QUANTILES, ProofLine as ProofLine, proof_lines as proof_lines
from .relations import (
    Related as Related,
    expected_sensitivity as expected_sensitivity,
    find_relatives as find_relatives,
    named_groups as named_groups,
    near_groups as near_groups,
    parse_places as parse_places,
    parse_positions as parse_positions,
)
from .similarity import (
    best_matches as best_matches,
    homology_groups as homology_groups,
    merge_groups as merge_groups,
)
from .split import Division as Division, split_data as split_data
from .splits import (
    grouped_folds as grouped_folds,
    holdout as holdout,
    kmer_groups as kmer_groups,
    position_groups as position_groups,
    random_folds as random_folds,
)
