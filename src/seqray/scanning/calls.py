"""Calls, and the boxes beside them."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.results import Call, CallContext

# --- The -10 and -35 boxes of promoters that sigma 70 reads, as the letters before a site show them

LENGTH = 6
THRESHOLD = 4.0
MISSING = 0  # no box begins at the site

# Counts of A, C, G and T at the six positions of each box.
_COUNTS_10 = (
    *((2, 10, 11, 89), (106, 2, 1, 3), (29, 16, 18, 49)),
    *((66, 14, 17, 15), (57, 22, 14, 19), (1, 3, 0, 108)),
)
_COUNTS_35 = (
    *((2, 7, 11, 92), (6, 6, 6, 94), (2, 11, 88, 11)),
    *((72, 18, 3, 19), (26, 60, 11, 15), (50, 8, 17, 37)),
)
_SPACERS = {15: 3.5, 16: 1.0, 17: 0.0, 18: 1.0, 19: 3.5}  # letters: bits, which give 16 to 18 a share of 92 %
# From the last letter of the -10 box to the site: bits, which give 6 to 8 a share of 75 %.
_DISTANCES = {4: 2.0, 5: 2.0, 6: 0.0, 7: 0.0, 8: 0.0, 9: 2.0, 10: 2.0}
REACH = max(_DISTANCES) + LENGTH + max(_SPACERS) + LENGTH  # letters before the site that are looked at
_NEVER = -1e9


def _weights(counts: tuple[tuple[int, ...], ...]) -> Floats:
    """Bits of each letter at each position: (6, 5); the last column is for unknown letters."""
    table = np.array(counts, dtype=np.float64) + 1
    bits = np.log2(4 * table / table.sum(axis=1, keepdims=True))
    return np.concatenate((bits, np.full((LENGTH, 1), _NEVER)), axis=1)


_WEIGHTS_10, _WEIGHTS_35 = _weights(_COUNTS_10), _weights(_COUNTS_35)


class FoundBoxes(NamedTuple):
    """Boxes before N sites.

    ``minus10`` and ``minus35`` (N,) are letters from the site to the first one of the box, below 0, `MISSING`
    where there is none; ``extended`` (N,) says whether TG lies one letter before the -10 box.
    """

    minus10: npt.NDArray[np.int64]
    minus35: npt.NDArray[np.int64]
    extended: Bools


def find_boxes(codes: Codes, site: int) -> FoundBoxes:
    """Find the boxes before sites.

    Parameters
    ----------
    codes
        (N, W) codes of DNA in the direction of reading; 4 and above are unknown letters.
    site
        Index of the site in each row; at least `REACH`.
    """
    pair, alone = _Best(len(codes)), _Best(len(codes))
    for distance, cost in _DISTANCES.items():
        ten = 1 - distance - LENGTH
        bits = _score(codes, site + ten, _WEIGHTS_10) - cost
        alone.offer(bits, ten, MISSING)
        for spacer, more in _SPACERS.items():
            other = ten - spacer - LENGTH
            pair.offer(bits + _score(codes, site + other, _WEIGHTS_35) - more, ten, other)
    two, one = pair.bits >= THRESHOLD, alone.bits >= THRESHOLD
    minus10 = np.select([two, one], [pair.minus10, alone.minus10], MISSING)
    return FoundBoxes(minus10, np.where(two, pair.minus35, MISSING), _extended(codes, site, minus10))


class _Best:
    """The best arrangement so far before each of N sites."""

    def __init__(self, count: int) -> None:
        self.bits = np.full(count, -np.inf)
        self.minus10, self.minus35 = np.zeros(count, np.int64), np.zeros(count, np.int64)

    def offer(self, bits: Floats, minus10: int, minus35: int) -> None:
        better = bits > self.bits
        self.bits[better], self.minus10[better], self.minus35[better] = bits[better], minus10, minus35


def _score(codes: Codes, start: int, weights: Floats) -> Floats:
    """Bits of the letters from one index on: (N,)."""
    letters = np.minimum(codes[:, start : start + LENGTH], 4)
    bits = weights[np.arange(LENGTH), letters].sum(axis=1)
    return np.where(bits > 0, bits, _NEVER)


def _extended(codes: Codes, site: int, minus10: npt.NDArray[np.int64]) -> Bools:
    rows, first = np.arange(len(codes)), site + minus10
    thymine, guanine = codes[rows, first - 3] == 3, codes[rows, first - 2] == 2
    return (minus10 != MISSING) & thymine & guanine


# --- The calls of a scan as arrays: 25 bytes per call, and the letters around it

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
