"""Windows drawn from genomes: where they lie, what they stand for, and what the model says of them."""

from dataclasses import replace

import numpy as np
import pytest

from seqray.core.alphabet import reverse_complement
from seqray.core.records import SequenceRecord
from seqray.inference.sequences import score_codes
from seqray.training.prefilter import WindowSource

LETTERS = "".join(np.random.default_rng(5).choice([*"ACGT"], 20_000))


@pytest.fixture
def source(tiny_model):
    scored = []
    source = WindowSource(tiny_model, [SequenceRecord("c", LETTERS)], 1, "auto", scored.append)
    return source, scored


@pytest.mark.parametrize("held_out", [False, True])
def test_windows_lie_in_their_part_on_either_strand(source, tiny_model, held_out):
    drawn = source[0].draw(300, held_out=held_out)
    part = LETTERS[16_000:] if held_out else LETTERS[:16_000]
    texts = [tiny_model.alphabet.decode(row) for row in drawn.codes]
    forward = [text in part for text in texts]
    backward = [reverse_complement(text) in part for text in texts]
    assert all(one or other for one, other in zip(forward, backward, strict=True))
    assert 100 < sum(forward) < 200
    assert sum(source[1]) == 300


@pytest.mark.parametrize("held_out", [False, True])
def test_losses_are_measured_as_genomes_are_scanned(tiny_model, held_out):
    """In their own context or in none; only what is learned from is read in a foreign one, too."""
    names = ("one", "two", "three")
    card = replace(tiny_model.card, model=replace(tiny_model.card.model, contexts=names))
    source = WindowSource(tiny_model, [SequenceRecord("c", LETTERS)], 1, "auto", lambda count: None)
    source._model, source._homes = replace(tiny_model, card=card), np.array([2])
    counts = np.bincount(source._evenly(20_000, held_out=held_out)["context"], minlength=4) / 20_000
    shares = [0.5, 0, 0.5, 0] if held_out else [0.45, 0.05, 0.45, 0.05]  # .2 are shared by three and none
    assert counts == pytest.approx(shares, abs=0.02)


def test_log_odds_are_those_of_the_model(source, tiny_model):
    drawn = source[0].draw(50, held_out=False)
    scores = score_codes(tiny_model, drawn.codes)[:, tiny_model.card.positive_index]
    assert 1 / (1 + np.exp(-drawn.log_odds)) == pytest.approx(scores)
    assert (drawn.importance_weight == 1).all()


def test_likely_windows_are_drawn_more_often_and_stand_for_fewer(source):
    def guess(codes, contexts):
        return np.where(codes[:, 0] == 0, 5.0, -9.0)  # windows that begin with A

    drawn = source[0].draw(2000, held_out=False, guess=guess)
    begins = drawn.codes[:, 0] == 0
    assert np.mean(begins) > 0.9
    assert len(drawn.codes) == pytest.approx(2000, abs=200)
    assert drawn.importance_weight.sum() == pytest.approx(24_000, rel=0.2)
    assert drawn.importance_weight[~begins].sum() == pytest.approx(18_000, rel=0.3)  # three letters of four
