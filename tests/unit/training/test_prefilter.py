"""What a prefilter learns from a model whose answer is known, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from seqray.core.alphabet import DNA
from seqray.core.card_parts import PrefilterFacts
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from seqray.inference.sequences import prefilter_log_odds, score_codes, second_log_odds
from seqray.modelfile.file import load_model
from seqray.scanning.options import ScanOptions
from seqray.scanning.scorers import make_scorer
from seqray.training import prefilter
from seqray.training.prefilter import DrawnWindows, WindowSource, teach_prefilter


def genome(letters, seed=0):
    return SequenceRecord("c", "".join(np.random.default_rng(seed).choice([*"ACGT"], letters)))


@pytest.fixture(scope="module")
def taught(tiny_model_file):
    return teach_prefilter(load_model(tiny_model_file), [genome(30_000)], windows=20_000)


def scores_of(model, codes):
    windows = np.lib.stride_tricks.sliding_window_view(codes, model.card.window)
    return score_codes(model, windows)[:, model.card.positive_index]


def answers_of(model, codes):
    """Of both networks of the prefilter, for each window."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, model.card.window)
    return np.column_stack((prefilter_log_odds(model, codes), second_log_odds(model, windows)))


def test_it_ranks_windows_as_the_model_does(taught):
    codes = taught.alphabet.encode(genome(5000, 1).sequence)
    scores = scores_of(taught, codes)
    for answers in answers_of(taught, codes).T:
        assert np.corrcoef(answers, np.log(scores / (1 - scores)))[0, 1] > 0.8


def test_its_card_says_what_passes_and_what_is_lost(taught):
    codes = taught.alphabet.encode(genome(40_000, 2).sequence)  # unseen
    answers, scores = answers_of(taught, codes), scores_of(taught, codes)
    facts = taught.card.prefilter
    assert facts.learned_from + facts.measured_on == pytest.approx(20_000, abs=300)
    assert facts.letters == 30_000
    for (level, cutoff, passed), second in zip(facts.levels, facts.second, strict=True):
        passes = (answers >= (cutoff, second)).all(axis=1)
        assert np.mean(passes) == pytest.approx(passed, abs=0.05)
        assert np.mean(~passes[scores >= level]) < 0.03  # 0.001 was measured, on few hundred windows
    levels = [level for level, _, _ in facts.levels.tolist()]
    assert levels == sorted(levels)


def same(one, other):
    """Whether two prefilters have the same weights."""
    pairs = zip(one.networks, other.networks, strict=True)
    return all((a.weights[name] == value).all() for a, b in pairs for name, value in b.weights.items())


def test_the_weights_and_the_probabilities_stay(taught, tiny_model):
    codes = taught.alphabet.encode(genome(200, 3).sequence)
    assert (scores_of(taught, codes) == scores_of(tiny_model, codes)).all()
    assert tiny_model.prefilter is None


@pytest.mark.parametrize(
    ("options", "passed", "stride"),
    [
        ({"threshold": 0.9}, 0.09, 1),
        ({"threshold": 0.4}, 0.09, 10),  # below all levels
        ({"threshold": 0.9}, 0.11, 10),  # too many would pass
        ({"threshold": 0.9, "stride": 5}, 0.09, 5),
        ({"threshold": 0.9, "prefilter": "none"}, 0.09, 10),
    ],
)
def test_a_scan_reads_every_window_where_the_prefilter_spares_enough(taught, options, passed, stride):
    facts = PrefilterFacts(levels=np.array([[0.5, -1.0, passed]]))
    scorer = make_scorer(replace(taught, card=replace(taught.card, prefilter=facts)), ScanOptions(**options))
    assert (scorer.stride, scorer.cutoffs is not None) == (stride, stride == 1)


def test_the_threshold_of_scans_is_a_level(tiny_model):
    model = replace(tiny_model, card=replace(tiny_model.card, info={"scan_threshold": 0.3}))
    levels = teach_prefilter(model, [genome(12_000)], windows=3000).card.prefilter.levels
    assert 0.3 in [level for level, _, _ in levels]


def test_ambiguous_letters_are_no_letters(tiny_model):
    for letters, message in [(12_000, "9000 unambiguous bases"), (14_000, "last fifths .* only ambiguous")]:
        sequence = genome(letters).sequence[:-3000] + "N" * 3000
        with pytest.raises(InputError, match=message):
            teach_prefilter(tiny_model, [SequenceRecord("c", sequence)], windows=2000)


def test_windows_of_ambiguous_letters_are_not_drawn(tiny_model):
    """Every second stretch of 40 letters is unknown: 25 of 80 windows have at most 2 unknown ones."""
    known = genome(40_000).sequence
    sequence = "".join(known[i : i + 40] if i % 80 else "N" * 40 for i in range(0, len(known), 40))
    source = WindowSource(
        tiny_model, [replace(genome(40_000), sequence=sequence)], 0, "auto", lambda count: None
    )
    drawn = source.draw(2000, held_out=False)
    ambiguous = (drawn.codes == DNA.unknown).sum(axis=1)
    assert 0 < ambiguous.max() <= 2
    assert len(drawn.codes) == pytest.approx(2000 * 25 / 80, rel=0.1)


@pytest.mark.parametrize(
    ("lost", "cutoff", "passed"),
    # The last would be 10, but no cutoff lies above its level: log(999) - .01 = 6.897, which 931 pass.
    [(0.0, 0.0, 1.0), (0.01, 1.0, 0.99), (0.1, 6.896755, 0.931)],
)
def test_a_cutoff_loses_at_most_the_share_that_is_accepted(lost, cutoff, passed):
    """1,000 windows above the level with the answers 0, .1, ... 99.9: .01 of them are the first ten."""
    answers = np.arange(1000)[:, None] / 10
    [row] = prefilter._measure(answers, drawn(np.full((1000, 1), 200.0)), lost, [0.999])["levels"]
    assert row == [0.999, pytest.approx(cutoff, abs=1e-5), pytest.approx(passed)]


def test_no_cutoff_lies_above_its_level(tiny_model):
    """Answers that are sharper than the model: what is skipped would else be called by its own answer."""
    rng = np.random.default_rng(0)
    log_odds = np.repeat([-6.0, 6.0], 1000)[:, None] + rng.normal(0, 0.1, (2000, 1))
    for level, cutoff, _ in prefilter._measure(log_odds, drawn(log_odds), 0.001, [0.1, 0.5, 0.9])["levels"]:
        assert cutoff < np.log(level / (1 - level))


def test_members_lose_a_tenth_each_of_what_is_accepted():
    """1,000 windows above the level; .02 may be lost: 16 by the prefilter, and 2 by each of two members."""
    answers = np.arange(1000)[:, None] / 10
    by_member = np.column_stack((answers - 3, 2 * answers - 3, np.full(1000, 200.0)))
    facts = prefilter._measure(answers, drawn(by_member), 0.02, [0.999])
    assert facts["levels"] == [[0.999, pytest.approx(1.6), pytest.approx(0.984)]]
    assert facts["members"] == [[pytest.approx(0.2 - 3), pytest.approx(0.4 - 3)]]
    assert "second" not in facts


def test_the_first_network_loses_three_tenths_of_what_a_prefilter_may_lose():
    """Of 1,000 windows above the level, 21 may be lost: 6 by one network, and 14 by the other."""
    answers = np.column_stack((np.arange(1000), np.arange(1000)[::-1])) / 10
    facts = prefilter._measure(answers, drawn(np.full((1000, 1), 200.0)), 0.021, [0.999])
    assert facts["levels"] == [[0.999, pytest.approx(0.6), pytest.approx(0.98)]]
    assert facts["second"] == [pytest.approx(1.4)]


def drawn(by_member):
    """Windows that stand for one each."""
    ones = np.ones(len(by_member))
    return DrawnWindows(np.zeros((len(ones), 1), np.uint8), ones.astype(int), by_member, ones)


def test_measuring_again_keeps_the_prefilter(taught):
    strict, found = (
        teach_prefilter(taught, [genome(20_000, 5)], windows=4000, lost=lost, measure_only=True)
        for lost in (0.0, 0.05)
    )
    assert found.prefilter is taught.prefilter
    assert found.card.prefilter.learned_from == taught.card.prefilter.learned_from
    assert found.card.prefilter.lost == 0.05
    assert found.card.prefilter.measured_on == pytest.approx(4000, abs=200)
    low, high = (one.card.prefilter.levels[:, 1] for one in (strict, found))
    assert (high >= low).all()  # a larger loss
    assert (high > low).any()
