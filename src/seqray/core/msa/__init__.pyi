from .column_covariation import (
    average_product as average_product,
    base_pairs as base_pairs,
    best_pairs as best_pairs,
    covariation as covariation,
    mutual_information as mutual_information,
    pairs_from_maps as pairs_from_maps,
    precision as precision,
)
from .profiles import conservation as conservation, occupancy as occupancy
from .rows import (
    choose as choose,
    choose_columns as choose_columns,
    choose_rows as choose_rows,
    fit as fit,
    row_weights as row_weights,
)
