"""Which chunks make which batch: drawn from the sources by their share, the same after a resumption."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from torch.utils.data import Sampler

from seqray.training.genomes.sources import Chunk, Source

_ORDER, _PASS = 1, 2  # keep the random numbers of different purposes apart


class Drawn(NamedTuple):
    """A chunk of a batch: the number of its source, and how many were drawn from it before."""

    source: int
    number: int


ChunkKey = tuple[int, int, list[Drawn]]
"""Epoch, number of the batch within it, and its chunks."""


class Stream:
    """Chunks of one source, pass after pass; the same number gives the same chunk."""

    def __init__(self, source: Source, chunk: int, seed: tuple[int, ...]) -> None:
        self._source, self._chunk, self._seed = source, chunk, seed
        self._begin, self._pass, self._chunks = 0, 0, self._draw(0)

    def _draw(self, number: int) -> list[Chunk]:
        return self._source.chunks(self._chunk, np.random.default_rng((*self._seed, _PASS, number)))

    def __getitem__(self, count: int) -> Chunk:
        if count < self._begin:
            self._begin, self._pass, self._chunks = 0, 0, self._draw(0)
        while count >= self._begin + len(self._chunks):
            self._begin += len(self._chunks)
            self._pass += 1
            self._chunks = self._draw(self._pass)
        return self._chunks[count - self._begin]


class ChunkOrder(Sampler[ChunkKey]):
    """Draws the sources of the chunks of an epoch.

    The (S,) shares have sum 1. ``steps`` counts the batches of an epoch and a process, ``batch_size`` the
    chunks of a batch.
    """

    def __init__(
        self, shares: Sequence[float], steps: int, batch_size: int, seed: int, rank: int = 0, world: int = 1
    ) -> None:
        self.shares, self.steps, self.batch_size, self.seed = np.asarray(shares), steps, batch_size, seed
        self.rank, self.world, self.epoch = rank, world, 0

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning when an epoch begins, and after a resumption."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.steps

    def _sources(self, epoch: int) -> np.ndarray:
        """Source of each chunk of an epoch, of all processes: (steps, world, batch_size)."""
        rng = np.random.default_rng((self.seed, _ORDER, epoch))
        return rng.choice(len(self.shares), (self.steps, self.world, self.batch_size), p=self.shares)

    def __iter__(self) -> Iterator[ChunkKey]:
        counts = np.zeros(len(self.shares), dtype=np.int64)
        for epoch in range(self.epoch):
            counts += np.bincount(self._sources(epoch).ravel(), minlength=len(counts))
        for number, of_all in enumerate(self._sources(self.epoch)):
            batches = []
            for chosen in of_all.tolist():
                batches.append([])
                for source in chosen:
                    batches[-1].append(Drawn(source, int(counts[source])))
                    counts[source] += 1
            yield self.epoch, number, batches[self.rank]
