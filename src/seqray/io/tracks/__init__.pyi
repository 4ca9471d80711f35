from .annotated import (
    AnnotatedFeature as AnnotatedFeature,
    AnnotatedFile as AnnotatedFile,
    Part as Part,
    read_annotated as read_annotated,
)
from .bed import read_bed as read_bed, write_bed as write_bed
from .calls import (
    CALL_COLUMNS as CALL_COLUMNS,
    call_ids as call_ids,
    call_rows as call_rows,
    write_calls_tsv as write_calls_tsv,
)
from .contexts import CONTEXT_COLUMNS as CONTEXT_COLUMNS
from .explanation_scores import ScoreTrack as ScoreTrack
from .features import read_features as read_features, select_features as select_features
from .genbank import gene_names as gene_names, write_genbank as write_genbank
from .gff3 import (
    read_circular as read_circular,
    read_gff3_calls as read_gff3_calls,
    write_gff3 as write_gff3,
)
from .lines import Feature as Feature, is_pseudo as is_pseudo
from .scores import TrackWriter as TrackWriter, track_paths as track_paths
from .sites import Site as Site, read_sites as read_sites
from .statement import (
    EXPECTED as EXPECTED,
    ScanStatement as ScanStatement,
    read_scan_statement as read_scan_statement,
)
