"""Peaks, and cutoffs of prefilters."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from networks import random_network
from seqray.core.alphabet import DNA
from seqray.core.arrays import local_maxima, suppress_neighbors
from seqray.core.card import Card
from seqray.core.card_parts import PrefilterFacts
from seqray.core.model_config import ModelConfig
from seqray.inference.sequences import cascade_log_odds, prefilter_log_odds, second_log_odds
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import NARROW, WIDE, Prefilter, PrefilterSize, prefilter_shapes
from seqray.scanning.options import ScanOptions
from seqray.scanning.scan import best_of_each
from seqray.scanning.scorers import Cutoffs, make_scorer

NAN = np.nan


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1, 3, 2], [1]),
        ([3, 1, 2], [0, 2]),
        ([1, 2, 3], [2]),
        ([2, 2, 1, 2], [0, 1, 3]),
        ([1, NAN, 2, 1], [0, 2]),
        ([NAN, NAN], []),
        ([5], [0]),
        ([], []),
    ],
)
def test_local_maxima_of_small_profiles(scores, expected):
    assert np.flatnonzero(local_maxima(np.array(scores, dtype=float))).tolist() == expected


def test_best_of_each_takes_the_first_of_equals_and_passes_over_nan():
    positions = np.array([[1, 2, 3], [7, 8, 9], [4, 5, 6]])
    scores = np.array([[0.5, 0.9, 0.9], [NAN, 0.1, NAN], [0.3, 0.2, 0.1]])
    best, values = best_of_each(positions, scores)
    assert best.tolist() == [2, 8, 4]
    assert values.tolist() == [0.9, 0.1, 0.3]


def quadratic(sites, scores, min_distance, length=None):
    """Greedy suppression from its definition: try sites from the best down, compare with all kept ones."""
    kept = []
    for i in sorted(range(len(sites)), key=lambda i: (-scores[i], sites[i], i)):
        gaps = [abs(sites[i] - sites[j]) for j in kept]
        if length is not None:
            gaps = [min(gap, length - gap) for gap in gaps]
        if all(gap >= min_distance for gap in gaps):
            kept.append(i)
    return sorted(kept, key=lambda i: sites[i])


def arrays(sites, scores):
    return np.array(sites, dtype=np.int64), np.array(scores, dtype=float)


peaks = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 4)), max_size=25)


@given(peaks, st.integers(1, 200), st.none() | st.integers(121, 180))
def test_suppress_on_a_line_or_a_circle_equals_the_quadratic_reference(found, distance, length):
    sites, scores = [site for site, _ in found], [float(score) for _, score in found]
    left = suppress_neighbors(*arrays(sites, scores), distance, length).tolist()
    assert left == quadratic(sites, scores, distance, length)


@given(peaks, st.integers(1, 60), st.integers(0, 5))
def test_cutting_before_or_after_suppression_is_the_same(found, distance, threshold):
    sites, scores = arrays([site for site, _ in found], [score for _, score in found])
    after = [i for i in suppress_neighbors(sites, scores, distance).tolist() if scores[i] >= threshold]
    reached = np.flatnonzero(scores >= threshold)
    before = reached[suppress_neighbors(sites[reached], scores[reached], distance)]
    assert before.tolist() == after


WINDOW, LETTERS = 20, 400
CODES = np.random.default_rng(4).integers(0, 4, LETTERS).astype(np.uint8)
FACTS = PrefilterFacts(
    levels=np.array([[0.5, -1.0, 0.09], [0.9, 2.0, 0.01]]), members=np.array([[-2.0], [1.0]]), lost=0.01
)


def test_those_of_the_highest_level_that_is_reached():
    assert [Cutoffs.at(FACTS, threshold) for threshold in (0.5, 0.89, 0.9)] == [
        Cutoffs(-1.0, None, (-2.0,), 0.09),
        Cutoffs(-1.0, None, (-2.0,), 0.09),
        Cutoffs(2.0, None, (1.0,), 0.01),
    ]
    assert not Cutoffs.at(FACTS, 0.49).is_selective
    assert Cutoffs.at(replace(FACTS, members=None), 0.5) == Cutoffs(
        -1.0, passed=0.09
    )  # of a model of one member
    assert Cutoffs.at(replace(FACTS, second=np.array([-3.0, 0.0])), 0.9) == Cutoffs(2.0, 0.0, (1.0,), 0.01)


@pytest.fixture(scope="module")
def model():
    """Two members that disagree, and a prefilter of two networks of random weights."""
    rng = np.random.default_rng(1)
    config = ModelConfig(d_model=8, heads=2, layers=1, dropout=0.0, max_length=WINDOW)
    networks = tuple(random_network(config, seed, noise=0.5) for seed in range(2))

    def weights_of(size: PrefilterSize) -> dict[str, np.ndarray]:
        shapes = prefilter_shapes(WINDOW, len(DNA.letters), 0, size)
        return {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}

    second = Prefilter(weights_of(WIDE), WINDOW)
    names = ("promoter", "background")
    card = Card(name="t", classes=names, positive="promoter", window=WINDOW, model=config, members=2)
    return TrainedModel(card, networks, prefilter=Prefilter(weights_of(NARROW), WINDOW, second))


def test_a_window_is_read_until_an_answer_is_too_low(model):
    """By hand: each network of the prefilter answers, then the first member, and the mean for the rest."""
    windows = np.lib.stride_tricks.sliding_window_view(CODES, WINDOW)
    steps = np.column_stack(
        (prefilter_log_odds(model, CODES), second_log_odds(model, windows), cascade_log_odds(model, windows))
    )
    cutoffs = np.quantile(steps[:, :3], 0.3, axis=0)
    level = 0.999  # which no cutoff reaches
    first, second, member = cutoffs.tolist()
    facts = PrefilterFacts(
        levels=np.array([[level, first, 0.05]]),
        second=np.array([second]),
        members=np.array([[member]]),
        lost=0.01,
    )
    changed = replace(model, card=replace(model.card, format=4, prefilter=facts))
    scorer = make_scorer(changed, ScanOptions(threshold=level))
    found = scorer.score(scorer.open(CODES), "+", np.arange(len(windows)))
    given_up = steps[:, :3] < cutoffs
    read = np.where(given_up.any(axis=1), given_up.argmax(axis=1), 3)  # the step with the last answer
    assert np.bincount(read).min() > 20
    expected = steps[np.arange(len(steps)), read]
    np.testing.assert_allclose(np.log(found / (1 - found)), expected, atol=1e-4)
