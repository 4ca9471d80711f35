from .column_covariation import (
    average_product_correction as average_product_correction,
    base_pairs as base_pairs,
    best_pairs as best_pairs,
    covariation as covariation,
    mutual_information as mutual_information,
    pair_precision as pair_precision,
    pairs_from_maps as pairs_from_maps,
)
from .profiles import (
    conservation as conservation,
    letter_counts as letter_counts,
    looks_unaligned as looks_unaligned,
    occupancy as occupancy,
)
from .rows import (
    choose_cells as choose_cells,
    choose_columns as choose_columns,
    choose_rows as choose_rows,
    crop_alignment as crop_alignment,
    omits_letters as omits_letters,
    row_weights as row_weights,
)
