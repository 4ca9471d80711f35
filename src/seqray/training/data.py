"""Examples, batches, and their augmentation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeVar

import lightning
import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from seqray.core.alphabet import ALPHABETS, CodeStack, reverse_complement_codes, stack_sequences
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import ModelConfig
from seqray.core.records import (
    Alignment,
    Example,
    LabeledSequence,
    choose_columns,
    choose_rows,
    crop_alignment,
)
from seqray.core.run_config import AugmentConfig, RunConfig
from seqray.core.text import truncate
from seqray.modelfile.model import build_tokenizer
from seqray.models import tokenizers
from seqray.models.batches import TokenBatch, collate

# --- What every training run hands to Lightning: whole batches by their key, shared among the processes

Key = TypeVar("Key")


class FixedBatches(Sampler[Key]):
    """The same batches each time; processes take every ``world``-th, and all as many."""

    def __init__(self, batches: Sequence[Key], rank: int = 0, world: int = 1) -> None:
        share = -(-len(batches) // world)
        self._batches = [batches[(rank + i * world) % len(batches)] for i in range(share)]

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._batches)


class BatchModule(lightning.LightningDataModule, ABC):
    """Training and validation batches of one member."""

    @abstractmethod
    def training_batches(self, rank: int, world: int) -> tuple[Callable[[Any], Any], Sampler[Any]]:
        """What makes a batch from its key, and the keys of an epoch."""

    @abstractmethod
    def validation_batches(self, rank: int, world: int) -> tuple[Callable[[Any], Any], Sampler[Any]]:
        """The same for validation, without random changes."""

    def train_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.training_batches)

    def val_dataloader(self) -> DataLoader[Any]:
        return self._loader(self.validation_batches)

    def _loader(self, batches: Callable[[int, int], tuple[Any, Sampler[Any]]]) -> DataLoader[Any]:
        read, order = batches(
            *((self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1))
        )
        return DataLoader(_Batches(read), batch_size=None, sampler=order, collate_fn=lambda batch: batch)


class _Batches(Dataset[Any]):
    """Batches by their key, as `DataLoader` asks for them."""

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self._read = read

    def __getitem__(self, key: Any) -> Any:
        return self._read(key)


# --- Random changes to training sequences, drawn and applied to a whole batch at once


@dataclass(frozen=True, slots=True)
class Changes:
    """What happens to B sequences: (B,) letters by which a window moves right, and if it is flipped."""

    shift: np.ndarray
    flip: np.ndarray

    @classmethod
    def none(cls, size: int) -> Changes:
        """No change to ``size`` sequences."""
        return cls(np.zeros(size, dtype=np.int64), np.zeros(size, dtype=bool))

    @classmethod
    def draw(cls, rng: np.random.Generator, size: int, config: AugmentConfig) -> Changes:
        """Draw changes of ``size`` windows: shifts uniform on [-shift, shift] of a share of them, flips."""
        shift = rng.integers(-config.shift, config.shift, size=size, endpoint=True)
        flip = rng.random(size) < config.reverse_complement
        if config.shift_share < 1:
            shift[rng.random(size) >= config.shift_share] = 0
        return cls(shift, flip)


def cut_windows(
    stack: CodeStack,
    begin: np.ndarray,
    indices: np.ndarray,
    flank: int,
    changes: Changes,
    unknown: int,
    width: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Cut the windows of some sequences, moved and flipped: codes (B, W) uint8, and letters of each (B,).

    ``begin`` is where a sequence begins in the stack, ``flank`` the letters around its unmoved window.
    """
    n = stack.lengths[indices][:, None]  # (B, 1)
    lengths = n - 2 * flank
    column = np.arange(max(int(lengths.max()), width))  # (W,)
    place = np.where(changes.flip[:, None], lengths - 1 - column, column)  # (B, W) within the window
    source = place + (flank + changes.shift)[:, None]
    known = (source >= 0) & (source < n) & (column < lengths)
    codes = stack.codes[begin[indices][:, None] + np.clip(source, 0, n - 1)]
    codes[~known] = unknown
    if changes.flip.any():
        # The letters are in flipped order already, so the reversal is taken back: complement alone.
        codes[changes.flip] = reverse_complement_codes(codes[changes.flip])[:, ::-1]
    return codes, lengths[:, 0]


def mask_tokens(tokens: np.ndarray, letters: np.ndarray, spans: np.ndarray) -> np.ndarray:
    """Replace every token (B, 1 + T) that covers a masked letter of (B, W) by MASK; words overlap."""
    before = np.zeros((letters.shape[0], letters.shape[1] + 1), dtype=np.int64)
    np.cumsum(letters, axis=1, out=before[:, 1:])
    hit = before[:, spans[:, 1]] > before[:, spans[:, 0]]  # (B, 1 + T)
    return np.where(hit, tokenizers.MASK, tokens)


# --- Labeled sequences to batches of tokens: encoded once, cut and changed a batch at a time

VALIDATION_BATCH = 128
MAX_VALIDATION_TOKENS = VALIDATION_BATCH * 1024
_STEP = 8  # letters; padded lengths are multiples: oneDNN keeps a compiled kernel for each length of a batch
_CHUNK = 32  # batches among which unequal lengths are sorted: tight padding, order still random

BatchKey = tuple[int, int, np.ndarray]  # epoch, number within the epoch, indices of the sequences


class LabeledBatch(NamedTuple):
    """Tokens (B, L), masks, classes (B,), rows of the data (B,), and ``targets`` (B, K) as in `Examples`."""

    tokens: Tensor
    masks: tuple[Tensor | None, ...]
    labels: Tensor
    rows: Tensor
    targets: Tensor | None = None


class Examples(ABC):
    """Labeled examples of one kind, and their batches of tokens, by ``lengths`` (N,).

    ``targets`` (N, K) float32 are probabilities to learn instead of the labels; None at first.
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
        """Make tokens and masks of some examples, changed at random if ``augment`` and ``rng`` are given."""

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

    def draw(
        self, key: BatchKey, augment: AugmentConfig | None, seed: int, rank: int = 0
    ) -> tuple[LabeledBatch, np.random.Generator]:
        """Make the batch, with random changes by (seed, epoch, batch, rank) alone; and their generator."""
        epoch, number, indices = key
        rng = np.random.default_rng((seed, epoch, number, rank))
        return self.batch(indices, augment, rng), rng


class SequenceExamples(Examples):
    """Letter codes of N windows, with ``flank`` letters on both sides, and contexts (N,), or -1."""

    def __init__(
        self,
        sequences: Sequence[str],
        labels: np.ndarray,
        tokenizer: tokenizers.Tokenizer,
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
        longest = int(self.lengths[indices].max())
        width = min(-(-longest // _STEP) * _STEP, int(self.lengths.max()))
        codes, lengths = cut_windows(self.stack, self.begin, indices, self.flank, changes, unknown, width)
        tokens = self.tokenizer.encode_codes(codes, lengths)  # (B, W) -> (B, L)
        if augment is not None and rng is not None and augment.mask > 0:
            assert isinstance(self.tokenizer, tokenizers.OwnTokenizer)  # by the checks of the settings
            masked = rng.random(codes.shape) < augment.mask
            tokens = mask_tokens(tokens, masked, self.tokenizer.spans(codes.shape[1]))
        if self.contexts is not None:
            assert isinstance(self.tokenizer, tokenizers.OwnTokenizer)
            contexts = self.contexts[indices]
            if augment is not None and rng is not None:
                contexts = np.where(rng.random(len(indices)) < augment.hide_context, -1, contexts)
            tokens[:, 0] = np.where(contexts < 0, tokenizers.CLS, self.tokenizer.vocab_size + contexts)
        if (lengths == codes.shape[1]).all():
            return TokenBatch(torch.from_numpy(tokens), (None,))
        mask = self.tokenizer.mask(tokens, lengths)
        tokens[~mask] = tokenizers.PAD
        return TokenBatch(torch.from_numpy(tokens), (torch.from_numpy(mask),))


class TrainingOrder(Sampler[BatchKey]):
    """A fresh order each epoch, in batches of nearly equal size; some are seen twice, for equal steps."""

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
            chunks = np.array_split(order, -(-len(self) // _CHUNK))
            chunks = [chunk[np.argsort(self.lengths[chunk], kind="stable")] for chunk in chunks]
            batches = np.array_split(np.concatenate(chunks), len(self))
            batches = [batches[i] for i in rng.permutation(len(self))]
        for number, indices in enumerate(batches):
            yield self.epoch, number, indices


def validation_order(lengths: np.ndarray, rank: int = 0, world: int = 1) -> FixedBatches[BatchKey]:
    """Every sequence in batches of similar length, always the same."""
    batches = tokenizers.size_buckets(lengths, VALIDATION_BATCH, MAX_VALIDATION_TOKENS)
    return FixedBatches([(0, number, indices) for number, indices in enumerate(batches)], rank, world)


class TrainingData(BatchModule):
    """Training and validation batches of one member."""

    def __init__(self, train: Examples, validation: Examples, config: RunConfig, seed: int) -> None:
        super().__init__()
        self.train, self.validation, self.config, self.seed = train, validation, config, seed

    def training_batches(self, rank: int, world: int) -> tuple[Callable[[BatchKey], Any], Sampler[Any]]:
        size = self.config.optimizer.batch_size
        order = TrainingOrder(self.train.lengths, size, self.seed, rank, world)
        return partial(self.read_training, rank), order

    def validation_batches(self, rank: int, world: int) -> tuple[Callable[[BatchKey], Any], Sampler[Any]]:
        return self.read_validation, validation_order(self.validation.lengths, rank, world)

    def read_training(self, rank: int, key: BatchKey) -> Any:
        """A batch of a process by its key, changed at random."""
        return self.train.draw(key, self.config.augment, self.seed, rank)[0]

    def read_validation(self, key: BatchKey) -> Any:
        """The same for validation, without random changes."""
        return self.validation.batch(key[2])


# --- Labeled alignments to batches of tokens

_SHALLOWER = 1 / 3  # share of the draws with fewer rows than there could be


class AlignmentExamples(Examples):
    """Alignments with their classes; each batch draws other rows of them. ``window`` is in columns."""

    def __init__(self, alignments: Sequence[Alignment], labels: np.ndarray, config: RunConfig) -> None:
        super().__init__(labels)
        self.alignments = list(alignments)
        self.rows, self.columns = config.model.max_rows, config.data.window
        self.tokenizer = tokenizers.AlignmentTokenizer(ALPHABETS[config.model.alphabet])
        self._fitted = [crop_alignment(a, self.rows, self.columns).codes for a in self.alignments]
        self.lengths = np.array([codes.size for codes in self._fitted], dtype=np.int64)

    def windows(self) -> list[np.ndarray]:
        letters = self.tokenizer.alphabet.unknown
        return [a.codes[0][a.codes[0] <= letters][: self.columns] for a in self.alignments]

    def letter_counts(self) -> np.ndarray:
        size = self.tokenizer.alphabet.unknown
        counts = (np.bincount(codes.ravel(), minlength=size)[:size] for codes in self._fitted)
        return np.sum(list(counts), axis=0)

    def tokens(
        self, indices: np.ndarray, augment: AugmentConfig | None, rng: np.random.Generator | None
    ) -> TokenBatch:
        """As `Examples.tokens`."""
        if augment is None or rng is None:
            return collate([self.tokenizer.encode(self._fitted[i]) for i in indices])
        return collate([self._augmented(i, augment, rng) for i in indices])

    def _augmented(self, index: int, augment: AugmentConfig, rng: np.random.Generator) -> np.ndarray:
        """Tokens (R, 1 + C) of a random choice of rows, with letters masked."""
        codes, letters = self.alignments[index].codes, self.tokenizer.alphabet.unknown + 1
        if rng.random() < augment.query:
            query = int(rng.integers(len(codes)))
            codes = codes[[query, *range(query), *range(query + 1, len(codes))]]
        depth = self.rows
        if rng.random() < _SHALLOWER:
            depth = int(rng.integers(1, depth + 1))
        codes = codes[choose_rows(codes, depth, "random", seed=int(rng.integers(1 << 31)))]
        columns = choose_columns(codes, letters, self.columns)
        tokens = self.tokenizer.encode(codes[:, columns] if len(columns) else codes[:, :1])
        masked = (rng.random(tokens.shape) < augment.mask) & (tokens >= tokenizers.FIRST_LETTER)
        return np.where(masked, tokenizers.MASK, tokens)


# --- Encode labeled sequences or alignments for training


def encode(data: Sequence[Example], labels: np.ndarray, rows: np.ndarray, config: RunConfig) -> Examples:
    """Encode some rows of the data."""
    expected, encode_all = ENCODERS[config.model.kind]
    chosen = [data[i] for i in rows]
    for example in chosen:
        if not isinstance(example, expected):
            found = f"the examples are of type {type(example).__name__}"
            raise ConfigError(f"'model.kind' is {config.model.kind}, but {found}", where=example.where)
    return encode_all(chosen, labels[rows], config)


def context_numbers(data: Sequence[Example], config: ModelConfig) -> np.ndarray | None:
    """Number of each example's context, -1 without one: int64 (N,); None for a model without contexts."""
    if not config.contexts:
        return None
    numbers = {name: i for i, name in enumerate(config.contexts)}
    for example in data:
        if example.context is not None and example.context not in numbers:
            raise InputError(
                f"has the context '{example.context}'",
                where=example.where,
                remedy="name it in 'model.contexts'",
            )
    return np.array([-1 if e.context is None else numbers[e.context] for e in data], dtype=np.int64)


def _encode_sequences(data: Sequence[LabeledSequence], labels: np.ndarray, config: RunConfig) -> Examples:
    contexts, tokenizer = context_numbers(data, config.model), build_tokenizer(config.model)
    settings = config.data
    longest = settings.window + 2 * settings.flank
    sequences = [truncate(one.sequence, longest, settings.truncate) for one in data]
    return SequenceExamples(sequences, labels, tokenizer, settings.flank, contexts)


ENCODERS: Mapping[str, tuple[type, Callable[..., Examples]]] = {
    "sequence": (LabeledSequence, _encode_sequences),
    "backbone": (LabeledSequence, _encode_sequences),
    "own": (LabeledSequence, _encode_sequences),
    "alignment": (Alignment, AlignmentExamples),
}
"""Kind of model to the type of its examples and what makes batches of them."""
