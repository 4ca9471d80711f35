"""Rollout of weights from anywhere, and of networks that seqray does not know, against explicit matrices."""

import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn
from transformers import BertConfig, BertModel, GPT2Config, GPT2Model

import seqray
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.explanations import trace as forward_trace
from seqray.modelfile.file import build_network
from seqray.models.attention import MultiHeadAttention, WindowedAttention, rotary_angles

B, H, L, D = 2, 3, 7, 12


def random_weights(rng, *shape):
    """Rows that sum to 1, sharp enough that a wrong order of the layers shows."""
    terms = np.exp(3 * rng.normal(size=shape))
    return terms / terms.sum(-1, keepdims=True)


def product(matrices, residual=0.5):
    """The product of w I + (1 - w) A over layers, the first rightmost: (B, L, L).

    A query that attends to nothing keeps its relevance.
    """
    eye = np.eye(matrices[0].shape[-1])
    joint = eye[None]
    for matrix in matrices:
        sums = matrix.sum(-1, keepdims=True)
        matrix = np.where(sums > 0, matrix / np.where(sums > 0, sums, 1), eye)
        joint = (residual * eye + (1 - residual) * matrix) @ joint
    return joint


# --- Weights that are given


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 99),
    st.sampled_from([0.0, 0.3, 0.5]),
    st.sampled_from(["mean", "max", "min"]),
    st.booleans(),
)
def test_rollout_of_given_weights_is_the_product_of_matrices(seed, residual, heads, torches):
    rng = np.random.default_rng(seed)
    layers = [random_weights(rng, B, 1 + seed % 3, L, L) for _ in range(3)]
    fused = [getattr(layer, heads)(axis=1) for layer in layers]
    expected = product(fused, residual)
    for query in (0, 3, -1):
        weights = [torch.from_numpy(layer).float() for layer in layers] if torches else layers
        found = seqray.rollout(weights, query=query, residual=residual, heads=heads)
        assert isinstance(found, torch.Tensor) == torches
        np.testing.assert_allclose(found, expected[:, query], atol=1e-6, rtol=0)


def test_weights_without_heads_and_a_stack_of_layers_are_weights_too():
    weights = random_weights(np.random.default_rng(0), 3, B, L, L)
    expected = product(list(weights))[:, 0]
    for form in (list(weights), torch.from_numpy(weights)[:, :, None], weights[:, :, None]):
        np.testing.assert_allclose(seqray.rollout(form), expected, atol=1e-12)


def test_padding_gets_nothing_and_a_record_does_not_depend_on_it():
    rng = np.random.default_rng(1)
    layers = [random_weights(rng, B, H, L, L) for _ in range(3)]
    mask = np.arange(L) < np.array([[L], [4]])
    found = seqray.rollout(layers, mask)
    assert (found[~mask] == 0).all()
    np.testing.assert_allclose(found.sum(1), 1, atol=1e-12)
    cut = [layer[1:, :, :4, :4].mean(1) for layer in layers]
    np.testing.assert_allclose(found[1, :4], product(cut)[0, 0], atol=1e-12)
    mean = seqray.rollout(layers, mask, query=mask)
    np.testing.assert_allclose(mean[1, :4], product(cut)[0].mean(0), atol=1e-12)


def test_gradients_choose_the_weights_that_raise_the_score():
    rng = np.random.default_rng(2)
    layers = [random_weights(rng, B, H, L, L) for _ in range(3)]
    slopes = [rng.normal(size=layer.shape) for layer in layers]
    expected = product([np.maximum(a * g, 0).mean(1) for a, g in zip(layers, slopes, strict=True)])[:, 0]
    np.testing.assert_allclose(seqray.rollout(layers, gradients=slopes), expected, atol=1e-12)


def test_values_weigh_keys_by_the_norm_of_what_they_add():
    rng = np.random.default_rng(3)
    layers = [random_weights(rng, B, H, L, L) for _ in range(3)]
    values = [rng.normal(size=(B, H, L, D)) for _ in layers]
    added = [np.einsum("bhqk,bhkd->bqkd", a, v) for a, v in zip(layers, values, strict=True)]
    expected = product([np.linalg.norm(one, axis=-1) for one in added])[:, 0]
    np.testing.assert_allclose(seqray.rollout(layers, values=values), expected, atol=1e-9)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("by", ["weights", "gradients"])
def test_rows_and_columns_of_an_alignment_are_one_product_of_large_matrices(tied, by):
    """Of the cells (R C, R C): along a row, cells of other rows get nothing, and so for columns."""
    rng, R, C = np.random.default_rng(4), 3, 5
    rows = [random_weights(rng, B, H, *(() if tied else (R,)), C, C) for _ in range(2)]
    columns = [random_weights(rng, B, H, C, R, R) for _ in range(2)]
    weights = [rows[0], columns[0], rows[1], columns[1]]
    slopes = [rng.normal(size=layer.shape) for layer in weights]
    matrices = []
    for number, (layer, slope) in enumerate(zip(weights, slopes, strict=True)):
        mean = (np.maximum(layer * slope, 0) if by == "gradients" else layer).mean(1)
        large = np.zeros((B, R, C, R, C))
        for r in range(R):
            for c in range(C):
                if number % 2:
                    large[:, r, c, :, c] = mean[:, c, r]
                else:
                    large[:, r, c, r, :] = mean[:, c] if tied else mean[:, r, c]
        matrices.append(large.reshape(B, R * C, R * C))
    expected = product(matrices)
    extra = {"gradients": slopes} if by == "gradients" else {}
    along = ["row", "column"] * 2
    found = seqray.rollout(weights, along=along, **extra)
    np.testing.assert_allclose(found, expected[:, 0].reshape(B, R, C), atol=1e-12)
    found = seqray.rollout(weights, along=along, query=(1, 2), **extra)
    np.testing.assert_allclose(found, expected[:, C + 2].reshape(B, R, C), atol=1e-12)
    if by == "weights":
        mask = np.ones((B, R, C))
        mask[:, -1], mask[:, :, -1] = 0, 0
        masked = seqray.rollout(weights, mask, along=along)
        assert (masked[mask == 0] == 0).all()
        np.testing.assert_allclose(masked.sum((1, 2)), 1, atol=1e-12)


EVEN = np.full((B, H, L, L), 1 / L)


@pytest.mark.parametrize(
    ("weights", "options", "words"),
    [
        ([], {}, "no attention weights"),
        (None, {}, "no attention weights"),  # of a model of transformers that is not 'eager'
        ((None, None), {}, "no attention weights"),
        (EVEN, {}, r"one array \(.*\), not a list; give \[weights\] if it is one layer"),
        (torch.from_numpy(EVEN), {}, r"one array .* list\(weights\) if its first axis is the layers"),
        (EVEN[:, :, None], {"along": ["row"]}, r"one array"),  # an alignment whose rows share the weights
        ([EVEN, np.full((B, H, L, L + 1), 0.1)], {}, "layer 2"),
        ([EVEN, np.concatenate([EVEN, EVEN])], {}, "layer 2"),
        ([EVEN, np.random.default_rng(0).normal(size=EVEN.shape) / 9], {}, "layer 2 are no shares"),
        ([EVEN * np.nan], {}, "layer 1 are no shares"),
        ([np.arange(B * L * L).reshape(B, L, L)], {}, "layer 1 are no shares"),
        ([EVEN], {"mask": np.ones((B, L + 1))}, "the mask"),
        ([EVEN], {"mask": np.zeros((B, L))}, "padding"),
        ([EVEN], {"along": ["diagonal"]}, "along"),
        ([EVEN], {"residual": 1.5}, "residual"),
        ([EVEN], {"query": 9}, "the query 9 doesn't fit the 7 tokens"),
        ([EVEN], {"query": (0, 1)}, r"the query \(0, 1\) doesn't fit"),
        ([EVEN], {"query": [0, 3]}, r"of shape \(2,\) doesn't fit"),
        ([EVEN], {"query": torch.tensor(3)}, r"of shape \(\) doesn't fit"),
        ([EVEN], {"query": [-1, 2, 0, 0, 0, 0, 0]}, "doesn't fit"),
        ([EVEN], {"along": ["row"], "query": 1}, "the query 1 doesn't fit the 1 x 7 tokens"),
        ([EVEN], {"gradients": []}, "'gradients' don't fit"),
        ([EVEN], {"values": [np.ones((B, H, L + 1, D))]}, "'values' don't fit"),
    ],
)
def test_weights_that_do_not_fit_are_refused(weights, options, words):
    with pytest.raises(ConfigError, match=words):
        seqray.rollout(weights, **options)


# --- Networks that seqray does not know


class Own(nn.Module):
    """A network as researchers write it; with ``shown`` it gives its weights itself.

    It reads the first token, or the mean by the ``shares`` of the tokens.
    """

    shares = None

    def __init__(self, layers=3, **options):
        super().__init__()
        self.letters = nn.Embedding(6, D)
        self.attention = nn.ModuleList(
            nn.MultiheadAttention(D, H, dropout=0.4, **options) for _ in range(layers)
        )
        self.wide = nn.ModuleList(nn.Linear(D, D) for _ in range(layers))
        self.out = nn.Linear(D, 2)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.mul_(2.5)

    def forward(self, tokens, padding=None, shown=False):
        x, weights = self.letters(tokens), []
        for attention, wide in zip(self.attention, self.wide, strict=True):
            y, w = attention(
                x, x, x, key_padding_mask=padding, need_weights=shown, average_attn_weights=not shown
            )
            x = x + y
            x = x + torch.tanh(wide(x))
            weights.append(w)
        return (self.answer(x), weights) if shown else self.answer(x)

    def answer(self, x):
        return self.out(x[:, 0] if self.shares is None else (x * self.shares[..., None]).sum(1))


@pytest.fixture
def tokens():
    return torch.randint(0, 6, (B, L))


def padding():
    return torch.arange(L) >= torch.tensor([[L], [L - 2]])


@pytest.mark.parametrize("shown", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_an_own_network_is_traced_and_left_as_it_is(tokens, padded, shown):
    network = Own(batch_first=True).train()
    mask = padding() if padded else None
    traced = seqray.trace(network, {"tokens": tokens, "padding": mask, "shown": shown})
    by_name = seqray.trace(network, tokens, padding=mask, shown=shown)
    torch.testing.assert_close(by_name.logits, traced.logits)
    assert network.training
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
    with torch.no_grad():
        logits, weights = network.eval()(tokens, mask, shown=True)
    torch.testing.assert_close(traced.logits, logits, atol=1e-6, rtol=1e-5)
    expected = product([w.double().mean(1).numpy() for w in weights])[:, 0]
    np.testing.assert_allclose(seqray.rollout(traced), expected, atol=1e-6, rtol=0)
    np.testing.assert_allclose(seqray.rollout(weights), expected, atol=1e-6, rtol=0)


def raising(weights, slopes):
    """Mean over heads of the weights whose growth raises a score, times their gradient."""
    pairs = zip(weights, slopes, strict=True)
    return [(w * g).clamp(min=0).mean(1).detach().double().numpy() for w, g in pairs]


def explicit(network, tokens):
    """The same network by hand: its logits, weights and values times output matrix, for autograd."""
    x, weights, added = network.letters(tokens), [], []
    for attention, wide in zip(network.attention, network.wide, strict=True):
        of_torch = isinstance(attention, nn.MultiheadAttention)
        joint = attention if of_torch else attention.qkv
        inner = (joint.in_proj_weight, joint.in_proj_bias) if of_torch else (joint.weight, joint.bias)
        out = attention.out_proj if of_torch else attention.out
        G = (len(inner[0]) - D) // 2 * H // D  # heads of keys and values
        parts = nn.functional.linear(x, *inner).split([D, G * D // H, G * D // H], dim=-1)
        q, k, v = (part.view(B, L, -1, D // H).transpose(1, 2) for part in parts)
        k, v = (part.repeat_interleave(H // G, dim=1) for part in (k, v))
        place = torch.arange(L)
        apart = (place[:, None] - place).abs() > getattr(attention, "window", L)
        w = ((q @ k.mT) / (D // H) ** 0.5).masked_fill(apart, float("-inf")).softmax(-1)
        w.retain_grad()
        matrices = out.weight.T.reshape(H, D // H, D)
        u = torch.stack([v[:, h] @ matrices[h] for h in range(H)], dim=1)
        weights.append(w)
        added.append(u)
        x = x + (w @ u).sum(1) + out.bias
        x = x + torch.tanh(wide(x))
    return network.answer(x), weights, added


@pytest.mark.parametrize(("frozen", "kind"), [(False, "float"), (True, "float"), (True, "double")])
def test_gradients_and_values_of_an_own_network(tokens, frozen, kind):
    network = getattr(Own(batch_first=True).eval(), kind)()
    logits, weights, added = explicit(network, tokens)
    logits[:, 1].sum().backward()
    for parameter in network.parameters():
        parameter.grad = None
    network.requires_grad_(not frozen)
    traced = seqray.trace(network, tokens, gradients=True)
    torch.testing.assert_close(traced.logits, logits, atol=1e-5, rtol=1e-5)
    slopes = [w.grad for w in weights]
    expected = product(raising(weights, slopes))
    found = seqray.grad_rollout(traced, traced.logits[:, 1])
    np.testing.assert_allclose(found, expected[:, 0], atol=1e-6, rtol=0)
    np.testing.assert_allclose(seqray.rollout(weights, gradients=slopes), expected[:, 0], atol=1e-6, rtol=0)
    expected = product(lengths(weights, added))[:, 0]
    np.testing.assert_allclose(seqray.value_rollout(traced), expected, atol=1e-6, rtol=0)
    added = [one.double() for one in added]  # of another type than the weights
    np.testing.assert_allclose(seqray.rollout(weights, values=added), expected, atol=1e-6, rtol=0)
    assert all(parameter.grad is None for parameter in network.parameters())


def lengths(weights, added):
    """Norm of what each key adds to each query."""
    sums = (torch.einsum("bhqk,bhkd->bqkd", w, u) for w, u in zip(weights, added, strict=True))
    return [one.norm(dim=-1).detach().double().numpy() for one in sums]


def test_a_network_that_reads_the_mean_is_explained_from_all_that_it_reads(tokens):
    """Also for one class after the other, from one pass."""
    network = Own(batch_first=True).eval().double()
    network.shares = (~padding()).double() / torch.tensor([[L], [L - 2]])
    logits, weights, added = explicit(network, tokens)
    traced = seqray.trace(network, tokens, gradients=True)
    for label in (1, 0, 1):
        slopes = torch.autograd.grad(logits[:, label].sum(), weights, retain_graph=True)
        matrices = product(raising(weights, slopes))
        expected = (network.shares[:, None].numpy() @ matrices)[:, 0]
        for query in (None, ~padding(), network.shares):
            found = seqray.grad_rollout(traced, traced.logits[:, label], query=query)
            np.testing.assert_allclose(found, expected, atol=1e-6, rtol=0)
        found = seqray.grad_rollout(traced, traced.logits[:, label], query=3)
        np.testing.assert_allclose(found, matrices[:, 3], atol=1e-6, rtol=0)
    alone = seqray.grad_rollout(traced, traced.logits[0, 1])
    np.testing.assert_allclose(alone[0], expected[0], atol=1e-6, rtol=0)
    assert alone[1].tolist() == [1.0] + (L - 1) * [0.0]  # of this record nothing was asked
    by_weights = product([w.mean(1).detach().double().numpy() for w in weights])
    for rolled, matrices in (
        (seqray.rollout, by_weights),
        (seqray.value_rollout, product(lengths(weights, added))),
    ):
        mean = (network.shares[:, None].numpy() @ matrices)[:, 0]
        np.testing.assert_allclose(rolled(traced, query=~padding()), mean, atol=1e-6, rtol=0)
        with pytest.warns(UserWarning, match="first token is explained, but the logits depend on others"):
            found = rolled(traced)
        np.testing.assert_allclose(found, matrices[:, 0], atol=1e-6, rtol=0)
    traced.logits[:, 0].sum().backward()
    with pytest.raises(ConfigError, match="trace again"):
        seqray.grad_rollout(traced, traced.logits[:, 0])


class Sisters(Own):
    """Attention of seqray and of torch in one network, which changes its states in place where it can."""

    def __init__(self):
        super().__init__(4, batch_first=True)
        self.attention[0], self.attention[1] = MultiHeadAttention(D, H), MultiHeadAttention(D, H, 1)
        self.attention[3] = WindowedAttention(D, H, 2)

    def forward(self, tokens, padding=None, shown=False):
        x, unturned = self.letters(tokens), rotary_angles(torch.zeros(L), D // H)
        for attention, wide in zip(self.attention, self.wide, strict=True):
            of_torch = isinstance(attention, nn.MultiheadAttention)
            y = attention(*((x, x, x) if of_torch else (x, unturned)[: 1 + hasattr(attention, "window")]))[0]
            x = x + y if torch.is_grad_enabled() else x.add_(y)
            x = x + torch.tanh(wide(x))
        return self.answer(x)


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_attention_of_seqray_is_seen_within_an_own_network(tokens, frozen, kept, monkeypatch):
    monkeypatch.setattr(forward_trace, "KEPT_BYTES", kept)
    network = Sisters().eval()
    logits, weights, added = explicit(network, tokens)
    slopes = torch.autograd.grad(logits[:, 1].sum(), weights)
    expected = product([w.mean(1).detach().double().numpy() for w in weights])[:, 0]
    network.requires_grad_(not frozen)
    for gradients in (False, True):
        traced = seqray.trace(network, tokens, gradients=gradients)
        torch.testing.assert_close(traced.logits, logits, atol=1e-5, rtol=1e-5)
        np.testing.assert_allclose(seqray.rollout(traced), expected, atol=1e-6, rtol=0)
    by_class = seqray.grad_rollout(traced, traced.logits[:, 1])
    np.testing.assert_allclose(by_class, product(raising(weights, slopes))[:, 0], atol=1e-5, rtol=0)
    by_values = product(lengths(weights, added))[:, 0]
    np.testing.assert_allclose(seqray.value_rollout(traced), by_values, atol=1e-5, rtol=0)
    alone = seqray.trace(network.attention[0], torch.ones(B, L, D))  # a layer by itself; all keys are alike
    np.testing.assert_allclose(seqray.rollout(alone)[:, 1:], 0.5 / L, atol=1e-6)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm_first", [True, False])
def test_an_encoder_of_torch(batch_first, norm_first):
    layer = nn.TransformerEncoderLayer(D, H, 2 * D, 0.3, batch_first=batch_first, norm_first=norm_first)
    encoder = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    x = torch.randn(B, L, D)
    given = x if batch_first else x.transpose(0, 1)
    inputs = {"src": given, "src_key_padding_mask": padding()}
    with torch.no_grad():
        weights, state = [], x
        for block in encoder.layers:
            read = block.norm1(state) if norm_first else state
            read = read if batch_first else read.transpose(0, 1)
            _, w = block.self_attn(read, read, read, key_padding_mask=padding(), average_attn_weights=False)
            weights.append(w)
            state = block(state if batch_first else state.transpose(0, 1), src_key_padding_mask=padding())
            state = state if batch_first else state.transpose(0, 1)
        answer = encoder(**inputs)
    traced = seqray.trace(encoder, inputs)
    torch.testing.assert_close(traced.logits, answer, atol=1e-5, rtol=1e-4)
    expected = product([w.double().mean(1).numpy() for w in weights])
    np.testing.assert_allclose(seqray.rollout(traced), expected[:, 0], atol=1e-6, rtol=0)
    np.testing.assert_allclose(seqray.rollout(traced, query=2), expected[:, 2], atol=1e-6, rtol=0)


def hugging_face(kind, implementation):
    if kind == "bert":
        network = BertModel(
            BertConfig(
                vocab_size=9, hidden_size=D, num_hidden_layers=3, num_attention_heads=H, intermediate_size=20
            )
        )
    else:
        network = GPT2Model(
            GPT2Config(vocab_size=9, n_embd=D, n_layer=3, n_head=H, bos_token_id=0, eos_token_id=0)
        )
    network.set_attn_implementation(implementation)
    return network.train()


@pytest.mark.parametrize("kind", ["bert", "gpt2"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
def test_a_model_of_transformers(kind, implementation, tokens):
    network = hugging_face(kind, implementation)
    inputs = {"input_ids": tokens, "attention_mask": (~padding()).long()}
    traced = seqray.trace(network, inputs, gradients=True)
    assert network.training
    assert network.config._attn_implementation == implementation
    network.eval().set_attn_implementation("eager")
    output = network(**inputs, output_attentions=True)
    torch.testing.assert_close(traced.logits[0], output.last_hidden_state[0], atol=1e-5, rtol=1e-4)
    query = 0 if kind == "bert" else L - 3
    expected = product([w.detach().double().mean(1).numpy() for w in output.attentions])
    np.testing.assert_allclose(seqray.rollout(traced, query=query), expected[:, query], atol=1e-6, rtol=0)
    np.testing.assert_allclose(
        seqray.rollout(output.attentions, inputs["attention_mask"], query=query),
        expected[:, query],
        atol=1e-6,
        rtol=0,
    )
    slopes = torch.autograd.grad(output.last_hidden_state[:, query, 0].sum(), output.attentions)
    expected = product(raising(output.attentions, slopes))
    found = seqray.grad_rollout(traced, traced.logits[:, query, 0])
    np.testing.assert_allclose(found, expected[:, query], atol=1e-6, rtol=0)
    if kind == "gpt2":
        with pytest.warns(UserWarning, match="attends to itself alone, as in causal networks; .* query=-1"):
            assert seqray.rollout(traced).tolist() == B * [[1.0] + (L - 1) * [0.0]]


class Duck(nn.Module):
    """Gives its weights as models of transformers do, and attends by products of matrices."""

    def __init__(self):
        super().__init__()
        self.letters = nn.Embedding(6, D)

    def forward(self, tokens, output_attentions=False):
        x, weights = self.letters(tokens), []
        for _ in range(2):
            weights.append((x @ x.mT).softmax(-1)[:, None])
            x = x + weights[-1][:, 0] @ x
        return SimpleNamespace(logits=x[:, 0], attentions=tuple(weights) if output_attentions else None)


def test_a_module_with_output_attentions(tokens):
    network = Duck().eval()
    expected = product([w[:, 0].detach().double().numpy() for w in network(tokens, True).attentions])[:, 0]
    traced = seqray.trace(network, tokens)
    np.testing.assert_allclose(seqray.rollout(traced), expected, atol=1e-6, rtol=0)
    assert repr(traced).startswith(f"Trace(2 attention layers, logits {tuple(traced.logits.shape)}, ")


def test_grouped_queries_and_a_causal_mask_of_the_fused_kernel():
    q, k, v = torch.randn(B, 4, L, 5), torch.randn(B, 2, L, 5), torch.randn(B, 2, L, 5)

    class Grouped(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    traced = seqray.trace(Grouped(), torch.zeros(B, L, 5))
    torch.testing.assert_close(traced.logits, Grouped()(None), atol=1e-5, rtol=1e-4)
    scores = q @ k.repeat_interleave(2, dim=1).mT / 5**0.5
    weights = scores.masked_fill(torch.ones(L, L).triu(1).bool(), float("-inf")).softmax(-1)
    expected = product([weights.mean(1).double().numpy()])[:, -1]
    np.testing.assert_allclose(seqray.rollout(traced, query=-1), expected, atol=1e-6, rtol=0)


def test_a_network_of_seqray_has_the_rollout_of_its_weights():
    network = build_network(ModelConfig(d_model=24, layers=3, heads=3, max_length=20)).eval()
    tokens = torch.randint(4, 8, (B, 20))
    with torch.no_grad():
        steps = network(tokens, return_attention=True).attention
    found = seqray.rollout([step.weights for step in steps])
    torch.testing.assert_close(found, seqray.rollout(seqray.trace(network, tokens)), atol=1e-6, rtol=0)


def test_threads_trace_one_network_at_the_same_time(tokens):
    network, answers = Own(batch_first=True).eval(), {}
    expected = [seqray.rollout(seqray.trace(network, tokens.roll(i, 1))) for i in range(4)]

    def ask(number):
        for _ in range(10):
            answers[number] = seqray.rollout(seqray.trace(network, tokens.roll(number, 1)))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, answer in answers.items():
        torch.testing.assert_close(answer, expected[number], atol=1e-7, rtol=0)
    assert len(answers) == 4


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_a_target_without_gradients_is_refused_in_one_line(tokens, mode):
    with mode():
        traced = seqray.trace(Own(batch_first=True), tokens.clone(), gradients=True)
        with pytest.raises(ConfigError, match="no gradients by the weights; compute it"):
            seqray.grad_rollout(traced, traced.logits[:, 1])
    assert seqray.grad_rollout(traced, traced.logits[:, 1]).shape == tokens.shape


def test_a_network_without_attention_is_refused():
    with pytest.raises(ConfigError, match="no attention was seen in Linear"):
        seqray.trace(nn.Linear(3, 3), torch.zeros(2, 3))
    decoder = nn.TransformerDecoderLayer(D, H, batch_first=True)
    with pytest.raises(ConfigError, match="between different tokens"):
        seqray.trace(decoder, torch.zeros(1, 4, D), torch.zeros(1, 6, D))
    traced = seqray.trace(Duck(), torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(ConfigError, match="values"):
        seqray.value_rollout(traced)
    with pytest.raises(ConfigError, match="a trace takes no mask"):
        seqray.rollout(traced, gradients=[])
    with pytest.raises(ConfigError, match="got int, not Tensor; compute it from the logits"):
        seqray.grad_rollout(traced, 1)
    with pytest.raises(ConfigError, match="got list, not Trace"):
        seqray.value_rollout([EVEN])
    with pytest.raises(ConfigError, match="got function, not Module"):
        seqray.trace(lambda x: x, torch.zeros(2, 3))
