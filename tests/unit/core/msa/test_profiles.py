"""Occupancy and conservation of columns, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from seqray.core.alignment import conservation, looks_unaligned, occupancy
from seqray.core.alphabet import PROTEIN, RNA

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
