"""Alignments in training: what a batch holds, and a task that only the other rows can solve."""

import random

import numpy as np
import pytest
import torch

from seqray.core.alphabet import ALPHABETS, encode_columns
from seqray.core.errors import InputError
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment
from seqray.core.run_config import AugmentConfig, DataConfig, OptimizerConfig, RunConfig
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel, check_self_test
from seqray.models.tokenizers import CLS, MASK, PAD
from seqray.training.data import AlignmentExamples
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.pretraining import pretrain

RNA = ALPHABETS["rna"]


def alignment(rows, label="a", name="x", **more):
    lines = [row.encode() for row in rows]
    names = [f"r{i}" for i in range(len(rows))]
    return Alignment(name, tuple(names), encode_columns(lines, names, RNA, name), RNA, label, **more)


def settings(**model):
    shape = {"kind": "alignment", "alphabet": "rna", "d_model": 16, "layers": 1, "heads": 2, "max_rows": 4}
    return RunConfig(
        model=ModelConfig(**{**shape, "max_length": 12, "dropout": 0.0, **model}),
        data=DataConfig(window=12, positive="b", validation=0.2),
        optimizer=OptimizerConfig(learning_rate=5e-3, batch_size=16),
        trainer={"max_epochs": 12, "accelerator": "cpu"},
    )


def test_a_batch_is_padded_on_both_axes_and_unchanged_rows_are_the_fitted_ones():
    data = AlignmentExamples(
        [alignment(["ACGU", "AC-U"]), alignment(["ACGUA", "ACGUA", "ACGUC"])], np.array([0, 1]), settings()
    )
    batch = data.batch(np.array([0, 1]))
    row_mask, column_mask = batch.masks
    assert row_mask is not None
    assert column_mask is not None
    assert batch.tokens.shape == (2, 3, 6)
    assert row_mask.tolist() == [[True, True, False], [True] * 3]
    assert column_mask.tolist() == [[True] * 5 + [False], [True] * 6]
    assert (batch.tokens[0, :, 0] == torch.tensor([CLS, CLS, PAD])).all()
    assert batch.tokens[0, 1].tolist() == [
        CLS,
        4,
        5,
        8,
        7,
        PAD,
    ]  # A C gap U: the gap comes after four letters
    assert data.lengths.tolist() == [8, 15]
    assert [RNA.decode(codes) for codes in data.windows()] == ["ACGU", "ACGUA"]


def test_training_draws_other_rows_each_time_but_always_the_query():
    rows = ["".join(random.Random(i).choices("ACGU", k=10)) for i in range(30)]
    data = AlignmentExamples([alignment(rows)], np.array([0]), settings())
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(20):
        tokens = data.batch(np.array([0]), AugmentConfig(mask=0.0), rng).tokens
        assert tokens.shape[1] <= 4
        assert tokens[0, 0].tolist() == data.tokenizer.encode(data.alignments[0].codes[:1])[0].tolist()
        seen.update(tuple(row) for row in tokens[0].tolist())
    assert len(seen) > 15
    masked = data.batch(np.array([0]), AugmentConfig(mask=0.5), rng).tokens
    assert (masked == MASK).any()
    assert (masked[:, :, 0] == CLS).all()


def test_any_row_may_take_the_place_of_the_query():
    rows = ["A" * 10, "C" * 10, "G" * 10]
    data = AlignmentExamples([alignment(rows)], np.array([0]), settings())
    rng = np.random.default_rng(0)
    drawn = [data.batch(np.array([0]), AugmentConfig(query=1.0), rng).tokens[0] for _ in range(60)]
    assert {tokens[0, 1].item() for tokens in drawn} == {4, 5, 6}
    assert {len(tokens) for tokens in drawn} == {1, 2, 3}
    assert all(len({row[1].item() for row in tokens}) == len(tokens) for tokens in drawn)  # no row twice
    kept = [data.batch(np.array([0]), AugmentConfig(), rng).tokens[0] for _ in range(60)]
    assert {tokens[0, 1].item() for tokens in kept} == {4}
    assert {len(tokens) for tokens in kept} == {1, 2, 3}


def task(count, rng):
    """Class b: every other row is the query; class a: any sequence. Queries tell nothing."""
    data = []
    for i in range(count):
        query = "".join(rng.choices("ACGU", k=12))
        label = "ab"[i % 2]
        others = [query if label == "b" else "".join(rng.choices("ACGU", k=12)) for _ in range(3)]
        data.append(alignment([query, *others], label, f"n{i}"))
    return data


def test_it_learns_what_stands_in_the_other_rows_and_reads_its_file_again(tmp_path):
    config = settings()
    result = train(
        config, task(300, random.Random(0)), tmp_path / "m.safetensors", RunOptions(tmp_path / "w")
    )
    assert result.validation["mcc"] > 0.75
    model = load_model(tmp_path / "m.safetensors")
    assert model.card.model.kind == "alignment"
    assert check_self_test(model) < 1e-4
    alone = [a.take_rows([0]) for a in task(200, random.Random(1))]
    queries = AlignmentExamples(alone, np.array([0, 1] * 100), config)
    logits = TrainedModel(model.card, model.networks).logits(queries.batch(np.arange(200)).tokens.numpy())
    called = logits.argmax(axis=1)
    assert abs((called == np.array([0, 1] * 100)).mean() - 0.5) < 0.1  # the query alone tells nothing


def test_a_copy_of_an_alignment_is_not_held_out_from_pretraining(tmp_path):
    rows = ["ACGUACGU", "ACGUAC-U"]
    with pytest.raises(InputError, match="too few different alignments to learn from: 1;"):
        pretrain(settings(), [alignment(rows, name=f"x{n}") for n in range(40)], None, RunOptions(tmp_path))
