"""Empirical p-values by counting, and the correction for many."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.stats import false_discovery_control, kstest

from seqray.core.alphabet import DNA
from seqray.explanations.checks import p_values, q_values
from seqray.explanations.letters import shuffled_copies


def test_copies_keep_the_dinucleotides_and_belong_to_the_record():
    codes = DNA.encode("ACGGTTACAGGATATATCCGCGAT")
    copies = shuffled_copies(codes, 6)
    words = sorted(itertools.pairwise(codes))
    assert all(sorted(itertools.pairwise(c)) == words for c in copies)
    np.testing.assert_array_equal(copies, shuffled_copies(codes.copy(), 6))
    assert not np.array_equal(copies, shuffled_copies(codes, 6, 1))


def test_p_counts_the_letters_of_shuffled_copies_that_score_as_high():
    codes = DNA.encode("ACGGTTACAGGA")[None]
    scores = np.arange(12.0)[None]

    def score(copied):  # every letter of every copy scores the number of its place
        assert copied.shape == (3, 12)
        return np.tile(np.arange(12.0), (3, 1))

    found = p_values(codes, scores, score, copies=3)
    np.testing.assert_allclose(found[0], (1 + 3 * np.arange(12, 0, -1)) / 37)


def test_p_values_are_even_where_nothing_is_real():
    """Records that are shuffled themselves, scored by their letters: every p-value is as likely."""
    rng = np.random.default_rng(5)
    codes = rng.integers(0, 4, (400, 30)).astype(np.uint8)
    weights = rng.normal(size=(5, 4, 4, 4))

    def score(c):
        padded = np.pad(c, ((0, 0), (1, 1)), mode="wrap")
        noise = np.sin(1e3 * (np.cumsum(c, 1) + c)) * 1e-6
        return weights[0, padded[:, :-2], padded[:, 1:-1], padded[:, 2:]] + noise

    p = p_values(codes, score(codes), score)
    assert kstest(p[:, 10], "uniform").pvalue > 1e-3


def test_q_is_that_of_scipy():
    p = np.random.default_rng(1).integers(1, 9, (3, 2, 20)) / 8
    np.testing.assert_allclose(q_values(p), false_discovery_control(p, axis=-1))
