"""Data of a training, and how it is changed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import ALPHABETS, DNA, PROTEIN, encode_columns, reverse_complement, stack_sequences
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment, SequenceRecord
from seqray.core.run_config import AugmentConfig, RunConfig
from seqray.inference.sequences import score_codes
from seqray.models.tokenizers import (
    CLS,
    FIRST_LETTER,
    MASK,
    PAD,
    UNK,
    CharacterTokenizer,
    KmerTokenizer,
    make_tokenizer,
)
from seqray.training.data import (
    AlignmentExamples,
    Changes,
    SequenceExamples,
    TrainingOrder,
    cut_windows,
    mask_tokens,
    validation_order,
)
from seqray.training.prefilter import WindowSource
from seqray.training.pretraining import IGNORED, hide_letters, mask_letters

TOKENIZERS = [CharacterTokenizer(DNA), KmerTokenizer(DNA, 3)]


def random_sequences(count: int, shortest: int, longest: int) -> list[str]:
    rng = np.random.default_rng(2)
    return ["".join(rng.choice(list("ACGTN"), rng.integers(shortest, longest + 1))) for _ in range(count)]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_a_ragged_batch_holds_what_the_tokenizer_gives_each_sequence(tokenizer):
    sequences = random_sequences(12, 4, 20)
    data = SequenceExamples(sequences, np.arange(12), tokenizer)
    rows = np.array([3, 0, 11, 7])
    batch = data.batch(rows)
    assert batch.masks[0] is not None
    for i, row in enumerate(rows):
        expected = tokenizer.encode(sequences[row])
        assert batch.tokens[i][batch.masks[0][i]].tolist() == expected.tolist()
        assert batch.masks[0][i].tolist() == [True] * len(expected) + [False] * (
            batch.tokens.shape[1] - len(expected)
        )
        assert (batch.tokens[i][~batch.masks[0][i]] == PAD).all()
    assert batch.labels.tolist() == batch.rows.tolist() == rows.tolist()


def test_equal_lengths_need_no_mask():
    data = SequenceExamples(["ACGT", "GGNT"], np.array([0, 1]), TOKENIZERS[0])
    batch = data.batch(np.array([1, 0]))
    assert batch.masks[0] is None
    assert batch.tokens.tolist() == [[1, 6, 6, 3, 7], [1, 4, 5, 6, 7]]


def test_the_flank_is_cut_away_where_nothing_is_changed():
    data = SequenceExamples(["TTACGTAA", "GGCCCCTT"], np.array([0, 1]), TOKENIZERS[0], flank=2)
    assert data.lengths.tolist() == [4, 4]
    assert [DNA.decode(w) for w in data.windows()] == ["ACGT", "CCCC"]
    assert data.batch(np.array([0])).tokens.tolist() == [[1, 4, 5, 6, 7]]


def test_random_changes_come_from_seed_epoch_batch_and_process_alone():
    data = SequenceExamples(random_sequences(50, 30, 30), np.zeros(50), TOKENIZERS[0])
    augment, rows = AugmentConfig(shift=5, mask=0.2, reverse_complement=0.5), np.arange(50)

    def tokens(epoch, number, seed=1, rank=0):
        return data.draw((epoch, number, rows), augment, seed, rank)[0].tokens

    assert tokens(0, 0).equal(tokens(0, 0))
    for other in (tokens(1, 0), tokens(0, 1), tokens(0, 0, seed=2), tokens(0, 0, rank=1)):
        assert not other.equal(tokens(0, 0))


def test_letters_are_masked_at_their_rate_in_training_only():
    data = SequenceExamples(random_sequences(200, 50, 50), np.zeros(200), TOKENIZERS[0])
    rows = np.arange(200)
    changed = data.draw((0, 0, rows), AugmentConfig(mask=0.1), 0)[0].tokens
    assert (changed[:, 1:] == MASK).float().mean().item() == pytest.approx(0.1, abs=0.015)
    assert not (data.draw((0, 0, rows), None, 0)[0].tokens == MASK).any()


@given(
    st.lists(st.integers(5, 40), min_size=1, max_size=150),
    st.integers(1, 40),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_each_epoch_deals_every_sequence_to_the_processes(lengths, batch_size, world, epoch):
    lengths = np.array(lengths)
    seen, steps = [], set()
    for rank in range(world):
        order = TrainingOrder(lengths, batch_size, 7, rank, world)
        order.set_epoch(epoch)
        keys = list(order)
        steps.add(len(keys))
        assert len(keys) == len(order)
        assert [key[:2] for key in keys] == [(epoch, i) for i in range(len(keys))]
        assert all(1 <= len(key[2]) <= batch_size for key in keys)
        seen += [row for key in keys for row in key[2]]
    assert len(steps) == 1
    assert set(seen) == set(range(len(lengths)))
    assert len(seen) - len(lengths) < world


def test_unequal_lengths_are_batched_with_little_padding():
    lengths = np.random.default_rng(0).integers(10, 200, 4000)
    batches = [key[2] for key in TrainingOrder(lengths, 32, 1)]
    padded = sum(len(rows) * lengths[rows].max() for rows in batches)
    assert padded < 1.1 * lengths.sum()  # in random batches it is 1.8 times


@given(st.lists(st.integers(1, 60), min_size=1, max_size=600), st.integers(1, 4))
def test_validation_sees_every_sequence_and_processes_take_equal_steps(lengths, world):
    parts = [[key[2] for key in validation_order(np.array(lengths), rank, world)] for rank in range(world)]
    assert len({len(part) for part in parts}) == 1
    assert {int(row) for part in parts for rows in part for row in rows} == set(range(len(lengths)))


dna = st.text("ACGTN", min_size=1, max_size=25)


def by_hand(sequence: str, flank: int, shift: int, flip: bool) -> str:
    """The window of one sequence, as a person would cut it; N is what lies beyond the ends."""
    begin, end = flank + shift, len(sequence) - flank + shift
    window = "".join(sequence[i] if 0 <= i < len(sequence) else "N" for i in range(begin, end))
    return reverse_complement(window) if flip else window


def cut(sequences: list[str], rows: list[int], flank: int, shift: list[int], flip: list[bool]) -> list[str]:
    stack = stack_sequences(sequences, DNA)
    begin = np.cumsum(stack.lengths) - stack.lengths
    changes = Changes(np.array(shift), np.array(flip))
    codes, lengths = cut_windows(stack, begin, np.array(rows), flank, changes, DNA.unknown)
    assert codes.shape == (len(rows), lengths.max())
    for row, n in zip(codes, lengths, strict=True):
        assert (row[n:] == DNA.unknown).all()
    return [DNA.decode(row[:n]) for row, n in zip(codes, lengths, strict=True)]


@given(st.data())
def test_windows_of_any_lengths_are_those_cut_by_hand(data):
    sequences = data.draw(st.lists(dna, min_size=1, max_size=6))
    flank = data.draw(st.integers(0, (min(map(len, sequences)) - 1) // 2))
    rows = data.draw(st.lists(st.integers(0, len(sequences) - 1), min_size=1, max_size=8))
    shift = [data.draw(st.integers(-30, 30)) for _ in rows]
    flip = [data.draw(st.booleans()) for _ in rows]
    expected = [by_hand(sequences[r], flank, s, f) for r, s, f in zip(rows, shift, flip, strict=True)]
    assert cut(sequences, rows, flank, shift, flip) == expected


def test_protein_windows_have_their_own_unknown_code():
    stack = stack_sequences(["MKV"], PROTEIN)
    codes, _ = cut_windows(
        stack, np.array([0]), np.array([0]), 0, Changes(np.array([1]), np.array([False])), PROTEIN.unknown
    )
    assert PROTEIN.decode(codes[0]) == "KVX"


def test_drawn_changes_are_uniform_shifts_and_flips_at_their_rate():
    changes = Changes.draw(np.random.default_rng(0), 70_000, AugmentConfig(shift=3, reverse_complement=0.25))
    values, counts = np.unique(changes.shift, return_counts=True)
    assert values.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert counts == pytest.approx(10_000, abs=500)  # five standard deviations are 460
    assert changes.flip.mean() == pytest.approx(0.25, abs=0.01)


def test_a_share_of_the_windows_is_shifted():
    changes = Changes.draw(np.random.default_rng(0), 80_000, AugmentConfig(shift=2, shift_share=0.5))
    values, counts = np.unique(changes.shift, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert counts == pytest.approx([8_000, 8_000, 48_000, 8_000, 8_000], abs=600)  # over four deviations


@pytest.mark.parametrize("tokenizer", [CharacterTokenizer(DNA), KmerTokenizer(DNA, 3)])
def test_a_token_is_masked_when_any_of_its_letters_is(tokenizer):
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (20, 12)).astype(np.uint8)
    letters = rng.random(codes.shape) < 0.15
    tokens, spans = tokenizer.encode_codes(codes), tokenizer.spans(12)
    masked = mask_tokens(tokens, letters, spans)
    for b in range(len(codes)):
        for t, (start, end) in enumerate(spans):
            hit = any(letters[b, i] for i in range(start, end))
            assert masked[b, t] == (MASK if hit else tokens[b, t])
    assert (masked[:, 0] == CLS).all()
    assert (masked == MASK).any()


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


def test_padded_lengths_are_few():
    """A batch is as long as the next multiple of 8 letters, but no longer than the longest sequence."""
    data = SequenceExamples(["A" * n for n in (1, 7, 8, 9, 19)], np.zeros(5, dtype=np.int64), TOKENIZERS[0])
    batches = {rows: data.batch(np.array(rows)) for rows in ((0,), (0, 1), (2,), (2, 3), (3, 4))}
    letters = [batch.tokens.shape[1] - 1 for batch in batches.values()]
    assert letters == [8, 8, 8, 16, 19]
    assert batches[2,].masks == (None,)
    assert batches[0, 1].masks[0].sum(axis=1).tolist() == [2, 8]
