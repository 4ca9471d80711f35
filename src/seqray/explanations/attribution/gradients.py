"""Signed scores from gradients: input times gradient, and integrated gradients.

Both compare each token with the mean of all letters' tokens. A gradient with respect to a one-hot code also
has a part that points off the simplex of real sequences and is noise; taking the mean over the letters away
removes it (Majdandzic et al. 2023, Genome Biology 24:109).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seqray.explanations.attribution.forward_trace import Trace, embedding_of, trace
from seqray.explanations.options import STEPS
from seqray.models.tokenizers import FIRST_LETTER

Target = Callable[[Tensor], Tensor]
"""Logits (B, K) to the quantity explained (B,)."""


def input_x_gradient(network: nn.Module, tokens: Tensor, target: Target) -> Tensor:
    """Gradient times (token minus the mean letter): first-order effect of the letter, (B, L), 0 at CLS.

    Parameters
    ----------
    network
        Left in the mode in which it was found.
    tokens
        (B, L) int64, CLS first, none padded.
    target
        What is explained.
    """
    return _attribute(network, tokens, _slope(trace(network, tokens, gradients=True), target))


def integrated_gradients(network: nn.Module, tokens: Tensor, target: Target, steps: int = STEPS) -> Tensor:
    """Gradients averaged on the straight way from the mean letter to the sequence: (B, L), 0 at CLS.

    The scores of a record sum to target(sequence) - target(mean letters), but for the error of the midpoint
    rule with that many steps.

    References
    ----------
    Sundararajan et al. 2017, Axiomatic Attribution for Deep Networks, equation 3.
    """
    table = embedding_of(network).weight.detach()
    end = table[tokens[:, 1:]]  # (B, N, width)
    start = _mean_letter(table).expand_as(end)
    total = torch.zeros_like(end)
    for step in range(steps):
        between = start + (step + 0.5) / steps * (end - start)
        total += _slope(trace(network, tokens, gradients=True, embedded=between), target)
    return _attribute(network, tokens, total / steps)


def _slope(traced: Trace, target: Target) -> Tensor:
    """Gradient of the target with respect to the embedded tokens: (B, N, width)."""
    assert isinstance(traced.embedded, Tensor)
    return torch.autograd.grad(target(traced.logits).sum(), traced.embedded)[0]


def _mean_letter(table: Tensor) -> Tensor:
    return table[FIRST_LETTER:].mean(dim=0)


def _attribute(network: nn.Module, tokens: Tensor, slope: Tensor) -> Tensor:
    table = embedding_of(network).weight.detach()
    known = tokens[:, 1:] >= FIRST_LETTER  # an ambiguous letter has no effect of its own
    effect = ((table[tokens[:, 1:]] - _mean_letter(table)) * slope).sum(dim=-1) * known
    return torch.cat((effect.new_zeros(len(effect), 1), effect), dim=1)
