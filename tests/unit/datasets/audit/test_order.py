"""The runs test against all orders of small sets."""

import itertools
import math

import numpy as np
import pytest

from seqray.datasets.audit.dataset import runs_test


def runs(labels):
    return len(list(itertools.groupby(labels)))


@pytest.mark.parametrize("labels", ["aaabb", "abab", "aabbcc", "aaaaab", "abcabc"])
def test_mean_and_variance_are_those_of_all_orders(labels):
    numbers = np.array([runs(order) for order in itertools.permutations(labels)])
    found, expected, z = runs_test(np.array(list(labels)))
    assert found == runs(labels)
    assert expected == pytest.approx(numbers.mean())
    assert z == pytest.approx((found - numbers.mean()) / numbers.std())


def test_sorted_labels_stand_out_and_shuffled_ones_do_not():
    labels = np.repeat([0, 1], 500)
    assert runs_test(labels)[2] < -30
    assert abs(runs_test(np.random.default_rng(0).permutation(labels))[2]) < 4


@pytest.mark.parametrize("labels", [[], [1], [1, 1, 1]])
def test_nothing_to_tell(labels):
    assert math.isnan(runs_test(np.array(labels))[2])
