"""Alignments that are read in part."""

import numpy as np
import pytest

from conftest import ALIGNED_COLUMNS
from seqray.core.alphabet import RNA
from seqray.core.records import Alignment
from seqray.inference.alignments import predict_alignments

GAP = 5


def made(codes: np.ndarray, name: str = "a") -> Alignment:
    return Alignment(name, tuple(f"s{r}" for r in range(len(codes))), codes, RNA)


@pytest.fixture
def wide() -> np.ndarray:
    """Two columns more than the model reads, and a query with gaps."""
    codes = np.random.default_rng(0).integers(0, 4, (3, ALIGNED_COLUMNS + 2)).astype(np.uint8)
    codes[0, 2:] = GAP
    return codes


def test_columns_with_letters_that_are_not_read_are_flagged(alignment_model, wide):
    fitting = wide.copy()
    fitting[:, -2:] = GAP  # these are left out, too, but nothing is lost
    found = predict_alignments(alignment_model, [made(wide), made(fitting), made(wide[:, :-2])])
    assert [p.flags for p in found] == [("short", "truncated"), ("short",), ("short",)]


def test_columns_of_rows_that_are_not_read_are_not_missed(alignment_model, wide):
    [one] = predict_alignments(alignment_model, [made(wide)], rows=1)
    assert one.flags == ("short",)
