"""McNemar's exact test against sums of binomial coefficients."""

import math

import numpy as np
import pytest

from seqray.metrics.baselines import mcnemar


def exact(b, c):
    """Twice the lower tail of a fair coin, at most 1."""
    tail = sum(math.comb(b + c, k) for k in range(min(b, c) + 1)) / 2 ** (b + c)
    return min(1.0, 2 * tail)


@pytest.mark.parametrize(("b", "c"), [(0, 5), (1, 9), (4, 4), (10, 3), (30, 12)])
def test_p_is_that_of_a_fair_coin(b, c):
    labels = np.zeros(b + c + 20, dtype=int)
    first, second = labels.copy(), labels.copy()
    second[:b], first[b : b + c] = 1, 1
    first[-5:] = second[-5:] = 1  # both wrong: of no effect
    found = mcnemar(labels, first, second)
    assert (found.first_only, found.second_only) == (b, c)
    assert found.p == pytest.approx(exact(b, c))


def test_equal_calls_have_p_1():
    calls = np.array([0, 1, 2])
    assert mcnemar(np.array([0, 1, 1]), calls, calls).p == 1
