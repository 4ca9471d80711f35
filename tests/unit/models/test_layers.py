"""Layers, and the networks that are built of them."""

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st
from scipy.special import logsumexp, softmax
from torch import nn

from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.modelfile.file import build_network
from seqray.models.attention import LearnedPositions, MultiHeadAttention
from seqray.models.axial import RowAttention
from seqray.models.batches import Dropout
from seqray.models.layers import ClassificationHead, LayerNorm, Pooling
from seqray.models.prefilter import KERNEL, NARROW, STRIDE, WIDE, Prefilter, prefilter_shapes
from seqray.models.sequence import OwnNetwork
from seqray.models.tokenizers import CharacterTokenizer, make_tokenizer


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: MultiHeadAttention(16, 5), "'heads' must divide 'd_model' 16, and is 5"),
        (lambda: MultiHeadAttention(16, 4, 3), "'kv_heads' must divide 'heads' 4, and is 3"),
        (lambda: MultiHeadAttention(4, 2)(torch.zeros(1, 3, 4), torch.ones(1, 3)), "of torch.float32"),
        (lambda: MultiHeadAttention(4, 2)(torch.zeros(3, 4)), r"shape \(3, 4\) is not \(B, L, D\)"),
        (lambda: RowAttention(4, 2, tied=True)(torch.zeros(3, 3, 4)), r"is not \(B, R, C, D\)"),
        (lambda: LearnedPositions(20, 4)(30), "'length' is 30, and positions were made for 20 tokens"),
        (lambda: CharacterTokenizer("dnaa"), "unknown alphabet 'dnaa'; give dna, rna, protein"),
        (lambda: OwnNetwork(ModelConfig(), nn.Embedding(9, 2))(torch.ones(3, 5, dtype=torch.int64)),
         r"returns \(3, 5, 2\) for tokens \(3, 5\); return logits \(B, K\), here \(3, 2\)"),
    ],
)  # fmt: skip
def test_dimensions_that_do_not_fit_are_refused_in_a_line(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


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
    network = build_network(ModelConfig(d_model=8, layers=1, heads=2, subclasses=(3, 1))).eval()
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


CONFIGS: dict[str, ModelConfig] = {
    "dna": ModelConfig(),
    "rna": ModelConfig(alphabet="rna"),
    "protein": ModelConfig(alphabet="protein"),
    "dna words": ModelConfig(tokenizer="kmer", k=3),
    "protein words": ModelConfig(alphabet="protein", tokenizer="kmer", k=2),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_table_has_a_row_for_every_token(name):
    assert build_network(CONFIGS[name]).vocabulary == make_tokenizer(CONFIGS[name]).vocab_size


BLOCK = {
    "attention_norm.weight": (12,),
    "attention_norm.bias": (12,),
    "attention.qkv.weight": (20, 12),  # three query heads and one of keys and of values, 4 wide
    "attention.qkv.bias": (20,),
    "attention.out.weight": (12, 12),
    "attention.out.bias": (12,),
    "feed_forward_norm.weight": (12,),
    "feed_forward_norm.bias": (12,),
    "feed_forward.up.weight": (30, 12),
    "feed_forward.up.bias": (30,),
    "feed_forward.down.weight": (12, 30),
    "feed_forward.down.bias": (12,),
}
HEAD = {
    "head.norm.weight": (12,),
    "head.norm.bias": (12,),
    "head.linear.weight": (3, 12),
    "head.linear.bias": (3,),
}
STEM = {
    "embedding.letters.weight": (8, 8),
    "embedding.detectors.0.weight": (6, 8, 3),
    "embedding.detectors.0.bias": (6,),
    "embedding.detectors.1.weight": (6, 8, 7),
    "embedding.detectors.1.bias": (6,),
    "embedding.residual.0.weight": (12, 12, 5),
    "embedding.residual.0.bias": (12,),
    "embedding.merge.weight": (12, 48),
    "embedding.merge.bias": (12,),
}
SMALL: dict[str, Any] = {"d_model": 12, "heads": 3, "kv_heads": 1, "d_ff": 30, "layers": 2, "classes": 3}


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in build_network(config).state_dict().items()}


def expected_shapes(embedding: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    blocks = {f"blocks.{i}.{name}": shape for i in range(2) for name, shape in BLOCK.items()}
    return {"cls": (12,)} | embedding | blocks | HEAD


def test_names_and_shapes_in_a_model_file():
    """A change here makes earlier model files unreadable."""
    assert shapes(ModelConfig(**SMALL)) == expected_shapes({"embedding.table.weight": (8, 12)})


def test_names_and_shapes_with_a_stem_and_learned_positions():
    stem = StemConfig(kernels=(3, 7), stride=4, depth=1)
    config = ModelConfig(**SMALL, stem=stem, positions="learned", max_length=10)
    rows = 1 + 3  # CLS, and 10 letters by fours
    assert shapes(config) == expected_shapes(STEM | {"positions.table.weight": (rows, 12)})


WINDOW, LETTERS, CONTEXTS = 22, 4, 2


def make(window=WINDOW, seed=0, size=NARROW):
    rng = np.random.default_rng(seed)
    shapes = prefilter_shapes(window, LETTERS, CONTEXTS, size)
    return Prefilter(
        {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}, window
    )


def by_convolution(prefilter, codes, context):
    """One window, by torch's convolution of one-hot letters."""
    w = {name: torch.from_numpy(value) for name, value in prefilter.weights.items()}
    one_hot = F.one_hot(torch.from_numpy(codes.astype(np.int64)), LETTERS + 1)[:, :LETTERS].float()
    found = F.conv1d(one_hot.T[None], w["convolution"].permute(2, 1, 0), w["convolution_bias"], stride=STRIDE)
    gained = F.relu(found)[0].T * w["gain"][context]  # (J, C)
    hidden = F.relu(torch.einsum("jc,jch->h", gained, w["first"]) + w["first_bias"][context])
    hidden = F.relu(hidden @ w["second"] + w["second_bias"])
    return float(hidden @ w["out"] + w["out_bias"][context])


@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.parametrize("window", [KERNEL, WINDOW, 81])
def test_every_window_gets_what_a_convolution_gives(window, size):
    prefilter = make(window, size=size)
    codes = np.random.default_rng(1).integers(0, LETTERS + 1, window + 30).astype(np.uint8)
    for context in range(CONTEXTS + 1):
        expected = [by_convolution(prefilter, codes[i : i + window], context) for i in range(31)]
        assert prefilter.log_odds(codes, context) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@settings(max_examples=25, deadline=None)
@given(length=st.integers(WINDOW, 9000), cut=st.integers(0, 9000), seed=st.integers(0, 99))
def test_where_a_strand_is_cut_changes_nothing(length, cut, seed):
    prefilter = make(seed=seed)
    codes = np.random.default_rng(seed).integers(0, LETTERS + 1, length).astype(np.uint8)
    cut = cut % (length - WINDOW + 1)
    whole = prefilter.log_odds(codes, 1)
    assert whole.shape == (length - WINDOW + 1,)
    assert (prefilter.log_odds(codes[cut:], 1) == whole[cut:]).all()  # to the last bit


@given(count=st.integers(1, 2000), seed=st.integers(0, 99))
def test_a_window_has_the_same_answer_in_a_strand_and_alone(count, seed):
    prefilter = make(seed=seed, size=(WIDE, NARROW)[seed % 2])
    codes = np.random.default_rng(seed).integers(0, LETTERS + 1, count + WINDOW - 1).astype(np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(codes, WINDOW)
    order = np.random.default_rng(seed).permutation(count)
    assert (prefilter.window_log_odds(windows[order], 2) == prefilter.log_odds(codes, 2)[order]).all()
