"""The threshold that the median of bootstrap resamples gives."""

from __future__ import annotations

import numpy as np

from seqray.calibrate import choose_stable_threshold, choose_threshold


def test_separable_classes_are_cut_between_them() -> None:
    p = np.concatenate([np.linspace(0.0, 0.3, 50), np.linspace(0.7, 1.0, 50)])
    y = np.repeat([0, 1], 50)
    assert 0.3 < choose_stable_threshold(p, y) < 0.7


def test_it_moves_less_between_samples_than_the_plain_choice() -> None:
    rng = np.random.default_rng(3)
    plain, stable = [], []
    for _ in range(30):
        y = rng.random(200) < 0.3
        p = 1 / (1 + np.exp(-(rng.normal(0, 1.5, 200) + np.where(y, 1.5, -1.5))))
        plain.append(choose_threshold(p, y))
        stable.append(choose_stable_threshold(p, y))
    assert np.std(stable) < 0.8 * np.std(plain)


def test_one_class_alone_gives_one_half() -> None:
    assert choose_stable_threshold([0.1, 0.9], [1, 1]) == 0.5
