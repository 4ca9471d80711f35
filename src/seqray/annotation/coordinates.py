"""Genes in the coordinates of another strand, or of a part of their contig."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from seqray.annotation.genes import Gene


def shift_gene(gene: Gene, by: int) -> Gene:
    """The same gene, so many letters further on."""
    return replace(gene, start=gene.start + by, end=gene.end + by)


def flip_genes(genes: Sequence[Gene], length: int) -> tuple[Gene, ...]:
    """Genes of a contig as the minus strand has them: ``+`` is then the strand that is read."""
    other = {"+": "-", "-": "+"}
    return tuple(
        replace(gene, start=length - gene.end, end=length - gene.start, strand=other[gene.strand])
        for gene in genes
    )


def cut_genes(genes: Sequence[Gene], start: int, end: int) -> tuple[Gene, ...]:
    """What is left of genes in ``[start, end)``, counted from there; a coding gene keeps whole codons."""
    return tuple(filter(None, (_cut(shift_gene(gene, -start), end - start) for gene in genes)))


def _cut(gene: Gene, length: int) -> Gene | None:
    low, high = max(-gene.start, 0), max(gene.end - length, 0)
    if gene.coding and gene.strand == "+":
        low += -low % 3
    elif gene.coding:
        high += -high % 3
    if gene.start + low >= gene.end - high:
        return None
    first, last = (low > 0, high > 0) if gene.strand == "+" else (high > 0, low > 0)
    return replace(
        gene,
        start=gene.start + low,
        end=gene.end - high,
        partial_start=gene.partial_start or first,
        partial_end=gene.partial_end or last,
    )
