"""Chunks to batches: letters, gene tracks, labels and weights, changed at random in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from seqray.annotation import track_rows
from seqray.core import DNA, GenomesConfig, RunConfig
from seqray.training.batch_module import BatchModule, FixedBatches
from seqray.training.genomes.chunks import ChunkKey, ChunkOrder, Stream
from seqray.training.genomes.labels import kernel, targets
from seqray.training.genomes.sources import Chunk, Source


class LocatorBatch(NamedTuple):
    """B chunks of C letters.

    Attributes
    ----------
    letters, tracks
        Codes (B, C) int64, and gene tracks (B, T, C) uint8.
    labels, weights
        (B, C, K) float32.
    known
        (B,) bool, whether the genes are known.
    hidden
        (B,) bool, whether the model gets no genes.
    rows
        (B,) number of each chunk, for validation.
    """

    letters: Tensor
    tracks: Tensor
    labels: Tensor
    weights: Tensor
    known: Tensor
    hidden: Tensor
    rows: Tensor


class ChunkReader:
    """Reads chunks for a model."""

    def __init__(self, config: RunConfig) -> None:
        self.config: GenomesConfig = config.genomes
        self.classes, self._kernel = config.model.classes, kernel(config.genomes.sigma)
        self._rows = track_rows(config.model.tracks)

    def batch(
        self, chunks: Sequence[Chunk], rows: Sequence[int], rng: np.random.Generator | None = None
    ) -> LocatorBatch:
        """Read some chunks, numbered by ``rows``; without ``rng`` nothing is changed at random."""
        size, chunk = len(chunks), self.config.chunk
        letters = np.full((size, chunk), DNA.unknown, dtype=np.uint8)
        tracks = np.zeros((size, len(self._rows), chunk), dtype=np.uint8)
        labels, weights = (np.zeros((size, self.classes, chunk), dtype=np.float32) for _ in range(2))
        for i, (strand, start) in enumerate(chunks):
            end = min(start + chunk, len(strand))
            n = end - start
            letters[i, :n] = strand.codes[start:end]
            if self._rows and strand.genes is not None:
                tracks[i, :, :n] = strand.tracks(start, end)[self._rows]
            labels[i, :, :n], weights[i, :, :n] = targets(
                strand, start, end, self.classes, self._kernel, self.config.gap
            )
        known = np.array([strand.genes is not None for strand, _ in chunks]) & bool(self._rows)
        hidden = ~known
        if rng is not None:
            self._mutate(letters, rng)
            self._cut(letters, tracks, weights, rng)
            joined = np.array([strand.joined for strand, _ in chunks])
            hidden |= (rng.random(size) < self.config.hide) & ~joined
        return LocatorBatch(
            torch.from_numpy(letters.astype(np.int64)),
            torch.from_numpy(tracks),
            torch.from_numpy(labels).transpose(1, 2),
            torch.from_numpy(weights).transpose(1, 2),
            *map(torch.from_numpy, (known, hidden, np.asarray(rows))),
        )

    def _mutate(self, letters: np.ndarray, rng: np.random.Generator) -> None:
        chosen = (rng.random(letters.shape) < self.config.mutate) & (letters < DNA.unknown)
        letters[chosen] = rng.integers(0, len(DNA.letters), int(chosen.sum()), dtype=np.uint8)

    def _cut(
        self, letters: np.ndarray, tracks: np.ndarray, weights: np.ndarray, rng: np.random.Generator
    ) -> None:
        """Take letters and genes away from one end of some chunks, up to half of it."""
        chunk = letters.shape[1]
        for i in np.flatnonzero(rng.random(len(letters)) < self.config.cut).tolist():
            size = int(rng.integers(1, chunk // 2 + 1))
            gone = slice(0, size) if rng.random() < 0.5 else slice(chunk - size, chunk)
            letters[i, gone] = DNA.unknown
            tracks[i, :, gone] = 0
            weights[i, :, gone] = 0


class TrainingChunks(Dataset[LocatorBatch]):
    """Training batches by their key; random changes depend on (seed, epoch, batch, rank) alone."""

    def __init__(self, sources: Sequence[Source], config: RunConfig, seed: int, rank: int) -> None:
        self._reader, self._seed, self._rank = ChunkReader(config), seed, rank
        self._streams = [
            Stream(source, config.genomes.chunk, (seed, number)) for number, source in enumerate(sources)
        ]

    def __getitem__(self, key: ChunkKey) -> LocatorBatch:
        epoch, number, drawn = key
        rng = np.random.default_rng((self._seed, epoch, number, self._rank))
        chunks = [self._streams[one.source][one.number] for one in drawn]
        return self._reader.batch(chunks, range(len(chunks)), rng)


class ValidationChunks(Dataset[LocatorBatch]):
    """The same chunks each time, unchanged, with their genes where these are known."""

    def __init__(self, chunks: Sequence[Chunk], config: RunConfig) -> None:
        self._reader, self._chunks = ChunkReader(config), chunks

    def __getitem__(self, rows: Sequence[int]) -> LocatorBatch:
        return self._reader.batch([self._chunks[row] for row in rows], rows)


class GenomeData(BatchModule):
    """Training chunks of one member, drawn by shares, and validation chunks of the development regions."""

    def __init__(
        self,
        sources: Sequence[Source],
        shares: Sequence[float],
        validation: Sequence[Chunk],
        config: RunConfig,
        seed: int,
    ) -> None:
        super().__init__()
        self.sources, self.shares, self.validation = sources, shares, validation
        self.config, self.seed = config, seed

    def training_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        steps, size = self.config.genomes.steps_per_epoch, self.config.optimizer.batch_size
        order = ChunkOrder(self.shares, steps, size, self.seed, rank, world)
        return TrainingChunks(self.sources, self.config, self.seed, rank), order

    def validation_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        rows, size = range(len(self.validation)), self.config.optimizer.batch_size
        batches = [rows[i : i + size] for i in rows[::size]]
        return ValidationChunks(self.validation, self.config), FixedBatches(batches, rank, world)
