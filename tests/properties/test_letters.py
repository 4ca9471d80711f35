"""What must hold for every sequence: letters, tokens, shuffles and the many faces of one FASTA file."""

import bz2
import gzip
import lzma
from collections import Counter

import numpy as np
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import (
    DNA,
    PROTEIN,
    RNA,
    dinucleotide_shuffle,
    reverse_complement,
    reverse_complement_codes,
)
from seqray.io.records import read_fasta
from seqray.models.tokenizers import CharacterTokenizer, KmerTokenizer
from tables import bgzip

ALPHABET = st.sampled_from([DNA, RNA, PROTEIN])
CODES = st.lists(st.integers(0, 4), max_size=200).map(lambda codes: np.array(codes, dtype=np.uint8))


def text_of(letters: str, **sizes: int) -> st.SearchStrategy[str]:
    return st.text(st.sampled_from(letters), **sizes)


@given(ALPHABET.flatmap(lambda a: st.tuples(st.just(a), text_of(a.letters))))
def test_encoding_and_decoding_gives_the_sequence_back(case):
    alphabet, sequence = case
    assert alphabet.decode(alphabet.encode(sequence)) == sequence


@given(ALPHABET.flatmap(lambda a: st.tuples(st.just(a), text_of(a.letters + a.ambiguous))))
def test_ambiguous_letters_are_those_of_the_unknown_code(case):
    alphabet, sequence = case
    codes = alphabet.encode(sequence)
    ambiguous = sum(letter not in alphabet.letters for letter in sequence)
    assert ambiguous == np.count_nonzero(codes == alphabet.unknown)
    assert codes.shape == (len(sequence),)


@given(text_of(DNA.letters + "N"), st.data())
def test_normalizing_is_blind_to_case_and_changes_nothing_twice(sequence, data):
    upper = data.draw(st.lists(st.booleans(), min_size=len(sequence), max_size=len(sequence)))
    mixed = "".join(c if u else c.lower() for c, u in zip(sequence, upper, strict=True))
    assert DNA.normalize(mixed) == DNA.normalize(sequence) == sequence
    assert DNA.encode(mixed).tolist() == DNA.encode(sequence).tolist()


@given(CODES)
def test_reverse_complement_of_codes_is_that_of_letters(codes):
    assert DNA.decode(reverse_complement_codes(codes)) == reverse_complement(DNA.decode(codes))
    assert reverse_complement_codes(reverse_complement_codes(codes)).tolist() == codes.tolist()


@given(text_of(DNA.letters, min_size=6), st.integers(1, 6))
def test_tokens_of_plain_letters_decode_to_them(sequence, k):
    tokenizer = KmerTokenizer(DNA, k)
    assert tokenizer.decode(tokenizer.encode(sequence)) == sequence


@given(text_of(DNA.letters + "N", min_size=6), st.integers(1, 6))
def test_decoded_words_may_lack_a_letter_but_never_invent_one(sequence, k):
    tokenizer = KmerTokenizer(DNA, k)
    decoded = tokenizer.decode(tokenizer.encode(sequence))
    assert len(decoded) == len(sequence)
    assert all(got in (letter, "N") for got, letter in zip(decoded, sequence, strict=True))


@given(CODES)
def test_words_of_one_letter_are_characters(codes):
    assert KmerTokenizer(DNA, 1).encode_codes(codes[:, None]).tolist() == (
        CharacterTokenizer(DNA).encode_codes(codes[:, None]).tolist()
    )


@given(CODES, st.integers(0, 2**32))
def test_shuffle_keeps_every_dinucleotide_and_both_ends(codes, seed):
    shuffled = dinucleotide_shuffle(codes, np.random.default_rng(seed))
    pairs, shuffled_pairs = (
        Counter(zip(c[:-1].tolist(), c[1:].tolist(), strict=True)) for c in (codes, shuffled)
    )
    assert shuffled_pairs == pairs
    assert shuffled[:1].tolist() == codes[:1].tolist()
    assert shuffled[-1:].tolist() == codes[-1:].tolist()


RECORDS = st.lists(
    st.tuples(st.text(st.sampled_from("ab1_|σ."), min_size=1, max_size=8), text_of("ACGTN", min_size=1)),
    min_size=1,
    max_size=8,
    unique_by=lambda record: record[0],
)


@settings(max_examples=150, deadline=None)
@given(
    records=RECORDS,
    width=st.integers(1, 100),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    last_line_end=st.booleans(),
    preamble=st.sampled_from(["", "; a comment", "# one\n\n;two\n", "\n"]),
    lower=st.booleans(),
    compress=st.sampled_from([bytes, gzip.compress, bgzip, bz2.compress, lzma.compress]),
)
def test_fasta_reads_the_same_however_it_is_written(
    tmp_path_factory, records, width, line_end, last_line_end, preamble, lower, compress
):
    lines = preamble.splitlines()
    for identifier, sequence in records:
        body = sequence.lower() if lower else sequence
        lines += [f">{identifier} text", *(body[i : i + width] for i in range(0, len(body), width))]
    text = line_end.join(lines) + (line_end if last_line_end else "")
    path = tmp_path_factory.getbasetemp() / "any.fa"
    path.write_bytes(compress(text.encode()))
    read = [(record.id, record.description, record.sequence) for record in read_fasta(path, DNA)]
    assert read == [(identifier, "text", sequence) for identifier, sequence in records]
