"""The benchmark of explained calls: gains by hand."""

from __future__ import annotations

import locator_explanations as benchmark

AREAS = {
    ("rollout", "deletion"): [1.0, 2.0],
    ("rollout", "insertion"): [6.0, 7.0],
    ("nearness", "deletion"): [2.0, 2.0],
    ("nearness", "insertion"): [5.0, 5.0],
    ("random", "deletion"): [4.0, 4.0],
    ("random", "insertion"): [4.0, 4.0],
}


def test_a_gain_is_above_0_where_the_score_falls_faster_and_rises_faster():
    assert benchmark.gain(AREAS, "rollout", "random", "deletion").tolist() == [3.0, 2.0]
    assert benchmark.gain(AREAS, "rollout", "random", "insertion").tolist() == [2.0, 3.0]
    assert benchmark.gain(AREAS, "rollout", "nearness", "deletion").tolist() == [1.0, 0.0]


def test_every_method_is_compared_with_chance_and_with_nearness():
    rows = {tuple(row[:3]): row[3:5] for row in benchmark.table(AREAS, ["rollout"])}
    assert rows == {
        ("rollout", "deletion gain", "random"): (2, 2.5),
        ("rollout", "insertion gain", "random"): (2, 2.5),
        ("rollout", "deletion gain", "nearness"): (2, 0.5),
        ("rollout", "insertion gain", "nearness"): (2, 1.5),
        ("nearness", "deletion gain", "random"): (2, 2.0),
        ("nearness", "insertion gain", "random"): (2, 1.0),
    }
