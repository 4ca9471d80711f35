"""Letters to the tokens of other people's encoders, and back to letters."""

from __future__ import annotations

import numpy as np
import pytest
from transformers import AutoTokenizer

from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import ConfigError, InputError
from seqray.core.model_config import BackboneConfig
from seqray.modelfile.backbones import load_tokenizer


@pytest.fixture
def load(backbones):
    return lambda kind, alphabet: load_tokenizer(BackboneConfig(path=str(backbones[kind])), alphabet)


@pytest.mark.parametrize(
    ("kind", "alphabet", "sequence"),
    [("esm", "protein", "MKTAYIAX"), ("kmer", "dna", "ACGTACGTNACGTA"), ("bpe", "dna", "ACGTTACGNACG")],
)
def test_tokens_are_the_ids_of_the_directory_plus_one(kind, alphabet, sequence, load, backbones):
    ids = AutoTokenizer.from_pretrained(backbones[kind])(sequence)["input_ids"]
    tokens = load(kind, alphabet).encode(sequence)
    assert tokens.tolist() == [i + 1 for i in ids]


def test_rows_are_filled_up_and_cut_to_their_lengths(load):
    tokenizer = load("kmer", "dna")
    codes = np.stack([DNA.encode("ACGTACACGTAC"), DNA.encode("ACGTACNNNNNN"), DNA.encode("NACGTACACGTA")])
    tokens = tokenizer.encode_codes(codes, np.array([12, 6, 12]))
    rows = [tokenizer.encode(s) for s in ("ACGTACACGTAC", "ACGTAC", "NACGTACACGTA")]
    assert [len(row) for row in rows] == [3, 2, 8]  # words of six, then single letters
    assert tokens.shape == (3, 8)
    for found, row in zip(tokens, rows, strict=True):
        assert found.tolist() == [*row, *[0] * (8 - len(row))]
    assert tokenizer.mask(tokens, np.array([12, 6, 12])).sum(axis=1).tolist() == [3, 2, 8]


@pytest.mark.parametrize(
    ("kind", "alphabet", "sequence", "spans"),
    [
        ("esm", PROTEIN, "MKX", [(0, 0), (0, 1), (1, 2), (2, 3), (0, 0)]),
        ("kmer", DNA, "ACGTACGTNAC", [(0, 0), (0, 6), (6, 7), (7, 8), (8, 9), (9, 10), (10, 11)]),
    ],
)
def test_spans_of_words_that_spell_the_sequence(kind, alphabet, sequence, spans, load):
    found = load(kind, alphabet.name).spans(alphabet.encode(sequence))
    assert found.tolist() == [list(span) for span in spans]


def test_spans_of_a_learned_vocabulary_are_where_its_words_stand(load, backbones):
    words = AutoTokenizer.from_pretrained(backbones["bpe"])
    sequence = "ACGTTGCANGGATATCC"
    spans = load("bpe", "dna").spans(DNA.encode(sequence))
    ids = words(sequence)["input_ids"]
    assert spans[0].tolist() == spans[-1].tolist() == [0, 0]
    covered = 0
    for i, (start, end) in zip(ids[1:-1], spans[1:-1].tolist(), strict=True):
        assert start == covered
        assert words.convert_ids_to_tokens(i) == (
            "[UNK]" if sequence[start:end] == "N" else sequence[start:end]
        )
        covered = end
    assert covered == len(sequence)
    assert (np.diff(spans[1:-1], axis=1) > 1).any()


def test_u_is_written_as_t_for_a_vocabulary_of_dna(load):
    dna, rna = load("bpe", "dna"), load("bpe", "rna")
    assert rna.encode("ACGUUGCA").tolist() == dna.encode("ACGTTGCA").tolist()
    assert rna.spans(RNA.encode("ACGUUGCA")).tolist() == dna.spans(DNA.encode("ACGTTGCA")).tolist()


def test_letters_and_special_tokens_are_told_apart(load, backbones):
    tokenizer = load("esm", "protein")
    lines = (backbones["esm"] / "vocab.txt").read_text().splitlines()
    assert tokenizer.letter_tokens.tolist() == sorted(1 + lines.index(letter) for letter in PROTEIN.letters)
    names = ("<cls>", "<pad>", "<eos>", "<mask>")
    assert tokenizer.special_tokens.tolist() == sorted(1 + lines.index(name) for name in names)
    assert tokenizer.starts_with_cls


def test_an_alphabet_that_the_vocabulary_lacks_is_refused(load):
    with pytest.raises(ConfigError, match=r"does not know the letter D of 'model\.alphabet: protein'; set"):
        load("bpe", "protein")


def test_the_limit_of_positions_is_checked(load):
    esm, bpe = load("esm", "protein"), load("bpe", "dna")
    esm.check("A" * 60)  # with CLS and the end 62 tokens: positions 2 to 63 of 64
    with pytest.raises(InputError, match="makes 63 tokens, the backbone reads at most 62; cut"):
        esm.check("A" * 61)
    with pytest.raises(InputError, match="makes 63 tokens"):
        esm.encode("A" * 61)
    bpe.check("ACGT" * 20)  # 80 letters, but fewer tokens
    with pytest.raises(InputError, match="makes 102 tokens, the backbone reads at most 64"):
        bpe.check("N" * 100)
