"""Shares of the letters by each kind of rollout: (target, codes (N, n), settings) to (N, n).

Sequences are explained from CLS, or from all tokens that the head reads; calls of a locator from the token of
the site.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from seqray.core.arrays import Codes, Floats
from seqray.core.errors import ConfigError
from seqray.explanations import locator_scores, sequence_scores
from seqray.explanations.layers import Trace
from seqray.explanations.options import MethodSettings
from seqray.explanations.rollout import grad_rollout, rollout, value_rollout
from seqray.explanations.targets import LetterTarget, LocatorTarget
from seqray.modelfile.model import TrainedModel


def rollout_shares(target: LetterTarget, codes: Codes, settings: MethodSettings) -> Floats:
    """Shares by `rollout`."""
    residual, heads = settings.residual, settings.heads
    return _shares(target, codes, settings, lambda traced: rollout(traced, residual=residual, heads=heads))


def value_rollout_shares(target: LetterTarget, codes: Codes, settings: MethodSettings) -> Floats:
    """Shares by `value_rollout`."""
    check_values(target.model)
    return _shares(target, codes, settings, lambda traced: value_rollout(traced, residual=settings.residual))


def grad_rollout_shares(target: LetterTarget, codes: Codes, settings: MethodSettings) -> Floats:
    """Shares by `grad_rollout`."""

    def roll(traced: Trace[Any]) -> Tensor:
        return grad_rollout(traced, target.of_logits(traced.logits), residual=settings.residual)

    return _shares(target, codes, settings, roll, gradients=True)


def check_values(model: TrainedModel) -> None:
    """Refuse the value-rollout of a model on a backbone with a ConfigError."""
    if model.card.model.backbone is not None:
        raise ConfigError(
            f"value-rollout needs values that the backbone of model '{model.card.name}' does not provide",
            remedy="use rollout or grad-rollout",
        )


def _shares(
    target: LetterTarget,
    codes: Codes,
    settings: MethodSettings,
    relevance: Callable[[Trace[Any]], Tensor],
    *,
    gradients: bool = False,
) -> Floats:
    if isinstance(target, LocatorTarget):
        return locator_scores.spread_relevance(target, codes, settings.spread, relevance, gradients=gradients)
    return sequence_scores.spread_relevance(target, codes, settings.spread, relevance, gradients=gradients)
