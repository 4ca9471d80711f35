"""The calls of a scan as arrays: 25 bytes per call, and the letters around it.

The header of every output contains the expected false calls, which are known only at the end, so all calls
are kept in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from seqray.core import Codes, Floats, Ints
from seqray.core.results import Call, CallContext

LETTERS_BEFORE, LETTERS_AFTER = 60, 20
"""Letters on either side of a site that a locator's calls keep."""


class CallTable(Sequence[Call]):
    """A sequence of `Call`, made on access.

    Parameters
    ----------
    label
        Name of the positive class.
    extent
        Letters of a call before its site and after it, in reading direction. A call ends where a linear
        contig does.
    """

    def __init__(self, label: str, extent: tuple[int, int]) -> None:
        self._label = label
        self._extent = extent
        self._contigs: list[tuple[str, int, bool]] = []
        self._contig = array("q")
        self._site = array("q")
        self._minus = array("b")
        self._score = array("d")
        self._letters: list[Codes] = []
        self._contexts: Sequence[CallContext] = ()

    def add(
        self, contig: str, length: int, circular: bool, strands: Sequence[tuple[str, Ints, Floats, Codes]]
    ) -> None:
        """Append the calls of one contig, sorted by start and then strand.

        Parameters
        ----------
        strands
            Strand, sites (n,), scores (n,) and letters (n, K), per strand scanned.
        """
        minus = np.concatenate([np.full(len(sites), strand == "-") for strand, sites, _, _ in strands])
        site = np.concatenate([sites for _, sites, _, _ in strands])
        if not len(site):
            return
        start = site - np.where(minus, self._extent[1], self._extent[0])
        start = start % length if circular else np.maximum(start, 0)
        order = np.lexsort((site, minus, start))
        self._contig.extend([len(self._contigs)] * len(order))
        self._contigs.append((contig, length, circular))
        self._site.extend(site[order].tolist())
        self._minus.extend(minus[order].tolist())
        self._score.extend(np.concatenate([scores for _, _, scores, _ in strands])[order].tolist())
        letters = np.concatenate([letters for _, _, _, letters in strands])
        if letters.size:  # those of a locator; an empty array for each contig adds up
            self._letters.append(letters[order])

    @property
    def label(self) -> str:
        """Name of the positive class."""
        return self._label

    @property
    def scores(self) -> Floats:
        """(n,) scores from 0 to 1: of a model of windows calibrated probabilities, of a locator not."""
        return np.array(self._score)

    @property
    def letters(self) -> Codes:
        """(n, K) codes around each call in reading direction.

        A locator's calls have those from `LETTERS_BEFORE` its site to `LETTERS_AFTER`, others none.
        """
        return np.concatenate(self._letters) if self._letters else np.empty((len(self), 0), dtype=np.uint8)

    @property
    def contigs(self) -> dict[str, int]:
        """Length of each contig that has calls."""
        return {name: length for name, length, _ in self._contigs}

    @property
    def circular(self) -> frozenset[str]:
        """Names of the circular contigs that have calls."""
        return frozenset(name for name, _, circular in self._contigs if circular)

    def describe(self, contexts: Sequence[CallContext]) -> CallTable:
        """Return the same calls, each with its context (n,)."""
        described = self.reaching(-np.inf)
        described._contexts = contexts
        return described

    def reaching(self, threshold: float) -> CallTable:
        """Return the calls whose score is at least the threshold."""
        chosen = CallTable(self._label, self._extent)
        kept = np.flatnonzero(self.scores >= threshold)
        contig, position = np.unique(np.array(self._contig)[kept], return_inverse=True)
        chosen._contigs = [self._contigs[i] for i in contig.tolist()]
        chosen._contig = array("q", position.tolist())
        chosen._letters = [self.letters[kept]]
        for column in ("_site", "_minus", "_score"):
            values: array = getattr(self, column)
            setattr(chosen, column, array(values.typecode, np.array(values)[kept].tolist()))
        return chosen

    def __len__(self) -> int:
        return len(self._site)

    def __iter__(self) -> Iterator[Call]:
        return (self._call(i) for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> list[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | list[Call]:
        if isinstance(index, slice):
            return [self._call(i) for i in range(*index.indices(len(self)))]
        return self._call(range(len(self))[index])

    def _call(self, i: int) -> Call:
        contig, length, circular = self._contigs[self._contig[i]]
        site, (before, after) = self._site[i], self._extent
        left, right = (after, before) if self._minus[i] else (before, after)
        if circular:
            start = (site - left) % length
            end = start + left + right + 1
        else:
            start, end = max(site - left, 0), min(site + right + 1, length)
        return Call(
            contig=contig,
            start=start,
            end=end,
            strand="-" if self._minus[i] else "+",
            site=site,
            score=self._score[i],
            label=self._label,
            context=self._contexts[i] if self._contexts else None,
        )
