"""Sets of intervals on a sequence, and the regions of a genome that a user selects.

Coordinates are 0-based and half-open, but for the text of a region (``chr1:11-20``), which is 1-based and
closed as in samtools and genome browsers.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Ints
from seqray.core.errors import InputError

_REGION = re.compile(r"(?P<contig>.+?):(?P<start>[\d,]+)(?:-(?P<end>[\d,]+))?")
_MAX_DIGITS = 18
# For the suggestion in an error: enough for every finished genome, bounded for a metagenome.
_MAX_KEPT_NAMES = 10_000


@dataclass(frozen=True)
class Intervals:
    """Sorted intervals that neither touch nor overlap.

    Attributes
    ----------
    starts, ends
        (n,) 0-based and half-open.
    """

    starts: Ints
    ends: Ints

    @classmethod
    def merge(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """Sort intervals and join those that touch or overlap; empty ones vanish."""
        merged: list[list[int]] = []
        for start, end in sorted(pair for pair in pairs if pair[0] < pair[1]):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], end)
            else:
                merged.append([start, end])
        table = np.array(merged, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1])

    def pairs(self) -> list[tuple[int, int]]:
        """The intervals as plain pairs."""
        return list(zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def contains(self, positions: Ints) -> npt.NDArray[np.bool_]:
        """Whether each position is in an interval."""
        if not len(self.starts):
            return np.zeros(positions.shape, dtype=bool)
        nearest = np.searchsorted(self.starts, positions, "right") - 1
        return (nearest >= 0) & (positions < self.ends[nearest])

    def count_covered(self, positions: Ints) -> Ints:
        """Count, for each position, the letters below it that lie in an interval."""
        if not len(self.starts):
            return np.zeros(positions.shape, dtype=np.int64)
        before = np.concatenate(([0], np.cumsum(self.ends - self.starts)))
        nearest = np.searchsorted(self.starts, positions, "right") - 1
        inside = np.minimum(positions, self.ends[nearest]) - self.starts[nearest]
        return np.where(nearest >= 0, before[nearest] + inside, 0)

    def sample_evenly(self, most: int) -> Ints:
        """At most ``most`` positions inside the intervals, spread evenly over their letters, ascending."""
        sizes = np.cumsum(self.ends - self.starts)
        total = int(sizes[-1]) if len(sizes) else 0
        ranks = np.linspace(0, total - 1, min(most, total)).astype(np.int64)
        place = np.searchsorted(sizes, ranks, "right")
        return self.ends[place] - (sizes[place] - ranks)

    def extended(self, by: int, length: int, *, circular: bool = False) -> Intervals:
        """Extend each interval on both sides.

        Parameters
        ----------
        by
            Letters to add on each side.
        length
            Length of the sequence, in letters.
        circular
            Continue across the origin; otherwise stop at the ends of the sequence.
        """
        if by * 2 >= length and circular:
            return Intervals.merge([(0, length)] if len(self.starts) else [])
        pairs = []
        for start, end in zip((self.starts - by).tolist(), (self.ends + by).tolist(), strict=True):
            pairs.append((max(start, 0), min(end, length)))
            if circular:
                pairs += [(length + start, length), (0, end - length)]  # empty unless across the origin
        return Intervals.merge((max(start, 0), min(end, length)) for start, end in pairs)


@dataclass(frozen=True, slots=True)
class Region:
    """One part of a genome that a user selects.

    Attributes
    ----------
    contig, start, end
        Interval of a sequence, 0-based and half-open; ``end`` is None for the rest of the sequence.
    text
        As the user wrote it; it means the whole contig if one has exactly this name.
    where
        Origin of the text, for errors.
    """

    contig: str
    start: int
    end: int | None
    text: str
    where: str

    def __str__(self) -> str:
        """As `parse_region` reads it.

        Examples
        --------
        >>> str(parse_region("chr1:11-1,020")), str(parse_region("chr1:11")), str(parse_region("chr1"))
        ('chr1:11-1020', 'chr1:11', 'chr1')
        """
        if self.end is not None:
            return f"{self.contig}:{self.start + 1}-{self.end}"
        return f"{self.contig}:{self.start + 1}" if self.start else self.contig


def parse_region(text: str) -> Region:
    """Read ``contig``, ``contig:start`` or ``contig:start-end`` (1-based, closed, thousands commas allowed).

    Raises `InputError` for a start below 1 or an end before the start.

    Examples
    --------
    >>> region = parse_region("chr1:11-1,020")
    >>> region.contig, region.start, region.end  # 0-based and half-open
    ('chr1', 10, 1020)
    """
    where = f"--region {text}"
    match = _REGION.fullmatch(text)
    if match is None:
        return Region(text, 0, None, text, where)
    start = _letter(match["start"])
    end = _letter(match["end"]) if match["end"] else None
    if start < 1 or (end is not None and end < start):
        raise InputError("is no region", where=where, remedy="write NAME:START-END, 1-based, START <= END")
    return Region(match["contig"], start - 1, end, text, where)


def _letter(text: str) -> int:
    """Number of a letter; 0, which is none, for a number beyond any sequence."""
    digits = text.replace(",", "").lstrip("0")
    return int(digits) if 1 <= len(digits) <= _MAX_DIGITS else 0


class MissingContigs:
    """Names of contigs that a user gave and that have not been read yet; pairs of name and origin."""

    def __init__(self, names: Iterable[tuple[str, str]]) -> None:
        self._missing = dict(names)
        self._seen: list[str] = []

    def see(self, name: str) -> None:
        """Note that a contig of this name was read."""
        if self._missing and len(self._seen) < _MAX_KEPT_NAMES:
            self._seen.append(name)
        self.drop(name)

    def drop(self, name: str) -> None:
        """No longer require a name."""
        self._missing.pop(name, None)

    def check(self) -> None:
        """Raise `InputError` for the first name still missing, with the most similar one that was read."""
        for name, where in self._missing.items():
            near = max(self._seen, key=lambda seen: _similarity(name, seen), default=None)
            remedy = f"did you mean '{near}'?" if near else "the input has no sequence"
            raise InputError(f"the input has no sequence named '{name}'", where=where, remedy=remedy)


def _similarity(name: str, seen: str) -> tuple[bool, float]:
    # '1' is meant by 'chr1', though '11' has more in common with it.
    same_end = name.endswith(seen) or seen.endswith(name)
    return same_end, difflib.SequenceMatcher(None, name, seen).ratio()


class RegionSet:
    """Selected regions by contig; regions that overlap count once."""

    def __init__(self, regions: Iterable[Region]) -> None:
        self._by_text: dict[str, list[Region]] = {}
        self._by_contig: dict[str, list[Region]] = {}
        for region in regions:
            self._by_text.setdefault(region.text, []).append(region)
            self._by_contig.setdefault(region.contig, []).append(region)
        self._names = MissingContigs((name, parts[0].where) for name, parts in self._by_contig.items())

    def parts_of(self, contig: str, length: int) -> Intervals | None:
        """The regions on one contig, or None if nothing of it was selected.

        Raises `InputError` for a part that ends beyond the contig.
        """
        self._names.see(contig)
        for region in self._by_text.get(contig, ()):  # "NAME:1-9" may be a contig's whole name
            self._names.drop(region.contig)
        whole = [(0, length)] * (contig in self._by_text)
        parts = [_bounded(region, length) for region in self._by_contig.get(contig, ())]
        return Intervals.merge(whole + parts) if whole or parts else None

    def check(self) -> None:
        """Raise `InputError` for a contig that was selected but not read."""
        self._names.check()


def _bounded(region: Region, length: int) -> tuple[int, int]:
    end = length if region.end is None else region.end
    if end > length or region.start >= length:
        raise InputError(
            f"lies beyond the end of '{region.contig}', which has {length} letters",
            where=region.where,
            remedy="check that it belongs to this assembly",
        )
    return region.start, end
