"""Vectors for k-mers, wherever they occur.

The stem finds words, too, but has to learn each of its detectors by gradients, of letters that are few where
examples are. A table of all words needs no more than to see them: its mean over a sequence is a linear model
of word frequencies, which on small sets is hard to beat.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class KmerEmbedding(nn.Module):
    """A vector for each word of 2 to ``longest`` letters, added where it begins.

    Rows of the tables count by the root of their number: a word of four letters is met a sixteenth as often
    as one of two, while Adam moves both alike.
    """

    def __init__(self, letters: int, longest: int, d_model: int) -> None:
        super().__init__()
        self.letters = letters
        self.tables = nn.ParameterList(
            torch.zeros(letters**length, d_model) for length in range(2, longest + 1)
        )

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Letters (..., N) int64 from 0, others below it, and which ones are real, bool, to (..., N, D).

        Padding comes last and is in no word; letters below 0 are in no word either.
        """
        following = F.pad(letters.where(real, -1), (0, len(self.tables)), value=-1)
        count = letters.shape[-1]
        index = following[..., :count]
        known = index >= 0
        added = letters.new_zeros((), dtype=self.tables[0].dtype)
        for ahead, table in enumerate(self.tables, start=1):
            letter = following[..., ahead : ahead + count]
            known = known & (letter >= 0)
            index = self.letters * index + letter
            vectors = F.embedding(torch.where(known, 1 + index, 0), F.pad(table, (0, 0, 1, 0)))
            added = added + len(table) ** 0.5 * vectors
        return added
