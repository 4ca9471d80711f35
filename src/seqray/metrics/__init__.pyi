from .baselines import (
    KmerPositionalBaseline as KmerPositionalBaseline,
    PositionWeightMatrix as PositionWeightMatrix,
    default_baseline as default_baseline,
    held_out_probabilities as held_out_probabilities,
)
from .bootstrap import (
    MIN_RELIABLE_GROUPS as MIN_RELIABLE_GROUPS,
    bootstrap_samples as bootstrap_samples,
    difference_p_value as difference_p_value,
    group_numbers as group_numbers,
    mcc_and_auroc as mcc_and_auroc,
    percentile_interval as percentile_interval,
)
from .classification import (
    METRICS as METRICS,
    auprc as auprc,
    auroc as auroc,
    calibration_error as calibration_error,
    call_metrics as call_metrics,
    class_metrics as class_metrics,
    macro_metrics as macro_metrics,
    matthews as matthews,
    multiclass_metrics as multiclass_metrics,
    ratio as ratio,
    threshold_metrics as threshold_metrics,
)
from .matching import (
    UNCLAIMED as UNCLAIMED,
    average_precision as average_precision,
    claim_sites as claim_sites,
)
from .paired_tests import mcnemar as mcnemar
