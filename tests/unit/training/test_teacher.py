"""Learning from a teacher's probabilities, and with contexts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqray.core.alphabet import stack_sequences
from seqray.core.card_parts import RisingMap
from seqray.core.errors import ConfigError, InputError
from seqray.core.serialization import from_mapping
from seqray.inference.sequences import score_codes
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.training import fit
from seqray.training.data import context_numbers, encode
from seqray.training.fit import distillation_targets
from seqray.training.members import RunOptions
from seqray.training.partitions import partition

SPECIES = ("a", "b")


def test_targets_are_the_teachers_probabilities_mixed_with_the_labels(motif_task, make_config, tiny_model):
    data = motif_task(40, length=20)
    settings = {"data": {"window": 20}, "optimizer": {"teacher": 0.6}}
    parts = partition(data, make_config(**settings), ["promoter", "background"])
    found = distillation_targets(tiny_model, data, parts, make_config(**settings))
    codes = np.stack([tiny_model.alphabet.encode(data[i].sequence) for i in parts.train])
    expected = 0.6 * score_codes(tiny_model, codes)
    expected[np.arange(len(codes)), parts.labels[parts.train]] += 0.4
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("knots", [[0.0], [-1.0, 0.0, 2.0]])
def test_a_teacher_with_a_map_or_a_shift_teaches_what_it_predicts(motif_task, make_config, tiny_model, knots):
    bend = RisingMap(np.array(knots) * 0.5 + 1.5, np.array(knots))
    teacher = replace(tiny_model, card=replace(tiny_model.card, format=2, isotonic=bend))
    data, settings = motif_task(40, length=20), {"data": {"window": 20}, "optimizer": {"teacher": 1.0}}
    parts = partition(data, make_config(**settings), ["promoter", "background"])
    codes = np.stack([teacher.alphabet.encode(data[i].sequence) for i in parts.train])
    found = distillation_targets(teacher, data, parts, make_config(**settings))
    np.testing.assert_allclose(found, score_codes(teacher, codes), atol=1e-6)
    assert np.abs(found - score_codes(tiny_model, codes)).max() > 0.1


def test_a_pupil_learns_what_labels_do_not_say(motif_task, make_config, tmp_path):
    """Labels are made worthless; the pupil of a teacher who knows the motif still learns it."""
    good = make_config(
        model={"d_model": 32, "dropout": 0.0, "stem": {"kernels": [7]}},
        trainer={"max_epochs": 6},
        optimizer={"teacher": 1.0},
    )
    data = motif_task(600)
    fit.train(good, data, tmp_path / "t.safetensors", RunOptions(tmp_path / "w"))
    teacher = load_model(tmp_path / "t.safetensors")
    rng = np.random.default_rng(0)
    labels = rng.permutation([e.label for e in data])
    worthless = [replace(e, label=str(label)) for e, label in zip(data, labels, strict=True)]
    out = tmp_path / "p.safetensors"
    result = fit.train(good, worthless, out, RunOptions(tmp_path / "p"), teacher=teacher)
    pupil = TrainedModel(result.card, result.networks)
    fresh = motif_task(200, seed=9)
    codes = np.stack([pupil.alphabet.encode(e.sequence) for e in fresh])
    p = score_codes(pupil, codes)[:, pupil.card.positive_index]
    truth = np.array([e.label == "promoter" for e in fresh])
    assert np.mean(p[truth][:, None] > p[~truth]) > 0.9
    with pytest.raises(InputError, match="other teacher"):  # the folder is that of a run with one
        fit.train(replace(good, members=2), worthless, None, RunOptions(tmp_path / "p"))


@pytest.mark.parametrize(
    ("change", "classes", "message"),
    [
        ({"model": {"alphabet": "protein"}}, ["promoter", "background"], "has the alphabet dna, the data"),
        ({"data": {"window": 30}, "model": {"max_length": 30}}, ["promoter", "background"], "20 letters, "),
        ({}, None, "has the classes promoter, background, the data background, prom"),
    ],
)
def test_a_teacher_of_another_kind_is_refused(
    motif_task, make_config, tiny_model, tmp_path, change, classes, message
):
    data, config = motif_task(40, length=20), make_config(**({"data": {"window": 20}} | change))
    with pytest.raises(ConfigError, match=message):
        fit.train(config, data, None, RunOptions(tmp_path), classes=classes, teacher=tiny_model)


def with_contexts(data):
    return [replace(e, context=(*SPECIES, None)[i // 2 % 3]) for i, e in enumerate(data)]


def test_batches_carry_contexts_and_training_hides_some(motif_task, make_config):
    config = make_config(model={"contexts": list(SPECIES)}, augment={"hide_context": 0.5})
    data = with_contexts(motif_task(1200))
    parts = partition(data, config)
    encoded = encode(data, parts.labels, parts.train, config)
    rows = np.arange(len(encoded))
    first = encoded.batch(rows).tokens[:, 0].numpy()
    base = encoded.tokenizer.vocab_size
    expected = [{"a": base, "b": base + 1, None: 1}[data[i].context] for i in parts.train]
    assert first.tolist() == expected
    hidden = encoded.batch(rows, config.augment, np.random.default_rng(0)).tokens[:, 0].numpy()
    known = first != 1
    assert 0.4 < np.mean(hidden[known] == 1) < 0.6
    assert (hidden[~known] == 1).all()
    assert ((hidden == first) | (hidden == 1)).all()


def test_a_rule_that_hangs_on_the_context_is_learned(make_config, tmp_path):
    """A-rich is promoter in one species, T-rich in the other: without the context nothing can be known."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(800):
        species, rich = SPECIES[i % 2], "AT"[i // 2 % 2]
        letters = "".join(rng.choice([*"ACGT", rich, rich], 40))
        label = "promoter" if (species == "a") == (rich == "A") else "background"
        rows.append({"sequence": letters, "label": label, "id": f"s{i}", "context": species})
    data = [from_mapping_example(row) for row in rows]
    config = make_config(
        model={"d_model": 32, "layers": 2, "dropout": 0.0, "contexts": list(SPECIES)},
        trainer={"max_epochs": 12},
        augment={"hide_context": 0.2},
    )
    result = fit.train(config, data, tmp_path / "m.safetensors", RunOptions(tmp_path / "w"))
    assert result.validation["auroc"] > 0.9
    model = load_model(tmp_path / "m.safetensors")
    codes = stack_sequences([e.sequence for e in data], model.alphabet).codes.reshape(-1, 40)
    unknown = score_codes(model, codes)[:, 1]
    truth = np.array([e.label == "promoter" for e in data])
    assert abs(np.mean(unknown[truth]) - np.mean(unknown[~truth])) < 0.1


def from_mapping_example(row):
    from seqray.core.records import LabeledSequence

    return from_mapping(LabeledSequence, row)


def test_an_unknown_context_is_told_before_any_work(motif_task, make_config, tmp_path):
    data = with_contexts(motif_task(60))
    with pytest.raises(InputError, match=r"record 's2'.*'b'; name it in 'model.contexts'"):
        fit.train(make_config(model={"contexts": ["a"]}), data, None, RunOptions(tmp_path / "w"))
    assert not (tmp_path / "w").exists()
    assert context_numbers(data, make_config().model) is None


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
