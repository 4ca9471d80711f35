"""Column pairs: by hand, by scikit-learn, and on a stem made on purpose."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import mutual_info_score

import covariation as module
from covariation import (
    average_product_correction,
    base_pairs,
    best_pairs,
    covariation,
    coverage,
    mutual_information,
    pair_precision,
    pairs_from_maps,
    row_weights,
)
from seqray.core.alphabet import RNA

LETTERS = RNA.unknown + 1
some_codes = arrays(np.uint8, st.tuples(st.integers(1, 12), st.integers(1, 90)), elements=st.integers(0, 6))


def test_average_product_by_hand():
    """Means 2, 3 and 4 over the other columns; their mean 3; so 1 - 2·3/3 and so on."""
    scores = np.array([[9.0, 1, 3], [1, 9.0, 5], [3, 5, 9.0]])
    expected = np.array([[0, 1 - 2, 3 - 8 / 3], [1 - 2, 0, 5 - 4], [3 - 8 / 3, 5 - 4, 0]])
    np.testing.assert_allclose(average_product_correction(scores), expected)


def test_maps_are_corrected_one_by_one_and_averaged():
    maps = np.random.default_rng(0).random((5, 7, 7))
    expected = np.mean([average_product_correction(m + m.T) for m in maps], axis=0)
    np.testing.assert_allclose(pairs_from_maps(maps), expected)
    np.testing.assert_allclose(pairs_from_maps(maps), pairs_from_maps(maps.swapaxes(1, 2)))


def test_rows_with_a_gap_in_either_column_are_left_out():
    codes = np.random.default_rng(1).integers(0, 7, (80, 5)).astype(np.uint8)
    result = mutual_information(codes, 4)
    for i in range(5):
        for j in range(i):
            both = (codes[:, i] < 4) & (codes[:, j] < 4)
            assert result[i, j] == pytest.approx(mutual_info_score(codes[both, i], codes[both, j]))
    assert mutual_information(np.full((3, 2), 5, dtype=np.uint8), 4).tolist() == [[0, 0], [0, 0]]


def test_a_weight_of_two_is_a_row_twice():
    codes = np.random.default_rng(2).integers(0, 4, (20, 6)).astype(np.uint8)
    weights = np.random.default_rng(3).integers(1, 4, 20)
    np.testing.assert_allclose(
        mutual_information(codes, 4, weights), mutual_information(codes.repeat(weights, axis=0), 4)
    )


def test_large_alignments_are_done_in_parts(monkeypatch):
    codes = np.random.default_rng(4).integers(0, 5, (30, 11)).astype(np.uint8)
    whole = mutual_information(codes, 4)
    monkeypatch.setattr(module, "_CELLS_AT_ONCE", 1)
    np.testing.assert_allclose(mutual_information(codes, 4), whole)


def test_coverage_by_hand():
    codes = np.array([[0, 5, 1], [2, 3, 4], [1, 1, 1]], dtype=np.uint8)  # 4 is N, 5 a gap
    np.testing.assert_allclose(coverage(codes, 4) * 3, [[3, 2, 2], [2, 2, 1], [2, 1, 2]])
    np.testing.assert_allclose(coverage(codes, 4, [2, 1, 1])[0] * 4, [4, 2, 3])


def test_columns_of_few_rows_do_not_outshine_a_stem():
    """Columns 2 and 3 have letters in two rows only, whose information is log 2 by chance."""
    rng = np.random.default_rng(8)
    codes = np.full((40, 6), 5, dtype=np.uint8)
    codes[:, [0, 1, 4]] = rng.integers(0, 2, (40, 3))
    codes[:, 5] = np.where(rng.random(40) < 0.9, codes[:, 0], 1 - codes[:, 0])
    codes[:2, 2:4] = [[0, 1], [2, 3]]
    assert best_pairs(average_product_correction(mutual_information(codes, 4)), 1).tolist() == [[2, 3]]
    assert best_pairs(covariation(codes, 4), 1).tolist() == [[0, 5]]


@pytest.mark.parametrize(
    ("structure", "pairs"),
    [
        ("", []),
        (":::...", []),
        ("((..))", [(0, 5), (1, 4)]),
        ("<<[..]>>", [(0, 7), (1, 6), (2, 5)]),
        ("(((,,<<__>>,,)))", [(0, 15), (1, 14), (2, 13), (5, 10), (6, 9)]),
        ("((AA))aa", [(0, 5), (1, 4), (2, 7), (3, 6)]),
        ("{-}~_:", [(0, 2)]),
    ],
)
def test_base_pairs_of_a_structure(structure, pairs):
    assert base_pairs(structure).tolist() == [list(pair) for pair in pairs]


@pytest.mark.parametrize(("structure", "word"), [("(()", "never"), (".)", "nothing"), ("a", "nothing")])
def test_a_bracket_without_its_partner_is_an_error(structure, word):
    with pytest.raises(ValueError, match=word):
        base_pairs(structure)


def test_best_pairs_and_their_precision():
    scores = np.zeros((5, 5))
    scores[0, 1], scores[0, 4], scores[1, 3] = 9, 8, 7
    scores += scores.T
    assert best_pairs(scores, 2).tolist() == [[0, 1], [0, 4]]
    assert best_pairs(scores, 2, separation=2).tolist() == [[0, 4], [1, 3]]
    assert pair_precision(scores, np.array([[4, 0]]), 2, separation=2) == 0.5
    assert math.isnan(pair_precision(scores, np.array([[4, 0]]), 2, separation=5))


def weights_in_loops(codes: np.ndarray) -> list[float]:
    counts = []
    for a in codes:
        count = 0
        for b in codes:
            either = [(x, y) for x, y in zip(a, b, strict=True) if x < LETTERS or y < LETTERS]
            same = sum(x == y for x, y in either)
            count += 10 * same >= 8 * len(either)
        counts.append(1 / count)
    return counts


@given(some_codes)
def test_weights_against_plain_loops(codes):
    np.testing.assert_allclose(row_weights(codes, LETTERS), weights_in_loops(codes))
