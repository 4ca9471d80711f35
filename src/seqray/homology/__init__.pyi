from .folds import (
    deal_groups as deal_groups,
    grouped_folds as grouped_folds,
    random_folds as random_folds,
)
from .groups import (
    merge_groups as merge_groups,
    named_groups as named_groups,
    position_groups as position_groups,
    positions_from_column as positions_from_column,
    positions_from_ids as positions_from_ids,
)
from .options import PARTS as PARTS, RelationOptions as RelationOptions, SplitOptions as SplitOptions
from .proof import QUANTILES as QUANTILES, ProofLine as ProofLine, proof_lines as proof_lines
from .relatives import (
    Related as Related,
    find_relatives as find_relatives,
)
from .shared_kmers import (
    KmerTable as KmerTable,
    kmer_groups as kmer_groups,
    kmer_length as kmer_length,
    kmer_table as kmer_table,
)
from .shared_loci import KmerSet as KmerSet
from .similarity import (
    best_matches as best_matches,
    expected_sensitivity as expected_sensitivity,
    homology_groups as homology_groups,
)
from .split import (
    Division as Division,
    split_data as split_data,
)
