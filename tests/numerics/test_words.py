"""Words of letters as `KmerEmbedding` adds them, against their definition."""

import itertools

import pytest
import torch
from hypothesis import given, strategies as st

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.modelfile.networks import build_model
from seqray.models.layers import KmerEmbedding
from seqray.models.tokenizers import CLS, FIRST_LETTER, MASK

LETTERS, LONGEST, D = 3, 4, 2
WORDS = {
    "".join(word): place
    for length in range(2, LONGEST + 1)
    for place, word in enumerate(itertools.product("abc", repeat=length))
}


def layer() -> KmerEmbedding:
    torch.manual_seed(0)
    words = KmerEmbedding(LETTERS, LONGEST, D)
    with torch.no_grad():
        for table in words.tables:
            table.copy_(torch.randn_like(table))
    return words


LAYER = layer()


@torch.no_grad()
@given(st.text("abc?", min_size=1, max_size=9), st.integers(0, 3))
def test_each_letter_gains_the_words_that_begin_there(text, behind):
    """Words with an unknown letter, and what stands behind the text, count for nothing."""
    letters = torch.tensor([["?abc".index(c) - 1 for c in text] + [1] * behind])
    found = LAYER(letters, torch.arange(letters.shape[1])[None] < len(text))[0]
    assert found.shape == (len(text) + behind, D)
    for start, vector in enumerate(found):
        expected = torch.zeros(D)
        for length in range(2, LONGEST + 1):
            word = text[start : start + length]
            if word in WORDS and len(word) == length:
                expected += LETTERS ** (length / 2) * LAYER.tables[length - 2][WORDS[word]]
        torch.testing.assert_close(vector, expected)


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 3])
def test_a_token_gains_the_words_of_its_letters(stride):
    torch.manual_seed(0)
    config = ModelConfig(d_model=4, heads=1, layers=1, words=3, stem=StemConfig(kernels=(3,), stride=stride))
    network = build_model(config).eval()
    assert network.words
    for table in network.words.tables:
        table.copy_(torch.randn_like(table))
    letters = torch.tensor([[0, 1, 2, 3, 0, 0, 1, 2]])
    tokens = torch.cat((torch.tensor([[CLS]]), letters + FIRST_LETTER), dim=1)
    tokens[0, 4] = MASK
    letters[0, 3] = -1
    each, whole = network.words(letters, letters >= -1)[0], network.embed(tokens)[0]
    network.words = None
    added = (whole - network.embed(tokens)[0])[0]
    assert not added[0].any()  # CLS
    for token, start in enumerate(range(0, 8, stride), start=1):
        torch.testing.assert_close(
            added[token], each[start : start + stride].sum(dim=0), atol=1e-5, rtol=1e-4
        )


def test_they_begin_at_nothing():
    assert not any(table.any() for table in KmerEmbedding(4, 3, 8).tables)
