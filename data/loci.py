"""Exact words of genomes: where given letters lie; runs of marked positions and their letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from grouping import SHARED_WORD
from seqray.core.alphabet import DNA, reverse_complement

Place = tuple[str, int, str]
"""Contig, 0-based position, strand."""
Interval = tuple[str, int, int]
"""Contig, 0-based start, end (not included)."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = SHARED_WORD // 2


def words(letters: str, both_strands: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Hash the 40-mer that starts at each position: uint64 (N - 39,), and whether it holds A, C, G, T alone.

    Twenty letters fill 40 bits; the two halves of a word are mixed into 64. With both strands, a word and its
    reverse complement have the same hash.
    """
    codes = DNA.encode(letters)
    known = np.concatenate(([0], np.cumsum(codes > 3)))
    clean = known[SHARED_WORD:] == known[:-SHARED_WORD]
    codes = np.minimum(codes, 3).astype(np.uint64)
    hashes = _mix(codes)
    if both_strands:
        hashes = np.minimum(hashes, _mix(np.uint64(3) - codes[::-1])[::-1])
    return hashes, clean


def _mix(codes: np.ndarray) -> np.ndarray:
    """Pack each run of 20 codes by doubling, and mix it with the run that follows."""
    packed = codes
    for size in (1, 2, 4, 8):
        packed = (packed[:-size] << np.uint64(2 * size)) | packed[size:]
    last = (codes[16:-3] << np.uint64(6)) | (codes[17:-2] << np.uint64(4))
    last |= (codes[18:-1] << np.uint64(2)) | codes[19:]
    packed = (packed[: len(last)] << np.uint64(8)) | last
    first, second = packed[:-_HALF] * _ODD, packed[_HALF:]
    mixed = (first ^ (first >> np.uint64(29))) * _ODD + second
    return (mixed ^ (mixed >> np.uint64(32))) * _ODD


class Finder:
    """Finds exact copies of short sequences in the contigs of a genome, on both strands."""

    def __init__(self, contigs: Mapping[str, str]) -> None:
        self._contigs = contigs
        self._names = list(contigs)
        hashes, owners, starts = [], [], []
        for number, letters in enumerate(contigs.values()):
            if len(letters) >= SHARED_WORD:
                found, _ = words(letters, both_strands=False)
                hashes.append(found)
                owners.append(np.full(len(found), number, dtype=np.int32))
                starts.append(np.arange(len(found), dtype=np.int32))
        joined = np.concatenate(hashes)
        order = np.argsort(joined)
        self._hashes = joined[order]
        self._owners = np.concatenate(owners)[order]
        self._starts = np.concatenate(starts)[order]

    def find(self, letters: str, index: int) -> list[Place]:
        """Return every place of the letter ``index`` of a sequence of 40 letters or more."""
        forward = [(contig, start + index, "+") for contig, start in self._copies(letters)]
        back = len(letters) - 1 - index
        turned = self._copies(reverse_complement(letters))
        return forward + [(contig, start + back, "-") for contig, start in turned]

    def _copies(self, letters: str) -> list[tuple[str, int]]:
        hashed = words(letters[:SHARED_WORD], both_strands=False)[0][0]
        low, high = np.searchsorted(self._hashes, [hashed, hashed + np.uint64(1)])
        found = [(self._names[self._owners[i]], int(self._starts[i])) for i in range(low, high)]
        return [(c, s) for c, s in found if self._contigs[c].startswith(letters, s)]


def intervals(marks: np.ndarray) -> list[tuple[int, int]]:
    """Return the runs of marked positions, half-open."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], marks.astype(np.int8), [0]))))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def cut(contigs: Mapping[str, str], regions: Sequence[Interval]) -> list[str]:
    """Return the letters of regions."""
    return [contigs[contig][start:end] for contig, start, end in regions]
