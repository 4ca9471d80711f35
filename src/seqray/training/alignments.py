"""Labelled alignments to batches of tokens: the counterpart of `seqray.training.data.EncodedSet`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from seqray.core import ALPHABETS, Alignment, AugmentConfig, RunConfig
from seqray.core.msa import choose_columns, choose_rows, fit
from seqray.models import collate
from seqray.models.tokenizers import FIRST_LETTER, MASK, AlignmentTokenizer
from seqray.training.data import LabelledBatch

_SHALLOWER = 1 / 3  # share of the draws with fewer rows than there could be


class AlignmentSet:
    """Alignments with their classes.

    While training, each batch draws other rows of the alignments that are deeper than is read: what a family
    looks like, not one choice of its members, is then learned; and in a third of the draws fewer, so that
    shallow alignments are known, too. Without random changes the rows are those that
    `seqray.core.msa.fit` picks, as in prediction.

    Parameters
    ----------
    alignments
        N of them.
    labels
        (N,) class indices.
    config
        Of the run: the model's alphabet and ``max_rows``, and ``data.window``, which is in columns.

    Attributes
    ----------
    targets
        (N, K) float32 probabilities to learn in place of the labels; None at first.
    lengths
        (N,) tokens of each, by which batches of similar size are made.
    """

    def __init__(self, alignments: Sequence[Alignment], labels: np.ndarray, config: RunConfig) -> None:
        self.alignments = list(alignments)
        self.labels = np.asarray(labels, dtype=np.int64)
        self.rows, self.columns = config.model.max_rows, config.data.window
        self.tokenizer = AlignmentTokenizer(ALPHABETS[config.model.alphabet])
        self.targets: np.ndarray | None = None
        choice = config.model.row_choice
        self._fitted = [fit(a, self.rows, self.columns, choice).codes for a in self.alignments]
        self.lengths = np.array([codes.size for codes in self._fitted], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.labels)

    def windows(self) -> list[np.ndarray]:
        """Letter codes of every query, uint8 (n,) each."""
        letters = self.tokenizer.alphabet.unknown
        return [a.codes[0][a.codes[0] <= letters][: self.columns] for a in self.alignments]

    def letter_counts(self) -> np.ndarray:
        """How often each letter of the alphabet stands in what is read without random changes: int64 (A,)."""
        size = self.tokenizer.alphabet.unknown
        counts = (np.bincount(codes.ravel(), minlength=size)[:size] for codes in self._fitted)
        return np.sum(list(counts), axis=0)

    def batch(
        self,
        indices: np.ndarray,
        augment: AugmentConfig | None = None,
        rng: np.random.Generator | None = None,
    ) -> LabelledBatch:
        """Make a batch of those alignments, changed at random where ``augment`` and ``rng`` are given."""
        if augment is None or rng is None:
            rows = [self.tokenizer.encode(self._fitted[i]) for i in indices]
        else:
            rows = [self._changed(i, augment, rng) for i in indices]
        batch = collate(rows)
        labels, where = torch.from_numpy(self.labels[indices]), torch.from_numpy(indices)
        targets = None if self.targets is None else torch.from_numpy(self.targets[indices])
        return LabelledBatch(batch.tokens, batch.masks, labels, where, targets)

    def _changed(self, index: int, augment: AugmentConfig, rng: np.random.Generator) -> np.ndarray:
        """Tokens (R, 1 + C) of other rows than the last time, with letters masked."""
        codes, letters = self.alignments[index].codes, self.tokenizer.alphabet.unknown + 1
        if rng.random() < augment.query:
            query = int(rng.integers(len(codes)))
            codes = codes[[query, *range(query), *range(query + 1, len(codes))]]
        depth = min(self.rows, augment.rows or self.rows)
        if rng.random() < _SHALLOWER:
            depth = int(rng.integers(1, depth + 1))
        codes = codes[choose_rows(codes, depth, "random", seed=int(rng.integers(1 << 31)))]
        columns = choose_columns(codes, letters, self.columns)
        tokens = self.tokenizer.encode(codes[:, columns] if len(columns) else codes[:, :1])
        masked = (rng.random(tokens.shape) < augment.mask) & (tokens >= FIRST_LETTER)
        return np.where(masked, MASK, tokens)
