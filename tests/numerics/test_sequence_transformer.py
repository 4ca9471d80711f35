"""The network as a whole, and its encoder against `transformers` with copied weights."""

import itertools
import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import BertConfig, BertModel, RobertaPreLayerNormConfig, RobertaPreLayerNormModel

from networks import random_network
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.modelfile.file import build_network
from seqray.models import layers
from seqray.models.alignment import AxialBlock, AxialContext
from seqray.models.attention import rotary_angles
from seqray.models.layers import Block, ConvolutionalStem
from seqray.models.locator import WindowedBlock
from seqray.models.sequence import SequenceTransformer

D = 12
CONFIG = ModelConfig(d_model=D, heads=3, layers=1, max_length=120, dropout=0.1)
STEM = StemConfig(kernels=(3, 7), stride=3, depth=1)
SHAPES: dict[str, dict[str, Any]] = {
    "sinusoidal": {},
    "learned": {"positions": "learned"},
    "rotary": {"positions": "rotary"},
    "grouped": {"kv_heads": 1},
    "stem": {"stem": STEM},
    "stem, learned": {"stem": STEM, "positions": "learned"},
    "gain": {"position_gain": "shared"},
    "stem, gain": {"stem": STEM, "position_gain": "shared"},
    "matrix": {"position_matrix": "shared"},
    "stem, gain, matrix": {"stem": STEM, "position_gain": "shared", "position_matrix": "shared"},
    "pooled": {"pooling": ("cls", "mean", "max")},
    "stem, pooled ends": {"stem": STEM, "ends": 7, "pooling": ("mean", "ends")},
    "composition": {"composition": ("whole", "ends", "pairs")},
    "stem, rotary, relu": {"stem": STEM, "positions": "rotary", "activation": "relu"},
}


def network(**settings: Any) -> SequenceTransformer:
    """A small one whose logits depend on every token."""
    defaults: dict[str, Any] = {"d_model": D, "heads": 3, "layers": 2, "classes": 3, "max_length": 120}
    return random_network(ModelConfig(**defaults | settings))


def random_tokens(batch: int, letters: int) -> Tensor:
    """CLS and letters."""
    return torch.cat((torch.full((batch, 1), 1), torch.randint(4, 8, (batch, letters))), dim=1)


# --- the stem -----------------------------------------------------------------------------------------


def stem_of(stride: int, kernels: tuple[int, ...] = (1, 5), depth: int = 1) -> ConvolutionalStem:
    return ConvolutionalStem(8, D, StemConfig(kernels=kernels, stride=stride, depth=depth), "gelu")


def test_the_stem_by_its_definition():
    """One letter at a time: convolutions with zeros beyond the ends, a residual one, neighbors merged."""
    stem, letters = stem_of(stride=2), torch.randint(4, 8, (7,))
    with torch.no_grad():
        x = [stem.letters.weight[letter] for letter in letters]

        def convolve(convolution: Any, x: list[Tensor], at: int) -> Tensor:
            total, half = convolution.bias.clone(), convolution.kernel_size[0] // 2
            for offset in range(-half, half + 1):
                if 0 <= at + offset < len(x):
                    total += convolution.weight[:, :, offset + half] @ x[at + offset]
            return total

        x = [F.gelu(torch.cat([convolve(c, x, i) for c in stem.detectors])) for i in range(7)]
        [residual] = stem.residual
        x = [x[i] + F.gelu(convolve(residual, x, i)) for i in range(7)]
        x.append(torch.zeros(D))  # seven letters by twos: the last token has one
        expected = [stem.merge.weight @ torch.cat((x[i], x[i + 1])) + stem.merge.bias for i in (0, 2, 4, 6)]
    tokens, mask = stem(letters[None], None)
    assert mask is None
    torch.testing.assert_close(tokens[0], torch.stack(expected))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("kernels", [(3, 9), (7,), (1, 5, 3)])
def test_the_detectors_as_one_product_are_convolutions_with_the_same_gradients(kernels, masked):
    stem, letters = stem_of(2, kernels=kernels), torch.randint(4, 8, (3, 30))
    mask = torch.arange(30) < torch.tensor([30, 11, 4])[:, None] if masked else None
    slope = torch.randn(3, 30, D)
    weights = [stem.letters.weight, *(p for d in stem.detectors for p in d.parameters())]
    vectors = stem.letters(letters) * (1 if mask is None else mask[..., None])
    by_convolution = torch.cat([detector(vectors) for detector in stem.detectors], dim=-1)
    by_product = stem.detect(letters, mask)
    torch.testing.assert_close(by_product, by_convolution)
    expected, found = (
        torch.autograd.grad((way * slope).sum(), weights) for way in (by_convolution, by_product)
    )
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-5)


def test_the_stem_in_bfloat16_trains_on_what_it_computes_in_evaluation():
    stem, letters = stem_of(3, kernels=(3, 9)), torch.randint(4, 8, (3, 30))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        trained, evaluated = stem.train()(letters, None)[0], stem.eval()(letters, None)[0]
    torch.testing.assert_close(trained, evaluated, atol=0.05, rtol=0.05)
    assert not torch.equal(trained, evaluated)


class Given(nn.Module):
    """Stands in for an embedding and returns the vectors that it was given."""

    def __init__(self, vectors: Tensor) -> None:
        super().__init__()
        self.vectors = vectors

    def forward(self, tokens: Tensor) -> Tensor:
        return self.vectors


@pytest.mark.parametrize(("kernel", "depth"), [(1, 0), (5, 0), (3, 1)])
@pytest.mark.parametrize("stride", [1, 3, 4])
def test_token_i_reads_its_letters_and_what_the_kernels_reach(stride, kernel, depth):
    """Token i reads letters [i·stride, (i+1)·stride) and half a kernel on each side."""
    N, reach = 14, kernel // 2 + depth * 2  # residual convolutions are 5 wide
    stem = stem_of(stride, kernels=(kernel,), depth=depth)
    vectors = torch.randn(1, N, 8, requires_grad=True)
    stem.letters = Given(vectors)  # pyright: ignore[reportAttributeAccessIssue]
    tokens, _ = stem(torch.zeros(1, N, dtype=torch.long), None)
    for i in range(tokens.shape[1]):
        [gradient] = torch.autograd.grad(tokens[0, i].sum(), vectors, retain_graph=True)
        read = [n for n in range(N) if bool((gradient[0, n] != 0).any())]
        assert read == list(range(max(0, i * stride - reach), min(N, (i + 1) * stride + reach)))


def test_cls_is_kept_out_of_the_convolutions():
    model, tokens = network(stem=STEM), random_tokens(1, 10)
    other = tokens.clone()
    other[0, 1:] = tokens[0, 1:].flip(0)
    x, y = model.embed(tokens)[0], model.embed(other)[0]
    assert x.shape == (1, 1 + 4, D)
    torch.testing.assert_close(x[:, 0], y[:, 0], rtol=0, atol=0)
    assert (x[:, 1:] != y[:, 1:]).any(dim=-1).all()


# --- what must change nothing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "block",
    [
        lambda: (Block(CONFIG), (3, 25, D), ()),
        lambda: (AxialBlock(CONFIG), (2, 5, 7, D), (AxialContext(),)),
        lambda: (WindowedBlock(CONFIG), (2, 29, D), (rotary_angles(torch.arange(29), D // 3),)),
    ],
    ids=["sequence", "alignment", "locator"],
)
@pytest.mark.parametrize("at_once", [1, 10, 2048])
def test_blocks_without_gradients_change_their_input_to_what_they_give_with_gradients(
    block, at_once, monkeypatch
):
    monkeypatch.setattr(layers, "TOKENS_AT_ONCE", at_once)
    layer, shape, others = block()
    x = torch.randn(shape)
    expected, _ = layer.eval()(x, *others)
    with torch.inference_mode():
        given = x.clone()
        found, _ = layer(given, *others)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(given, expected)


def test_dropout_rests_in_evaluation_and_works_in_training():
    model, tokens = network(dropout=0.5), random_tokens(2, 20)
    assert torch.equal(model(tokens).logits, model(tokens).logits)
    model.train()
    assert not torch.equal(model(tokens).logits, model(tokens).logits)


# --- attention maps -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SHAPES)
def test_attention_rows_sum_to_one_over_real_tokens(name):
    model, tokens = network(**SHAPES[name]), random_tokens(3, 25)
    mask = torch.arange(26) < torch.tensor([26, 11, 18])[:, None]
    steps = model(tokens, mask, return_attention=True).attention
    T = 1 + math.ceil(25 / (STEM.stride if "stem" in name else 1))
    assert len(steps) == 2
    for step in steps:
        assert step.axis == "sequence"
        assert step.weights.shape == (3, 3, T, T)
        assert step.mask is not None
        torch.testing.assert_close(step.weights.sum(-1), torch.ones(3, 3, T))
        padding = ~step.mask[:, None, None, :].expand_as(step.weights)
        assert padding.any()
        assert (step.weights[padding] == 0).all()


# --- coordinates ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sinusoidal", "rotary", "stem", "stem, rotary, relu"])
def test_coordinates_count_from_zero_by_default(name):
    """With a stem its tokens are numbered, so a coordinate for each letter goes up by a third."""
    model, tokens = network(**SHAPES[name]), random_tokens(2, 12)
    coordinates = torch.arange(13.0)
    if "stem" in name:
        coordinates[1:] = 1 + torch.arange(12) / STEM.stride
    torch.testing.assert_close(model(tokens, None, coordinates).logits, model(tokens).logits)
    torch.testing.assert_close(model(tokens, None, coordinates.expand(2, 13)).logits, model(tokens).logits)
    assert not torch.allclose(model(tokens, None, coordinates * 1.5).logits, model(tokens).logits)


# --- every combination of options -----------------------------------------------------------------------

STEMS = (None, StemConfig(), StemConfig(kernels=(1, 5, 9), stride=5, depth=2))
OPTIONS = list(
    itertools.product(("sinusoidal", "learned", "rotary"), (None, 1), ("relu", "gelu"), STEMS, (False, True))
)


@pytest.mark.parametrize(("positions", "kv_heads", "activation", "stem", "masked"), OPTIONS)
def test_every_combination_learns(positions, kv_heads, activation, stem, masked):
    """Forward and backward: finite gradients that reach every parameter."""
    model = network(
        positions=positions, kv_heads=kv_heads, activation=activation, stem=stem, dropout=0.1
    ).train()
    tokens = random_tokens(4, 21)
    mask = torch.arange(22) < torch.tensor([22, 3, 17, 9])[:, None] if masked else None
    loss = F.cross_entropy(model(tokens, mask).logits, torch.tensor([0, 1, 2, 0]))
    loss.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name
        assert bool((parameter.grad != 0).any()), name


@pytest.mark.parametrize("alphabet", ["dna", "protein"])
def test_words_of_letters(alphabet):
    model = network(alphabet=alphabet, tokenizer="kmer", k=2)
    top = 4 + {"dna": 16, "protein": 400}[alphabet]
    assert model(torch.tensor([[1, 4, top - 1]])).logits.shape == (1, 3)
    with pytest.raises(IndexError):
        model(torch.tensor([[1, top]]))


@pytest.mark.parametrize("shape", SHAPES)
def test_the_head_reads_the_final_states(shape):
    model = network(**SHAPES[shape])
    tokens = random_tokens(3, 40)
    states = model.states(tokens)
    assert states.shape == (3, 1 + math.ceil(40 / model.embedding.stride), D)
    read = model.pooling(states) if "pooled" in shape else states[:, 0]
    torch.testing.assert_close(model.head(read), model(tokens).logits)


WIDTH, HEADS, FEED_FORWARD, LAYERS, EPSILON = 32, 4, 80, 3, 1e-5  # ε of torch's LayerNorm
SIZES: dict[str, Any] = {
    "vocab_size": 8,
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "intermediate_size": FEED_FORWARD,
    "num_hidden_layers": LAYERS,
    "layer_norm_eps": EPSILON,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}


def randomize(model: Any) -> Any:
    """Weights of ordinary size, biases and norms included: their defaults of 0 and 1 would hide errors."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval().requires_grad_(False)


def copy_layer(block: Any, theirs: Any) -> None:
    """Weights of a BertLayer, or of one built like it, into a block."""
    attention = theirs.attention.self
    for kind in ("weight", "bias"):
        parts = [getattr(part, kind) for part in (attention.query, attention.key, attention.value)]
        getattr(block.attention.qkv, kind).data = torch.cat(parts)
    block.attention.out.load_state_dict(theirs.attention.output.dense.state_dict())
    block.feed_forward.up.load_state_dict(theirs.intermediate.dense.state_dict())
    block.feed_forward.down.load_state_dict(theirs.output.dense.state_dict())


def shape(activation):
    return ModelConfig(d_model=WIDTH, heads=HEADS, d_ff=FEED_FORWARD, activation=activation, dropout=0.0)


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Vectors (B, L, D), the mask (B, L), and the additive mask that `transformers` takes."""
    mask = torch.arange(13) < torch.tensor([13, 9, 4])[:, None]
    return torch.randn(3, 13, WIDTH), mask, torch.where(mask, 0.0, float("-inf"))[:, None, None, :]


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_the_sub_layers_are_those_of_bert(activation):
    bert = randomize(BertModel(BertConfig(**SIZES, hidden_act=activation)))
    layer = bert.encoder.layer[1]
    block = Block(shape(activation)).eval()
    copy_layer(block, layer)
    x, mask, additive = batch()
    heads, weights = layer.attention.self(x, additive)
    ours, our_weights = block.attention(x, mask, need_weights=True)
    torch.testing.assert_close(our_weights, weights)
    torch.testing.assert_close(ours, layer.attention.output.dense(heads))
    torch.testing.assert_close(block.attention(x, mask)[0], layer.attention.output.dense(heads))
    torch.testing.assert_close(block.feed_forward(x), layer.output.dense(layer.intermediate(x)))


def test_the_block_is_berts_parts_with_the_norms_in_front():
    bert = randomize(BertModel(BertConfig(**SIZES)))
    layer = bert.encoder.layer[0]
    first_norm, second_norm = layer.attention.output.LayerNorm, layer.output.LayerNorm
    block = Block(shape("gelu")).eval()
    copy_layer(block, layer)
    block.attention_norm.load_state_dict(first_norm.state_dict())
    block.feed_forward_norm.load_state_dict(second_norm.state_dict())
    x, mask, additive = batch()
    y = x + layer.attention.output.dense(layer.attention.self(first_norm(x), additive)[0])
    expected = y + layer.output.dense(layer.intermediate(second_norm(y)))
    torch.testing.assert_close(block(x, mask)[0], expected)
    torch.testing.assert_close(block(x, mask, cls_only=True)[0], expected[:, :1])


def test_the_whole_encoder_is_a_pre_norm_roberta():
    """Stacked blocks and the norm of the head, on the state of CLS."""
    theirs = randomize(RobertaPreLayerNormModel(RobertaPreLayerNormConfig(**SIZES, hidden_act="gelu")))
    config = ModelConfig(d_model=WIDTH, heads=HEADS, d_ff=FEED_FORWARD, layers=LAYERS, positions="rotary")
    ours: Any = build_network(config).eval()
    for block, layer in zip(ours.blocks, theirs.encoder.layer, strict=True):
        copy_layer(block, layer)
        block.attention_norm.load_state_dict(layer.attention.LayerNorm.state_dict())
        block.feed_forward_norm.load_state_dict(layer.intermediate.LayerNorm.state_dict())
    ours.head.norm.load_state_dict(theirs.LayerNorm.state_dict())
    tokens, mask = torch.randint(4, 8, (3, 13)), batch()[1]
    still = torch.zeros(3, 13)  # rotary positions that are all zero turn nothing: the blocks by themselves
    x, _, _ = ours.embed(tokens, mask, still)
    states = theirs.LayerNorm(theirs.encoder(x, attention_mask=batch()[2])[0])
    expected = ours.head.linear(states[:, 0])
    torch.testing.assert_close(ours(tokens, mask, still).logits, expected)
    torch.testing.assert_close(ours(tokens, mask, still, return_attention=True).logits, expected)
    with torch.inference_mode():
        torch.testing.assert_close(ours(tokens, mask, still).logits, expected)
