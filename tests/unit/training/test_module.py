"""Loss, optimizer, schedule and averaged weights, each against its formula."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from seqray.core.alphabet import DNA
from seqray.modelfile.networks import build_model
from seqray.models.tokenizers import CharacterTokenizer
from seqray.training.data import SequenceExamples
from seqray.training.module import FINAL_RATE, Classifier, parameter_groups, rate_factor


@pytest.fixture
def tiny():
    """Eight random sequences with arbitrary labels: nothing to learn but by heart."""
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
    network = build_model(make_config().model)
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
