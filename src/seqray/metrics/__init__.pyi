from .baselines import (
    KmerPositionalBaseline as KmerPositionalBaseline,
    PositionWeightMatrix as PositionWeightMatrix,
)
from .classification import (
    auprc as auprc,
    auroc as auroc,
    binary_metrics as binary_metrics,
    bootstrap_interval as bootstrap_interval,
    confusion_counts as confusion_counts,
    expected_calibration_error as expected_calibration_error,
    matthews as matthews,
    threshold_metrics as threshold_metrics,
)
from .intervals import auroc_of as auroc_of, measure as measure
from .paired_tests import mcnemar as mcnemar
from .resampling import (
    FEW_GROUPS as FEW_GROUPS,
    group_numbers as group_numbers,
    interval as interval,
    p_of_no_difference as p_of_no_difference,
    weight_blocks as weight_blocks,
)
from .weighted import (
    METRICS as METRICS,
    call_figures as call_figures,
    class_figures as class_figures,
    table_figures as table_figures,
)
