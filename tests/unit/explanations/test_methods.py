"""Methods against finite differences, closed forms, plain loops, and captum."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.records import SequenceRecord
from seqray.explanations import methods
from seqray.explanations.methods import loss_of_letters, occlusion, substitution_effects
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import heads
from seqray.explanations.targets import (
    SequenceTarget,
    ensemble_score,
    letter_changes,
    sequence_targets,
    shares,
    spread_by_sensitivity,
    to_letters,
)
from seqray.explanations.trace import embedding_of, trace
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import CharacterTokenizer, KmerTokenizer

SHAPES = [{}, {"stem": StemConfig(kernels=(3, 5), stride=3)}, {"tokenizer": "kmer", "k": 2}]
CODES = np.random.default_rng(3).integers(0, 4, (3, 24)).astype(np.uint8)


@pytest.fixture
def make(tiny_model):
    """Make a target of a network of some shape, and the tokens of `CODES` with their vectors."""

    def of_shape(shape):
        torch.manual_seed(3)
        config = ModelConfig(d_model=16, layers=2, heads=2, max_length=40, **shape)
        model = TrainedModel(replace(tiny_model.card, model=config, members=1), (build_network(config),))
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


@pytest.fixture
def two_layers(tiny_model):
    """Two layers of two heads, 8 wide, two members."""
    config = ModelConfig(d_model=8, heads=2, layers=2, dropout=0.0, max_length=20)
    torch.manual_seed(1)
    members = tuple(build_network(config) for _ in range(2))
    return TrainedModel(replace(tiny_model.card, model=config, members=2), members)


NINE = np.random.default_rng(0).integers(0, 4, (9, 20)).astype(np.uint8)


def figures(two_layers, codes=NINE):
    records = [SequenceRecord(f"r{i}", DNA.decode(row)) for i, row in enumerate(codes)]
    return heads(two_layers, records, ExplainOptions(target=two_layers.card.classes[0]))


def test_every_head_of_every_member_once(two_layers):
    found = figures(two_layers)
    assert [(h.member, h.layer, h.head) for h in found] == [
        (m, layer, h) for m in (1, 2) for layer in (1, 2) for h in (1, 2)
    ]
    assert all(0 <= h.entropy <= 1 and 0 <= h.cls_mass <= 1 for h in found)
    assert [math.isnan(h.distance) for h in found] == [h.layer == 2 for h in found]
    assert figures(two_layers, []) == ()


def test_even_attention(two_layers):
    for network in two_layers.networks:
        for block in network.blocks:
            block.attention.qkv.weight[:16] = 0  # queries and keys
            block.attention.qkv.bias[:16] = 0
    found = figures(two_layers)
    letters = np.arange(20)
    for head in found:
        assert head.entropy == pytest.approx(1, abs=1e-5)
        assert head.cls_mass == pytest.approx(1 / 21, rel=1e-5)
        if head.layer == 1:
            assert head.distance == pytest.approx(np.abs(letters[:, None] - letters).mean(), rel=1e-5)


def test_importance_is_what_the_answer_loses_without_the_columns_of_the_head(two_layers):
    found = {(h.member, h.layer, h.head): h for h in figures(two_layers)}
    for member, network in enumerate(two_layers.networks, start=1):
        one = TrainedModel(replace(two_layers.card, members=1), (network,))
        maimed = copy.deepcopy(network)
        maimed.blocks[1].attention.out.weight[:, 4:] = 0
        other = TrainedModel(replace(two_layers.card, members=1), (maimed,))
        without, whole = (ensemble_score(sequence_targets(m, 0), NINE) for m in (other, one))
        change = (without - whole).mean()
        assert found[member, 2, 2].importance == pytest.approx(change, abs=1e-5)


def test_groups_weigh_by_their_records(two_layers):
    parts = [figures(two_layers, codes) for codes in (NINE[:2, :12], NINE[2:])]
    records = [DNA.decode(row) for row in (*NINE[:2, :12], *NINE[2:])]
    together = heads(
        two_layers,
        [SequenceRecord(str(i), letters) for i, letters in enumerate(records)],
        ExplainOptions(target=two_layers.card.classes[0]),
    )
    for whole, short, long in zip(together, *parts, strict=True):
        assert whole.entropy == pytest.approx((2 * short.entropy + 7 * long.entropy) / 9, rel=1e-5)
        assert whole.importance == pytest.approx((2 * short.importance + 7 * long.importance) / 9, abs=1e-6)


TOKENIZERS = [CharacterTokenizer(DNA), KmerTokenizer(DNA, 2), KmerTokenizer(DNA, 5)]


@given(
    st.sampled_from(TOKENIZERS), st.integers(5, 40), st.integers(1, 7), st.integers(0, 5), st.integers(0, 99)
)
def test_the_sum_of_the_letters_is_that_of_the_tokens(tokenizer, letters, stride, padding, seed):
    merged = -(-(tokenizer.token_length(letters) - 1) // stride)
    scores = np.random.default_rng(seed).normal(size=(3, 1 + merged + padding))
    found = to_letters(scores, tokenizer, stride, letters)
    assert found.shape == (3, letters)
    np.testing.assert_allclose(found.sum(1), scores[:, 1 : 1 + merged].sum(1), atol=1e-12)


@pytest.mark.parametrize(
    ("scores", "tokenizer", "stride", "expected"),
    [
        ([9, 1, 2, 3], TOKENIZERS[0], 1, [1, 2, 3]),
        ([9, 3, 6, 2, 99], TOKENIZERS[0], 3, [1, 1, 1, 2, 2, 2, 2]),  # 3, 3 and 1 letters; one of padding
        ([0, 3, 6], KmerTokenizer(DNA, 3), 1, [1, 3, 3, 2]),  # ACG and CGT of ACGT: the middle lies in both
    ],
)
def test_a_token_spreads_evenly_over_its_letters(scores, tokenizer, stride, expected):
    np.testing.assert_allclose(to_letters(scores, tokenizer, stride, len(expected)), expected)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_every_token_reaches_the_letters_of_its_span_alone(tokenizer):
    for token, (start, end) in enumerate(tokenizer.spans(12)):
        one = np.zeros(tokenizer.token_length(12))
        one[token] = 1.0
        found = np.flatnonzero(to_letters(one, tokenizer, 1, 12))
        np.testing.assert_array_equal(found, np.arange(start, end))


def test_shares_sum_to_one_and_nothing_is_shared_evenly():
    np.testing.assert_allclose(shares(np.array([[1.0, 3.0], [0.0, 0.0]])), [[0.25, 0.75], [0.5, 0.5]])


def additive(weights):
    """A score that is a sum over places of a weight for the letter there; ambiguous letters weigh 0."""
    padded = np.pad(weights, ((0, 0), (0, 1)))

    def score(codes):
        return padded[np.arange(codes.shape[1]), codes].sum(1)

    return score


def test_effects_of_an_additive_score_are_differences_of_weights(monkeypatch):
    monkeypatch.setattr(methods, "AT_ONCE", 100)  # several pieces
    rng = np.random.default_rng(0)
    for alphabet in (DNA, PROTEIN):
        size = len(alphabet.letters)
        weights, codes = rng.normal(size=(11, size)), rng.integers(0, size, (4, 11)).astype(np.uint8)
        effects = substitution_effects(codes, alphabet, additive(weights))
        own = weights[np.arange(11), codes]
        np.testing.assert_allclose(effects, weights[None] - own[..., None], atol=1e-12)
        expected = own - (weights.sum(1) - own) / (size - 1)
        np.testing.assert_allclose(loss_of_letters(effects), expected, atol=1e-12)


def test_an_ambiguous_letter_has_no_substitutions():
    codes = DNA.encode("ANG")[None]
    effects = substitution_effects(codes, DNA, additive(np.ones((3, 4))))
    assert np.isnan(effects[0, 1]).all()
    assert not np.isnan(effects[0, [0, 2]]).any()
    assert loss_of_letters(effects)[0, 1] == 0


def test_occlusion_finds_the_stretch_that_counts():
    """The score counts A in places 20 to 29, all of which are A; the rest of the record holds none."""
    codes = np.full((1, 60), 1, dtype=np.uint8)
    codes[0, ::3] = 2
    codes[0, 20:30] = 0
    found = occlusion(codes, DNA, lambda c: (c[:, 20:30] == 0).sum(1).astype(float), block=10)
    assert found.shape == (1, 60)
    assert set(np.argsort(-found[0])[:10]) == set(range(20, 30))
    assert (found[0, :10] == 0).all()  # no stretch over these letters touches the ten
    assert (found[0, 40:] == 0).all()


def test_a_record_is_occluded_alike_in_any_company():
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (5, 40)).astype(np.uint8)
    score = additive(rng.normal(size=(40, 4)))
    alone = occlusion(codes[3:4], DNA, score)[0]
    np.testing.assert_array_equal(occlusion(codes, DNA, score)[3], alone)


def test_occlusion_says_nothing_of_an_ambiguous_letter():
    codes = DNA.encode("ACGTANGTACGATCATCGATTA")[None]
    found = occlusion(codes, DNA, additive(np.random.default_rng(4).normal(size=(22, 4))), block=6)
    assert found[0, 5] == 0
    assert (found[0, [4, 6]] != 0).all()


def test_long_records_are_taken_a_few_stretches_at_a_time(monkeypatch):
    codes = np.random.default_rng(2).integers(0, 4, (2, 60)).astype(np.uint8)
    score = additive(np.random.default_rng(3).normal(size=(60, 4)))
    whole = occlusion(codes, DNA, score), substitution_effects(codes, DNA, score)
    seen = []

    def watched(c):
        seen.append(c.size)
        return score(c)

    monkeypatch.setattr(methods, "AT_ONCE", 200)  # three rows of 60 letters
    np.testing.assert_allclose(occlusion(codes, DNA, watched), whole[0], atol=1e-12)
    np.testing.assert_allclose(substitution_effects(codes, DNA, watched), whole[1], atol=1e-12)
    assert max(seen) <= 200


STEMS = [
    StemConfig(kernels=(3, 7), stride=3, depth=1),
    StemConfig(kernels=(5,), stride=1),
    StemConfig(kernels=(1,), stride=4),
]


def make_stem(stem, count):
    torch.manual_seed(count)
    network = build_network(ModelConfig(d_model=16, layers=1, heads=2, max_length=60, stem=stem)).eval()
    tokens = torch.randint(4, 8, (3, 1 + count))
    tokens[:, 0] = 1
    return network.embedding, tokens


@torch.no_grad()
def one_by_one(stem, tokens):
    """Norm of the change of each token (B, T) for each letter: (B, T, N)."""
    vectors = stem.letters(tokens[:, 1:])
    whole, _ = stem.read(vectors, None)
    changes = []
    for place in range(vectors.shape[1]):
        changed = vectors.clone()
        changed[:, place] = stem.letters.weight[4:].mean(0)
        changes.append((stem.read(changed, None)[0] - whole).norm(dim=-1))
    return torch.stack(changes, -1)


@pytest.mark.parametrize("config", STEMS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 5, 12, 40])
def test_many_letters_at_once_tell_the_same_as_one_by_one(config, count):
    stem, tokens = make_stem(config, count)
    expected = one_by_one(stem, tokens)
    vectors = stem.letters(tokens[:, 1:])
    mean = stem.letters.weight[4:].mean(0).expand_as(vectors)
    with torch.no_grad():
        read = lambda changed: stem.read(changed, None)[0]  # noqa: E731
        changes, places = letter_changes(read, vectors, mean, stem.field, stem.stride)
    found = torch.zeros_like(expected)
    for token in range(changes.shape[1]):
        for weight, place in zip(changes[:, token].T, places[token].tolist(), strict=True):
            if 0 <= place < count:
                found[:, token, place] += weight
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    relevance = torch.rand(3, 1 + changes.shape[1])
    shares = expected / expected.sum(-1, keepdim=True)
    body = torch.einsum("bt,btn->bn", relevance[:, 1:], shares)
    torch.testing.assert_close(
        spread_by_sensitivity(relevance, stem, tokens), torch.cat((relevance[:, :1], body), 1)
    )


def test_a_token_that_no_letter_changes_spreads_over_its_stride():
    stem, tokens = make_stem(STEMS[0], 7)
    with torch.no_grad():
        stem.merge.weight.zero_()
    relevance = torch.tensor([[0.5, 0.3, 0.6, 0.2]]).expand(3, -1)
    expected = torch.tensor([0.5, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2]).expand(3, -1)
    torch.testing.assert_close(spread_by_sensitivity(relevance, stem, tokens), expected)
