"""Subclasses: counted from the data, learned apart, and answered as one class."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.serialization import to_mapping
from seqray.inference.sequences import predict_records
from seqray.modelfile.file import load_model
from seqray.training import fit
from seqray.training.data import LabeledBatch
from seqray.training.data_facts import count_subclasses, measure_data, subclass_indices
from seqray.training.members import RunOptions
from seqray.training.module import Classifier
from seqray.training.settings_from_data import choose_settings, fit_settings

CLASSES = ("background", "promoter")
ROWS = [
    LabeledSequence("ACGT", "background", "1", subclass="shuffle"),
    LabeledSequence("ACGA", "promoter", "2"),
    LabeledSequence("ACGC", "background", "3", subclass="genome"),
    LabeledSequence("ACGG", "background", "4"),
    LabeledSequence("ACTT", "background", "5", split="test", subclass="never learned"),
]


def test_subclasses_are_counted_and_numbered_class_by_class(make_config):
    config = make_config(data={"subclasses": True})
    assert count_subclasses(config, ROWS, CLASSES).model.subclasses == (3, 1)  # "", genome, shuffle; then ""
    assert subclass_indices(ROWS, CLASSES).tolist() == [2, 3, 1, 0, -1]


def test_subclasses_that_nobody_names_are_an_error(make_config):
    plain = [replace(one, subclass=None) for one in ROWS]
    with pytest.raises(
        ConfigError, match="no example names its subclass; add a column 'subclass' to the table"
    ):
        count_subclasses(make_config(data={"subclasses": True}), plain, CLASSES)


def test_the_column_decides_where_settings_are_chosen():
    told = measure_data(10 * ROWS, DNA)
    assert choose_settings(told).data.subclasses
    assert not choose_settings(measure_data(9 * ROWS, DNA)).data.subclasses  # names of rows, perhaps
    assert not choose_settings(measure_data([], DNA)).data.subclasses
    rare = [LabeledSequence("ACCA", "rare", "6")]
    assert choose_settings(measure_data([*rare, *10 * ROWS], DNA)).data.subclasses  # of other classes
    one_each = measure_data([replace(one, subclass=one.label) for one in 10 * ROWS], DNA)
    assert not choose_settings(one_each).data.subclasses
    again = fit_settings(choose_settings(told), one_each)
    assert (again.data.subclasses, again.model.subclasses) == (False, ())


def either_half(count: int, seed: int = 0) -> list[LabeledSequence]:
    """Promoters have TATAAT and GGCGCC; one part of the background lacks the first, another the second."""
    rng = np.random.default_rng(seed)
    examples = []
    for number in range(count):
        letters = rng.choice(list("ACGT"), 40)
        kind = ("", "no box", "no tail", "")[number % 4]
        if kind != "no box":
            letters[8:14] = list("TATAAT")
        if kind != "no tail":
            letters[28:34] = list("GGCGCC")
        label = "background" if kind else "promoter"
        examples.append(LabeledSequence("".join(letters), label, f"s{number}", subclass=kind or None))
    return examples


def test_a_model_learns_subclasses_and_answers_classes(make_config, tmp_path, monkeypatch):
    config = make_config(
        model={"d_model": 32, "dropout": 0.0, "stem": {"kernels": [7], "stride": 2}},
        data={"subclasses": True},
        trainer={"max_epochs": 8},
    )
    out = tmp_path / "m.safetensors"
    fit.train(config, either_half(800), out, RunOptions(tmp_path / "w"))
    model = load_model(out)
    assert model.card.classes == CLASSES
    assert model.card.model.subclasses == (2, 1)
    assert model.networks[0].state_dict()["head.linear.weight"].shape == (3, 32)
    assert to_mapping(model.card)["training"]["config"]["data"]["subclasses"] is True
    fresh = either_half(200, seed=1)
    found = list(predict_records(model, [SequenceRecord(one.id, one.sequence) for one in fresh]))
    assert all(len(one.probabilities) == 2 for one in found)
    right = np.mean([one.label == truth.label for one, truth in zip(found, fresh, strict=True)])
    assert right > 0.95
    assert model.card.training["subclasses"] == {"background": ["no box", "no tail"], "promoter": ["unnamed"]}
    monkeypatch.delattr(Classifier, "training_step")  # a finished training is loaded, not repeated
    again = fit.train(config, either_half(800), None, RunOptions(tmp_path / "w"))
    weights = model.networks[0].state_dict()
    assert all(torch.equal(value, weights[name]) for name, value in again.networks[0].state_dict().items())


def test_class_weights_and_margins_hold_for_all_subclasses_of_a_class(make_config):
    """The loss of two examples, on paper, where the head answers nothing but zeros."""
    config = make_config(model={"subclasses": [2, 1]})
    module = Classifier(config, 1, np.zeros(1, dtype=int), 1, np.array([0.5, 2.0]), np.array([-1.0, 0.25]))
    torch.nn.init.zeros_(module.network.head.linear.weight)
    torch.nn.init.zeros_(module.network.head.linear.bias)
    tokens, labels = torch.tensor([[1, 4, 5, 6]] * 2), torch.tensor([1, 2])  # second subclass, second class
    loss = module.training_step(LabeledBatch(tokens, (None,), labels, torch.arange(2)), 0)
    total = np.log(2 * np.exp(-1.0) + np.exp(0.25))
    assert loss.item() == pytest.approx((0.5 * (total + 1.0) + 2.0 * (total - 0.25)) / 2.5, rel=1e-5)
