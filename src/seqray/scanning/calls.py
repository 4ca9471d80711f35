"""The calls of a scan as arrays, 33 bytes per call.

The header of every output contains the expected false calls, which are known only at the end, so all calls
are kept in memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np

from seqray.core import Floats, Ints
from seqray.core.results import Call


class CallTable(Sequence[Call]):
    """A sequence of `Call`, made on access.

    Parameters
    ----------
    label
        Name of the positive class.
    window
        Letters from start to end of each call.
    """

    def __init__(self, label: str, window: int) -> None:
        self._label = label
        self._window = window
        self._contigs: list[tuple[str, int, bool]] = []
        self._contig = array("q")
        self._start = array("q")
        self._site = array("q")
        self._minus = array("b")
        self._score = array("d")

    def add(
        self, contig: str, length: int, circular: bool, strands: Sequence[tuple[str, Ints, Ints, Floats]]
    ) -> None:
        """Append the calls of one contig, sorted by start and then strand.

        Parameters
        ----------
        strands
            Strand, starts, sites and scores, per strand scanned.
        """
        minus = np.concatenate([np.full(len(starts), strand == "-") for strand, starts, _, _ in strands])
        start = np.concatenate([starts for _, starts, _, _ in strands])
        if not len(start):
            return
        order = np.lexsort((minus, start))
        self._contig.extend([len(self._contigs)] * len(order))
        self._contigs.append((contig, length, circular))
        self._start.extend(start[order].tolist())
        self._site.extend(np.concatenate([sites for _, _, sites, _ in strands])[order].tolist())
        self._minus.extend(minus[order].tolist())
        self._score.extend(np.concatenate([scores for _, _, _, scores in strands])[order].tolist())

    @property
    def scores(self) -> Floats:
        """(n,) probabilities."""
        return np.array(self._score)

    @property
    def contigs(self) -> dict[str, int]:
        """Length of each contig that has calls."""
        return {name: length for name, length, _ in self._contigs}

    @property
    def circular(self) -> frozenset[str]:
        """Names of the circular contigs that have calls."""
        return frozenset(name for name, _, circular in self._contigs if circular)

    def reaching(self, threshold: float) -> CallTable:
        """Return the calls whose score is at least the threshold."""
        chosen = CallTable(self._label, self._window)
        kept = np.flatnonzero(self.scores >= threshold)
        contig, position = np.unique(np.array(self._contig)[kept], return_inverse=True)
        chosen._contigs = [self._contigs[i] for i in contig.tolist()]
        chosen._contig = array("q", position.tolist())
        for column in ("_start", "_site", "_minus", "_score"):
            values: array = getattr(self, column)
            setattr(chosen, column, array(values.typecode, np.array(values)[kept].tolist()))
        return chosen

    def __len__(self) -> int:
        return len(self._start)

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
        start = self._start[i]
        return Call(
            contig=self._contigs[self._contig[i]][0],
            start=start,
            end=start + self._window,
            strand="-" if self._minus[i] else "+",
            site=self._site[i],
            score=self._score[i],
            label=self._label,
        )
