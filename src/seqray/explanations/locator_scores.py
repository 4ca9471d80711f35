"""Scores of the letters around a call of a locator by each method: (target, codes, settings) to (N, n).

All are about the score at the middle of the stretch. The gene tracks stay as they are while letters change;
what they add themselves is measured in `input_effects`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from torch import Tensor

from seqray.core.arrays import Codes, Floats
from seqray.explanations.layers import Trace, WindowedLayer
from seqray.explanations.options import MethodSettings, Spread
from seqray.explanations.targets import LocatorTarget, shares, spread_over_stretch, without_letters
from seqray.explanations.trace import input_gradient, mean_slope, trace
from seqray.inference.predictions import compute_precision
from seqray.models.locator import LETTERS


def spread_relevance(
    target: LocatorTarget,
    codes: Codes,
    spread: Spread,
    relevance: Callable[[Trace[WindowedLayer]], Tensor],
    *,
    gradients: bool = False,
) -> Floats:
    """Carry the relevance of tokens to the letters: (N, n); what falls on unknown letters is taken out."""
    network = target.network

    def of_letters(letters: Tensor, tracks: Tensor | None) -> Tensor:
        traced = trace(network, letters, tracks, site=target.site, gradients=gradients)
        found = relevance(traced)
        if spread == "span":
            return (found / network.stem.stride).repeat_interleave(network.stem.stride, dim=1)
        return spread_over_stretch(found, network.stem, traced.embedded.detach())

    known = codes < len(target.model.alphabet.letters)
    return shares(_by_batches(target, codes, of_letters) * known)


def input_x_gradient(target: LocatorTarget, codes: Codes, _: MethodSettings) -> Floats:
    """Gradient times (letter minus the mean letter)."""

    def effects(letters: Tensor, tracks: Tensor | None) -> Tensor:
        end = target.network.embed(letters, tracks)
        return ((end - without_letters(end)) * _slope(target, letters, end)).sum(dim=-1)

    return _by_batches(target, codes, effects)


def integrated_gradients(target: LocatorTarget, codes: Codes, settings: MethodSettings) -> Floats:
    """Gradients averaged on the straight way from the mean letters to the stretch, the genes being there."""

    def effects(letters: Tensor, tracks: Tensor | None) -> Tensor:
        end = target.network.embed(letters, tracks)
        start = without_letters(end)
        slope = mean_slope(lambda between: _slope(target, letters, between), start, end, settings.steps)
        return ((end - start) * slope).sum(dim=-1)

    return _by_batches(target, codes, effects)


def input_effects(target: LocatorTarget, codes: Codes) -> tuple[Floats, Floats]:
    """Gradient times input of one stretch: of its letters (n,), and of its tracks (T, n).

    Letters are compared with the mean letter, tracks with those of unknown genes.

    Parameters
    ----------
    target
        The score explained.
    codes
        (n,) letter codes.
    """
    with compute_precision(target.model.device, "fp32"):
        letters = target.letters_of(codes[None])
        end = target.network.embed(letters, target.tracks_of(1))
        start = without_letters(end)
        start[..., LETTERS:] = 0
        [effect] = ((end - start) * _slope(target, letters, end)).double().cpu().numpy()  # (L, 4 + T)
    inside = effect[target.phase : target.phase + len(codes)]
    return inside[:, :LETTERS].sum(axis=1), inside[:, LETTERS:].T


def _slope(target: LocatorTarget, letters: Tensor, embedded: Tensor) -> Tensor:
    """Gradient of the score with respect to the embedded letters and tracks: (N, L, 4 + T)."""
    return input_gradient(target.network, letters, target.of_logits, embedded, site=target.site)[0]


def _by_batches(
    target: LocatorTarget, codes: Codes, compute: Callable[[Tensor, Tensor | None], Tensor]
) -> Floats:
    """Scores (N, n) of the letters from those (N, L) of all that is read, some stretches at a time."""
    parts = []
    for rows in target.batches(codes):
        letters = target.letters_of(codes[rows])
        parts.append(target.of_tokens(compute(letters, target.tracks_of(len(letters))), codes.shape[1]))
    return np.concatenate(parts)
