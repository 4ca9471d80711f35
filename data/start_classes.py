"""What a transcription start is in view of the genes around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loci import Place
from seqray.core.records import SequenceRecord
from seqray.genome.find import predict_all, read_genes
from seqray.genome.genes import GeneIndex

UPSTREAM = 500
"""A start at most this many letters before a gene on its strand is a promoter of that gene."""


@dataclass(frozen=True, slots=True)
class StartClass:
    """The class of a start.

    Attributes
    ----------
    site
        ``promoter``: at most 500 letters before a gene of its strand, or in no gene. Of the others,
        ``internal``: in a gene of its strand; ``antisense``: in a gene of the other strand alone.
    distance
        Letters to the first letter of the next gene on its strand; None beyond 500.
    inside
        Strands of the genes that hold it: "same", "opposite", "same+opposite" or nothing.
    """

    site: str
    distance: int | None
    inside: str


def index_genes(records: Sequence[SequenceRecord], annotation: Path | None) -> dict[str, GeneIndex]:
    """Index the genes of an annotation, or predicted ones, by contig."""
    genes = read_genes(annotation) if annotation else predict_all(records)
    return {record.id: GeneIndex(genes.of(record.id), len(record.sequence)) for record in records}


def classify(genes: Mapping[str, GeneIndex], place: Place) -> StartClass:
    """Classify a start."""
    contig, position, strand = place
    index = genes[contig]
    downstream = index.downstream(position, strand, UPSTREAM)
    held = {"same": index.containing(position, strand), "opposite": index.antisense(position, strand)}
    inside = "+".join(name for name, gene in held.items() if gene)
    within = "internal" if held["same"] else "antisense"
    site = "promoter" if downstream or not inside else within
    return StartClass(site, downstream[1] if downstream else None, inside)
