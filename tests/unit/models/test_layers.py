"""Layers: heads, pooling, normalization, dropout."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from scipy.special import logsumexp, softmax

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.modelfile.networks import build_model
from seqray.models.batches import Dropout
from seqray.models.layers import ClassificationHead, LayerNorm, Pooling

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


NAN = float("nan")
STATES = torch.tensor(  # CLS, then letters 1 to 5; the second sequence has two
    [
        [[9.0, 9.0], [1.0, 5.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [5.0, 1.0]],
        [[8.0, 8.0], [6.0, 0.0], [4.0, 2.0], [NAN, NAN], [NAN, NAN], [NAN, NAN]],
    ]
).nan_to_num(1e6)
MASK = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])


def pooling(*parts, **settings):
    return Pooling(ModelConfig(pooling=parts, **settings))


@pytest.mark.parametrize(
    ("parts", "settings", "expected"),
    [
        (("cls",), {}, [[9.0, 9.0], [8.0, 8.0]]),
        (("mean",), {}, [[3.0, 3.0], [5.0, 1.0]]),
        (("max",), {}, [[5.0, 5.0], [6.0, 2.0]]),
        (("ends",), {"ends": 2}, [[1.5, 4.5, 4.5, 1.5], [5.0, 1.0, 5.0, 1.0]]),
        (("ends",), {"ends": 3, "stem": StemConfig(stride=3)}, [[1.0, 5.0, 5.0, 1.0], [6.0, 0.0, 4.0, 2.0]]),
        (("mean", "cls"), {}, [[3.0, 3.0, 9.0, 9.0], [5.0, 1.0, 8.0, 8.0]]),
    ],
)
def test_parts(parts, settings, expected):
    torch.testing.assert_close(pooling(*parts, **settings)(STATES, MASK), torch.tensor(expected))


def test_shares_are_the_mean_over_the_vectors():
    found = pooling("cls", "mean", "max")(STATES, MASK), pooling("cls", "mean", "max").shares(STATES, MASK)
    assert found[0].shape == (2, 6)
    first = [1 / 3, (1 / 5 + 1 / 2) / 3, 1 / 15, 1 / 15, 1 / 15, (1 / 5 + 1 / 2) / 3]
    second = [1 / 3, (1 / 2 + 1 / 2) / 3, (1 / 2 + 1 / 2) / 3, 0.0, 0.0, 0.0]
    torch.testing.assert_close(found[1], torch.tensor([first, second]))


TOKENS, WIDTH = 1 << 15, 16


def gradients(norm, given, wanted):
    norm(given).float().backward(wanted.float())
    return norm.weight.grad, norm.bias.grad


@pytest.mark.parametrize("place", [0, 1], ids=["weight", "bias"])
def test_gradients_over_many_tokens_are_those_of_float64(place):
    """Sums in bfloat16 would stop growing: torch's own norm loses nearly all of that of the bias."""
    torch.manual_seed(0)
    given = torch.randn(TOKENS, WIDTH).bfloat16()
    weights = torch.rand(TOKENS, WIDTH).bfloat16()
    exact = gradients(torch.nn.LayerNorm(WIDTH).double(), given.double(), weights.double())[place]
    with torch.autocast("cpu", torch.bfloat16):
        found = gradients(LayerNorm(WIDTH), given, weights)[place]
    torch.testing.assert_close(found.double(), exact, rtol=1e-3, atol=1e-2 * float(exact.norm()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_in_one_precision_it_is_that_of_torch(dtype):
    torch.manual_seed(1)
    given, own, other = torch.randn(9, WIDTH, dtype=dtype), LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
    own, other = own.to(dtype), other.to(dtype)
    assert torch.equal(own(given), other(given))
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(own(given), other(given))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.9])
def test_a_share_of_the_values_is_dropped_and_the_rest_scaled(p, dtype):
    torch.manual_seed(0)
    count, dropped = 200_003, round(256 * p) / 256  # no multiple of the 8 values of a random number
    found = Dropout(p)(torch.ones(count, dtype=dtype))
    zeros = int((found == 0).sum())
    assert abs(zeros - dropped * count) < 5 * math.sqrt(count * dropped * (1 - dropped))
    [scale] = set(found[found != 0].tolist())
    assert scale == pytest.approx(1 / (1 - dropped), rel=1e-6 if dtype == torch.float32 else 4e-3)


def test_neighbors_are_dropped_independently():
    torch.manual_seed(0)
    kept = (Dropout(0.5)(torch.ones(80_000)) != 0).view(-1, 8).float()
    correlations = torch.corrcoef(kept.T).fill_diagonal_(0)  # of the 8 values of a random number
    assert correlations.abs().max() < 5 / math.sqrt(len(kept))


def test_gradients_flow_through_what_is_kept():
    torch.manual_seed(0)
    x = torch.randn(7, 5, 3, requires_grad=True)
    found = Dropout(0.25)(x)
    found.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), found.detach())


@pytest.mark.parametrize("p", [0.0, 0.3])
def test_nothing_is_dropped_in_evaluation(p):
    x = torch.randn(100)
    assert torch.equal(Dropout(p).eval()(x), x)
    assert torch.equal(Dropout(0.0)(x), x)
    assert not Dropout(1.0)(x).any()
