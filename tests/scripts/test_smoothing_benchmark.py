"""The benchmark of smoothed scores: calls of both strands by a choice of settings."""

from __future__ import annotations

import numpy as np

from smoothing import Choice, call


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
