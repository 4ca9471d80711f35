"""Shuffles and substitutions, counted independently."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import ConfigError
from seqray.datasets.negatives.sampling import segment_edges, shuffle_letters, substitute_segments

DNA_TEXT = st.text("ACGTN", min_size=1, max_size=120)


@given(DNA_TEXT, st.integers(0, 100))
def test_a_shuffle_keeps_the_counts_of_pairs(text, seed):
    result = DNA.decode(shuffle_letters(DNA.encode(text), np.random.default_rng(seed)))
    assert Counter(pairwise(result)) == Counter(pairwise(text))
    assert len(result) == len(text)


@given(st.text(PROTEIN.letters, min_size=1, max_size=40), st.integers(0, 100))
def test_a_shuffle_of_single_letters_keeps_their_counts(text, seed):
    result = PROTEIN.decode(shuffle_letters(PROTEIN.encode(text), np.random.default_rng(seed), words=1))
    assert Counter(result) == Counter(text)


def test_a_shuffle_of_single_letters_changes_pairs_and_its_input_stays():
    codes = DNA.encode("AC" * 30)
    result = shuffle_letters(codes, np.random.default_rng(0), words=1)
    assert DNA.decode(codes) == "AC" * 30
    assert Counter(pairwise(DNA.decode(result))) != Counter(pairwise("AC" * 30))


def test_segments_are_even():
    assert segment_edges(300, 20).tolist() == list(range(0, 301, 15))
    # 81 letters in 20 segments: 19 of 4 letters and one of 5, the last.
    assert np.diff(segment_edges(81, 20)).tolist() == [4] * 19 + [5]
    assert segment_edges(7, 3).tolist() == [0, 2, 4, 7]
    with pytest.raises(ConfigError, match="20 segments of a sequence of 19 letters; give fewer segments"):
        segment_edges(19, 20)


@given(st.integers(20, 200), st.integers(1, 20), st.data())
def test_exactly_the_kept_segments_stay(length, segments, data):
    keep = data.draw(st.integers(0, segments - 1))
    seed = data.draw(st.integers(0, 1000))
    # Letters that are never drawn: what stays shows itself.
    codes = np.full(length, 9, dtype=np.uint8)
    result, kept = substitute_segments(codes, np.random.default_rng(seed), 4, segments, keep)
    assert len(set(kept.tolist())) == keep
    edges = [i * length // segments for i in range(segments + 1)]
    for number in range(segments):
        piece = result[edges[number] : edges[number + 1]]
        assert (piece == 9).all() if number in kept else (piece < 4).all()


def test_letters_are_drawn_evenly():
    codes = np.zeros(40_000, dtype=np.uint8)
    result, _ = substitute_segments(codes, np.random.default_rng(1), 4, 20, 0)
    counts = np.bincount(result, minlength=4)
    # A share of 1/4 of 40,000 scatters by sqrt(40,000 x 3/16) = 87; five of these.
    assert (abs(counts - 10_000) < 435).all()


@pytest.mark.parametrize("keep", [20, 21])
def test_not_all_segments_may_stay(keep):
    with pytest.raises(ConfigError, match="of 20 segments are kept"):
        substitute_segments(np.zeros(80, dtype=np.uint8), np.random.default_rng(0), 4, 20, keep)


def test_words_of_three_are_not_offered():
    with pytest.raises(ConfigError, match="3-mers"):
        shuffle_letters(np.zeros(8, dtype=np.uint8), np.random.default_rng(0), 3)
