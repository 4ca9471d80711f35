from .alignments import predict_alignments as predict_alignments, score_alignments as score_alignments
from .engines import Engine as Engine, with_engine as with_engine
from .labelled import known_context as known_context, model_probabilities as model_probabilities
from .sequences import (
    BatchSize as BatchSize,
    Precision as Precision,
    arithmetic as arithmetic,
    called_labels as called_labels,
    checked_records as checked_records,
    filled_up as filled_up,
    micro_batch as micro_batch,
    predict_records as predict_records,
    reweight as reweight,
    score_codes as score_codes,
    score_ragged as score_ragged,
)
