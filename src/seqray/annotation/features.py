"""Genes as features of a file: a ``gene``, and a ``CDS`` if it is translated."""

from __future__ import annotations

from collections.abc import Iterator

from seqray.annotation.genes import Annotation, Gene
from seqray.io.tracks import AnnotatedFeature, Part, gene_names

_BACTERIAL = 11


def gene_features(annotation: Annotation) -> dict[str, list[AnnotatedFeature]]:
    """Features of each contig; a note says where the genes come from."""
    return {
        contig: [feature for gene in genes for feature in _features(contig, gene, annotation.source)]
        for contig, genes in annotation.genes.items()
    }


def _features(contig: str, gene: Gene, source: str) -> Iterator[AnnotatedFeature]:
    names = gene_names(gene.name, gene.locus)
    note = {"note": f"{'pseudogene, ' if gene.pseudo else ''}{source}"}
    yield _feature(contig, "gene", gene, names | note)
    if gene.coding:
        codons = {"codon_start": "1", "transl_table": str(gene.table or _BACTERIAL)}
        product = {"product": gene.product} if gene.product else {}
        yield _feature(contig, "CDS", gene, names | product | codons | note)


def _feature(contig: str, kind: str, gene: Gene, attributes: dict[str, str]) -> AnnotatedFeature:
    part = Part(gene.start, gene.end, gene.strand)
    return AnnotatedFeature(
        contig, kind, (part,), attributes, "", partial_start=gene.partial_start, partial_end=gene.partial_end
    )
