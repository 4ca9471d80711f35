"""Embeddings of k-mers, independent of their position.

The stem also finds k-mers, but must learn each detector by gradients, which is difficult on small data sets.
A table of all k-mers needs only to see them: its mean over a sequence is a linear model of k-mer frequencies,
a strong baseline on small data sets.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class KmerEmbedding(nn.Module):
    """A vector for each k-mer of 2 to ``longest`` letters, added at its first letter.

    Rows of the tables are scaled by the square root of their number: a k-mer of four letters is a sixteenth
    as frequent as one of two, but Adam updates both equally.
    """

    def __init__(self, letters: int, longest: int, d_model: int) -> None:
        super().__init__()
        self.letters = letters
        self.tables = nn.ParameterList(
            torch.zeros(letters**length, d_model) for length in range(2, longest + 1)
        )

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Letters (..., N) int64 and their bool mask to (..., N, D).

        Padding comes last. Padding and letters below 0 are in no k-mer.
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
