"""Tokens: values, special tokens, spans and decoding, against a dictionary of words."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import ConfigError, InputError
from seqray.models.tokenizers import CLS, MASK, PAD, UNK, CharacterTokenizer, KmerTokenizer


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
    with pytest.raises(ValueError, match="shape"):
        tokenizer.decode([[4, 5]])


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
