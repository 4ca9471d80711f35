"""The head adds the probabilities of the kinds of a class."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.special import logsumexp, softmax

from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.models.build import build_model
from seqray.models.layers import ClassificationHead

KINDS = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@given(KINDS, st.integers(0, 1000))
def test_a_class_has_the_probability_of_all_its_kinds(kinds, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = ClassificationHead(6, ModelConfig(classes=len(kinds), kinds=tuple(kinds)))
        pooled = 3 * torch.randn(5, 6)
        with torch.inference_mode():
            answer = head.answer(pooled)
    assert answer.kinds is not None
    each = softmax(answer.kinds.double().numpy(), axis=1)
    starts = np.cumsum([0, *kinds])[:-1]
    expected = np.add.reduceat(each, starts, axis=1)
    np.testing.assert_allclose(softmax(answer.logits.double().numpy(), axis=1), expected, rtol=1e-5)


def test_values_on_paper():
    head = ClassificationHead(2, ModelConfig(classes=2, kinds=(2, 1)))
    with torch.no_grad():
        head.linear.weight.zero_()
        head.linear.bias.copy_(torch.tensor([1.0, 2.0, 3.0]))
    logits = head(torch.zeros(1, 2)).detach()
    torch.testing.assert_close(logits, torch.tensor([[np.log(np.e + np.e**2), 3.0]], dtype=torch.float32))


def test_a_network_without_kinds_answers_none():
    network = build_model(ModelConfig(d_model=8, layers=1, heads=2)).eval()
    output = network(torch.tensor([[1, 4, 5, 6]]))
    assert output.kinds is None
    assert output.logits.shape == (1, 2)


def test_a_network_with_kinds_answers_both():
    network = build_model(ModelConfig(d_model=8, layers=1, heads=2, kinds=(3, 1))).eval()
    output = network(torch.tensor([[1, 4, 5, 6]]))
    assert output.kinds.shape == (1, 4)
    expected = logsumexp(output.kinds[:, :3].detach().double().numpy(), axis=1)
    np.testing.assert_allclose(output.logits[:, 0].detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"kinds": (2,)}, "'model.kinds' has one number for each class"),
        ({"kinds": (0, 1)}, "'model.kinds' are numbers of 1 and more"),
        ({"kinds": (1 << 16, 1)}, "'model.kinds' are at most 65536 together"),
        (
            {"kinds": (1,), "kind": "locator", "classes": 1, "positions": "rotary"},
            "'model.kinds' is not for 'model.kind: locator'; leave it out",
        ),
    ],
)
def test_kinds_that_fit_no_network_are_refused(settings, text):
    with pytest.raises(ConfigError, match=text):
        ModelConfig(**settings)
