from .calls import CallTable as CallTable
from .options import ScanOptions as ScanOptions
from .peaks import local_maxima as local_maxima, suppress as suppress
from .scan import as_detector as as_detector, scan_records as scan_records, scan_sequences as scan_sequences
from .shard_file import SHARD_SUFFIX as SHARD_SUFFIX, ShardFile as ShardFile, write_shard as write_shard
from .shards import (
    check_shards as check_shards,
    gather as gather,
    scan_share as scan_share,
    skipped_of as skipped_of,
)
from .types import (
    Detector as Detector,
    Profile as Profile,
    ScanCallbacks as ScanCallbacks,
    ScanResult as ScanResult,
    Share as Share,
)
