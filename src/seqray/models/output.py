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
        The axis along which tokens attend to each other: ``sequence``; in an alignment ``column`` (over the
        rows of each column) or ``row`` (over the columns of each row).
    weights
        Share of each key (last axis) in the output of each query; rows sum to 1. ``sequence``: (B, H, L, L);
        ``column``: (B, C, H, R, R); ``row``: (B, R, H, C, C), or (B, 1, H, C, C) where rows are tied.
    mask
        (B, L), (B, R) or (B, C) bool, True at real keys; None where nothing is padded.
    """

    axis: str
    weights: Tensor
    mask: Tensor | None


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What a network answers.

    Attributes
    ----------
    logits
        (B, K).
    attention
        On request an `AttentionStep` for each attention layer, first layer first.
    subclasses
        (B, M) logits of the subclasses of all classes; None of a network that learned none.
    """

    logits: Tensor
    attention: tuple[AttentionStep, ...] = ()
    subclasses: Tensor | None = None
