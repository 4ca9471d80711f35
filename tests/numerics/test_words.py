"""Words of letters and compositions, as networks compute them, against definitions and counts by hand."""

import itertools
import math
from collections import Counter

import pytest
import torch
from hypothesis import given, strategies as st

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.modelfile.file import build_network
from seqray.models.layers import KmerEmbedding
from seqray.models.sequence import Composition, SequenceTransformer
from seqray.models.tokenizers import CLS, FIRST_LETTER, MASK

LETTERS, LONGEST, WIDTH = 3, 4, 2
WORDS = {
    "".join(word): place
    for length in range(2, LONGEST + 1)
    for place, word in enumerate(itertools.product("abc", repeat=length))
}


def layer() -> KmerEmbedding:
    torch.manual_seed(0)
    words = KmerEmbedding(LETTERS, LONGEST, WIDTH)
    with torch.no_grad():
        for table in words.tables:
            table.copy_(torch.randn_like(table))
    return words


WORD_LAYER = layer()


@torch.no_grad()
@given(st.text("abc?", min_size=1, max_size=9), st.integers(0, 3))
def test_each_letter_gains_the_words_that_begin_there(text, behind):
    """Words with an unknown letter, and what stands behind the text, count for nothing."""
    letters = torch.tensor([["?abc".index(c) - 1 for c in text] + [1] * behind])
    found = WORD_LAYER(letters, torch.arange(letters.shape[1])[None] < len(text))[0]
    assert found.shape == (len(text) + behind, WIDTH)
    for start, vector in enumerate(found):
        expected = torch.zeros(WIDTH)
        for length in range(2, LONGEST + 1):
            word = text[start : start + length]
            if word in WORDS and len(word) == length:
                expected += LETTERS ** (length / 2) * WORD_LAYER.tables[length - 2][WORDS[word]]
        torch.testing.assert_close(vector, expected)


@torch.no_grad()
@pytest.mark.parametrize("stride", [1, 3])
def test_a_token_gains_the_words_of_its_letters(stride):
    torch.manual_seed(0)
    config = ModelConfig(d_model=4, heads=1, layers=1, words=3, stem=StemConfig(kernels=(3,), stride=stride))
    network = build_network(config).eval()
    assert isinstance(network, SequenceTransformer)
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


ABC = "abc"
LAYER = Composition(len(ABC), ("whole", "ends", "pairs"), 2, "gelu", 0.0)
ENDS, GAPS = {15: 1.5, 30: 1.9, 60: 2.5}, (1, 2, 3)


def scaled(found: list[str], kinds: list[str], factor: float) -> list[float]:
    """c (√(m p) - 1) of each kind; 0 where nothing was found."""
    counts, total = Counter(found), len(found)
    if not total:
        return [0.0] * len(kinds)
    return [factor * (math.sqrt(len(kinds) * counts[kind] / total) - 1) for kind in kinds]


def expected(text: str) -> list[float]:
    """All features of a text, in which letters other than a, b and c are unknown."""
    letters, pairs = list(ABC), [a + b for a in ABC for b in ABC]

    def known(part: str) -> list[str]:
        return [letter for letter in part if letter in ABC]

    values = scaled(known(text), letters, 5.0)
    for end in (lambda n: text[:n], lambda n: text[-n:]):
        for length, factor in ENDS.items():
            values += scaled(known(end(length)), letters, factor)
    for gap in GAPS:
        near = [a + b for a, b in zip(text, text[gap:], strict=False) if a + b in pairs]
        values += scaled(near, pairs, 1.6)
    return values


@given(st.text("abc?", min_size=1, max_size=70), st.integers(0, 5))
def test_the_features_are_scaled_shares_of_letters_and_pairs(text, behind):
    """Unknown letters, and what stands behind the text, count for nothing."""
    letters = torch.tensor([["?abc".index(letter) - 1 for letter in text] + [1] * behind])
    found = LAYER.features(letters, torch.arange(letters.shape[1])[None] < len(text))
    torch.testing.assert_close(found[0], torch.tensor(expected(text)), atol=1e-5, rtol=1e-5)


def test_counts_are_exact_in_bfloat16():
    """1025 letters would round to 1024 there."""
    letters = torch.zeros((1, 1025), dtype=torch.long)
    letters[0, 0] = 1
    real = torch.ones_like(letters, dtype=torch.bool)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = LAYER.features(letters, real)
    assert torch.equal(found, LAYER.features(letters, real))


@torch.no_grad()
def test_a_network_adds_it_to_cls_alone():
    torch.manual_seed(0)
    config = ModelConfig(d_model=4, heads=1, layers=1, composition=("whole",))
    network = build_network(config).eval()
    layer = network.composition
    assert layer is not None
    tokens = torch.tensor([[CLS, FIRST_LETTER, MASK, FIRST_LETTER + 3]])
    whole = network.embed(tokens)[0]
    network.composition = None
    added = whole - network.embed(tokens)[0]
    features = 5 * torch.tensor([[2**0.5 - 1, -1.0, -1.0, 2**0.5 - 1]])  # A and T, the masked letter left out
    torch.testing.assert_close(added[0, :1], layer.down(torch.nn.functional.gelu(layer.up(features))))
    assert not added[0, 1:].any()
