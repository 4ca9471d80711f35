"""Gradients against finite differences, completeness, and captum."""

from __future__ import annotations

import pytest
import torch
from captum.attr import IntegratedGradients

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.explanations.trace import embedding_of, input_x_gradient, integrated_gradients, trace
from seqray.models.build import build_model

SHAPES = [{}, {"stem": StemConfig(kernels=(3, 5), stride=3)}, {"tokenizer": "kmer", "k": 2}]


def make(shape, letters: int = 24):
    torch.manual_seed(3)
    network = build_model(ModelConfig(d_model=16, layers=2, heads=2, max_length=40, **shape)).eval()
    network.requires_grad_(False)
    tokens = torch.randint(4, len(embedding_of(network).weight), (3, 1 + letters))
    tokens[:, 0] = 1
    return network, tokens


def target(logits):
    return logits[:, 1] - logits[:, 0]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_input_x_gradient_is_the_slope_towards_the_mean_letter(shape):
    """Finite difference: move one token a little from its own vector towards the mean of all letters'."""
    network, tokens = make(shape)
    network.double()
    table = embedding_of(network).weight
    vectors = table[tokens[:, 1:]]
    found = input_x_gradient(network, tokens, target)
    assert (found[:, 0] == 0).all()
    for place in (0, 7, 23):
        step = torch.zeros_like(vectors)
        step[:, place] = 1e-5 * (vectors[:, place] - table[4:].mean(0))
        ends = [target(trace(network, tokens, embedded=vectors + sign * step).logits) for sign in (1, -1)]
        torch.testing.assert_close(found[:, 1 + place], (ends[0] - ends[1]) / 2e-5, atol=1e-7, rtol=1e-4)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integrated_gradients_are_complete(shape):
    network, tokens = make(shape)
    table = embedding_of(network).weight
    even = table[4:].mean(0).expand(3, tokens.shape[1] - 1, -1)
    change = target(network(tokens).logits) - target(trace(network, tokens, embedded=even).logits)
    found = integrated_gradients(network, tokens, target, steps=300)
    torch.testing.assert_close(found.sum(1), change, atol=1e-4, rtol=1e-3)


def test_integrated_gradients_are_those_of_captum():
    network, tokens = make({})
    table = embedding_of(network).weight
    vectors = table[tokens[:, 1:]]

    def forward(embedded):
        handle = network.embedding.table.register_forward_hook(lambda *_: embedded)
        try:
            rows = torch.zeros(len(embedded), tokens.shape[1], dtype=torch.int64)
            return target(network(rows).logits)
        finally:
            handle.remove()

    even = table[4:].mean(0).expand_as(vectors)
    peer = IntegratedGradients(forward).attribute(vectors, even, n_steps=16, method="riemann_middle")
    found = integrated_gradients(network, tokens, target, steps=16)
    torch.testing.assert_close(found[:, 1:], peer.sum(-1), atol=1e-5, rtol=1e-4)


def test_an_ambiguous_letter_has_no_effect_of_its_own():
    network, tokens = make({})
    tokens[:, 5] = 3
    for method in (input_x_gradient, integrated_gradients):
        assert (method(network, tokens, target)[:, 5] == 0).all()
