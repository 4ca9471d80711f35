"""Occupancy and conservation of columns, by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.msa.profiles import conservation, occupancy

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
