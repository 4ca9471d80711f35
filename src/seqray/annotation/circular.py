"""Genes across the origin of a circular contig.

A finder of genes reads lines, not circles. It is given the contig and its beginning once more, and the genes
of one round are taken from a place where the first round and the second agree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from seqray.annotation.genes import Gene, sort_genes

OVERLAP = 50_000  # longer than nearly every gene, and 1 % of a genome


def genes_on_circle(sequence: str, find: Callable[[str], tuple[Gene, ...]]) -> tuple[Gene, ...]:
    """Genes of a circular sequence; those across the origin end beyond its length.

    ``sequence`` is one round; ``find`` gives the genes of a linear sequence.
    """
    length = len(sequence)
    overlap = min(OVERLAP, length)
    found = [gene for gene in find(sequence + sequence[:overlap]) if gene.complete]
    cut = _agreed_start(found, length, overlap)
    around = (gene for gene in found if cut <= gene.start < cut + length and gene.end - gene.start <= length)
    return sort_genes(
        replace(gene, start=gene.start - length, end=gene.end - length) if gene.start >= length else gene
        for gene in around
    )


def _agreed_start(found: list[Gene], length: int, overlap: int) -> int:
    """Start of the gene nearest to the middle of the overlap that both rounds have, else the middle."""
    places = {(gene.start, gene.end, gene.strand) for gene in found}
    agreed = [
        gene.start
        for gene in found
        if gene.end <= overlap and (gene.start + length, gene.end + length, gene.strand) in places
    ]
    middle = overlap // 2
    return min(agreed, key=lambda start: abs(start - middle), default=middle)
