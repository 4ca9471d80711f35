"""A genome as one array of codes, and where windows may begin on it.

Coordinates are 0-based and half-open. Inside this package they run through all contigs, with one unknown
letter between two, so that no interval spans two contigs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Alphabet, Codes, InputError, Intervals, Ints, SequenceRecord, reverse_complement_codes

Pairs = Sequence[tuple[int, int]]
STRANDS = ("+", "-")


@dataclass(frozen=True)
class Genome:
    """Contigs joined end to end.

    Attributes
    ----------
    names, circular
        Of the contigs.
    offsets, lengths : int64 (contigs,)
        Start and length of each contig.
    codes : uint8 (T,)
        Letter codes of all contigs, the code of an unknown letter between two.
    alphabet
        DNA or RNA.
    """

    names: tuple[str, ...]
    circular: tuple[bool, ...]
    offsets: Ints
    lengths: Ints
    codes: Codes
    alphabet: Alphabet

    @classmethod
    def of(cls, records: Iterable[SequenceRecord], alphabet: Alphabet) -> Genome:
        """Lay records end to end."""
        border = np.array([alphabet.unknown], dtype=np.uint8)
        names, circular, pieces = [], [], []
        for record in records:
            names.append(record.id)
            circular.append(record.circular)
            pieces += [alphabet.encode(record.sequence), border]
        lengths = np.array([len(piece) for piece in pieces[::2]], dtype=np.int64)
        offsets = np.cumsum(lengths + 1) - lengths - 1
        codes = np.concatenate(pieces) if pieces else border
        return cls(tuple(names), tuple(circular), offsets, lengths, codes, alphabet)

    def index(self, name: str, where: str = "") -> int:
        """Number of a contig.

        Raises an InputError if there is none of this name.
        """
        try:
            return self.names.index(name)
        except ValueError:
            known = f"'{self.names[0]}'" if self.names else "nothing"
            raise InputError(
                f"names the contig '{name}', which is not in the genome",
                where=where,
                remedy=f"the genome begins with {known}",
            ) from None

    def locate(self, position: int) -> tuple[str, int]:
        """Contig of a letter, and its position there."""
        contig = int(np.searchsorted(self.offsets, position, "right")) - 1
        return self.names[contig], position - int(self.offsets[contig])

    def letters(self, start: int, end: int, strand: str) -> str:
        """Letters of an interval, 5' to 3' on its strand.

        Parameters
        ----------
        start, end
            Half-open interval of the genome, 0-based, in letters.
        strand
            ``+`` or ``-``.
        """
        codes = self.codes[start:end]
        return self.alphabet.decode(reverse_complement_codes(codes) if strand == "-" else codes)

    def contigs(self) -> list[tuple[int, int]]:
        """Start and end of each contig."""
        return [(int(o), int(o + n)) for o, n in zip(self.offsets, self.lengths, strict=True)]


def subtract(intervals: Intervals, others: Intervals) -> Intervals:
    """The parts of ``intervals`` that are not in ``others``."""
    place = np.concatenate((intervals.starts, intervals.ends, others.starts, others.ends))
    step = np.repeat(
        np.array([1, -1, -2, 2]),
        [len(intervals.starts), len(intervals.ends), len(others.starts), len(others.ends)],
    )
    order = np.argsort(place, kind="stable")
    place, level = place[order], np.cumsum(step[order])  # level 1: in the first and not in the second
    inside = np.flatnonzero((level[:-1] == 1) & (place[1:] > place[:-1])) if len(place) else []
    pairs = zip(place[inside].tolist(), place[np.asarray(inside, dtype=np.int64) + 1].tolist(), strict=True)
    return Intervals.merge(pairs)


def window_starts(parts: Pairs, length: int, forbidden: Intervals) -> Intervals:
    """Where a window may begin so that it lies within one part and overlaps nothing forbidden.

    The parts may overlap. The result holds the intervals of first letters.
    """
    room = Intervals.merge((start, end - length + 1) for start, end in parts)
    return subtract(room, Intervals.merge((start - length + 1, end) for start, end in forbidden.pairs()))
