"""Matching, tables and thresholds by arithmetic on a few calls."""

import numpy as np
import pytest

from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.metrics.classification import average_precision, claim_sites
from seqray.training.genomes.evaluation import (
    Measured,
    locator_facts,
    profile_peaks,
    species_metrics,
    species_table,
    threshold_of_best_f1,
)


def measured(right, sites=4, species="A", genes=True, kilobases=10.0):
    """Calls of falling score in one block each."""
    n = len(right)
    score = np.linspace(0.9, 0.1, n)
    blocks = np.arange(n)
    return Measured(
        species, "region", genes, score, np.array(right, bool), blocks, np.arange(sites), kilobases
    )


def test_a_site_is_claimed_once_and_by_the_best_call():
    assert claim_sites([100, 110, 400], [0.5, 0.9, 0.8], [105, 420], 25).tolist() == [-1, 0, 1]
    assert claim_sites([100, 110], [0.5, 0.5], [105], 25).tolist() == [0, -1]
    assert claim_sites([130], [0.5], [105], 25).tolist() == [0]
    assert claim_sites([131], [0.5], [105], 25).tolist() == [-1]
    assert claim_sites([], [], [105], 25).tolist() == []


def test_average_precision_of_four_calls():
    # right, wrong, right, wrong of 4 sites: (1/1 + 2/3) / 4
    assert average_precision([1, 0, 1, 0], [1, 0, 1, 0], 4) == pytest.approx((1 + 2 / 3) / 4)
    assert np.isnan(average_precision([], [], 0))


def test_average_precision_with_weights_is_that_of_repeated_calls():
    # right, twice; wrong; right: as of 4 calls of 4 sites
    assert average_precision([2, 0, 1], [1, 0, 1], 4, [2, 1, 1]) == pytest.approx((1 + 1 + 3 / 4) / 4)
    assert average_precision([0, 2], [1, 1], 4, [0, 2]) == pytest.approx(2 / 4)  # the first is not drawn


def test_peaks_keep_their_distance():
    scores = np.zeros(200)
    scores[[36, 60, 85]] = [0.5, 0.6, 0.4]
    assert profile_peaks(scores).tolist() == [60, 85]


def test_the_expected_table_is_the_curve_of_the_calls():
    one = measured([1, 1, 0, 1, 0, 0, 1, 0, 0, 0])
    row = species_table(one)
    assert {key: getattr(row, key) for key in ("species", "held_out", "genes", "kilobases", "sites")} == {
        "species": "A", "held_out": "region", "genes": True, "kilobases": 10.0, "sites": 4,
    }  # fmt: skip
    right = np.cumsum(one.right)
    for threshold, per_kb, recall, precision, low, high in row.rows.tolist():
        count = int((one.score >= threshold - 1e-6).sum())
        assert per_kb == pytest.approx(count / 10)
        assert recall == pytest.approx(right[count - 1] / 4)
        assert precision == pytest.approx(right[count - 1] / count, abs=1e-6)
        assert 0 <= low <= precision <= high <= 1
    thresholds = [figures[0] for figures in row.rows.tolist()]
    assert thresholds == sorted(thresholds, reverse=True)
    assert thresholds[-1] == pytest.approx(0.1)


def test_that_all_calls_are_right_leaves_an_interval():
    """Of 20 right calls, 1 in 40 such draws has a share below x where x^20 = .025 (Clopper and Pearson)."""
    threshold, _, _, precision, low, high = species_table(measured([1] * 30, sites=30)).rows[0]
    assert threshold == pytest.approx(measured([1] * 30, sites=30).score[19])
    assert (precision, high) == (1, 1)
    assert low == pytest.approx(0.025 ** (1 / 20), abs=1e-6)


def test_the_threshold_has_the_best_mean_of_f1():
    """Species A is best after 2 calls (F1 1), B after 1 (F1 1); together after 2: (1 + 2/3) / 2."""
    a, b = measured([1, 1, 0, 0], sites=2), measured([1, 0, 0, 0], sites=1, species="B")
    assert threshold_of_best_f1([a]) == pytest.approx(a.score[1])
    assert threshold_of_best_f1([b]) == pytest.approx(b.score[0])
    f1_after = {1: (2 / 3 + 1) / 2, 2: (1 + 2 / 3) / 2}
    assert f1_after[1] == f1_after[2]
    assert threshold_of_best_f1([a, b]) in (pytest.approx(a.score[0]), pytest.approx(a.score[1]))


def test_the_card_is_read_by_what_reads_it():
    rng = np.random.default_rng(0)
    both = [measured(rng.random(200) < np.linspace(0.9, 0.1, 200), 120, name) for name in "AB"]
    letters = [measured(rng.random(200) < 0.3, 120, name, genes=False) for name in "AB"]
    facts = locator_facts([*letters, *both])
    expected = ExpectedPrecision(facts)
    assert {row.species for row in expected.at(0.5, genes=True).rows} == {"A", "B"}
    found = {mode: expected.at(0.5, genes=mode).median for mode in (True, False)}
    assert found[True] > found[False]
    shares = expected.of_calls(np.array([0.2, 0.9]), genes=True)
    assert shares is not None
    assert shares[0] < shares[1]


def test_metrics_of_a_species_have_intervals():
    one = measured([1, 1, 0, 1, 0, 0, 1, 0, 0, 0])
    figures = species_metrics(one)
    assert figures["auprc"]["value"] == pytest.approx((1 + 1 + 3 / 4 + 4 / 7) / 4, abs=1e-4)
    assert figures["precision_at_0.5_per_kb"]["value"] == pytest.approx(3 / 5)  # 5 calls in 10 kb
    assert figures["recall_at_1_per_kb"]["value"] == 1
    assert all(figure["low"] <= figure["high"] for figure in figures.values())
