"""Labeled sequences to batches of tokens: encoded once, cut and changed a batch at a time.

There is no worker process and no Python loop over sequences: a batch costs a few array operations. The random
changes of a batch depend on (seed, epoch, batch, rank) alone, so a run that resumes after an epoch sees the
same batches as an uninterrupted run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, Sampler

from seqray.core import AugmentConfig, CodeStack, RunConfig, stack_sequences
from seqray.models import PAD, TokenBatch, size_buckets
from seqray.models.tokenizers import CLS, OwnTokenizer, Tokenizer
from seqray.training.augment import Changes, cut_windows, mask_tokens
from seqray.training.batch_module import BatchModule, FixedBatches

VALIDATION_BATCH = 128
MAX_VALIDATION_TOKENS = VALIDATION_BATCH * 1024
_CHUNK = 32  # batches among which unequal lengths are sorted: tight padding, order still random

BatchKey = tuple[int, int, np.ndarray]  # epoch, number within the epoch, indices of the sequences


class LabeledBatch(NamedTuple):
    """Tokens (B, L), class indices (B,) and rows of the data set (B,).

    ``masks`` are (B, L) for sequences, and (B, R) and (B, C) for alignments; None if nothing is padded.
    ``targets`` (B, K) are probabilities to learn instead of the labels.
    """

    tokens: Tensor
    masks: tuple[Tensor | None, ...]
    labels: Tensor
    rows: Tensor
    targets: Tensor | None = None


class Examples(ABC):
    """Labeled examples of one kind, and their batches of tokens.

    ``lengths`` (N,) are the sizes by which batches of similar size are made, ``targets`` (N, K) float32 the
    probabilities to learn instead of the labels; None at first.
    """

    lengths: np.ndarray

    def __init__(self, labels: np.ndarray) -> None:
        self.labels = np.asarray(labels, dtype=np.int64)
        self.targets: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    @abstractmethod
    def windows(self) -> list[np.ndarray]:
        """Letter codes of every window (of an alignment, of its query) without random changes, uint8 (n,)."""

    @abstractmethod
    def letter_counts(self) -> np.ndarray:
        """Count each letter of the alphabet: int64 (A,)."""

    @abstractmethod
    def tokens(
        self, indices: np.ndarray, augment: AugmentConfig | None, rng: np.random.Generator | None
    ) -> TokenBatch:
        """Make tokens and masks of some examples.

        Nothing is changed at random if ``augment`` or ``rng`` is None.
        """

    def batch(
        self,
        indices: np.ndarray,
        augment: AugmentConfig | None = None,
        rng: np.random.Generator | None = None,
    ) -> LabeledBatch:
        """Make a batch of some examples, changed at random if ``augment`` and ``rng`` are given."""
        batch = self.tokens(indices, augment, rng)
        labels, rows = torch.from_numpy(self.labels[indices]), torch.from_numpy(indices)
        targets = None if self.targets is None else torch.from_numpy(self.targets[indices])
        return LabeledBatch(batch.tokens, batch.masks, labels, rows, targets)


class SequenceExamples(Examples):
    """Sequences as letter codes, with their classes.

    Each of the N sequences is its window and ``flank`` letters on both sides. ``contexts`` (N,) holds the
    number of the context of each, -1 if unknown; None for a model without contexts.
    """

    def __init__(
        self,
        sequences: Sequence[str],
        labels: np.ndarray,
        tokenizer: Tokenizer,
        flank: int = 0,
        contexts: np.ndarray | None = None,
    ) -> None:
        super().__init__(labels)
        self.stack: CodeStack = stack_sequences(sequences, tokenizer.alphabet)
        self.begin = np.cumsum(self.stack.lengths) - self.stack.lengths
        self.tokenizer, self.flank, self.contexts = tokenizer, flank, contexts
        self.lengths = self.stack.lengths - 2 * flank

    def windows(self) -> list[np.ndarray]:
        starts = self.begin + self.flank
        return [self.stack.codes[s : s + n] for s, n in zip(starts, self.lengths, strict=True)]

    def letter_counts(self) -> np.ndarray:
        size = self.tokenizer.alphabet.unknown
        return np.bincount(self.stack.codes, minlength=size)[:size]

    def tokens(
        self, indices: np.ndarray, augment: AugmentConfig | None, rng: np.random.Generator | None
    ) -> TokenBatch:
        """As `Examples.tokens`."""
        changes = Changes.none(len(indices))
        if augment is not None and rng is not None:
            changes = Changes.draw(rng, len(indices), augment)
        unknown = self.tokenizer.alphabet.unknown
        codes, lengths = cut_windows(self.stack, self.begin, indices, self.flank, changes, unknown)
        tokens = self.tokenizer.encode_codes(codes, lengths)  # (B, W) -> (B, L)
        if augment is not None and rng is not None and augment.mask > 0:
            assert isinstance(self.tokenizer, OwnTokenizer)  # by the checks of the settings
            masked = rng.random(codes.shape) < augment.mask
            tokens = mask_tokens(tokens, masked, self.tokenizer.spans(codes.shape[1]))
        if self.contexts is not None:
            assert isinstance(self.tokenizer, OwnTokenizer)
            contexts = self.contexts[indices]
            if augment is not None and rng is not None:
                contexts = np.where(rng.random(len(indices)) < augment.hide_context, -1, contexts)
            tokens[:, 0] = np.where(contexts < 0, CLS, self.tokenizer.vocab_size + contexts)
        if (lengths == lengths[0]).all():
            return TokenBatch(torch.from_numpy(tokens), (None,))
        mask = self.tokenizer.mask(tokens, lengths)
        tokens[~mask] = PAD
        return TokenBatch(torch.from_numpy(tokens), (torch.from_numpy(mask),))


class BatchSource(Dataset[Any]):
    """Whole batches by their key."""

    def __init__(
        self, data: Examples, augment: AugmentConfig | None = None, seed: int = 0, rank: int = 0
    ) -> None:
        self.data, self.augment, self.seed, self.rank = data, augment, seed, rank

    def __getitem__(self, key: BatchKey) -> Any:
        return self.draw(key)[0]

    def draw(self, key: BatchKey) -> tuple[LabeledBatch, np.random.Generator]:
        """Make the batch, with random changes by (seed, epoch, batch, rank) alone; and their generator."""
        epoch, number, indices = key
        rng = np.random.default_rng((self.seed, epoch, number, self.rank))
        return self.data.batch(indices, self.augment, rng), rng


class TrainingOrder(Sampler[BatchKey]):
    """A fresh order of all sequences each epoch, dealt into batches of nearly equal size.

    With several processes each takes its share; up to ``world - 1`` sequences are then seen twice in an
    epoch, so that all processes take the same number of steps.

    A batch has at most ``batch_size`` sequences. Unequal lengths are sorted within chunks of the order to
    save padding.
    """

    def __init__(
        self, lengths: np.ndarray, batch_size: int, seed: int, rank: int = 0, world: int = 1
    ) -> None:
        self.lengths, self.batch_size, self.seed = lengths, batch_size, seed
        self.rank, self.world, self.epoch = rank, world, 0
        self._share = -(-len(lengths) // world)
        self._ragged = bool((lengths != lengths[0]).any())

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning when an epoch begins, and after a resumption."""
        self.epoch = epoch

    def __len__(self) -> int:
        return -(-self._share // self.batch_size)

    def __iter__(self) -> Iterator[BatchKey]:
        rng = np.random.default_rng((self.seed, self.epoch))
        order = rng.permutation(len(self.lengths))
        order = np.resize(order, self._share * self.world)[self.rank :: self.world]
        batches = np.array_split(order, len(self))
        if self._ragged:
            batches = self._by_length(order, len(self), rng)
        for number, indices in enumerate(batches):
            yield self.epoch, number, indices

    def _by_length(self, order: np.ndarray, n_batches: int, rng: np.random.Generator) -> list[np.ndarray]:
        chunks = np.array_split(order, -(-n_batches // _CHUNK))
        chunks = [chunk[np.argsort(self.lengths[chunk], kind="stable")] for chunk in chunks]
        batches = np.array_split(np.concatenate(chunks), n_batches)
        return [batches[i] for i in rng.permutation(n_batches)]


def validation_order(lengths: np.ndarray, rank: int = 0, world: int = 1) -> FixedBatches[BatchKey]:
    """Every sequence in batches of similar length, always the same."""
    batches = size_buckets(lengths, VALIDATION_BATCH, MAX_VALIDATION_TOKENS)
    return FixedBatches([(0, number, indices) for number, indices in enumerate(batches)], rank, world)


class TrainingData(BatchModule):
    """Training and validation batches of one member."""

    def __init__(self, train: Examples, validation: Examples, config: RunConfig, seed: int) -> None:
        super().__init__()
        self.train, self.validation, self.config, self.seed = train, validation, config, seed

    def training_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        size = self.config.optimizer.batch_size
        return self.training_source(rank), TrainingOrder(self.train.lengths, size, self.seed, rank, world)

    def validation_batches(self, rank: int, world: int) -> tuple[Dataset[Any], Sampler[Any]]:
        return self.validation_source(), validation_order(self.validation.lengths, rank, world)

    def training_source(self, rank: int) -> Dataset[Any]:
        """Batches of a process by their key."""
        return BatchSource(self.train, self.config.augment, self.seed, rank)

    def validation_source(self) -> Dataset[Any]:
        """The same for validation, without random changes."""
        return BatchSource(self.validation)
