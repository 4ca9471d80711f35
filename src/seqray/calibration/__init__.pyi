from .conformal import Conformal as Conformal, coverage_cutoffs as coverage_cutoffs, label_sets as label_sets
from .domain import Domain as Domain, signature_of as signature_of
from .expected_precision import (
    Expectation as Expectation,
    ExpectedPrecision as ExpectedPrecision,
    SpeciesRow as SpeciesRow,
)
from .fit import (
    Calibration as Calibration,
    calibrated_card as calibrated_card,
    calibration_shortfalls as calibration_shortfalls,
    choose_threshold as choose_threshold,
    cross_fitted as cross_fitted,
    log_loss as log_loss,
)
from .isotonic import IsotonicMap as IsotonicMap, apply_isotonic as apply_isotonic
from .label_shift import COVERAGE as COVERAGE, CalledShare as CalledShare, HeldOutScores as HeldOutScores
from .signature import (
    MIN_WORDS as MIN_WORDS,
    ContextDistance as ContextDistance,
    KmerCounter as KmerCounter,
    Signature as Signature,
)
from .training_sketch import SketchCount as SketchCount, TrainingSketch as TrainingSketch
