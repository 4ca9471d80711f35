from .boxes import find_boxes as find_boxes
from .calls import LETTERS_BEFORE as LETTERS_BEFORE, CallTable as CallTable
from .cautions import call_cautions as call_cautions, model_limits as model_limits
from .cutoffs import Cutoffs as Cutoffs
from .describe import describe_result as describe_result
from .detector import Detector as Detector
from .detectors import check_scan_options as check_scan_options, make_detector as make_detector
from .genes import (
    GeneSource as GeneSource,
    choose_genes as choose_genes,
    genes_of_annotation as genes_of_annotation,
    predicted_genes as predicted_genes,
)
from .options import ScanCallbacks as ScanCallbacks, ScanOptions as ScanOptions, ShardNumber as ShardNumber
from .results import ScanResult as ScanResult, ScoreProfile as ScoreProfile
from .scan import (
    assess_scan as assess_scan,
    scan_records as scan_records,
    scan_sequences as scan_sequences,
)
from .shard_file import (
    SHARD_SUFFIX as SHARD_SUFFIX,
    ShardFile as ShardFile,
    reading_shard as reading_shard,
    write_shard as write_shard,
)
from .shards import (
    check_shards as check_shards,
    gather_shards as gather_shards,
    scan_shard as scan_shard,
    skipped_records as skipped_records,
)
