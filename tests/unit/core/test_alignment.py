"""Columns of alignments, and which rows a model reads."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import entropy

from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.records import (
    Alignment,
    choose_columns,
    choose_rows,
    conservation,
    crop_alignment,
    looks_unaligned,
    occupancy,
    omits_letters,
)

CODES = np.array(
    [  # all alike; four kinds; half and half; one letter; N only; nothing
        [0, 0, 1, 5, 4, 5],
        [0, 1, 1, 2, 5, 6],
        [0, 2, 3, 6, 5, 5],
        [0, 3, 3, 5, 5, 6],
    ],
    dtype=np.uint8,
)


def test_occupancy_counts_letters():
    assert occupancy(CODES, RNA).tolist() == [1, 1, 1, 0.25, 0.25, 0]


def test_conservation_by_hand():
    found = conservation(CODES, RNA)
    assert found[:4] == pytest.approx([1, 0, 0.5, 1])
    assert np.isnan(found[4:]).all()


def test_conservation_of_residues_is_entropy_over_its_largest():
    codes = np.random.default_rng(0).integers(0, 20, (50, 6)).astype(np.uint8)
    expected = [1 - entropy(np.bincount(column, minlength=20)) / np.log(20) for column in codes.T]
    assert conservation(codes, PROTEIN) == pytest.approx(expected)


def test_rows_that_share_no_more_than_chance_look_unaligned():
    latin = np.array([np.roll(np.arange(4), i) for i in range(4)], dtype=np.uint8)  # no two rows ever agree
    family = np.repeat(np.arange(4, dtype=np.uint8)[None], 4, axis=0)
    assert looks_unaligned(latin, RNA)
    assert not looks_unaligned(family, RNA)
    gapped = latin.copy()
    gapped[0, 0] = RNA.unknown + 1
    assert not looks_unaligned(gapped, RNA)
    assert not looks_unaligned(latin[:1], RNA)
    mixed = np.array([[0, 0, 1, 1]] * 2 + [[1, 1, 0, 0]] * 2, dtype=np.uint8)
    assert looks_unaligned(mixed, RNA)  # 1/3 of the pairs agree
    assert not looks_unaligned(np.array([[0, 1]] * 11 + [[1, 0]], dtype=np.uint8), RNA)  # 55 of 66


def test_rows_of_one_letter_are_no_reason_to_doubt():
    assert not looks_unaligned(np.zeros((3, 5), dtype=np.uint8), RNA)  # identical, as chance would have it


LETTERS = RNA.unknown + 1
some_codes = arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 90)), elements=st.integers(0, 6))


@given(some_codes, st.integers(1, 14), st.sampled_from(["diverse", "random"]), st.integers(0, 3))
def test_the_query_stays_and_rows_keep_their_order(codes, depth, choice, seed):
    rows = choose_rows(codes, depth, choice, seed)
    assert rows[0] == 0
    assert len(rows) == min(depth, len(codes))
    assert (np.diff(rows) > 0).all()
    assert rows.tolist() == choose_rows(codes, depth, choice, seed).tolist()


def test_random_rows_depend_on_the_seed_and_all_are_drawn():
    codes = np.zeros((8, 3), dtype=np.uint8)
    drawn = [tuple(choose_rows(codes, 4, "random", seed).tolist()) for seed in range(200)]
    assert len(set(drawn)) > 20
    counts = np.bincount(np.concatenate(drawn), minlength=8)
    assert counts[0] == 200
    # each of 7 rows is drawn with probability 3/7: 86 times of 200, with a standard deviation of 7
    assert (np.abs(counts[1:] - 200 * 3 / 7) < 35).all()


def test_the_most_different_rows_by_hand():
    """From 0000: 1111 differs most; then 2200 with 2 + 4 against 4 and 4; then 0011 with 8 against 7."""
    codes = np.array([[0, 0, 0, 0], [0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 1, 1], [2, 2, 0, 0]], dtype=np.uint8)
    assert choose_rows(codes, 2).tolist() == [0, 2]
    assert choose_rows(codes, 3).tolist() == [0, 2, 4]
    assert choose_rows(codes, 4).tolist() == [0, 2, 3, 4]


def test_copies_of_the_query_are_chosen_last():
    codes = np.zeros((50, 6), dtype=np.uint8)
    codes[37], codes[45] = 1, 2
    assert choose_rows(codes, 3).tolist() == [0, 37, 45]


def test_columns_with_the_fewest_letters_go_first():
    codes = np.array([[0, 5, 1, 5, 2], [0, 5, 5, 1, 2], [0, 6, 5, 5, 4]], dtype=np.uint8)
    assert choose_columns(codes, LETTERS, 9).tolist() == [0, 2, 3, 4]  # column 1 is empty
    assert choose_columns(codes, LETTERS, 3).tolist() == [0, 2, 4]
    assert choose_columns(codes, LETTERS, 1).tolist() == [0]


def test_an_alignment_is_cut_to_what_a_model_reads():
    codes = np.array([[0, 5, 1], [0, 3, 1], [1, 5, 2]], dtype=np.uint8)
    alignment = Alignment("a", ("q", "b", "c"), codes, RNA, ss_cons="(.)")
    cut = crop_alignment(alignment, 2, 9)
    assert cut.names == ("q", "c")
    assert cut.codes.tolist() == [[0, 1], [1, 2]]  # nothing stands in column 1 of these two rows
    assert cut.ss_cons == "()"


def test_letters_are_omitted_only_in_columns_of_rows_that_are_read():
    codes = np.array([[0, 5, 1], [0, 3, 1], [1, 6, 2]], dtype=np.uint8)
    alignment = Alignment("a", ("q", "b", "c"), codes, RNA)
    assert not omits_letters(alignment, np.array([0, 2]), np.array([0, 2]))  # gap and missing in column 1
    assert omits_letters(alignment, np.array([0, 1]), np.array([0, 2]))
    assert omits_letters(alignment, np.array([0, 2]), np.array([2]))
