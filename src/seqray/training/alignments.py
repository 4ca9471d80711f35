"""Labeled alignments to batches of tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import ALPHABETS, Alignment, AugmentConfig, RunConfig
from seqray.core.msa import choose_columns, choose_rows, crop_alignment
from seqray.models import TokenBatch, collate
from seqray.models.tokenizers import FIRST_LETTER, MASK, AlignmentTokenizer
from seqray.training.data import Examples

_SHALLOWER = 1 / 3  # share of the draws with fewer rows than there could be


class AlignmentExamples(Examples):
    """Alignments with their classes.

    In training, each batch draws other rows of alignments that are deeper than the model reads, so the model
    learns the family and not one choice of its members. A third of the draws has fewer rows, so the model
    also learns shallow alignments. Without random changes, the rows are those of
    `seqray.core.msa.crop_alignment`, as in prediction.

    ``config.data.window`` is in columns.
    """

    def __init__(self, alignments: Sequence[Alignment], labels: np.ndarray, config: RunConfig) -> None:
        super().__init__(labels)
        self.alignments = list(alignments)
        self.rows, self.columns = config.model.max_rows, config.data.window
        self.tokenizer = AlignmentTokenizer(ALPHABETS[config.model.alphabet])
        choice = config.model.row_choice
        self._fitted = [crop_alignment(a, self.rows, self.columns, choice).codes for a in self.alignments]
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
        depth = min(self.rows, augment.rows or self.rows)
        if rng.random() < _SHALLOWER:
            depth = int(rng.integers(1, depth + 1))
        codes = codes[choose_rows(codes, depth, "random", seed=int(rng.integers(1 << 31)))]
        columns = choose_columns(codes, letters, self.columns)
        tokens = self.tokenizer.encode(codes[:, columns] if len(columns) else codes[:, :1])
        masked = (rng.random(tokens.shape) < augment.mask) & (tokens >= FIRST_LETTER)
        return np.where(masked, MASK, tokens)
