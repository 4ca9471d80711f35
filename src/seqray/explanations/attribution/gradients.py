"""Signed scores from gradients: input times gradient, and integrated gradients.

Both compare each token with the mean of all letters' tokens. A gradient with respect to a one-hot code also
has a part that points off the simplex of real sequences and is noise; subtracting the mean over the letters
removes it (Majdandzic et al. 2023, Genome Biology 24:109).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.explanations.attribution.forward_trace import embedding_of, trace
from seqray.explanations.options import STEPS
from seqray.models.tokenizers import FIRST_LETTER

Target = Callable[[Tensor], Tensor]
"""Logits (B, K) to the quantity explained (B,)."""


def input_x_gradient(
    network: nn.Module, tokens: Tensor, target: Target, letter_tokens: Tensor | None = None
) -> Tensor:
    """Gradient times (token minus the mean letter): first-order effect of the letter.

    Parameters
    ----------
    network
        Of sequences, or on a backbone; left in the mode in which it was found.
    tokens
        (B, L) int64, CLS first; padded for a backbone only.
    letter_tokens
        (V,) tokens of a backbone that encode letters, over which the mean is taken.

    Returns
    -------
    Tensor
        (B, L), 0 at special and unknown tokens.
    """
    slope, embedded = input_gradient(network, tokens, target)
    start, known = _mean_letters(network, tokens, embedded, letter_tokens)
    return _attribute(tokens, embedded - start, slope, known)


def integrated_gradients(
    network: nn.Module,
    tokens: Tensor,
    target: Target,
    letter_tokens: Tensor | None = None,
    steps: int = STEPS,
) -> Tensor:
    """Gradients averaged on the straight way from the mean letter to the sequence.

    The scores of a record sum to target(sequence) - target(mean letters), but for the error of the midpoint
    rule with that many steps.

    The parameters and the result are those of `input_x_gradient`; the gradient is taken at ``steps`` points.

    References
    ----------
    Sundararajan et al. 2017, Axiomatic Attribution for Deep Networks, equation 3.
    """
    end = trace(network, tokens, attention=False).embedded
    start, known = _mean_letters(network, tokens, end, letter_tokens)
    slope = mean_slope(lambda between: input_gradient(network, tokens, target, between)[0], start, end, steps)
    return _attribute(tokens, end - start, slope, known)


def mean_slope(slope: Callable[[Tensor], Tensor], start: Tensor, end: Tensor, steps: int) -> Tensor:
    """Mean of the gradient on the straight way between two points, by the midpoint rule.

    ``slope`` maps a point to the gradient there, which is taken at ``steps`` points.
    """
    total = torch.zeros_like(end)
    for step in range(steps):
        total += slope(start + (step + 0.5) / steps * (end - start))
    return total / steps


def input_gradient(
    network: nn.Module, tokens: Tensor, target: Target, embedded: Tensor | None = None, **named: Any
) -> tuple[Tensor, Tensor]:
    """Gradient of the target with respect to the embedded tokens, and those tokens: (B, N, width) each.

    ``embedded`` and what else has a name are as in `trace`.
    """
    traced = trace(network, tokens, gradients=True, attention=False, embedded=embedded, **named)
    [slope] = torch.autograd.grad(target(traced.logits).sum(), traced.embedded)
    return slope, traced.embedded.detach()


@torch.no_grad()
def _mean_letters(
    network: nn.Module, tokens: Tensor, embedded: Tensor, letter_tokens: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The embedded tokens with their letters at the mean letter, and which tokens are letters (B, N)."""
    table = embedding_of(network)
    if letter_tokens is not None:
        known = torch.isin(tokens, letter_tokens)
        return torch.where(known[..., None], table(letter_tokens - 1).mean(dim=0), embedded), known
    weight = table.weight
    assert isinstance(weight, Tensor)
    known = tokens[:, 1:] >= FIRST_LETTER  # an ambiguous letter has no effect of its own
    return weight[FIRST_LETTER:].mean(dim=0).expand_as(embedded), known


def _attribute(tokens: Tensor, change: Tensor, slope: Tensor, known: Tensor) -> Tensor:
    effect = (change * slope).sum(dim=-1) * known
    return F.pad(effect, (tokens.shape[1] - effect.shape[1], 0))  # CLS, which is not embedded, has none
