from .annotation import read_features as read_features, select_features as select_features
from .calls import (
    CALL_COLUMNS as CALL_COLUMNS,
    Interval as Interval,
    call_ids as call_ids,
    read_bed as read_bed,
    read_gff3_calls as read_gff3_calls,
    write_bed as write_bed,
    write_calls_tsv as write_calls_tsv,
    write_gff3 as write_gff3,
)
from .explanation_scores import ScoreTrack as ScoreTrack
from .scores import TrackWriter as TrackWriter, track_paths as track_paths
