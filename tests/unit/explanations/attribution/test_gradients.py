"""Gradients against finite differences, completeness, and captum."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.explanations.targets import SequenceTarget
from seqray.explanations.trace import embedding_of, trace
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import build_model

SHAPES = [{}, {"stem": StemConfig(kernels=(3, 5), stride=3)}, {"tokenizer": "kmer", "k": 2}]
CODES = np.random.default_rng(3).integers(0, 4, (3, 24)).astype(np.uint8)


@pytest.fixture
def make(tiny_model):
    """Make a target of a network of some shape, and the tokens of `CODES` with their vectors."""

    def of_shape(shape):
        torch.manual_seed(3)
        config = ModelConfig(d_model=16, layers=2, heads=2, max_length=40, **shape)
        model = TrainedModel(replace(tiny_model.card, model=config, members=1), (build_model(config),))
        tokens = torch.from_numpy(model.tokenizer.encode_codes(CODES))
        table = embedding_of(model.networks[0]).weight
        return SequenceTarget(model, model.networks[0], 1), tokens, table[tokens[:, 1:]], table[4:].mean(0)

    return of_shape


def score(target, tokens, vectors):
    return target.of_logits(trace(target.network, tokens, embedded=vectors).logits)


@pytest.mark.parametrize("shape", SHAPES[:2], ids=str)
def test_input_x_gradient_is_the_slope_towards_the_mean_letter(make, shape):
    """Finite difference: move one token a little from its own vector towards the mean of all letters'."""
    target, tokens, vectors, mean = make(shape)
    found = target.effects(CODES)
    for place in (0, 7, 23):
        step = torch.zeros_like(vectors)
        step[:, place] = 0.02 * (vectors[:, place] - mean)
        ahead, back = (score(target, tokens, vectors + sign * step) for sign in (1, -1))
        np.testing.assert_allclose(found[:, place], (ahead - back) / 0.04, atol=2e-4, rtol=2e-3)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_integrated_gradients_are_complete(make, shape):
    target, tokens, vectors, mean = make(shape)
    change = score(target, tokens, vectors) - score(target, tokens, mean.expand_as(vectors))
    np.testing.assert_allclose(target.effects(CODES, 300).sum(1), change, atol=1e-4, rtol=1e-3)


def test_integrated_gradients_are_those_of_captum(make):
    target, tokens, vectors, mean = make({})

    def forward(embedded):
        handle = target.network.embedding.table.register_forward_hook(lambda *_: embedded)
        try:
            rows = torch.zeros(len(embedded), tokens.shape[1], dtype=torch.int64)
            return target.of_logits(target.network(rows).logits)
        finally:
            handle.remove()

    even = mean.expand_as(vectors)
    peer = IntegratedGradients(forward).attribute(vectors, even, n_steps=16, method="riemann_middle")
    np.testing.assert_allclose(target.effects(CODES, 16), peer.sum(-1), atol=1e-5, rtol=1e-4)


def test_an_ambiguous_letter_has_no_effect_of_its_own(make):
    codes = CODES.copy()
    codes[:, 4] = 4
    for steps in (0, 8):
        assert (make({})[0].effects(codes, steps)[:, 4] == 0).all()
