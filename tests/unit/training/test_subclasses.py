"""Loss, optimizer and schedule against their formulas; subclasses are learned apart, answered as one."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.serialization import to_mapping
from seqray.inference.sequences import predict_records
from seqray.modelfile.file import build_network, load_model
from seqray.models.tokenizers import CharacterTokenizer
from seqray.training import fit
from seqray.training.data import LabeledBatch, SequenceExamples
from seqray.training.data_facts import count_subclasses, measure_data, subclass_indices
from seqray.training.members import RunOptions
from seqray.training.module import FINAL_RATE, Classifier, parameter_groups, rate_factor
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


@pytest.fixture
def tiny():
    """Eight random sequences with arbitrary labels: a network can only memorize them."""
    rng = np.random.default_rng(0)
    sequences = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(8)]
    return SequenceExamples(sequences, np.array([0, 1, 1, 0, 1, 0, 0, 1]), CharacterTokenizer(DNA))


def classifier(config, weights=None, margins=None) -> Classifier:
    torch.manual_seed(0)
    module = Classifier(config, 1, np.array([0, 1]), 1, weights, margins)
    module.log = lambda *args, **kwargs: None  # type: ignore[method-assign]
    return module


def test_the_rate_rises_linearly_and_falls_as_half_a_cosine():
    factors = [rate_factor(step, 100, 0.1) for step in range(101)]
    assert factors[:10] == pytest.approx([(i + 1) / 11 for i in range(10)])
    assert factors[10] == 1
    assert factors[55] == pytest.approx((1 + FINAL_RATE) / 2)
    assert factors[100] == pytest.approx(FINAL_RATE)
    assert factors[32] == pytest.approx(FINAL_RATE + (1 - FINAL_RATE) * (1 + math.cos(math.pi * 22 / 90)) / 2)
    assert rate_factor(0, 1, 0.0) == 1
    assert rate_factor(500, 100, 0.1) == pytest.approx(FINAL_RATE)


def test_only_matrices_decay(make_config):
    network = build_network(make_config().model)
    decaying, free = parameter_groups(network, 0.05)
    assert (decaying["weight_decay"], free["weight_decay"]) == (0.05, 0.0)
    assert {p.ndim for p in free["params"]} == {1}
    assert 1 not in {p.ndim for p in decaying["params"]}
    assert len(decaying["params"]) + len(free["params"]) == len(list(network.parameters()))


def test_the_optimizer_follows_its_settings(make_config, monkeypatch):
    settings = {"learning_rate": 0.02, "weight_decay": 0.3, "warmup": 0.2}
    module = classifier(make_config(optimizer=settings))
    monkeypatch.setattr(Classifier, "trainer", SimpleNamespace(estimated_stepping_batches=50))
    made = module.configure_optimizers()
    optimizer, schedule = made["optimizer"], made["lr_scheduler"]["scheduler"]
    assert isinstance(optimizer, torch.optim.AdamW)
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.3, 0.0]
    assert made["lr_scheduler"]["interval"] == "step"
    rates = []
    for _ in range(50):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    assert rates == pytest.approx([0.02 * rate_factor(step, 50, 0.2) for step in range(50)])


@pytest.mark.parametrize(("weights", "smoothing"), [(None, 0.0), (np.array([0.5, 3.0]), 0.2)])
def test_the_loss_is_weighted_smoothed_cross_entropy(make_config, tiny, weights, smoothing, monkeypatch):
    config = make_config(optimizer={"label_smoothing": smoothing}, model={"dropout": 0.0})
    module = classifier(config, weights)
    monkeypatch.setattr(Classifier, "current_epoch", 0)
    batch = tiny.batch(np.arange(8))
    log_p = torch.log_softmax(module.network(batch.tokens).logits, dim=1)
    target = torch.eye(2)[batch.labels] * (1 - smoothing) + smoothing / 2  # (B, K)
    w = torch.ones(2) if weights is None else torch.tensor(weights, dtype=torch.float32)
    # Each term carries the weight of its class; the mean divides by the weights of the true classes.
    expected = -(target * log_p * w).sum() / w[batch.labels].sum()
    assert module.training_step(batch, 0).item() == pytest.approx(expected.item(), rel=1e-5)


def test_dropout_depends_on_seed_epoch_and_step_alone(make_config, tiny, monkeypatch):
    module, batch = classifier(make_config(model={"dropout": 0.5})), tiny.batch(np.arange(8))

    def loss(epoch, number):
        monkeypatch.setattr(Classifier, "current_epoch", epoch)
        torch.manual_seed(np.random.default_rng().integers(1 << 31))
        return module.training_step(batch, number).item()

    assert loss(0, 0) == loss(0, 0)
    assert len({loss(0, 0), loss(0, 1), loss(1, 0)}) == 3


def test_the_average_follows_its_recursion(make_config, monkeypatch):
    module = classifier(make_config(optimizer={"ema": 0.8}))
    assert module.average is not None
    assert module.evaluated_network is module.average
    weight, averaged = next(module.network.parameters()), next(module.average.parameters())
    expected = averaged.clone()
    for step in range(1, 60):
        monkeypatch.setattr(Classifier, "global_step", step)
        with torch.no_grad():
            weight.copy_(torch.full_like(weight, float(step)))
        module._update_average(module.average)
        decay = min(0.8, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * step
    assert torch.allclose(averaged, expected, rtol=1e-5)
    assert not any(p.requires_grad for p in module.average.parameters())
