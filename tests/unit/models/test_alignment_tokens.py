"""Tokens of alignments, and batches of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from seqray.core.alphabet import ALPHABETS, PROTEIN, RNA
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.modelfile.networks import build_model
from seqray.models.batches import collate
from seqray.models.tokenizers import CLS, MASK, PAD, AlignmentTokenizer, CharacterTokenizer, size_buckets


def test_tokens_by_hand():
    codes = np.array([[0, 3, 4, 5, 6]], dtype=np.uint8)  # A, U, N, gap, missing
    assert AlignmentTokenizer(RNA).encode(codes).tolist() == [[1, 4, 7, 3, 8, 9]]


@pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=list(ALPHABETS))
def test_letters_have_the_tokens_of_single_sequences(alphabet):
    codes = np.arange(alphabet.unknown + 1, dtype=np.uint8)
    single = CharacterTokenizer(alphabet).encode_codes(codes)
    assert AlignmentTokenizer(alphabet).encode(codes[None])[0].tolist() == single.tolist()


@given(arrays(np.uint8, st.tuples(st.integers(1, 4), st.integers(1, 6)), elements=st.integers(0, 22)))
def test_tokens_and_back(codes):
    tokenizer = AlignmentTokenizer(PROTEIN)
    tokens = tokenizer.encode(codes)
    assert tokens.max() < tokenizer.vocab_size
    assert tokenizer.decode(tokens).tolist() == codes.tolist()


def test_masked_and_padded_tokens_are_missing_data():
    tokenizer = AlignmentTokenizer(RNA)
    assert tokenizer.decode([[CLS, MASK, PAD, tokenizer.gap]]).tolist() == [[6, 6, 5]]


def test_collated_alignments_are_padded_at_both_ends():
    batch = collate([np.array([[1, 4, 5]]), np.array([[1, 6], [1, 7]])])
    assert batch.tokens.tolist() == [[[1, 4, 5], [0, 0, 0]], [[1, 6, 0], [1, 7, 0]]]
    assert batch.masks[0].tolist() == [[True, False], [True, True]]
    assert batch.masks[1].tolist() == [[True, True, True], [True, True, False]]
    assert batch.to("cpu").tokens.dtype == torch.int64


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=30),
    st.integers(1, 8),
    st.integers(1, 3000),
)
def test_buckets_hold_each_alignment_once_and_keep_their_limits(shapes, batch_size, max_tokens):
    buckets = size_buckets(shapes, batch_size, max_tokens)
    assert sorted(i for bucket in buckets for i in bucket.tolist()) == list(range(len(shapes)))
    for bucket in buckets:
        sizes = np.array(shapes)[bucket]
        assert len(bucket) <= batch_size
        assert len(bucket) == 1 or len(bucket) * sizes[:, 0].max() * sizes[:, 1].max() <= max_tokens


# --- settings --------------------------------------------------------------------------------------------


def test_a_model_of_alignments_is_none_of_sequences():
    with pytest.raises(ConfigError, match=r"model\.kind"):
        build_model(ModelConfig(kind="alignment"))
