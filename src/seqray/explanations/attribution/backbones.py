"""Explanations of classifiers on a backbone: attention weights and gradients as transformers gives them.

A foreign encoder shows its attention weights, not the queries, keys and values behind them. What needs those
(the value-rollout, what each head does) can't be had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqray.explanations.attribution.attention_rollout import Step, fuse, fused, pull_back
from seqray.explanations.attribution.gradients import Target
from seqray.explanations.options import Fusion
from seqray.models import BackboneClassifier


@dataclass(frozen=True, slots=True, eq=False)
class BackboneTrace:
    """A forward pass.

    Attributes
    ----------
    logits
        (B, K).
    attention
        (B, H, L, L) weights of each layer, first layer first; empty where not asked for.
    embedded
        (B, L, E) vectors of the tokens before positions.
    """

    logits: Tensor
    attention: tuple[Tensor, ...]
    embedded: Tensor


def trace_backbone(
    network: BackboneClassifier,
    tokens: Tensor,
    *,
    attention: bool = False,
    gradients: bool = False,
    embedded: Tensor | None = None,
) -> BackboneTrace:
    """Run a network and keep what explanations need.

    The vectors of the tokens are exchanged inside the encoder, which still reads the tokens: some encoders
    scale by them, or count positions by their padding, and answer differently to ``inputs_embeds``.

    Parameters
    ----------
    network
        In evaluation mode.
    tokens
        (B, L) int64, padded with 0.
    attention
        Keep the attention weights.
    gradients
        Record the graph from the embedded tokens on, for `torch.autograd.grad`.
    embedded
        (B, L, E) to put in place of the embedded tokens.
    """
    seen: list[Tensor] = []

    def see(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        start = output if embedded is None else embedded
        seen.append(start.detach().requires_grad_(gradients))
        return seen[-1].clone()  # an encoder may write into what its embedding gives

    handle = network.encoder.get_input_embeddings().register_forward_hook(see)
    try:
        with torch.set_grad_enabled(gradients):
            states, steps = network.encode(tokens, return_attention=attention)
            logits = network.classify_states(states, tokens)
    finally:
        handle.remove()
    [vectors] = seen
    return BackboneTrace(logits, tuple(step.weights for step in steps), vectors)


def rollout(network: BackboneClassifier, tokens: Tensor, residual: float, heads: Fusion) -> Tensor:
    """Relevance of each token for what the head reads, by attention weights alone: (B, L), rows sum to 1.

    As `attention_rollout`; it starts from CLS, or evenly from all letters' tokens where the
    head reads their mean.
    """
    traced = trace_backbone(network, tokens, attention=True)
    return _roll(network, tokens, traced.attention, [fuse(heads)] * len(traced.attention), residual)


def grad_rollout(network: BackboneClassifier, tokens: Tensor, residual: float, target: Target) -> Tensor:
    """Relevance for one class, as `attention_rollout.grad_rollout`: (B, L)."""
    traced = trace_backbone(network, tokens, attention=True, gradients=True)
    slopes = torch.autograd.grad(target(traced.logits).sum(), traced.attention)
    steps = [
        fused(lambda weights, _, slope=slope: (slope * weights).clamp(min=0).mean(dim=1)) for slope in slopes
    ]
    return _roll(network, tokens, traced.attention, steps, residual)


@torch.no_grad()
def _roll(
    network: BackboneClassifier,
    tokens: Tensor,
    attention: Sequence[Tensor],
    steps: Sequence[Step],
    residual: float,
) -> Tensor:
    relevance = network.pooling_weights(tokens)
    for weights, step in zip(reversed(attention), reversed(steps), strict=True):
        relevance = pull_back(relevance, [(weights.float(), slice(None))], step, residual)
    return relevance


@torch.no_grad()
def pooled_attention(network: BackboneClassifier, tokens: Tensor) -> Tensor:
    """Attention of what the head reads, the CLS query or the mean over letters: (B, layers, H, L)."""
    weights = torch.stack(trace_backbone(network, tokens, attention=True).attention, dim=1)
    return torch.einsum("bq,blhqk->blhk", network.pooling_weights(tokens), weights.float())


def input_x_gradient(
    network: BackboneClassifier, tokens: Tensor, letter_tokens: Tensor, target: Target
) -> Tensor:
    """Gradient times (token minus the mean letter token), (B, L); 0 at special and unknown tokens.

    Parameters
    ----------
    letter_tokens
        (V,) tokens that stand for letters, over which the mean is taken.
    """
    traced = trace_backbone(network, tokens, gradients=True)
    start, known = _reference(network, tokens, letter_tokens, traced.embedded.detach())
    return _attribute(traced, start, known, _slope(traced, target))


def integrated_gradients(
    network: BackboneClassifier, tokens: Tensor, letter_tokens: Tensor, target: Target, steps: int
) -> Tensor:
    """Gradients averaged on the straight way from the mean letter token to the sequence: (B, L).

    The scores of a record sum to target(sequence) - target(mean letter tokens), but for the error of the
    midpoint rule; see `seqray.explanations.attribution.gradients.integrated_gradients`.
    """
    whole = trace_backbone(network, tokens)
    start, known = _reference(network, tokens, letter_tokens, whole.embedded)
    total = torch.zeros_like(start)
    for step in range(steps):
        between = start + (step + 0.5) / steps * (whole.embedded - start)
        total += _slope(trace_backbone(network, tokens, gradients=True, embedded=between), target)
    return _attribute(whole, start, known, total / steps)


def _reference(
    network: BackboneClassifier, tokens: Tensor, letter_tokens: Tensor, embedded: Tensor
) -> tuple[Tensor, Tensor]:
    """The embedded tokens with letters put at their mean, and where that was done (B, L)."""
    table = network.encoder.get_input_embeddings()
    with torch.no_grad():
        mean = table(letter_tokens - 1).mean(dim=0)
    known = torch.isin(tokens, letter_tokens)
    return torch.where(known[..., None], mean, embedded), known


def _slope(traced: BackboneTrace, target: Target) -> Tensor:
    return torch.autograd.grad(target(traced.logits).sum(), traced.embedded)[0]


def _attribute(traced: BackboneTrace, start: Tensor, known: Tensor, slope: Tensor) -> Tensor:
    return ((traced.embedded.detach() - start) * slope).sum(dim=-1) * known
