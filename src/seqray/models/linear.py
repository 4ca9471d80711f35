"""The linear part of a network: what letters and k-mers add to the logits by themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.model_config import LinearConfig


def kmer_places(letters: Tensor, real: Tensor, longest: int, alphabet: int) -> Iterator[Tensor]:
    """Number the k-mers that begin at letters (..., N), for k from 1 to ``longest``: from 1, and 0 for none.

    Padding comes last. Padding and letters below 0 are in no k-mer.
    """
    following = F.pad(letters.where(real, -1), (0, longest - 1), value=-1)
    count = letters.shape[-1]
    index = following[..., :count]
    known = index >= 0
    for ahead in range(longest):
        if ahead:
            letter = following[..., ahead : ahead + count]
            known = known & (letter >= 0)
            index = alphabet * index + letter
        yield torch.where(known, 1 + index, 0)


def lookup(place: Tensor, table: Tensor) -> Tensor:
    """Rows of a table (R, D) by their number from 1, zeros for 0."""
    return F.embedding(place, F.pad(table, (0, 0, 1, 0)))


class LinearPart(nn.Module):
    """A weight of each k-mer for each class, wherever it is, and at each place; summed, they are logits.

    ``counts`` has a table (A**k, K) for each k; ``places`` one (S, R, A**k, K) for each k of the settings,
    for S ends and R letters from there, up to which the first letter of a k-mer lies. ``scale`` is what the
    logits of the rest of the network are multiplied by. All begin so that nothing is changed.
    """

    def __init__(self, alphabet: int, config: LinearConfig, classes: int) -> None:
        super().__init__()
        self.alphabet, self.config = alphabet, config
        self.scale = nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(classes))
        self.counts = nn.ParameterList(torch.zeros(alphabet**k, classes) for k in range(1, config.words + 1))
        self.places = nn.ParameterList(
            torch.zeros(config.sides, config.reach, alphabet**k, classes) for k in config.placed
        )

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Logits (B, K) of letters (B, N) int64 and their bool mask."""
        with torch.autocast(letters.device.type, enabled=False):  # small terms of a long sum
            return self.bias + sum(values.sum(dim=1) for _, values in self._terms(letters, real))

    def contributions(self, letters: Tensor, real: Tensor) -> Tensor:
        """What each letter adds to the logits: (B, N, K); a k-mer's part is divided among its letters.

        Their sum and the bias are the logits of `forward`.
        """
        added = letters.new_zeros((), dtype=self.bias.dtype)
        for k, values in self._terms(letters, real):
            for ahead in range(k):  # zero beyond the last letter, where no k-mer begins
                added = added + F.pad(values, (0, 0, ahead, 0))[:, : letters.shape[1]] / k
        return added

    def _terms(self, letters: Tensor, real: Tensor) -> Iterator[tuple[int, Tensor]]:
        """Yield k, and what the k-mers add that begin at each letter (B, N, K)."""
        config = self.config
        left = real.cumsum(dim=1)
        distances = (left, left[:, -1:] - left + 1)[: config.sides]
        every = kmer_places(letters, real, max(config.words, *config.placed), self.alphabet)
        for k, place in enumerate(every, start=1):
            if k <= config.words:
                yield k, lookup(place, self.counts[k - 1])
            if k in config.placed:
                tables = self.places[config.placed.index(k)]
                for table, distance in zip(tables, distances, strict=True):
                    index = (distance - 1) * self.alphabet**k + place
                    near = (place > 0) & (distance <= config.reach)
                    yield k, lookup(torch.where(near, index, 0), table.flatten(0, 1))
