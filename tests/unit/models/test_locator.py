"""The locator: windowed attention, its receptive field, and what it refuses."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from seqray.core.errors import ConfigError
from seqray.core.model_config import LocatorConfig, ModelConfig
from seqray.genome.genes import TRACKS, Gene, gene_tracks
from seqray.modelfile.file import build_network
from seqray.models.attention import WindowedAttention, rotary_angles
from seqray.models.locator import LocatorTransformer


def small(window: int = 4, layers: int = 2, tracks: int = 3, **settings) -> ModelConfig:
    locator = LocatorConfig(tracks=tuple(f"track-{i}" for i in range(tracks)), window=window, stem=8)
    return ModelConfig(
        kind="locator", classes=2, d_model=16, heads=2, layers=layers, d_ff=32, positions="rotary",
        locator=locator, **settings,
    )  # fmt: skip


def network(config: ModelConfig) -> LocatorTransformer:
    torch.manual_seed(0)
    built = build_network(config)
    assert isinstance(built, LocatorTransformer)
    return built.eval()


def stretch(length: int, tracks: int = 3, batch: int = 1, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    letters = torch.randint(0, 5, (batch, length), generator=generator)
    return letters, torch.randint(0, 256, (batch, tracks, length), generator=generator).to(torch.uint8)


def by_loops(attention: WindowedAttention, x: torch.Tensor) -> np.ndarray:
    """The layer token by token, in float64."""
    heads, width, window = attention.heads, attention.head_width, attention.window
    weight, bias = (t.detach().double().numpy() for t in (attention.qkv.weight, attention.qkv.bias))
    q, k, v = np.split(x.double().numpy() @ weight.T + bias, 3, axis=-1)
    angle = 10000.0 ** -(np.arange(0, width, 2) / width)
    out = np.zeros_like(q)
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        for i in range(len(x)):
            near = range(max(0, i - window), min(len(x), i + window + 1))
            scores = []
            for j in near:
                pairs_q, pairs_k = (t[part].reshape(-1, 2) @ [1, 1j] for t in (q[i], k[j]))
                turned = pairs_q * np.exp(1j * i * angle) * np.conj(pairs_k * np.exp(1j * j * angle))
                scores.append(turned.real.sum() / math.sqrt(width))
            weights = np.exp(np.array(scores) - max(scores))
            out[i, part] = weights / weights.sum() @ v[list(near), part]
    weight, bias = (t.detach().double().numpy() for t in (attention.out.weight, attention.out.bias))
    return out @ weight.T + bias


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 21])
@pytest.mark.parametrize("gradients", [False, True])
def test_windowed_attention_is_that_of_its_definition(length, gradients):
    torch.manual_seed(1)
    attention = WindowedAttention(12, 2, 4)
    x = torch.randn(length, 12)
    rotation = rotary_angles(torch.arange(length), 6)
    with torch.set_grad_enabled(gradients):
        got, _ = attention(x[None], rotation)
    np.testing.assert_allclose(got[0].detach().numpy(), by_loops(attention, x), atol=2e-6)


def test_weights_are_those_of_the_output_and_zero_beyond_the_window():
    attention = WindowedAttention(12, 2, 4)
    x, rotation = torch.randn(2, 19, 12), rotary_angles(torch.arange(19), 6)
    fast, _ = attention(x, rotation)
    slow, weights = attention(x, rotation, need_weights=True)
    torch.testing.assert_close(fast, slow)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 19))
    apart = (torch.arange(19)[:, None] - torch.arange(19)).abs() > 4
    assert (weights[..., apart] == 0).all()
    assert (weights[..., ~apart] > 0).all()


@pytest.mark.parametrize(("window", "layers", "reach"), [(4, 2, 0), (3, 1, 0), (5, 3, 0), (4, 2, 5)])
def test_the_radius_is_exact(window, layers, reach):
    net = with_smoothing(reach, window=window, layers=layers)
    radius = net.radius
    assert radius == 4 * window * layers + 10 + reach  # 5 + 2 letters of the stem, 3 of the token
    half = 2 * (radius // 2 + 20)
    letters, tracks = stretch(2 * half)
    with torch.inference_mode():
        scores = net.scores(net(letters, tracks))[0]
        for shift, side in ((0, 1), (3, -1)):  # the letters of a token that see furthest
            at = half // 4 * 4 + shift - reach * side
            for distance, changes in ((radius, True), (radius + 1, False)):
                other = letters.clone()
                other[0, at + side * distance] = (letters[0, at + side * distance] + 1) % 4
                assert bool((net.scores(net(other, tracks))[0, at] != scores[at]).any()) == changes


@settings(max_examples=20, deadline=None)
@given(first=st.integers(0, 60), count=st.integers(1, 40), seed=st.integers(0, 99))
def test_a_piece_with_its_surroundings_has_the_scores_of_the_whole(first, count, seed):
    net = with_smoothing(seed % 9, seed % 30, window=3, layers=1)
    margin = -(-net.radius // 4) * 4
    letters, tracks = stretch(4 * 110, seed=seed)
    low, high = max(0, 4 * first - margin), min(4 * 110, 4 * (first + count) + margin)
    with torch.inference_mode():
        whole = net.scores(net(letters, tracks))[:, 4 * first : 4 * (first + count)]
        piece = net.scores(net(letters[:, low:high], tracks[..., low:high]))
    part = slice(4 * first - low, 4 * (first + count) - low)
    torch.testing.assert_close(piece[:, part], whole, atol=1e-5, rtol=1e-5)


def test_scores_without_gradients_are_those_with_them():
    net = network(small())
    letters, tracks = stretch(200, batch=2)
    with torch.inference_mode():
        quick = net(letters, tracks)
    slow = net(letters, tracks)  # reads the rotation that was made above
    slow.logits.sum().backward()
    torch.testing.assert_close(quick.logits, slow.logits.detach(), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(quick.tracks, slow.tracks.detach(), atol=1e-5, rtol=1e-5)


def test_hidden_tracks_are_tracks_of_zeros():
    net = network(small())
    letters, tracks = stretch(80)
    with torch.inference_mode():
        torch.testing.assert_close(net(letters).logits, net(letters, tracks * 0).logits)
        assert not torch.equal(net(letters).logits, net(letters, tracks).logits)
        assert net(letters, tracks).tracks.shape == (1, 80, 3)


def with_smoothing(reach: int, region: int = 0, **settings) -> LocatorTransformer:
    config = small(**settings)
    assert config.locator is not None
    return network(replace(config, locator=replace(config.locator, smoothing=reach, region=region)))


@pytest.mark.parametrize(("reach", "region"), [(0, 0), (1, 0), (8, 0), (8, 20), (0, 7)])
def test_scores_count_the_letters_around_by_the_kernel_of_epanechnikov(reach, region):
    """By loops in float64: -log(1 - p) is summed, and a sure site with labels of a width of 2.5 has 1."""
    net = with_smoothing(reach, region)
    letters, tracks = stretch(80)
    with torch.inference_mode():
        output = net(letters, tracks)
        found = torch.sigmoid(net.scores(output).double())[0].numpy()
    p = torch.sigmoid(output.logits.double())[0].numpy()
    kernel, wide = ({d: 1 - (d / (n + 1)) ** 2 for d in range(-n, n + 1)} for n in (reach, region))
    label = {d: math.exp(-(d**2) / (2 * 2.5**2)) for d in range(-50, 51)}

    def any_site(weights: dict[int, float], scale: float, at: int, k: int) -> float:
        near = [(weight, p[at + d, k]) for d, weight in weights.items() if 0 <= at + d < 80]
        return 1 - math.prod((1 - value) ** (weight / scale) for weight, value in near)

    for at in range(80):
        for k in range(2):
            expected = any_site(kernel, sum(weight * label[d] for d, weight in kernel.items()), at, k)
            expected *= any_site(wide, sum(label.values()), at, k) if region else 1
            assert found[at, k] == pytest.approx(expected, rel=1e-5)


def test_smoothing_adds_its_reach_to_the_radius():
    assert with_smoothing(5).radius == with_smoothing(5, 3).radius == with_smoothing(0).radius + 5
    assert with_smoothing(5, 90).radius == with_smoothing(0).radius + 90


def with_correction(*values: float) -> LocatorTransformer:
    settings = LocatorConfig(tracks=TRACKS, window=4, stem=8, no_gene_ahead=values)
    return network(replace(small(dropout=0.0), locator=settings))


GENE = Gene(1100, 1400, "+", "one")


@pytest.mark.parametrize("strand", "+-")
def test_scores_change_where_no_gene_begins_within_510_letters_ahead(strand):
    letters, tracks = torch.randint(0, 4, (1, 1600)), gene_tracks([GENE], 1600, strand)
    given = torch.from_numpy(tracks)[None]
    with torch.inference_mode():
        change = with_correction(-2.0, 0.5)(letters, given).logits - with_correction()(letters, given).logits
    begins = GENE.start if strand == "+" else 1600 - GENE.end  # nothing of the other strand counts
    near = [strand == "+" and begins - 510 <= at <= begins for at in range(1600)]
    last = 1600 - small().radius  # behind it a gene may begin beyond the end
    expected = [[0.0, 0.0] if one or at >= last else [-2.0, 0.5] for at, one in enumerate(near)]
    torch.testing.assert_close(change[0], torch.tensor(expected), atol=1e-5, rtol=0)


def test_scores_do_not_change_where_no_genes_are_known_and_in_training():
    letters, tracks = torch.randint(0, 4, (1, 80)), torch.from_numpy(gene_tracks([], 80, "+"))[None]
    plain, corrected = with_correction(), with_correction(-2.0, -2.0)
    torch.testing.assert_close(corrected(letters).logits, plain(letters).logits)
    trained = corrected.train()(letters, tracks).logits
    torch.testing.assert_close(trained, plain.train()(letters, tracks).logits)


@pytest.mark.parametrize(
    ("tracks", "values", "message"),
    [
        (("known", "start"), (-2.0, 0.0), "requires the tracks 'known' and 'to-start'"),
        (TRACKS, (-2.0,), "has one number for each class"),
        (TRACKS, (-2.0, math.nan), "must lie between -100 and 100"),
    ],
)
def test_a_correction_that_can_not_be_made_is_refused(tracks, values, message):
    with pytest.raises(ConfigError, match=rf"model\.locator\.no_gene_ahead.*{message}"):
        replace(small(), locator=LocatorConfig(tracks=tracks, no_gene_ahead=values))


def test_training_in_bfloat16_follows_training_in_float32():
    letters, tracks = stretch(40, batch=2)
    locator = LocatorConfig(tracks=("a", "b", "c"), window=4, stem=16)
    config = replace(small(dropout=0.0), locator=locator)

    def gradient(low: bool) -> torch.Tensor:
        net = network(config).train()
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            scores = net(letters, tracks).logits.float()
        scores.square().sum().backward()
        return torch.cat([p.grad.flatten() for p in net.parameters() if p.grad is not None])

    assert torch.cosine_similarity(gradient(False), gradient(True), dim=0) > 0.99
