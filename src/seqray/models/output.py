"""What a network returns."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True, slots=True)
class AttentionStep:
    """The attention weights of one layer.

    Attributes
    ----------
    axis
        The axis along which tokens attend to each other: ``sequence``.
    weights
        (B, H, L, L): share of each key (last axis) in the output of each query; rows sum to 1.
    mask
        (B, L) bool, True at real tokens; None where nothing is padded.
    """

    axis: str
    weights: Tensor
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """Logits (B, K) and, where asked for, one `AttentionStep` a layer, first layer first."""

    logits: Tensor
    attention: tuple[AttentionStep, ...] = ()
