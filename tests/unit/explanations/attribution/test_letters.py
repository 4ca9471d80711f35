"""From tokens back to letters: the sum stays, and each token reaches its own letters alone."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA
from seqray.explanations.targets import shares, to_letters
from seqray.models.tokenizers import CharacterTokenizer, KmerTokenizer

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


def test_letters_are_tokens_without_a_stem():
    np.testing.assert_array_equal(to_letters([9, 1, 2, 3], TOKENIZERS[0], 1, 3), [1, 2, 3])


def test_a_stem_spreads_evenly_and_the_last_token_may_be_short():
    found = to_letters([9, 3, 6, 2, 99], TOKENIZERS[0], 3, 7)  # tokens of 3, 3 and 1 letters; one of padding
    np.testing.assert_allclose(found, [1, 1, 1, 2, 2, 2, 2])


def test_a_word_spreads_over_its_letters():
    """ACG and CGT of ACGT: the middle letters lie in both."""
    np.testing.assert_allclose(to_letters([0, 3, 6], KmerTokenizer(DNA, 3), 1, 4), [1, 3, 3, 2])


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_every_token_reaches_the_letters_of_its_span_alone(tokenizer):
    for token, (start, end) in enumerate(tokenizer.spans(12)):
        one = np.zeros(tokenizer.token_length(12))
        one[token] = 1.0
        found = np.flatnonzero(to_letters(one, tokenizer, 1, 12))
        np.testing.assert_array_equal(found, np.arange(start, end))


def test_shares_sum_to_one_and_nothing_is_shared_evenly():
    np.testing.assert_allclose(shares(np.array([[1.0, 3.0], [0.0, 0.0]])), [[0.25, 0.75], [0.5, 0.5]])
