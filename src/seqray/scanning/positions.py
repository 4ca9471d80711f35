"""The positions of one contig that a locator scores: windows of one letter, which is their site."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from seqray.core import Codes, Floats, Intervals, Ints, reverse_complement_codes
from seqray.inference import CHUNK, Strand
from seqray.scanning.calls import LETTERS_AFTER, LETTERS_BEFORE
from seqray.scanning.windows import ScoredGrid, WindowRule

ChunkScorer = Callable[[Strand, list[int]], list[Floats]]
"""A strand and numbers of chunks to the scores in each, see `seqray.inference.StrandScorer.chunks`."""


class ContigPositions(ScoredGrid):
    """All positions of one contig, with its letters and its genes.

    An unknown letter gets no score.

    The rule has windows of one letter. ``strand_of`` makes one strand, with its gene tracks, of ``+`` or
    ``-`` and the codes in its direction. The other parameters are as in `ScoredGrid`.
    """

    def __init__(
        self,
        codes: Codes,
        rule: WindowRule,
        strand_of: Callable[[str, Codes], Strand],
        scorer: ChunkScorer,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> None:
        super().__init__(len(codes), rule, circular=circular, parts=parts, masked=masked)
        self._codes, self._strand_of, self._scorer = codes, strand_of, scorer
        self._open = "", Strand(codes)
        self._kept: dict[int, Floats] = {}  # the chunks scored last: two pieces may share one

    def score(self, starts: Ints, strand: str) -> Floats:
        scores = np.full(len(starts), np.nan)
        wanted = np.flatnonzero(self._wanted(starts) & (self._codes[starts] != self.rule.unknown))
        places = starts[wanted] if strand == "+" else self.length - 1 - starts[wanted]
        numbers = places // CHUNK
        needed = np.flatnonzero(np.bincount(numbers)).tolist()
        chunks = self._chunks(strand, needed)
        for number in needed:
            here = numbers == number
            scores[wanted[here]] = chunks[number][places[here] - number * CHUNK]
        self.scored += len(wanted)
        return scores

    def _chunks(self, strand: str, needed: list[int]) -> dict[int, Floats]:
        if self._open[0] != strand:
            codes = self._codes if strand == "+" else reverse_complement_codes(self._codes)
            self._open, self._kept = (strand, self._strand_of(strand, codes)), {}
        missing = [number for number in needed if number not in self._kept]
        found = dict(zip(missing, self._scorer(self._open[1], missing), strict=True))
        self._kept = {n: found[n] if n in found else self._kept[n] for n in needed}
        return self._kept

    def at_sites(self, sites: Ints) -> Codes:
        return self._codes[sites][:, None]

    def letters(self, sites: Ints, strand: str) -> Codes:
        offsets = np.arange(-LETTERS_BEFORE, LETTERS_AFTER + 1)
        places = sites[:, None] + (offsets if strand == "+" else -offsets)
        codes = self._codes[places % self.length]
        if not self.circular:
            codes[(places < 0) | (places >= self.length)] = self.rule.unknown
        return codes if strand == "+" else reverse_complement_codes(codes[:, ::-1])
