from .check import (
    check_genes as check_genes,
    count_starts as count_starts,
)
from .coordinates import cut_genes as cut_genes, flip_genes as flip_genes, shift_gene as shift_gene
from .features import gene_features as gene_features
from .genes import Annotation as Annotation, Gene as Gene, count_genes as count_genes
from .index import GeneIndex as GeneIndex
from .predict import (
    GenePredictor as GenePredictor,
    can_predict_genes as can_predict_genes,
    check_predictable as check_predictable,
    predict_all as predict_all,
    predict_genes as predict_genes,
)
from .read import read_genes as read_genes
from .tracks import (
    REACH as REACH,
    TRACKS as TRACKS,
    Tracks as Tracks,
    gene_tracks as gene_tracks,
    track_rows as track_rows,
)
