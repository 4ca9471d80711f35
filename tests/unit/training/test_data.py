"""Batches and their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA
from seqray.core.run_config import AugmentConfig
from seqray.models.tokenizers import MASK, PAD, CharacterTokenizer, KmerTokenizer
from seqray.training.data import SequenceExamples, TrainingOrder, validation_order

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
