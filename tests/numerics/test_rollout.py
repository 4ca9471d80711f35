"""Rollouts of networks against the full product of their layers."""

import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from networks import locator_config
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.explanations import trace as forward_trace
from seqray.explanations.methods import GENERAL_METHODS, METHODS
from seqray.explanations.options import MethodSettings
from seqray.explanations.rollout import attention_from_start, grad_rollout, rollout, value_rollout
from seqray.explanations.targets import LocatorTarget
from seqray.explanations.trace import trace
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel
from seqray.models.locator import LocatorTransformer

SHAPES = [
    {},
    {"positions": "learned"},
    {"positions": "rotary", "kv_heads": 1},
    {"heads": 4, "kv_heads": 2, "layers": 1},
    {"stem": StemConfig(kernels=(3, 5), stride=3), "layers": 4},
]


def small_network(seed: int = 0, **shape) -> Any:
    torch.manual_seed(seed)
    config = ModelConfig(
        **({"d_model": 32, "layers": 3, "heads": 4, "max_length": 90, "dropout": 0.3} | shape)
    )
    net = build_network(config).eval()
    with torch.no_grad():  # sharp heads: nearly even ones would hide a wrong order of the layers
        for parameter in net.parameters():
            parameter.mul_(2.0)
    return net


def batch(lengths=(60, 31, 7), seed: int = 1):
    """Tokens and mask of sequences padded to the longest."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(4, 8, (len(lengths), max(lengths)), generator=generator)
    tokens[:, 0] = 1
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return tokens.masked_fill(~mask, 0), mask


def explicit(net, tokens, mask):
    """Attention weights of every layer by the explicit path: (B, H, T, T) each."""
    return [step.weights for step in net(tokens, mask, return_attention=True).attention]


def product(fused, residual=0.5):
    """CLS row of the product of all layers' matrices, by whole matrices, first layer rightmost."""
    joint = None
    for matrix in fused:
        matrix = matrix / matrix.sum(-1, keepdim=True).clamp(min=1e-30)
        step = residual * torch.eye(matrix.shape[-1]) + (1 - residual) * matrix
        joint = step if joint is None else step @ joint
    return joint[:, 0]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("residual", [0.5, 0.0, 0.9])
@torch.no_grad()
def test_rollout_is_the_row_of_the_full_product(shape, residual):
    net, (tokens, mask) = small_network(**shape), batch()
    expected = product([w.mean(1) for w in explicit(net, tokens, mask)], residual)
    torch.testing.assert_close(
        rollout(trace(net, tokens, mask), residual=residual), expected, atol=1e-6, rtol=0
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@torch.no_grad()
def test_long_sequences_whose_weights_are_computed_again_have_the_same_rollout(shape):
    net, (tokens, mask) = small_network(**shape), batch()
    expected = product([w.mean(1) for w in explicit(net, tokens, mask)])
    with mock.patch.object(forward_trace, "KEPT_BYTES", 0):
        traced = trace(net, tokens, mask)
    assert all(layer.projected is None for layer in traced.layers)
    torch.testing.assert_close(rollout(traced), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("heads", ["max", "min"])
@torch.no_grad()
def test_other_ways_to_make_heads_one(heads):
    net, (tokens, mask) = small_network(), batch()
    fuse = torch.amax if heads == "max" else torch.amin
    expected = product([fuse(w, 1) for w in explicit(net, tokens, mask)])
    torch.testing.assert_close(rollout(trace(net, tokens, mask), heads=heads), expected, atol=1e-6, rtol=0)


@settings(deadline=None, max_examples=25)
@given(
    lengths=st.lists(st.integers(1, 40), min_size=1, max_size=4), chunk=st.sampled_from([1, 3000, 1 << 21])
)
def test_mass_is_one_padding_gets_none_and_neighbours_change_nothing(lengths, chunk):
    net, (tokens, mask) = small_network(), batch([1 + n for n in lengths])
    with mock.patch.object(forward_trace, "CHUNK_BYTES", chunk):
        relevance = rollout(trace(net, tokens, mask))
    assert (relevance >= 0).all()
    torch.testing.assert_close(relevance.sum(1), torch.ones(len(lengths)))
    assert (relevance[~mask] == 0).all()
    for row, length in enumerate(lengths):
        alone = rollout(trace(net, tokens[row : row + 1, : length + 1]))
        torch.testing.assert_close(relevance[row, : length + 1], alone[0], atol=1e-6, rtol=0)


def shares_by_hand(net, tokens, mask):
    """What the head reads of each token, vector by vector: the mean, both ends, and where channels peak."""
    states = net.states(tokens, mask)
    result = torch.zeros(states.shape[:2])
    for row, real in enumerate(mask.sum(1).tolist()):
        reach = min(5, real - 1)
        for places in (range(1, real), range(1, 1 + reach), range(real - reach, real)):
            for place in places:
                result[row, place] += 1 / len(places) / 4
        for channel in range(32):
            result[row, 1 + int(states[row, 1:real, channel].argmax())] += 1 / 32 / 4
    return result


@torch.no_grad()
def test_rollout_of_a_pooled_model_starts_from_all_that_the_head_reads():
    net, (tokens, mask) = small_network(ends=5, pooling=("mean", "max", "ends")), batch((60, 31, 4))
    traced, expected = trace(net, tokens, mask), shares_by_hand(net, tokens, mask)
    torch.testing.assert_close(traced.start, expected, atol=1e-6, rtol=0)
    weights = explicit(net, tokens, mask)
    for one in reversed(weights):
        expected = 0.5 * expected + 0.5 * (expected[:, None] @ one.mean(1))[:, 0]
    torch.testing.assert_close(rollout(traced), expected, atol=1e-6, rtol=0)
    of_queries = torch.stack([torch.einsum("bq,bhqk->bhk", traced.start, one) for one in weights], 1)
    torch.testing.assert_close(attention_from_start(traced), of_queries, atol=1e-5, rtol=0)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_grad_rollout_is_autograd_on_the_explicit_weights(shape):
    net, (tokens, mask) = small_network(**shape), batch()
    net.requires_grad_(False)
    net.cls.requires_grad_(True)
    output = net(tokens, mask, return_attention=True)
    weights = [step.weights for step in output.attention]
    slopes = torch.autograd.grad((output.logits[:, 1] - output.logits[:, 0]).sum(), weights)
    relevance = torch.zeros(weights[0].shape[0], weights[0].shape[-1])
    relevance[:, 0] = 1
    for a, slope in zip(reversed(weights), reversed(slopes), strict=True):
        mixed = (a * slope).clamp(min=0).mean(1).detach()
        sums = mixed.sum(-1, keepdim=True)
        step = torch.where(sums > 1e-30, mixed / sums.clamp(min=1e-30), torch.eye(a.shape[-1]))
        relevance = 0.5 * relevance + 0.5 * torch.einsum("bq,bqk->bk", relevance, step)
    net.requires_grad_(False)
    traced = trace(net, tokens, mask, gradients=True)
    found = grad_rollout(traced, traced.logits[:, 1] - traced.logits[:, 0])
    torch.testing.assert_close(found, relevance, atol=2e-5, rtol=0)


@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
@torch.no_grad()
def test_value_rollout_weighs_by_the_length_of_what_is_added(shape):
    """Each key's vector Σ_h A[h, q, k] v_h[k] W_O,h is built outright, and its norm taken."""
    net, (tokens, mask) = small_network(**shape), batch()
    traced = trace(net, tokens, mask)
    fused = []
    for layer, weights in zip(traced.layers, explicit(net, tokens, mask), strict=True):
        _, _, v = layer.attention.project(layer.x, layer.rotation)
        heads = torch.einsum("bhqk,bhke->bqkhe", weights, v).flatten(-2)
        fused.append((heads @ layer.attention.out.weight.T).norm(dim=-1))
    torch.testing.assert_close(value_rollout(traced), product(fused), atol=1e-5, rtol=0)


def test_the_network_is_left_as_it_was_found_and_dropout_is_off():
    net, (tokens, mask) = small_network(), batch()
    net.train()
    net.blocks[1].eval()
    modes = [module.training for module in net.modules()]
    first, second = (rollout(trace(net, tokens, mask)) for _ in range(2))
    assert torch.equal(first, second)
    assert [module.training for module in net.modules()] == modes
    assert_unwatched(net)
    assert torch.equal(first, rollout(trace(net.eval(), tokens, mask)))


def assert_unwatched(net):
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in net.modules())


def test_hooks_are_gone_after_an_error():
    net = small_network()
    with pytest.raises(IndexError):
        trace(net, torch.full((1, 5), 99))
    assert_unwatched(net)


@pytest.mark.parametrize(("scale", "off"), [(1.0, 1e-5), (300.0, 1e-3)])
def test_weights_of_any_size_are_those_of_softmax(scale, off):
    net, (tokens, mask) = small_network(), batch([40, 25])
    with torch.no_grad():
        for block in net.blocks:
            block.attention.qkv.weight.mul_(scale)  # scores beyond what an exponential holds
    traced = trace(net, tokens, mask)
    for layer, expected in zip(traced.layers, explicit(net, tokens, mask), strict=True):
        found = torch.cat([block.weights for block in layer.blocks()], dim=2)
        torch.testing.assert_close(found, expected[:, :, : found.shape[2]], atol=off, rtol=0)


TRACK_NAMES = ("known", "start", "to-start")
CONFIG = locator_config(TRACK_NAMES, classes=2, layers=2, window=3, smoothing=2)
CARD = Card(
    name="tiny",
    classes=("start", "stop"),
    positive="start",
    window=73,
    site=36,
    model=CONFIG,
    temperature=1.5,
)
RADIUS = 36  # 4 letters x 3 tokens x 2 layers, 7 of the stem, 3 of the token of the site, 2 of the smoothing
PHASES = range(4)
KERNEL = {-2: 5 / 9, -1: 8 / 9, 0: 1.0, 1: 8 / 9, 2: 5 / 9}  # 1 - (distance / 3)²


def network(seed: int = 0) -> LocatorTransformer:
    torch.manual_seed(seed)
    net = LocatorTransformer(CONFIG).eval().requires_grad_(False)
    for parameter in net.parameters():  # sharp heads: nearly even ones would hide a wrong order of the layers
        parameter.mul_(2.0)
    return net


NET, DOUBLE = network(), network().double()
MODEL = TrainedModel(CARD, (NET,))


def stretch(seed: int = 1, unknown: int = 0):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 4, 2 * RADIUS + 1).astype(np.uint8)
    codes[:unknown] = 4
    return codes, rng.integers(0, 256, (3, 2 * RADIUS + 1)).astype(np.uint8)


def target(tracks, phase: int, which: int = 0, net: LocatorTransformer = NET) -> LocatorTarget:
    return LocatorTarget(MODEL, net, which, tracks, phase)


def padded(codes, tracks, phase):
    """What the network reads, with 40 letters on either side that are further than the radius."""
    rng = np.random.default_rng(9)
    before, behind = 40 + phase, 40 + (3 - phase)
    letters = np.concatenate([rng.integers(0, 4, before), codes, rng.integers(0, 4, behind)])
    around = [rng.integers(0, 256, (3, n)) for n in (before, behind)]
    return letters, np.concatenate([around[0], tracks, around[1]], axis=1), before + RADIUS


def read(codes, tracks, phase, net: LocatorTransformer = NET):
    letters, beside, site = padded(codes, tracks, phase)
    output = net(
        torch.tensor(letters)[None], torch.tensor(beside.astype(np.uint8))[None], return_attention=True
    )
    return output, site


def smooth(logits, site: int) -> float:
    """The score at a letter from logits (L,): what -log(1 - p) of the letters around it add up to."""
    values = np.logaddexp(0, logits.double().numpy())
    scale = sum(weight * math.exp(-(d**2) / 12.5) for d, weight in KERNEL.items())
    return math.log(math.expm1(sum(weight * values[site + d] for d, weight in KERNEL.items()) / scale))


def at_site(joint, site: int):
    """Where rollout begins: the rows of the tokens of the letters that count."""
    return sum(weight * joint[(site + d) // 4] for d, weight in KERNEL.items()) / sum(KERNEL.values())


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("which", [0, 1])
def test_the_score_is_that_of_the_site_in_its_strand(phase, which):
    codes, tracks = stretch()
    output, site = read(codes, tracks, phase)
    expected = smooth(output.logits[0, :, which], site) / 1.5
    assert NET.radius == RADIUS
    assert target(tracks, phase, which).of_codes(codes[None]) == pytest.approx([expected], abs=1e-5)


def numpy_rollout(codes, tracks, phase, residual=0.5):
    """Rows of the tokens at the site in the product of all layers, then letters by changing one at a time."""
    output, site = read(codes, tracks, phase)
    joint = np.eye(output.attention[0].weights.shape[-1])
    for step in output.attention:
        mean = step.weights[0].double().mean(0).numpy()
        joint = (residual * np.eye(len(mean)) + (1 - residual) * mean) @ joint
    relevance = at_site(joint, site)
    assert relevance.sum() == pytest.approx(1)
    letters, beside, _ = padded(codes, tracks, phase)
    beside = torch.tensor(beside.astype(np.uint8))[None]
    vectors = NET.embed(torch.tensor(letters)[None], beside)
    whole = NET.stem(vectors)[0]
    scores = np.zeros(len(letters))
    changes = np.zeros((len(whole), len(letters)))
    for place in np.flatnonzero(letters < 4):
        changed = vectors.clone()
        changed[0, place, :4] = 0.25
        changes[:, place] = (NET.stem(changed)[0] - whole).norm(dim=-1).numpy()
    scores = relevance @ (changes / changes.sum(axis=1, keepdims=True))
    return scores, site


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("residual", [0.5, 0.0, 0.8])
def test_rollout_of_a_locator_is_the_row_of_the_full_product(phase, residual):
    codes, tracks = stretch()
    expected, site = numpy_rollout(codes, tracks, phase, residual)
    chosen = MethodSettings(residual=residual)
    [found] = METHODS["rollout"].score(target(tracks, phase), codes[None], chosen)
    np.testing.assert_allclose(found, expected[site - RADIUS : site + RADIUS + 1], atol=1e-6)
    outside = np.delete(expected, np.arange(site - RADIUS, site + RADIUS + 1))
    assert np.abs(outside).max() == 0  # nothing beyond the radius is ever relevant


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**31), st.sampled_from(PHASES), st.integers(0, 40), st.booleans())
def test_shares_sum_to_one_and_unknown_letters_have_none(seed, phase, unknown, genes):
    codes, tracks = stretch(seed, unknown)
    one = target(tracks if genes else None, phase)
    for name in ("rollout", "grad-rollout", "value-rollout"):
        [found] = METHODS[name].score(one, codes[None], MethodSettings())
        assert found.sum() == pytest.approx(1)
        assert (found >= 0).all()
        assert (found[:unknown] == 0).all()


def test_value_rollout_takes_the_norm_of_what_a_key_adds():
    codes, tracks = stretch()
    letters, beside, site = padded(codes, tracks, 2)
    beside = torch.tensor(beside.astype(np.uint8))[None]
    inputs = []
    for block in NET.blocks:
        block.attention.register_forward_pre_hook(lambda module, given: inputs.append((module, *given)))
    NET(torch.tensor(letters)[None], beside)
    joint = np.eye(len(letters) // 4)
    for module, x, rotation in inputs:
        q, k, v = module.project(x, rotation)
        weights = module.weights(q, k)[0]  # (H, T, T)
        matrices = module.out.weight.unflatten(1, (2, 8))  # (D, H, E)
        added = torch.einsum("hqk,hke,dhe->qkd", weights, v[0], matrices).norm(dim=-1).double().numpy()
        joint = (0.5 * np.eye(len(joint)) + 0.5 * added / added.sum(axis=1, keepdims=True)) @ joint
    for block in NET.blocks:
        block.attention._forward_pre_hooks.clear()
    expected = np.repeat(at_site(joint, site) / 4, 4)[site - RADIUS : site + RADIUS + 1]
    one, chosen = target(tracks, 2), MethodSettings(spread="span")
    [found] = METHODS["value-rollout"].score(one, codes[None], chosen)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=1e-6)


def double_score(vectors, phase, which=0):
    """The score from embedded letters and tracks, in double precision but for the rotation."""
    return smooth(DOUBLE.locate(vectors).logits[0, :, which], phase + RADIUS) / 1.5


@pytest.mark.parametrize("phase", [0, 3])
def test_gradients_are_those_of_differences(phase):
    codes, tracks = stretch(unknown=3)
    one = target(tracks, phase)
    end = NET.embed(*one._read(codes[None])).double()
    letters, by_track = one.input_effects(codes)
    step = 3e-3  # smaller ones meet the rounding of the rotation
    for place in (0, 10, RADIUS - 1, RADIUS, RADIUS + 9, 2 * RADIUS):
        at = phase + place
        start = end.clone()
        start[0, at, :4] = 0.25 if codes[place] < 4 else 0.0
        for effect, start_of in ((letters[place], start), *_tracks_off(end, at, by_track[:, place])):
            ahead, back = (double_score(end + sign * step * (end - start_of), phase) for sign in (1, -1))
            assert effect == pytest.approx((ahead - back) / (2 * step), rel=5e-3, abs=5e-4)
    [found] = METHODS["input-x-gradient"].score(one, codes[None], MethodSettings())
    np.testing.assert_allclose(found, letters, atol=1e-6)


def _tracks_off(end, at, effects):
    for track, effect in enumerate(effects):
        start = end.clone()
        start[0, at, 4 + track] = 0
        yield effect, start


def test_integrated_gradients_add_up_to_the_change_from_mean_letters():
    codes, tracks = stretch()
    one = target(tracks, 1)
    end = NET.embed(*one._read(codes[None])).double()
    start = end.clone()
    start[0, 1 : 1 + len(codes), :4] = 0.25
    [found] = METHODS["integrated-gradients"].score(one, codes[None], MethodSettings(steps=100))
    assert found.sum() == pytest.approx(double_score(end, 1) - double_score(start, 1), abs=1e-3)


def test_mutagenesis_tries_every_letter_beside_the_same_genes():
    codes, tracks = stretch(unknown=2)
    one = target(tracks, 2, which=1)
    [found] = METHODS["ism"].score(one, codes[None], MethodSettings())
    before = smooth(read(codes, tracks, 2)[0].logits[0, :, 1], 42 + RADIUS)
    for place in (2, 20, RADIUS, 60):
        falls = []
        for letter in set(range(4)) - {int(codes[place])}:
            changed = codes.copy()
            changed[place] = letter
            falls.append(before - smooth(read(changed, tracks, 2)[0].logits[0, :, 1], 42 + RADIUS))
        assert found[place] == pytest.approx(np.mean(falls) / 1.5, abs=1e-5)
    assert (found[:2] == 0).all()


@pytest.mark.parametrize("method", GENERAL_METHODS)
def test_many_stretches_at_once_are_scored_as_alone(method):
    codes = np.stack([stretch(seed)[0] for seed in range(3)])
    one, chosen = target(stretch()[1], 3), MethodSettings(steps=4)
    together = METHODS[method].score(one, codes, chosen)
    for row, alone in zip(together, codes, strict=True):
        np.testing.assert_allclose(row, METHODS[method].score(one, alone[None], chosen)[0], atol=1e-5)
