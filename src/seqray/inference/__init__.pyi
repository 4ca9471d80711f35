from .alignments import (
    alignment_networks as alignment_networks,
    cells_read as cells_read,
    depth_read as depth_read,
    predict_alignments as predict_alignments,
    score_alignments as score_alignments,
)
from .cascade import cascade_log_odds as cascade_log_odds
from .contexts import recognize_context as recognize_context
from .engines import (
    Engine as Engine,
    choose_engine as choose_engine,
    open_with_engine as open_with_engine,
    with_engine as with_engine,
)
from .file_check import FileCheck as FileCheck
from .labeled import known_context as known_context, model_probabilities as model_probabilities
from .locators import CHUNK as CHUNK, Strand as Strand, StrandScorer as StrandScorer
from .origin import CAUTION as CAUTION, Origin as Origin, read_as as read_as
from .parallel import compute_precision as compute_precision, map_batches as map_batches
from .predictions import (
    BatchSize as BatchSize,
    Dtype as Dtype,
    PredictOptions as PredictOptions,
    called_labels as called_labels,
    reweight as reweight,
)
from .prefilters import (
    prefilter_log_odds as prefilter_log_odds,
    second_log_odds as second_log_odds,
)
from .sequences import (
    TRUNCATED as TRUNCATED,
    checked_records as checked_records,
    micro_batch as micro_batch,
    pad_batch as pad_batch,
    predict_records as predict_records,
    score_codes as score_codes,
    score_ragged as score_ragged,
    sequence_flags as sequence_flags,
)
from .site_place import find_shifted_site as find_shifted_site
