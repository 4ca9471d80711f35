"""Tokens of sequences and alignments, and their batches."""

import itertools
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from seqray.core.alphabet import ALPHABETS, DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.models.batches import collate
from seqray.models.tokenizers import (
    CLS,
    MASK,
    PAD,
    UNK,
    AlignmentTokenizer,
    CharacterTokenizer,
    KmerTokenizer,
    size_buckets,
)


def words_by_dictionary(sequence: str, letters: str, k: int) -> list[int]:
    vocabulary = {"".join(word): 4 + i for i, word in enumerate(product(letters, repeat=k))}
    return [1] + [vocabulary.get(sequence[i : i + k], 3) for i in range(len(sequence) - k + 1)]


def test_character_tokens():
    tokenizer = CharacterTokenizer(DNA)
    assert tokenizer.vocab_size == 8
    assert tokenizer.encode("ACGTNR").tolist() == [CLS, 4, 5, 6, 7, UNK, UNK]
    assert tokenizer.encode("ACGT").dtype == np.int64
    assert CharacterTokenizer(PROTEIN).encode("AYX").tolist() == [CLS, 4, 23, UNK]


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_kmer_tokens_agree_with_a_dictionary(k):
    sequence = "ACGTTGCANNACGRTACCATGATTACAN"
    assert KmerTokenizer(DNA, k).encode(sequence).tolist() == words_by_dictionary(sequence, "ACGT", k)
    assert KmerTokenizer(DNA, k).vocab_size == 4 + 4**k


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer(DNA), KmerTokenizer(DNA, 4)])
def test_windows_are_encoded_over_any_leading_axes(tokenizer):
    sequences = ["ACGTACGTAC", "NNACGTTTGA", "TTTTTTTTTT", "ACGRACGTAA"]
    codes = np.stack([DNA.encode(s) for s in sequences]).reshape(2, 2, 10)
    tokens = tokenizer.encode_codes(codes)
    assert tokens.shape == (2, 2, tokenizer.token_length(10))
    assert tokens.reshape(4, -1).tolist() == [tokenizer.encode(s).tolist() for s in sequences]


def test_decoding_leaves_out_cls_and_padding():
    tokenizer = CharacterTokenizer(DNA)
    assert tokenizer.decode([CLS, 4, 7, MASK, UNK, 5, PAD, PAD]) == "ATNNC"
    assert KmerTokenizer(DNA, 3).decode([CLS, PAD]) == ""


@pytest.mark.parametrize(("tokenizer", "k"), [(CharacterTokenizer(DNA), 1), (KmerTokenizer(DNA, 3), 3)])
def test_spans_cut_the_word_that_the_token_stands_for(tokenizer, k):
    sequence = "ACGTTGCA"
    spans, tokens = tokenizer.spans(len(sequence)), tokenizer.encode(sequence)
    assert spans.shape == (len(tokens), 2) == (tokenizer.token_length(len(sequence)), 2)
    assert spans[0].tolist() == [0, 0]
    for (start, end), token in zip(spans[1:], tokens[1:], strict=True):
        assert end - start == k
        assert tokenizer.decode([token]) == sequence[start:end]


def test_sequence_shorter_than_a_word_is_refused():
    with pytest.raises(InputError, match="2 letters are too few for 3-mers"):
        KmerTokenizer(DNA, 3).encode("AC")


def test_vocabulary_beyond_reason_is_refused():
    with pytest.raises(ConfigError, match="64000000 k-mers of protein"):
        KmerTokenizer(PROTEIN, 6)


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


def test_a_letter_that_equals_padding_is_still_real():
    """The mask comes from lengths: a PAD token within a sequence is not taken for padding."""
    batch = collate([np.array([1, 0, 5]), np.array([1, 5])])
    assert batch.masks[0] is not None
    assert batch.masks[0].tolist() == [[True, True, True], [True, True, False]]


@given(
    lengths=st.lists(st.integers(1, 50), max_size=60),
    batch_size=st.integers(1, 20),
    max_tokens=st.integers(1, 200),
)
def test_buckets_hold_everything_once_within_the_limits(lengths, batch_size, max_tokens):
    buckets = [bucket.tolist() for bucket in size_buckets(lengths, batch_size, max_tokens)]
    order = [index for bucket in buckets for index in bucket]
    assert order == sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    for bucket in buckets:
        widest = max(lengths[index] for index in bucket)
        assert 1 <= len(bucket) <= batch_size
        assert len(bucket) * widest <= max_tokens or len(bucket) == 1
    for bucket, following in itertools.pairwise(buckets):  # none is split without need
        size = len(bucket) + 1
        assert size > batch_size or size * lengths[following[0]] > max_tokens
