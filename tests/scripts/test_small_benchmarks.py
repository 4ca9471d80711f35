"""Arithmetic of benchmarks that have no file of tests of their own."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

import locator_explanations
import memory
from locator_cards import FIGURES, rows_of
from prefilter import count_missing
from smoothing import Choice, call


def card(**values):
    """Figures by species, with genes; half of that with letters alone."""
    tables = {
        f"{species}, region, {mode}": {figure: {"value": factor * value} for figure in FIGURES}
        for species, value in values.items()
        for mode, factor in (("with genes", 1), ("letters alone", 0.5))
    }
    return SimpleNamespace(
        metrics=tables | {"headline": {}, "x, species left out, with genes": {"auprc": {"value": 9}}}
    )


def test_a_row_has_the_mean_over_shared_species_and_in_how_many_a_model_is_better():
    rows = list(rows_of([("a", card(x=0.2, y=0.4, z=7)), ("b", card(x=0.3, y=0.4))]))
    assert len(rows) == 2 * 2 * len(FIGURES)
    assert rows[:2] == [
        ("a", "with genes", "auprc", 2, "0.3000", 0),
        ("b", "with genes", "auprc", 2, "0.3500", 1),
    ]
    assert rows[-1] == ("b", "letters alone", FIGURES[-1], 2, "0.1750", 1)


AREAS = {
    ("rollout", "deletion"): [1.0, 2.0],
    ("rollout", "insertion"): [6.0, 7.0],
    ("nearness", "deletion"): [2.0, 2.0],
    ("nearness", "insertion"): [5.0, 5.0],
    ("random", "deletion"): [4.0, 4.0],
    ("random", "insertion"): [4.0, 4.0],
}


def test_a_gain_is_above_0_where_the_score_falls_faster_and_rises_faster():
    assert locator_explanations.gain(AREAS, "rollout", "random", "deletion").tolist() == [3.0, 2.0]
    assert locator_explanations.gain(AREAS, "rollout", "random", "insertion").tolist() == [2.0, 3.0]
    assert locator_explanations.gain(AREAS, "rollout", "nearness", "deletion").tolist() == [1.0, 0.0]


def test_every_method_is_compared_with_chance_and_with_nearness():
    rows = {tuple(row[:3]): row[3:5] for row in locator_explanations.table(AREAS, ["rollout"])}
    assert rows == {
        ("rollout", "deletion gain", "random"): (2, 2.5),
        ("rollout", "insertion gain", "random"): (2, 2.5),
        ("rollout", "deletion gain", "nearness"): (2, 0.5),
        ("rollout", "insertion gain", "nearness"): (2, 1.5),
        ("nearness", "deletion gain", "random"): (2, 2.0),
        ("nearness", "insertion gain", "random"): (2, 1.0),
    }


def test_a_new_table_begins_with_what_its_figures_depend_on(tmp_path, monkeypatch):
    path = tmp_path / "memory.tsv"
    monkeypatch.setattr("sys.argv", ["benchmarks/memory.py", "predict", "records"])
    memory.add_row(path, "1\t2\t3\t4\t5")
    memory.add_row(path, "6\t7\t8\t9\t10")
    lines = path.read_text().splitlines()
    assert lines[0] == "# command: python benchmarks/memory.py predict records"
    assert [line.partition(":")[0] for line in lines[1:3]] == ["# versions", "# machine"]
    assert lines[3:] == ["\t".join(memory.COLUMNS), "1\t2\t3\t4\t5", "6\t7\t8\t9\t10"]


def test_calls_within_ten_letters_on_the_same_strand_are_not_missing():
    wanted = [("+", 100), ("+", 200), ("-", 300), ("-", 400)]
    assert count_missing(wanted, wanted) == 0
    assert count_missing(wanted, [("+", 110), ("+", 211), ("+", 300), ("-", 390)]) == 2
    assert count_missing(wanted, []) == 4
    assert count_missing([], wanted) == 0


def strands(**values: dict[int, float]) -> dict[str, np.ndarray]:
    found = {name: np.full(300, 1e-6) for name in "+-"}
    for name, pairs in values.items():
        for place, value in pairs.items():
            found["+" if name == "plus" else "-"][place] = value
    return found


def test_calls_are_ranked_and_keep_their_distance():
    scores = strands(plus={40: 0.5, 70: 0.4}, minus={45: 0.3})
    for distance, positions in ((50, [40, 45]), (25, [40, 70, 45])):
        found = call(scores, Choice(0, 0, distance))
        assert found.position.tolist() == positions
        assert found.plus.tolist() == [place != 45 for place in positions]


def test_several_letters_with_low_probabilities_outrank_one():
    scores = strands(plus={40: 0.4, **dict.fromkeys(range(196, 205), 0.2)})
    assert call(scores, Choice(0, 0, 25)).position[0] == 40
    assert call(scores, Choice(8, 0, 25)).position.tolist() == [200, 40]


def test_company_within_the_region_outranks_a_site_alone():
    scores = strands(plus={40: 0.4, 150: 0.35, 200: 0.3})
    assert call(scores, Choice(0, 0, 25)).position.tolist() == [40, 150, 200]
    assert call(scores, Choice(0, 80, 25)).position[0] == 150
