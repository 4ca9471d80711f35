"""From tokens after a convolutional stem back to the letters that they were made of.

A token of the stem stands for more than the letters under its stride: its convolutions read some letters to
both sides. Spread over the stride alone, the relevance of a token that has found a word of eight lands on
one to three of its letters. So it is spread over all that the token has read, in proportion to how much the
token changes when a letter gives way to the mean of all letters.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqray.models import ConvolutionalStem, PositionTerms
from seqray.models.tokenizers import FIRST_LETTER


@torch.no_grad()
def spread(
    relevance: Tensor, stem: ConvolutionalStem, tokens: Tensor, terms: PositionTerms | None = None
) -> Tensor:
    """Spread relevance over the letters that each token has read.

    Parameters
    ----------
    relevance
        (B, 1 + T) with CLS first.
    stem
        That made the T tokens.
    tokens
        (B, 1 + N) letter tokens with CLS first, none padded.
    terms
        What the letters count for at their places, where the model knows.

    Returns
    -------
    Tensor
        (B, 1 + N) with the same sums; CLS keeps its own.
    """
    weights, letters = sensitivities(stem, tokens[:, 1:], terms)  # (B, T, F), (T, F)
    shares = weights / weights.sum(dim=-1, keepdim=True)
    body = relevance[:, 1:, None] * shares
    count = tokens.shape[1] - 1
    result = relevance.new_zeros(len(tokens), count)
    result.index_add_(1, letters.clamp(0, count - 1).flatten(), body.flatten(1))
    return torch.cat((relevance[:, :1], result), dim=1)


def sensitivities(
    stem: ConvolutionalStem, letters: Tensor, terms: PositionTerms | None = None
) -> tuple[Tensor, Tensor]:
    """How much each token changes when one of the letters that it reads becomes the mean letter.

    Letters further apart than a token's field are not seen together by any token: every F-th letter is
    changed at once, and F passes of the stem tell all.

    Parameters
    ----------
    letters
        (B, N) tokens.
    terms
        What the letters count for at their places, where the model knows.

    Returns
    -------
    changes, places
        (B, T, F) norm of the change, and (T, F) the letter changed. Places beyond the ends have no weight.
        A token that nothing changes gets the same weight for each letter under its stride.
    """
    count, field, reach = letters.shape[1], stem.field, (stem.field - stem.stride) // 2
    vectors = stem.letters(letters)  # (B, N, width)
    mean = stem.letters.weight[FIRST_LETTER:].mean(dim=0)
    whole, _ = stem.read(vectors, None, terms)
    lowest = torch.arange(whole.shape[1], device=letters.device) * stem.stride - reach  # (T,)
    places = lowest[:, None] + torch.arange(field, device=letters.device)  # (T, F)
    changes = whole.new_zeros(*whole.shape[:2], field)
    for turn in range(min(field, count)):
        changed = vectors.clone()
        changed[:, turn::field] = mean
        difference = (stem.read(changed, None, terms)[0] - whole).float().norm(dim=-1)  # (B, T)
        changes.scatter_(2, ((turn - lowest) % field).expand_as(difference)[..., None], difference[..., None])
    inside = (places >= 0) & (places < count)
    own = (places >= lowest[:, None] + reach) & (places < lowest[:, None] + reach + stem.stride) & inside
    changes = changes * inside
    return torch.where(changes.sum(dim=-1, keepdim=True) > 0, changes, own.to(changes.dtype)), places
