"""Genes on a genome."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

import numpy as np

from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.arrays import Codes, Ints
from seqray.core.errors import InputError

# --- A gene, and the genes of a genome


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


# --- Genes in the coordinates of another strand, or of a part of their contig


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


# --- Genes across the origin of a circular contig

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


# --- Find the gene downstream of a site, and the genes that contain it

REACH = 500
_OPPOSITE = {"+": "-", "-": "+"}


class GeneIndex:
    """The genes of one contig, for questions about single positions.

    Parameters
    ----------
    genes
        Of the contig, in any order.
    length
        Of the contig, in letters.
    circular
        Whether the last letter is followed by the first.
    """

    def __init__(self, genes: Sequence[Gene], length: int, *, circular: bool = False) -> None:
        self._length, self._circular = length, circular
        self._starts = {strand: _StartCodons(genes, length, strand) for strand in "+-"}
        self._intervals = {strand: _Stack([g for g in genes if g.strand == strand]) for strand in "+-"}

    def downstream(self, site: int, strand: str, reach: int = REACH) -> tuple[Gene, int] | None:
        """The next gene on a strand whose start lies at or after a site in reading direction.

        Parameters
        ----------
        site
            0-based position of the first letter transcribed.
        strand
            Of the site and the gene.
        reach
            Largest distance, in letters.

        Returns
        -------
        tuple of Gene and int, or None
            The gene, and the letters from the site to the first letter of its start codon: 0 for a
            transcript without a leader. Genes with a partial start are not found. Of several that start
            at the same letter it is the longest.
        """
        found = self._starts[strand].next(site, self._length if self._circular else None)
        return found if found and found[1] <= reach else None

    def containing(self, site: int, strand: str | None = None) -> Gene | None:
        """The gene that contains a position, on one strand or on either.

        Of several, it is the one whose left end is nearest; on a tie, the longest.

        Parameters
        ----------
        site
            0-based position.
        strand
            Of the gene; either if None.
        """
        found = [self._within(site, one) for one in (strand or "+-")]
        return min((gene for gene in found if gene), key=lambda gene: self._order(site, gene), default=None)

    def antisense(self, site: int, strand: str) -> Gene | None:
        """The gene on the other strand that contains a position of this strand."""
        return self.containing(site, _OPPOSITE[strand])

    def _within(self, site: int, strand: str) -> Gene | None:
        intervals = self._intervals[strand]
        return intervals.at(site) or (intervals.at(site + self._length) if self._circular else None)

    def _order(self, site: int, gene: Gene) -> tuple[int, int, str]:
        return (site - gene.start) % self._length, gene.start - gene.end, gene.strand


class _StartCodons:
    """Starts on one strand, ascending in its reading direction: positions on minus are negative."""

    def __init__(self, genes: Sequence[Gene], length: int, strand: str) -> None:
        self._sign = 1 if strand == "+" else -1
        known = [gene for gene in genes if gene.strand == strand and not gene.partial_start]
        pairs = [(self._sign * (gene.start_codon % length), gene) for gene in known]
        pairs.sort(key=lambda pair: (pair[0], pair[1].start - pair[1].end))
        self._positions, self._genes = [p for p, _ in pairs], [g for _, g in pairs]

    def next(self, site: int, around: int | None) -> tuple[Gene, int] | None:
        """The first start at or after a site; ``around`` is the length of a circle."""
        place = bisect_left(self._positions, self._sign * site)
        if place < len(self._genes):
            return self._genes[place], self._positions[place] - self._sign * site
        if around is None or not self._genes:
            return None
        return self._genes[0], self._positions[0] + around - self._sign * site


class _Stack:
    """Intervals that may overlap, sorted by start; the running maximum of the ends bounds the search."""

    def __init__(self, genes: Sequence[Gene]) -> None:
        self._genes = sorted(genes, key=lambda gene: (gene.start, gene.end))
        self._starts = [gene.start for gene in self._genes]
        self._reached = list(accumulate((gene.end for gene in self._genes), max))

    def at(self, site: int) -> Gene | None:
        """The last interval that contains a position."""
        place = bisect_right(self._starts, site) - 1
        while place >= 0 and self._reached[place] > site:
            if self._genes[place].end > site:
                return self._genes[place]
            place -= 1
        return None


# --- Whether genes and sequences belong together: names of contigs, their lengths, and start codons

_ASSEMBLY = "give the annotation of this assembly, or genes='predict'"
_MAX_SHOWN_NAMES = 3
_STARTS = ("ATG", "GTG", "TTG", "CTG", "ATT", "ATC", "ATA")  # of codon table 11
_MIN_GENES = 20
_MIN_START_SHARE = 0.5


def check_genes(annotation: Annotation, contigs: Iterable[tuple[str, Codes]]) -> None:
    """Raise `InputError` if the genes can't be those of the sequences: other names, lengths or start codons.

    Parameters
    ----------
    annotation
        As read.
    contigs
        Name and codes (n,) of each sequence, see `seqray.core.DNA`. Sequences without genes, and genes of
        other sequences, are accepted, as long as one name is common.
    """
    names, with_start, looked_at = [], 0, 0
    for name, codes in contigs:
        names.append(name)
        check_contig(annotation, name, len(codes))
        found, seen = count_starts(annotation.of(name), codes)
        with_start, looked_at = with_start + found, looked_at + seen
    check_names(annotation, names)
    check_starts(with_start, looked_at, annotation.file)


def check_names(annotation: Annotation, contigs: Collection[str]) -> None:
    """Raise `InputError` if there are no genes, or none on a sequence of these names.

    No sequences at all are another error, which reading them again explains.
    """
    annotated = [contig for contig, genes in annotation.genes.items() if genes]
    if not annotated:
        others = f", only features {_some(annotation.others)}" if annotation.others else ""
        remedy = "give another file, genes='predict' or genes=None"
        raise InputError(f"contains no genes{others}", where=annotation.file, remedy=remedy)
    if contigs and not set(annotated) & set(contigs):
        same = {_versionless(name) for name in annotated} & {_versionless(name) for name in contigs}
        raise InputError(
            f"has genes of {_some(annotated)}, but the sequences are {_some(contigs)}",
            where=annotation.file,
            remedy="only the version after the dot differs: use files of one version"
            if same
            else "use the same names in both files",
        )


def check_contig(annotation: Annotation, contig: str, length: int) -> None:
    """Raise `InputError` if the annotation gives a contig another length, or a gene lies beyond its end."""
    stated = annotation.lengths.get(contig, length)
    if stated != length and annotation.of(contig):
        raise InputError(
            f"states {stated} letters of '{contig}', which has {length}",
            where=annotation.file,
            remedy=_ASSEMBLY,
        )
    reach = 2 * length if contig in annotation.circular else length
    for gene in annotation.of(contig):
        if gene.start >= length or gene.end > reach:
            raise InputError(
                f"the gene '{gene.name}' ({gene.start + 1}-{gene.end}) lies beyond the end of '{contig}', "
                f"which has {length} letters",
                where=annotation.file,
                remedy=_ASSEMBLY,
            )


def count_starts(genes: Sequence[Gene], codes: Codes) -> tuple[int, int]:
    """Count the genes that begin with a start codon of bacteria (ATG, GTG, TTG, CTG, ATT, ATC, ATA).

    Parameters
    ----------
    genes
        Of one contig. Only complete coding genes are looked at; pseudogenes are not.
    codes
        (n,) of the contig, see `seqray.core.DNA`.

    Returns
    -------
    tuple of int
        Genes with a start codon, and genes looked at.
    """
    if not len(codes):
        return 0, 0
    forward, backward = (_start_codons(genes, strand) for strand in "+-")
    codons = np.concatenate(
        [
            codes[(forward[:, None] + np.arange(3)) % len(codes)],
            reverse_complement_codes(codes[(backward[:, None] + np.arange(-2, 1)) % len(codes)]),
        ]
    )
    known = {tuple(DNA.encode(codon).tolist()) for codon in _STARTS}
    return sum(tuple(codon) in known for codon in codons.tolist()), len(codons)


def _start_codons(genes: Iterable[Gene], strand: str) -> Ints:
    chosen = (gene for gene in genes if gene.strand == strand and gene.coding and gene.complete)
    return np.array([gene.start_codon for gene in chosen if not gene.pseudo], dtype=np.int64)


def check_starts(with_start: int, looked_at: int, file: str) -> None:
    """Raise `InputError` if fewer than half of at least 20 genes begin with a start codon.

    In a random place 11 % of codons are one.

    The counts are those of `count_starts`, summed over contigs.
    """
    if looked_at >= _MIN_GENES and with_start < _MIN_START_SHARE * looked_at:
        raise InputError(
            f"the genes do not fit the sequence: {100 * with_start / looked_at:.0f} % of {looked_at} begin "
            "with a start codon",
            where=file,
            remedy=_ASSEMBLY,
        )


def _versionless(name: str) -> str:
    stem, dot, version = name.rpartition(".")
    return stem if dot and version.isdigit() else name


def _some(names: Collection[str]) -> str:
    shown = ", ".join(f"'{name}'" for name in list(names)[:_MAX_SHOWN_NAMES])
    return (
        f"{shown} and {len(names) - _MAX_SHOWN_NAMES} more"
        if len(names) > _MAX_SHOWN_NAMES
        else shown or "none"
    )
