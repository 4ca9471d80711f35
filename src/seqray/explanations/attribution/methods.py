"""The methods by name: what each computes, for the letters of many sequences of one length."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from seqray.core import Codes, ConfigError, Floats
from seqray.explanations.attribution import backbones
from seqray.explanations.attribution.attention_rollout import (
    grad_rollout,
    rollout,
    value_rollout,
)
from seqray.explanations.attribution.forward_trace import trace
from seqray.explanations.attribution.gradients import input_x_gradient, integrated_gradients
from seqray.explanations.attribution.letters import shares, spread_over_spans, to_letters
from seqray.explanations.attribution.logodds import log_odds, score
from seqray.explanations.attribution.mutagenesis import (
    loss_of_letters,
    occlusion,
    substitution_effects,
)
from seqray.explanations.attribution.stem import spread
from seqray.explanations.options import LETTER_BLOCK, MethodSettings
from seqray.inference import compute_precision, micro_batch
from seqray.modelfile import SequenceNetwork, TrainedModel
from seqray.modelfile.backbones import BackboneTokenizer
from seqray.models import BackboneClassifier, ConvolutionalStem, SequenceTransformer
from seqray.models.tokenizers import OwnTokenizer


class AttributionTarget(NamedTuple):
    """What is explained: the log-odds of class ``target`` by one ``network`` of a ``model``."""

    model: TrainedModel
    network: SequenceNetwork
    target: int

    def of_logits(self, logits: Tensor) -> Tensor:
        """Logits (B, K) to log-odds (B,)."""
        return log_odds(logits.float(), self.target, self.model.card.temperature)

    def of_codes(self, codes: Codes) -> Floats:
        """Letter codes (N, n) to log-odds (N,)."""
        return score(self.model, self.network, codes, self.target)


@dataclass(frozen=True, slots=True)
class Method:
    """One way to score letters.

    Attributes
    ----------
    name
        As on the command line.
    signed
        Whether a score below 0 speaks against the class; if not, scores are shares that sum to 1.
    per_class
        Whether the scores depend on the class explained.
    compute
        (question, codes (N, n), settings) to scores (N, n).
    """

    name: str
    signed: bool
    per_class: bool
    compute: Callable[[AttributionTarget, Codes, MethodSettings], Floats]


Batchwise = Callable[[AttributionTarget, Tensor, MethodSettings], Tensor]
"""Tokens (B, L) to scores of the tokens: (B, L), or (B, T) after the stem."""


def _by_batches(
    question: AttributionTarget, codes: Codes, settings: MethodSettings, compute: Batchwise
) -> Floats:
    model = question.model
    size = micro_batch(model.card.model, codes.shape[1], model.device)
    result = np.empty(codes.shape)
    with compute_precision(model.device, "fp32"):
        for start in range(0, len(codes), size):
            part = codes[start : start + size]
            tokens = torch.from_numpy(model.tokenizer.encode_codes(part)).to(model.device)
            scores = compute(question, tokens, settings).double().cpu().numpy()
            merged = scores.shape[1] < tokens.shape[1]
            result[start : start + size] = letters_of(question.network, model, part, scores, merged=merged)
    return result


def letters_of(
    network: SequenceNetwork, model: TrainedModel, codes: Codes, scores: Floats, *, merged: bool = True
) -> Floats:
    """Carry scores (N, ..., L) of the tokens of codes (N, n) to the letters: (N, ..., n).

    ``merged`` says whether they are those behind the stem, where the network has one.
    """
    tokenizer = model.tokenizer
    if isinstance(network, BackboneClassifier):
        assert isinstance(tokenizer, BackboneTokenizer)
        return spread_over_spans(scores, [tokenizer.spans(row) for row in codes], codes.shape[1])
    assert isinstance(tokenizer, OwnTokenizer)
    return to_letters(scores, tokenizer, network.embedding.stride if merged else 1, codes.shape[1])


def _rollout(question: AttributionTarget, tokens: Tensor, settings: MethodSettings) -> Tensor:
    network = question.network
    if isinstance(network, BackboneClassifier):
        return backbones.rollout(network, tokens, settings.residual, settings.heads)
    relevance = rollout(trace(network, tokens), residual=settings.residual, heads=settings.heads)
    return _before_stem(network, tokens, relevance, settings)


def _value_rollout(question: AttributionTarget, tokens: Tensor, settings: MethodSettings) -> Tensor:
    check_methods(question.model, ["value-rollout"])
    network = question.network
    assert isinstance(network, SequenceTransformer)
    relevance = value_rollout(trace(network, tokens), residual=settings.residual)
    return _before_stem(network, tokens, relevance, settings)


def _grad_rollout(question: AttributionTarget, tokens: Tensor, settings: MethodSettings) -> Tensor:
    network = question.network
    if isinstance(network, BackboneClassifier):
        return backbones.grad_rollout(network, tokens, settings.residual, question.of_logits)
    traced = trace(network, tokens, gradients=True)
    relevance = grad_rollout(traced, question.of_logits(traced.logits), residual=settings.residual)
    return _before_stem(network, tokens, relevance, settings)


def _before_stem(
    network: SequenceTransformer, tokens: Tensor, relevance: Tensor, settings: MethodSettings
) -> Tensor:
    """Carry relevance (B, 1 + T) through the stem, where there is one that reads more than its stride."""
    stem = network.embedding
    if settings.spread == "span" or not isinstance(stem, ConvolutionalStem):
        return relevance
    return spread(relevance, stem, tokens, network.position_terms(tokens))


def _input_x_gradient(question: AttributionTarget, tokens: Tensor, _: MethodSettings) -> Tensor:
    network = question.network
    if isinstance(network, BackboneClassifier):
        return backbones.input_x_gradient(network, tokens, _letter_tokens(question), question.of_logits)
    return input_x_gradient(network, tokens, question.of_logits)


def _integrated_gradients(question: AttributionTarget, tokens: Tensor, settings: MethodSettings) -> Tensor:
    network = question.network
    if isinstance(network, BackboneClassifier):
        letters = _letter_tokens(question)
        return backbones.integrated_gradients(network, tokens, letters, question.of_logits, settings.steps)
    return integrated_gradients(network, tokens, question.of_logits, settings.steps)


def _letter_tokens(question: AttributionTarget) -> Tensor:
    tokenizer = question.model.tokenizer
    assert isinstance(tokenizer, BackboneTokenizer)
    return torch.from_numpy(tokenizer.letter_tokens).to(question.model.device)


def _shares_of(compute: Batchwise) -> Callable[[AttributionTarget, Codes, MethodSettings], Floats]:
    return lambda question, codes, settings: shares(_by_batches(question, codes, settings, compute))


def _signed(compute: Batchwise) -> Callable[[AttributionTarget, Codes, MethodSettings], Floats]:
    return lambda question, codes, settings: _by_batches(question, codes, settings, compute)


def effects(question: AttributionTarget, codes: Codes) -> Floats:
    """Change of the log-odds for every substitution: (N, n) codes to (N, n, A)."""
    return substitution_effects(codes, question.model.alphabet, question.of_codes)


def _ism(question: AttributionTarget, codes: Codes, _: MethodSettings) -> Floats:
    return loss_of_letters(effects(question, codes))


def _occlusion(question: AttributionTarget, codes: Codes, settings: MethodSettings) -> Floats:
    return occlusion(codes, question.model.alphabet, question.of_codes, block=settings.block or LETTER_BLOCK)


METHODS = {
    method.name: method
    for method in (
        Method("rollout", False, False, _shares_of(_rollout)),
        Method("grad-rollout", False, True, _shares_of(_grad_rollout)),
        Method("value-rollout", False, False, _shares_of(_value_rollout)),
        Method("input-x-gradient", True, True, _signed(_input_x_gradient)),
        Method("integrated-gradients", True, True, _signed(_integrated_gradients)),
        Method("ism", True, True, _ism),
        Method("occlusion", True, True, _occlusion),
    )
}


def check_methods(model: TrainedModel, names: Iterable[str]) -> None:
    """Refuse a method that can't be had of this kind of model.

    Raises
    ------
    ConfigError
        For the value-rollout of a model on a backbone.
    """
    if model.card.model.backbone is not None and "value-rollout" in names:
        raise ConfigError(
            f"value-rollout needs values that the backbone of model '{model.card.name}' does not show",
            remedy="use rollout or grad-rollout",
        )
