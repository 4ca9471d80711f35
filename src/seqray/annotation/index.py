"""Find the gene downstream of a site, and the genes that contain it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate

from seqray.annotation.genes import Gene

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
