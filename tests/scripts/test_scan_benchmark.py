"""The scan benchmark's arithmetic: matching, curves, sections, and the linear comparators."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import comparators
import evaluation
import machine
import scan_models
from ecoli_tables import Site
from ecoli_truth import Placed
from evaluation import Section
from invented import Letters, opposite, write_gzip
from matching import (
    UNCLAIMED,
    Calls,
    at_depth,
    block_weights,
    claim,
    make_curve,
    make_starts,
    rank_calls,
    thin,
)
from seqray.core.alphabet import DNA
from seqray.core.records import LabeledSequence
from seqray.metrics.baselines import KmerPositionalBaseline, PositionWeightMatrix


def calls(*rows: tuple[int, str, float]) -> Calls:
    return rank_calls([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])


def test_calls_are_ranked_by_score_then_position_then_strand():
    ranked = calls((9, "-", 1.0), (5, "-", 2.0), (9, "+", 1.0), (3, "+", 1.0))
    assert ranked.position.tolist() == [5, 3, 9, 9]
    assert ranked.plus.tolist() == [False, True, True, False]


def test_a_call_claims_the_nearest_start_that_is_free():
    starts = make_starts({"+": [80, 104], "-": [100]})
    found = claim(calls((100, "+", 3.0), (101, "+", 2.0), (102, "+", 1.0)), starts, tolerance=25)
    assert found.tolist() == [1, 0, UNCLAIMED]


@pytest.mark.parametrize(
    ("position", "strand", "hit"),
    [(975, "-", True), (974, "-", False), (1025, "-", True), (1026, "-", False), (1000, "+", False)],
)
def test_the_tolerance_is_inclusive_on_both_sides_of_one_strand(position, strand, hit):
    found = claim(calls((position, strand, 1.0)), make_starts({"-": [1000]}), tolerance=25)
    assert bool(found[0] != UNCLAIMED) is hit


positions = st.lists(st.tuples(st.integers(0, 400), st.sampled_from("+-"), st.integers(0, 9)), max_size=30)


@given(positions, positions, st.integers(0, 30))
def test_what_the_first_calls_claim_does_not_depend_on_later_ones(rows, known, kept):
    ranked = calls(*((place, strand, float(score)) for place, strand, score in rows))
    starts = make_starts({s: sorted({place for place, strand, _ in known if strand == s}) for s in "+-"})
    found = claim(ranked, starts)
    claimed = found[found != UNCLAIMED]
    assert len(set(claimed.tolist())) == len(claimed)
    first = ranked.take(np.arange(min(kept, len(ranked))))
    assert claim(first, starts).tolist() == found[:kept].tolist()


@given(positions, st.integers(1, 60))
def test_thinned_calls_keep_their_distance_and_lose_only_to_better_ones(rows, distance):
    ranked = calls(*((place, strand, float(score)) for place, strand, score in rows))
    kept = thin(ranked, distance)
    pairs = list(zip(kept.position.tolist(), kept.plus.tolist(), kept.score.tolist(), strict=True))
    for index, (place, plus, _) in enumerate(pairs):
        assert all(abs(place - other) >= distance for other, strand, _ in pairs[:index] if strand == plus)
    for place, plus, score in zip(ranked.position, ranked.plus, ranked.score, strict=True):
        near = [s for p, strand, s in pairs if strand == plus and abs(p - place) < distance]
        assert near
        assert max(near) >= score


def example_curve():
    """Five calls, of which the 1st, 3rd and 4th find the starts at 100, 500 and 1500; one start is missed."""
    ranked = calls((100, "+", 5.0), (300, "+", 4.0), (500, "+", 3.0), (1500, "+", 2.0), (1700, "+", 1.0))
    strong = make_starts({"+": [100, 500, 1500, 1900]})
    return make_curve(ranked, strong, make_starts({"+": [100, 300, 1500]}), origin=0, block=1000)


@pytest.mark.parametrize(
    ("blocks", "expected_recall", "expected_precision"),
    [
        ([1.0, 1.0], [0.25, 0.25, 0.5, 0.75, 0.75], [1, 1, 2 / 3, 3 / 4, 3 / 5]),
        ([2.0, 0.0], [0.5, 0.5, 1, 1, 1], [1, 1, 2 / 3, 2 / 3, 2 / 3]),  # drawn twice, it counts twice
    ],
)
def test_recall_and_precision_after_each_call(blocks, expected_recall, expected_precision):
    recall, precision = example_curve().at(np.array(blocks))
    assert recall.tolist() == expected_recall
    assert precision == pytest.approx(expected_precision)


def test_areas_by_hand_and_depths_that_are_not_reached():
    assert example_curve().area(np.ones(2), 5) == pytest.approx(0.25 * (1 + 2 / 3 + 3 / 4))
    assert example_curve().area(np.ones(2), 3) == pytest.approx(0.25 * (1 + 2 / 3))
    _, precision = example_curve().at(np.ones(2))
    assert at_depth(precision, 4) == 0.75
    assert np.isnan([at_depth(precision, 6), at_depth(precision, 0)]).all()


def test_resamples_draw_as_many_blocks_as_there_are():
    weights = block_weights(40, 300, seed=1)
    assert weights.shape == (301, 40)
    assert (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 40).all()
    assert weights[1:].var() == pytest.approx(1 - 1 / 40, rel=0.05)  # multinomial: n p (1 - p)


def small_section() -> Section:
    starts = make_starts({"+": [1100, 5200], "-": [9000]})
    return Section("region", (1000, 21_000), None, {"strong": (starts, starts)})


def test_upstream_of_a_gene_is_before_it_on_its_strand():
    masks = evaluation.upstream_masks({"+": [1010], "-": [1100]}, (1000, 1200), reach=20)
    assert np.flatnonzero(masks.plus).tolist() == list(range(0, 11))  # cut at the start of the region
    assert np.flatnonzero(masks.minus).tolist() == list(range(100, 121))
    held = masks.holds(np.array([1005, 1005, 1110]), np.array([True, False, False]))
    assert held.tolist() == [True, False, True]


def test_a_restricted_section_drops_calls_and_starts_outside():
    masks = evaluation.upstream_masks({"+": [1150], "-": []}, (1000, 21_000), reach=100)
    part = evaluation.restrict(small_section(), "upstream", masks)
    assert part.pairs["strong"][0].position.tolist() == [1100]
    assert len(part.calls(calls((1100, "+", 2.0), (1100, "-", 1.0), (5200, "+", 0.5)))) == 1


def test_rows_stop_at_the_calls_there_are_and_a_method_does_not_differ_from_itself():
    ranked, section = calls((1110, "+", 3.0), (3000, "+", 2.0), (9010, "-", 1.0)), small_section()
    for row in evaluation.difference_rows(section, {"a": ranked, "b": ranked}, section.weights(30, 0)):
        assert all(value == 0 for name, value in row.items() if "strong" in name)
    rows = evaluation.depth_rows(section, "m", ranked, section.weights(20, 0))
    assert [(row["calls_per_kb"], row["calls"]) for row in rows] == [("0.1", 2), ("all", 3)]
    assert rows[0]["recall_strong"] == pytest.approx(1 / 3)
    assert rows[1]["precision_strong"] == pytest.approx(2 / 3)
    assert rows[0]["auprc_strong"] == pytest.approx((1 + 2 / 3) / 3)
    assert rows[1]["lowest_score"] == 1.0
    low, high = float(rows[0]["recall_strong_low"]), float(rows[0]["recall_strong_high"])
    assert low <= 1 / 3 <= high


def test_a_call_ten_letters_off_counts_within_25_and_not_within_5():
    ranked = calls((1110, "+", 3.0), (5205, "+", 2.0))
    section = small_section()
    weights = section.weights(5, 0)
    rows = (evaluation.depth_rows(section, "m", ranked, weights, t)[0] for t in evaluation.TOLERANCES)
    found = {row["tolerance"]: row for row in rows}
    assert set(found) == {25, 5}
    assert found[25]["recall_strong"] == pytest.approx(2 / 3)
    assert found[5]["recall_strong"] == pytest.approx(1 / 3)
    assert found[5]["precision_strong"] == 0.5


def test_differences_are_taken_on_the_same_blocks():
    # Blocks of 10 kb from 1000: starts at 1100 and 5200 in the first, at 12000 in the second.
    starts = make_starts({"+": [1100, 5200, 12_000]})
    section = Section("region", (1000, 21_000), None, {"strong": (starts, starts)})
    methods = {
        "a": calls((1100, "+", 3.0), (5200, "+", 2.0), (15_000, "+", 1.0)),
        "b": calls((12_000, "+", 3.0), (3000, "+", 2.0)),
    }
    weights = np.array([[1.0, 1.0], [2.0, 0.0], [0.0, 2.0]])
    half, whole = evaluation.difference_rows(section, methods, weights)
    assert (half["first"], half["second"]) == ("a", "b")
    assert (half["calls_per_kb"], half["calls_first"], half["calls_second"]) == ("0.5", 3, 2)
    assert whole["calls_per_kb"] == "1"
    # Recall: 2/3 - 1/3; with the first block twice 1 - 0; with the second twice 0 - 1.
    assert half["recall_strong"] == pytest.approx(1 / 3)
    assert half["recall_strong_low"] == pytest.approx(-1 + 0.025 * 2)
    assert half["recall_strong_high"] == pytest.approx(1 - 0.025 * 2)
    # Precision: 2/3 - 1/2; 4/4 - 0/2; 0/2 - 2/2.
    assert half["precision_strong"] == pytest.approx(1 / 6)
    assert half["precision_strong_high"] == pytest.approx(1 - 0.025 * 2)
    # Area: 1/3 + 1/3 - 1/3 * 1.
    assert half["auprc_strong"] == pytest.approx(1 / 3)


letters = Letters(3)
WINDOWS = [letters(81) for _ in range(60)]
LABELS = ["promoter" if "TATAAT" in w or i % 3 == 0 else "background" for i, w in enumerate(WINDOWS)]


def test_training_windows_are_the_middle_of_the_training_examples():
    examples = [
        LabeledSequence("GGG" + WINDOWS[0] + "CCC", "promoter", "a", split="train"),
        LabeledSequence(WINDOWS[1], "background", "b", split="train"),
        LabeledSequence(WINDOWS[2], "background", "c", split="validation"),
    ]
    assert comparators.training_windows(examples) == (WINDOWS[:2], ["promoter", "background"])


def test_kmer_profile_gives_the_numbers_of_the_classifier():
    model = KmerPositionalBaseline(kmers=(2, 3), positional=(1, 2)).fit(WINDOWS, LABELS)
    genome = letters(200)
    probability = model.predict_proba([genome[i : i + 81] for i in range(120)])[:, 1]
    profile = comparators.kmer_profile(model, DNA.encode(genome))
    assert profile == pytest.approx(np.log(probability / (1 - probability)), abs=1e-9)
    assert comparators.words(np.array([0, 1, 2, 3]), 2).tolist() == [1, 6, 11]  # in base four


@pytest.mark.parametrize("strand", ["+", "-"])
def test_a_scan_finds_a_planted_window_at_its_site(strand):
    window = WINDOWS[0]
    labels = ["promoter"] * 20 + ["background"] * 39
    model = PositionWeightMatrix(positive="promoter").fit([window] * 20 + WINDOWS[1:40], labels)
    genome = letters(500) + (window if strand == "+" else opposite(window)) + letters(500)
    found = comparators.scan_with(comparators.scorer_of(model), genome, (100, 900), min_distance=50)
    assert (found.position[0], "+" if found.plus[0] else "-") == (560 if strand == "+" else 520, strand)
    assert found.score[0] == pytest.approx(model.score_codes(DNA.encode(window)[None])[0])
    assert 100 <= found.position.min() <= found.position.max() < 900


def prediction(position: int, sigma: str, score: float, p_value: float) -> Placed:
    return Placed(position, "+", Site(position + 1, "+", "p", sigma=sigma, score=score, p_value=p_value))


def test_published_predictions_are_ranked_by_p_value_or_within_one_sigma_by_score():
    rows = [prediction(100, "Sigma70", 2.0, 1e-4), prediction(120, "Sigma70", 5.0, 1e-3)]
    rows += [prediction(400, "Sigma24", 9.0, 1e-2), prediction(900, "Sigma70", 7.0, 1e-9)]
    assert comparators.published(rows, (0, 800), None, None).position.tolist() == [100, 120, 400]
    assert comparators.published(rows, (0, 800), "Sigma70", None).position.tolist() == [120, 100]
    assert comparators.published(rows, (0, 800), "Sigma70", 50).position.tolist() == [120]


def test_promotech_starts_are_the_last_letters_of_its_windows(tmp_path):
    text = "chrom\tstart\tend\tscore\tstrand\tsequence\n"
    text += "c\t100\t139\t0.7\t+\tA\nc\t300\t339\t0.9\t-\tA\nc\t900\t939\t0.8\t+\tA\n"
    found = comparators.read_promotech(write_gzip(tmp_path / "scan.csv.gz", text), (0, 900))
    assert found.position.tolist() == [300, 139]
    assert found.plus.tolist() == [False, True]


def test_a_locator_is_scanned_with_genes_and_other_models_with_a_stride():
    window = scan_models.Scan("ecoli-promoter", "sequence", None, 10, 2)
    locator = scan_models.Scan("/x/mine.safetensors", "locator", "none", 10, 2)
    command = locator.command(Path("g.fa"), Path("o.tsv"), ["--circular"])
    assert command[command.index("--genes") + 1] == "none"
    assert "--stride" not in command
    assert command[-1] == "--circular"
    assert "--genes" not in window.command(Path("g.fa"), Path("o.tsv"))
    assert (window.name, locator.name) == ("ecoli-promoter", "mine, no genes")
    (scan,) = scan_models.plan_scans(["ecoli-promoter"], ["predict", "none"], 10, 1)
    assert (scan.kind, scan.genes) == ("sequence", None)


def test_calls_of_several_contigs_are_laid_end_to_end(tmp_path):
    path = tmp_path / "calls.tsv"
    path.write_text("# a\ncontig\tsite\tstrand\tscore\nc1\t10\t+\t0.5\nc2\t7\t-\t0.75\n")
    assert scan_models.read_calls(path, {"c1": 0, "c2": 300}).position.tolist() == [307, 10]
    assert scan_models.read_calls(path).position.tolist() == [7, 10]


def test_a_command_that_fails_is_not_measured():
    assert machine.run([sys.executable, "-c", "pass"]).peak_mb > 1
    with pytest.raises(subprocess.CalledProcessError):
        machine.run([sys.executable, "-c", "raise SystemExit(3)"])
