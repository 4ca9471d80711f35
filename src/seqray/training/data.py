"""Labelled sequences to whole batches of tokens: encoded once, cut and changed a batch at a time.

No worker process and no Python loop over sequences: a batch costs a few array operations. Each batch's
random changes come from (seed, epoch, batch, rank) alone, so a run that resumes at the border of an epoch
sees exactly what an uninterrupted one would have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import lightning
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from seqray.core import AugmentConfig, CodeStack, RunConfig, stack_sequences
from seqray.models import PAD, size_buckets
from seqray.models.tokenizers import CLS, OwnTokenizer, Tokenizer
from seqray.training.augment import Changes, cut_windows, mask_tokens

VALIDATION_BATCH = 128
MAX_VALIDATION_TOKENS = VALIDATION_BATCH * 1024
_CHUNK = 32  # batches among which unequal lengths are sorted: tight padding, order still random

BatchKey = tuple[int, int, np.ndarray]  # epoch, number within the epoch, indices of the sequences


class LabelledBatch(NamedTuple):
    """Tokens (B, L), class indices (B,) and rows of the data set (B,).

    ``masks`` are what the network takes beside the tokens: of sequences (B, L), of alignments those of rows
    (B, R) and columns (B, C); None where nothing is padded. ``targets`` (B, K) are probabilities to learn in
    place of the labels.
    """

    tokens: Tensor
    masks: tuple[Tensor | None, ...]
    labels: Tensor
    rows: Tensor
    targets: Tensor | None = None


class Examples(Protocol):
    """Encoded examples of any kind.

    Attributes
    ----------
    labels
        (N,) class indices.
    lengths
        (N,) size of each, by which batches of similar size are made.
    targets
        (N, K) float32 probabilities to learn in place of the labels, or None.
    """

    labels: np.ndarray
    lengths: np.ndarray
    targets: np.ndarray | None

    def __len__(self) -> int: ...

    def windows(self) -> list[np.ndarray]:
        """Codes of every example's letters, uint8 (n,) each; of an alignment those of the query."""
        ...

    def letter_counts(self) -> np.ndarray:
        """How often each letter of the alphabet occurs: int64 (A,)."""
        ...

    def batch(
        self,
        indices: np.ndarray,
        augment: AugmentConfig | None = None,
        rng: np.random.Generator | None = None,
    ) -> LabelledBatch:
        """Make a batch of those examples, changed at random where ``augment`` and ``rng`` are given."""
        ...


class EncodedSet:
    """Sequences as letter codes, with their classes.

    Parameters
    ----------
    sequences
        Validated letters, N of them, each its window and ``flank`` letters on both sides.
    labels
        (N,) class indices.
    tokenizer
        Makes tokens of codes.
    flank
        Letters on both sides of the window.
    contexts
        (N,) number of the context of each sequence, -1 where it is unknown; None where no model asks.

    Attributes
    ----------
    targets
        (N, K) float32 probabilities to learn in place of the labels; None at first.
    """

    def __init__(
        self,
        sequences: Sequence[str],
        labels: np.ndarray,
        tokenizer: Tokenizer,
        flank: int = 0,
        contexts: np.ndarray | None = None,
    ) -> None:
        self.stack: CodeStack = stack_sequences(sequences, tokenizer.alphabet)
        self.begin = np.cumsum(self.stack.lengths) - self.stack.lengths
        self.labels = np.asarray(labels, dtype=np.int64)
        self.tokenizer = tokenizer
        self.flank = flank
        self.contexts = contexts
        self.targets: np.ndarray | None = None
        self.lengths = self.stack.lengths - 2 * flank

    def __len__(self) -> int:
        return len(self.labels)

    def windows(self) -> list[np.ndarray]:
        """Codes of every window as it stands, uint8 (n,) each."""
        starts = self.begin + self.flank
        return [self.stack.codes[s : s + n] for s, n in zip(starts, self.lengths, strict=True)]

    def letter_counts(self) -> np.ndarray:
        """How often each letter of the alphabet occurs: int64 (A,)."""
        size = self.tokenizer.alphabet.unknown
        return np.bincount(self.stack.codes, minlength=size)[:size]

    def batch(
        self,
        indices: np.ndarray,
        augment: AugmentConfig | None = None,
        rng: np.random.Generator | None = None,
    ) -> LabelledBatch:
        """Make a batch of those sequences, changed at random where ``augment`` and ``rng`` are given."""
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
        mask = self._pad(tokens, lengths)
        labels, rows = torch.from_numpy(self.labels[indices]), torch.from_numpy(indices)
        targets = None if self.targets is None else torch.from_numpy(self.targets[indices])
        return LabelledBatch(torch.from_numpy(tokens), (mask,), labels, rows, targets)

    def _pad(self, tokens: np.ndarray, lengths: np.ndarray) -> Tensor | None:
        if (lengths == lengths[0]).all():
            return None
        mask = self.tokenizer.mask(tokens, lengths)
        tokens[~mask] = PAD
        return torch.from_numpy(mask)


class BatchSource(Dataset[LabelledBatch]):
    """Hands out whole batches by their key."""

    def __init__(
        self, data: Examples, augment: AugmentConfig | None = None, seed: int = 0, rank: int = 0
    ) -> None:
        self.data, self.augment, self.seed, self.rank = data, augment, seed, rank

    def __getitem__(self, key: BatchKey) -> LabelledBatch:
        epoch, number, indices = key
        rng = np.random.default_rng((self.seed, epoch, number, self.rank)) if self.augment else None
        return self.data.batch(indices, self.augment, rng)


class TrainingOrder(Sampler[BatchKey]):
    """A fresh order of all sequences each epoch, dealt into batches of nearly equal size.

    With several processes each takes its share; up to ``world - 1`` sequences are then seen twice in an
    epoch, so that all processes take the same number of steps.

    Parameters
    ----------
    lengths
        (N,) letters of each sequence; unequal ones are sorted within chunks of the order to save padding.
    batch_size
        Most sequences in a batch.
    seed, rank, world
        Seed of the order, this process, and the number of processes.
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


class ValidationOrder(Sampler[BatchKey]):
    """Every sequence in batches of similar length, always the same; processes take every ``world``-th batch.

    A process whose share falls short takes one of the first batches again: all must take the same number
    of steps.
    """

    def __init__(self, lengths: np.ndarray, rank: int = 0, world: int = 1) -> None:
        batches = size_buckets(lengths, VALIDATION_BATCH, MAX_VALIDATION_TOKENS)
        share = -(-len(batches) // world)
        self._batches = [batches[(rank + i * world) % len(batches)] for i in range(share)]

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[BatchKey]:
        return iter((0, number, indices) for number, indices in enumerate(self._batches))


class TrainingData(lightning.LightningDataModule):
    """Training and validation batches of one member.

    Parameters
    ----------
    train, validation
        Encoded sequences.
    config
        Of the run.
    seed
        Of the member.
    """

    def __init__(self, train: Examples, validation: Examples, config: RunConfig, seed: int) -> None:
        super().__init__()
        self.train, self.validation, self.config, self.seed = train, validation, config, seed

    def _place(self) -> tuple[int, int]:
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    def train_dataloader(self) -> DataLoader[Any]:
        rank, world = self._place()
        size = self.config.optimizer.batch_size
        order = TrainingOrder(self.train.lengths, size, self.seed, rank, world)
        return DataLoader(self.training_source(rank), batch_size=None, sampler=order, collate_fn=_as_it_is)

    def val_dataloader(self) -> DataLoader[Any]:
        order = ValidationOrder(self.validation.lengths, *self._place())
        return DataLoader(self.validation_source(), batch_size=None, sampler=order, collate_fn=_as_it_is)

    def training_source(self, rank: int) -> Dataset[Any]:
        """What hands out the batches of a process by their key."""
        return BatchSource(self.train, self.config.augment, self.seed, rank)

    def validation_source(self) -> Dataset[Any]:
        """The same for validation, without random changes."""
        return BatchSource(self.validation)


def _as_it_is(batch: Any) -> Any:
    return batch
