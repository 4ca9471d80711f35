"""Scores of the letters of sequences by each method: (target, codes (N, n), settings) to (N, n)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqray.core.arrays import Codes, Floats
from seqray.explanations import trace as gradients
from seqray.explanations.layers import Trace
from seqray.explanations.options import LETTER_BLOCK, MethodSettings, Spread
from seqray.explanations.rollout import attention_from_start
from seqray.explanations.targets import (
    AttributionTarget,
    LetterTarget,
    loss_of_letters,
    occlusion,
    shares,
    spread_by_sensitivity,
    spread_over_spans,
    substitution_effects,
    to_letters,
    token_batches,
)
from seqray.explanations.trace import trace
from seqray.modelfile.backbones import BackboneTokenizer
from seqray.modelfile.model import TrainedModel
from seqray.models.build import BackboneClassifier
from seqray.models.layers import ConvolutionalStem
from seqray.models.sequence import SequenceTransformer
from seqray.models.tokenizers import OwnTokenizer


def spread_relevance(
    target: AttributionTarget,
    codes: Codes,
    spread: Spread,
    relevance: Callable[[Trace[Any]], Tensor],
    *,
    gradients: bool = False,
) -> Floats:
    """Carry the relevance of tokens to the letters that they have read: (N, n).

    ``relevance`` maps a forward pass to the relevance of its tokens (N, T); with ``gradients`` the pass
    records its graph.
    """
    network = target.network
    stem = None if isinstance(network, BackboneClassifier) else network.embedding

    def of_tokens(tokens: Tensor) -> Tensor:
        found = relevance(trace(network, tokens, gradients=gradients))
        if spread == "span" or not isinstance(stem, ConvolutionalStem):
            return found
        assert isinstance(network, SequenceTransformer)
        return spread_by_sensitivity(found, stem, tokens, network.position_terms(tokens))

    return shares(_by_batches(target, codes, of_tokens))


def input_x_gradient(target: AttributionTarget, codes: Codes, _: MethodSettings) -> Floats:
    """Scores by `gradients.input_x_gradient`."""
    letters = _letter_tokens(target)
    return _by_batches(
        target,
        codes,
        lambda tokens: gradients.input_x_gradient(target.network, tokens, target.of_logits, letters),
    )


def integrated_gradients(target: AttributionTarget, codes: Codes, settings: MethodSettings) -> Floats:
    """Scores by `gradients.integrated_gradients`."""
    letters = _letter_tokens(target)
    return _by_batches(
        target,
        codes,
        lambda tokens: gradients.integrated_gradients(
            target.network, tokens, target.of_logits, letters, settings.steps
        ),
    )


def effects(target: LetterTarget, codes: Codes) -> Floats:
    """Change of the log-odds for every substitution: (N, n) codes to (N, n, A)."""
    return substitution_effects(codes, target.model.alphabet, target.of_codes)


def ism_scores(target: LetterTarget, codes: Codes, _: MethodSettings) -> Floats:
    """Scores by in-silico mutagenesis."""
    return loss_of_letters(effects(target, codes))


def occlusion_scores(target: LetterTarget, codes: Codes, settings: MethodSettings) -> Floats:
    """Scores by occlusion with shuffled letters."""
    return occlusion(codes, target.model.alphabet, target.of_codes, block=settings.block or LETTER_BLOCK)


def letter_attention(model: TrainedModel, codes: Codes) -> Floats:
    """Attention of CLS, or of all tokens that the head reads, to the letters: (N, layers, heads, n).

    The mean over the members.
    """
    members = []
    for network in model.sequence_networks:
        target = AttributionTarget(model, network, 0)
        members.append(
            _by_batches(target, codes, lambda tokens, n=network: attention_from_start(trace(n, tokens)))
        )
    return np.mean(members, axis=0)


def _by_batches(target: AttributionTarget, codes: Codes, compute: Callable[[Tensor], Tensor]) -> Floats:
    """Scores of tokens, (B, L) to (B, ..., L) or to (B, ..., T) behind a stem, as scores of the letters."""
    parts = []
    for rows, tokens in token_batches(target.model, codes):
        scores = compute(tokens).double().cpu().numpy()
        parts.append(_of_letters(target, codes[rows], scores, scores.shape[-1] < tokens.shape[1]))
    return np.concatenate(parts)


def _of_letters(target: AttributionTarget, codes: Codes, scores: Floats, merged: bool) -> Floats:
    """Carry scores (N, ..., L) of the tokens of codes (N, n) to the letters: (N, ..., n)."""
    tokenizer, network = target.model.tokenizer, target.network
    if isinstance(network, BackboneClassifier):
        assert isinstance(tokenizer, BackboneTokenizer)
        return spread_over_spans(scores, [tokenizer.spans(row) for row in codes], codes.shape[1])
    assert isinstance(tokenizer, OwnTokenizer)
    return to_letters(scores, tokenizer, network.embedding.stride if merged else 1, codes.shape[1])


def _letter_tokens(target: AttributionTarget) -> Tensor | None:
    """Tokens of a backbone that encode letters; None for own networks."""
    tokenizer = target.model.tokenizer
    if not isinstance(tokenizer, BackboneTokenizer):
        return None
    return torch.from_numpy(tokenizer.letter_tokens).to(target.model.device)
