"""The head adds the probabilities of the subclasses of a class."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, strategies as st
from scipy.special import logsumexp, softmax

from seqray.core.model_config import ModelConfig
from seqray.modelfile.networks import build_model
from seqray.models.layers import ClassificationHead

COUNTS = st.lists(st.integers(1, 4), min_size=2, max_size=4)


@given(COUNTS, st.integers(0, 1000))
def test_a_class_has_the_probability_of_all_its_subclasses(subclasses, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        head = ClassificationHead(6, ModelConfig(classes=len(subclasses), subclasses=tuple(subclasses)))
        pooled = 3 * torch.randn(5, 6)
        with torch.inference_mode():
            answer = head.answer(pooled)
    assert answer.subclasses is not None
    each = softmax(answer.subclasses.double().numpy(), axis=1)
    starts = np.cumsum([0, *subclasses])[:-1]
    expected = np.add.reduceat(each, starts, axis=1)
    np.testing.assert_allclose(softmax(answer.logits.double().numpy(), axis=1), expected, rtol=1e-5)


def test_a_network_with_subclasses_answers_both():
    network = build_model(ModelConfig(d_model=8, layers=1, heads=2, subclasses=(3, 1))).eval()
    output = network(torch.tensor([[1, 4, 5, 6]]))
    assert output.subclasses.shape == (1, 4)
    expected = logsumexp(output.subclasses[:, :3].detach().double().numpy(), axis=1)
    np.testing.assert_allclose(output.logits[:, 0].detach().numpy(), expected, rtol=1e-5)
