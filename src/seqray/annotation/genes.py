"""A gene, and the genes of a genome."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gene:
    """An interval that is transcribed: of a gene, or one piece of a gene in several pieces.

    Attributes
    ----------
    start, end
        0-based and half-open on the plus strand, with ``0 <= start`` below the length of the contig. ``end``
        exceeds the length if the gene crosses the origin of a circular contig.
    strand
        ``+`` or ``-``.
    name
        Of the gene (``lacZ``), else its locus tag, else its ID.
    locus
        Locus tag or ID; empty if there is none.
    product
        Description of the product; empty if there is none.
    partial_start, partial_end
        Whether the 5' or 3' end of the gene lies elsewhere: beyond the contig, or in another piece. A coding
        gene with a partial start begins with a whole codon.
    pseudo
        Whether the file calls it a pseudogene.
    coding
        Whether it is translated; genes of RNA, and pseudogenes without a reading frame, are not.
    table
        NCBI's number of its codon table; None if it is not stated.

    Examples
    --------
    >>> gene = Gene(100, 400, "-", "yhbX")
    >>> gene.start_codon, gene.coding
    (399, True)
    """

    start: int
    end: int
    strand: str
    name: str
    locus: str = ""
    product: str = ""
    partial_start: bool = False
    partial_end: bool = False
    pseudo: bool = False
    coding: bool = True
    table: int | None = None

    @property
    def start_codon(self) -> int:
        """Position of the first letter in reading direction; it may exceed the length, as ``end`` does."""
        return self.start if self.strand == "+" else self.end - 1

    @property
    def complete(self) -> bool:
        """Whether both ends are known."""
        return not (self.partial_start or self.partial_end)


@dataclass(frozen=True)
class Annotation:
    """The genes of a genome.

    Attributes
    ----------
    genes
        By contig, sorted by start and end.
    source
        Where they come from, for messages and headers of outputs.
    lengths
        Length of each contig, where the annotation states it.
    circular
        Names of the contigs that the annotation, or who read it, calls circular.
    file
        That was read, for errors; empty for genes that were predicted.
    others
        Kinds of the features of the file that are no genes.
    """

    genes: Mapping[str, tuple[Gene, ...]]
    source: str
    lengths: Mapping[str, int] = field(default_factory=dict)
    circular: Collection[str] = frozenset()
    file: str = ""
    others: Collection[str] = ()

    def of(self, contig: str) -> tuple[Gene, ...]:
        """The genes of one contig; empty if there are none."""
        return self.genes.get(contig, ())

    @property
    def count(self) -> int:
        """Number of genes; one in several pieces counts once."""
        return sum(map(count_genes, self.genes.values()))


def count_genes(genes: Iterable[Gene]) -> int:
    """Count the genes of a contig: pieces of one gene share its locus, or its name if it has no locus."""
    return len({gene.locus or (_place(gene) if gene.complete else gene.name) for gene in genes})


def _place(gene: Gene) -> tuple[int, int, str]:
    return gene.start, gene.end, gene.strand


def sort_genes(genes: Iterable[Gene]) -> tuple[Gene, ...]:
    """Sort by position; genes of the same interval keep their order."""
    return tuple(sorted(genes, key=_place))
