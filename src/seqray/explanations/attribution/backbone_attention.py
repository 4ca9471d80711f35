"""Attention layers of a backbone, whose weights are those that transformers returns.

A foreign encoder shows its attention weights, not the queries, keys and values behind them. What needs those
(the value-rollout, what each head does) is not available.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from seqray.explanations.attribution.attention_layers import AttentionLayer, WeightBlock


@dataclass(frozen=True, slots=True, eq=False)
class BackboneLayer(AttentionLayer):
    """A layer of a backbone.

    Attributes
    ----------
    heads
        (B, H, L, L) its weights, in place of the output of its heads.
    """

    heads: Tensor

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """All weights at once."""
        every = (slice(None), slice(None))
        yield WeightBlock(self.heads.detach().float(), None, every, every, None)

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """The slope itself."""
        return slope

    @torch.no_grad()
    def attention_from(self, start: Tensor) -> Tensor:
        """As `SequenceLayer.attention_from`."""
        return torch.einsum("bq,bhqk->bhk", start, self.heads.float())
