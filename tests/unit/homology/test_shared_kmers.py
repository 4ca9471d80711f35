"""Shared k-mers against sets of substrings."""

import numpy as np
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN, reverse_complement
from seqray.homology import kmers as shared_kmers
from seqray.homology.kmers import kmer_table


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
    table = kmer_table(sequences, k, alphabet)
    found = [words(s, k, alphabet is DNA) for s in sequences]
    rows, others = np.arange(cut), np.arange(cut, len(sequences))
    across = [any(found[i] & found[j] for j in others) for i in rows]
    within = [any(found[i] & found[j] for j in others if j != i) for i in others]
    labels = np.arange(len(sequences)) % 2
    alike = [any(found[i] & found[j] for j in others if j != i and labels[i] == labels[j]) for i in others]
    assert table.sharing_within(others, labels).tolist() == alike
    assert table.sharing_across(rows, others).tolist() == across
    assert table.sharing_within(others).tolist() == within


def test_long_words_are_hashed_in_pieces_that_differ_at_every_place():
    rng = np.random.default_rng(0)
    base = "".join(rng.choice(list("ACGT"), 70))
    changed = [base[:i] + ("A" if base[i] != "A" else "C") + base[i + 1 :] for i in range(70)]
    table = kmer_table([base, *changed], 70, DNA)
    assert not table.sharing_across(np.arange(1), np.arange(1, 71)).any()
    assert len(np.unique(table.keys)) == 71
    turned = kmer_table([base, reverse_complement(base, DNA)], 70, DNA)
    assert turned.sharing_within(np.arange(2)).all()


def test_chunks_make_no_difference(monkeypatch):
    rng = np.random.default_rng(1)
    sequences = ["".join(rng.choice(list("ACGTN"), rng.integers(1, 60))) for _ in range(50)]
    whole = kmer_table(sequences, 8, DNA)
    monkeypatch.setattr(shared_kmers, "_CHUNK_LETTERS", 100)
    pieces = kmer_table(sequences, 8, DNA)
    assert np.array_equal(whole.keys, pieces.keys)
    assert np.array_equal(whole.owners, pieces.owners)


def test_a_sample_of_kmers_still_finds_what_overlaps():
    rng = np.random.default_rng(2)
    genome = "".join(rng.choice(list("ACGT"), 20_000))
    windows = [genome[i : i + 200] for i in range(0, 19_800, 100)]  # each shares half with its neighbor
    table = kmer_table(windows, 20, DNA, most=8_000)
    assert len(table.keys) < 15_000
    assert table.sharing_within(np.arange(len(windows))).mean() > 0.95
