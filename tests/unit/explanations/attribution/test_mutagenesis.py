"""Mutagenesis and occlusion of scores whose answer is known."""

import numpy as np

from seqray.core.alphabet import DNA, PROTEIN
from seqray.explanations import methods
from seqray.explanations.methods import loss_of_letters, occlusion, substitution_effects


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
