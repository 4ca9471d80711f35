"""Hidden letters: what is chosen, what becomes of it, and what must be guessed."""

from __future__ import annotations

import numpy as np
from hypothesis import given, strategies as st

from seqray.core.alphabet import ALPHABETS, encode_columns
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment
from seqray.core.run_config import AugmentConfig, RunConfig
from seqray.models.tokenizers import FIRST_LETTER, MASK, PAD, UNK, make_tokenizer
from seqray.training.data import AlignmentExamples, SequenceExamples
from seqray.training.pretraining import IGNORED, hide_letters, mask_letters


@given(
    seed=st.integers(0, 2**31),
    share=st.floats(0.01, 0.9),
    size=st.tuples(st.integers(1, 6), st.integers(1, 50)),
)
def test_only_chosen_letters_change_and_each_is_to_be_guessed(seed, share, size):
    rng = np.random.default_rng(seed)
    tokens = rng.choice([PAD, UNK, 4, 5, 6, 7, 8, 9], size=size)  # 8 and 9: gap and missing data
    changed, hidden = mask_letters(tokens, share, 4, rng)
    chosen = hidden != IGNORED
    assert (
        tokens[chosen] == hidden[chosen] + FIRST_LETTER
    ).all()  # what is to be guessed is what stood there
    assert (changed[~chosen] == tokens[~chosen]).all()
    letters = (tokens >= FIRST_LETTER) & (tokens < FIRST_LETTER + 4)
    assert letters[chosen].all()  # never padding, an unknown letter or a gap
    assert (chosen.any(axis=1) == letters.any(axis=1)).all()


def test_the_shares_are_those_of_the_paper():
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, 8, size=(400, 1000))
    changed, hidden = mask_letters(tokens, 0.15, 4, rng)
    chosen = hidden != IGNORED
    kept = (changed == tokens) & chosen
    assert abs(chosen.mean() - 0.15) < 0.005
    assert abs((changed[chosen] == MASK).mean() - 0.8) < 0.01
    # A tenth stays, and of the tenth that is drawn anew a quarter is drawn as it was.
    assert abs(kept.sum() / chosen.sum() - (0.1 + 0.1 / 4)) < 0.01


def test_a_batch_hides_the_same_letters_every_time_it_is_asked_for():
    tokenizer = make_tokenizer(ModelConfig())
    data = SequenceExamples(["ACGTNACGTA" * 3, "ACGT"], np.zeros(2, dtype=np.int64), tokenizer)

    def read(epoch):
        return hide_letters(data, *data.draw((epoch, 0, np.array([0, 1])), None, 5), 0.3)

    first, second = read(0), read(0)
    assert (first.tokens == second.tokens).all()
    assert (first.hidden == second.hidden).all()
    assert (read(1).hidden != first.hidden).any()
    (mask,) = first.masks
    assert mask is not None
    assert (first.hidden[~mask[:, 1:]] == IGNORED).all()
    assert ALPHABETS["dna"].decode(data.windows()[1]) == "ACGT"


def test_letters_of_every_row_of_an_alignment_are_hidden_and_its_gaps_are_not():
    rows = [b"AC-GU.ACGU" * 3] * 3 + [b"ACAGUCACGU" * 3]
    names = tuple("abcd")
    codes = encode_columns(rows, names, ALPHABETS["rna"], "x")
    settings = RunConfig(model=ModelConfig(kind="alignment", alphabet="rna", max_rows=4))
    alignment = Alignment("x", names, codes, ALPHABETS["rna"])
    data = AlignmentExamples([alignment], np.zeros(1, np.int64), settings)
    assert data.letter_counts().tolist() == [27, 27, 24, 24]
    batch = hide_letters(data, *data.draw((0, 0, np.array([0])), AugmentConfig(), 1), 0.3)
    assert batch.hidden.shape == (1, 4, 30)
    chosen = batch.hidden.numpy()[0] != IGNORED
    assert chosen.any(axis=1).all()
    assert (codes[chosen] == batch.hidden.numpy()[0][chosen]).all()
    assert (codes[chosen] < 4).all()
