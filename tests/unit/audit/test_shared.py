"""Shared words against sets of substrings, and the length of word against arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.datasets.audit import shared
from seqray.datasets.audit.shared import (
    chance_length,
    related_across,
    related_within,
    word_length,
    word_table,
)


def words(sequence, k, both_strands):
    if len(sequence) < k:
        found = {sequence}
    else:
        found = {sequence[i : i + k] for i in range(len(sequence) - k + 1)}
        found = {word for word in found if not set(word) & set("NX")}
    return found | {reverse_complement(word, DNA) for word in found} if both_strands else found


DNA_SETS = st.lists(st.text("ACGTN", min_size=1, max_size=30), min_size=2, max_size=12)
PROTEIN_SETS = st.lists(st.text("ACDEX", min_size=1, max_size=20), min_size=2, max_size=12)


@given(DNA_SETS, st.integers(1, 6), st.data())
def test_relatives_in_dna_agree_with_brute_force(sequences, k, data):
    check(sequences, k, DNA, data.draw(st.integers(1, len(sequences) - 1)))


@given(PROTEIN_SETS, st.integers(1, 4), st.data())
def test_relatives_in_protein_agree_with_brute_force(sequences, k, data):
    check(sequences, k, PROTEIN, data.draw(st.integers(1, len(sequences) - 1)))


def check(sequences, k, alphabet, cut):
    table = word_table(sequences, k, alphabet)
    found = [words(s, k, alphabet is DNA) for s in sequences]
    rows, others = np.arange(cut), np.arange(cut, len(sequences))
    across = [any(found[i] & found[j] for j in others) for i in rows]
    within = [any(found[i] & found[j] for j in others if j != i) for i in others]
    labels = np.arange(len(sequences)) % 2
    alike = [any(found[i] & found[j] for j in others if j != i and labels[i] == labels[j]) for i in others]
    assert related_within(table, others, labels).tolist() == alike
    assert related_across(table, rows, others).tolist() == across
    assert related_within(table, others).tolist() == within


def test_long_words_are_hashed_in_pieces_that_differ_at_every_place():
    rng = np.random.default_rng(0)
    base = "".join(rng.choice(list("ACGT"), 70))
    changed = [base[:i] + ("A" if base[i] != "A" else "C") + base[i + 1 :] for i in range(70)]
    table = word_table([base, *changed], 70, DNA)
    assert not related_across(table, np.arange(1), np.arange(1, 71)).any()
    assert len(np.unique(table.key)) == 71
    turned = word_table([base, reverse_complement(base, DNA)], 70, DNA)
    assert related_within(turned, np.arange(2)).all()


def test_chunks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(1)
    sequences = ["".join(rng.choice(list("ACGTN"), rng.integers(1, 60))) for _ in range(50)]
    whole = word_table(sequences, 8, DNA)
    monkeypatch.setattr(shared, "CHUNK", 100)
    pieces = word_table(sequences, 8, DNA)
    assert np.array_equal(whole.key, pieces.key)
    assert np.array_equal(whole.owner, pieces.owner)


def test_a_sample_of_words_still_sees_what_overlaps(monkeypatch):
    rng = np.random.default_rng(2)
    genome = "".join(rng.choice(list("ACGT"), 20_000))
    windows = [genome[i : i + 200] for i in range(0, 19_800, 100)]  # each shares half with its neighbour
    monkeypatch.setattr(shared, "MOST_WORDS", 8_000)
    table = word_table(windows, 20, DNA)
    assert len(table.key) < 15_000
    assert related_within(table, np.arange(len(windows))).mean() > 0.95


def test_no_sequences():
    assert word_table([], 5, DNA).count == 0


def test_word_length_by_arithmetic():
    # 1000 sequences of 81 letters, each letter as often as any other: letters meet with 1/4, so with both
    # strands 2 * 81 * 81000 * 4**-k < 0.001 first holds at k = ceil(log4(1.3122e10)).
    sequences = ["ACGT" * 20 + "ACGT"[i % 4] for i in range(1000)]
    by_hand = math.ceil(math.log(2 * 81 * 81_000 / 0.001) / math.log(4))
    assert by_hand == 17
    assert chance_length(sequences, DNA) == by_hand
    assert word_length(sequences, DNA) == 40
    assert word_length([s[:60] for s in sequences], DNA) == 30
    assert word_length([s[:20] for s in sequences], DNA) == 15  # by chance, not half of 20
    assert word_length(["ACGT" * 100] * 10, DNA) == 40


def test_word_length_of_protein():
    sequences = [PROTEIN.letters * 5] * 10
    assert chance_length(sequences, PROTEIN) == math.ceil(math.log(100 * 1000 / 0.001) / math.log(20))
    assert word_length(sequences, PROTEIN) == 10


@pytest.mark.parametrize("sequences", [["AAAA", "AAAA"], ["NNNN", "NN"]])
def test_word_length_without_information(sequences):
    assert word_length(sequences, DNA) >= 1
