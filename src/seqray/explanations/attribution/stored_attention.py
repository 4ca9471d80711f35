"""Attention layers whose weights are stored: those that transformers gives of a backbone, or means of heads.

They do not show queries, keys and values. What needs those (the value-rollout, what each head does) is not
available.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from seqray.explanations.attribution.attention_layers import AttentionLayer, WeightBlock


@dataclass(frozen=True, slots=True, eq=False)
class StoredLayer(AttentionLayer):
    """A layer that holds its weights (B, H, Lq, L), in place of the output of its heads."""

    heads: Tensor

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """All weights at once."""
        every = slice(None)
        queries = slice(self.heads.shape[2])  # CLS alone, or all tokens
        yield WeightBlock(self.heads.detach().float(), None, (every, queries), (every, every), None)

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """The slope itself."""
        return slope

    @torch.no_grad()
    def attention_from(self, start: Tensor) -> Tensor:
        """As `SequenceLayer.attention_from`."""
        return torch.einsum("bq,bhqk->bhk", start, self.heads.float())
