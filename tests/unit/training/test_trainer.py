"""The trainer: devices, validation."""

import logging
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import average_precision_score, f1_score, log_loss, matthews_corrcoef, roc_auc_score

from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.errors import ConfigError
from seqray.core.model_config import LocatorConfig, ModelConfig
from seqray.core.run_config import RunConfig
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import build_model
from seqray.models.tokenizers import CharacterTokenizer
from seqray.training.data import SequenceExamples
from seqray.training.module import classification_figures, model_logits
from seqray.training.trainer import make_trainer, quiet, trainer_settings
from slow_metrics import calibration_error


def test_defaults_suit_the_machine(make_config, monkeypatch):
    config = make_config()
    config.trainer.clear()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    settings = trainer_settings(config)
    assert (settings["max_epochs"], settings["gradient_clip_val"], settings["devices"]) == (30, 1.0, 1)
    assert (settings["accelerator"], settings["precision"]) == ("cpu", "32-true")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    settings = trainer_settings(config)
    assert (settings["accelerator"], settings["precision"]) == ("cuda", "bf16-mixed")
    config.trainer["accelerator"] = "cpu"
    assert trainer_settings(config)["precision"] == "32-true"
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    assert trainer_settings(config)["precision"] == "bf16-mixed"
    locator = replace(config.model, kind="locator", locator=LocatorConfig())
    assert trainer_settings(replace(config, model=locator))["precision"] == "32-true"


def test_what_is_set_goes_to_lightning(make_config, tmp_path):
    settings = {"precision": "bf16-mixed", "accumulate_grad_batches": 3, "max_epochs": 7}
    trainer = make_trainer(make_config(trainer=settings), tmp_path, progress=False)
    assert trainer.precision == "bf16-mixed"
    assert (trainer.accumulate_grad_batches, trainer.max_epochs, trainer.gradient_clip_val) == (3, 7, 1.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_epoch": 3}, "unknown setting 'trainer.max_epoch'; did you mean 'trainer.max_epochs'?"),
        ({"barebones": True}, "'trainer.barebones' can't be set; seqray train chooses it"),
        ({"callbacks": ["Timer"]}, "'trainer.callbacks' holds no names"),
        ({"callbacks": {"Time": {}}}, "'trainer.callbacks' has no 'Time'; did you mean 'Timer'?"),
        ({"logger": "file"}, "'trainer.logger' is 'file'; give csv or tensorboard, or a list of both"),
        ({"max_epochs": 0}, "'trainer.max_epochs' is 0; give more than 0"),
        ({"max_epochs": 1.5}, "'trainer.max_epochs' is 1.5; give a whole number, 1 or more"),
        ({"limit_train_batches": 0.0}, "'trainer.limit_train_batches' is 0.0"),
        ({"precision": "9-bits"}, "Lightning refuses the 'trainer' settings"),
    ],
)
def test_wrong_settings_are_one_clear_line(make_config, tmp_path, settings, message):
    with pytest.raises(ConfigError) as error:
        make_trainer(make_config(trainer=settings), tmp_path, progress=False)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_quiet_drops_notes_and_keeps_warnings(capfd, monkeypatch):
    logger = logging.getLogger("lightning.pytorch")
    before, records = logger.level, []
    monkeypatch.setattr(logger, "handle", records.append)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with quiet(RunConfig()):
            logger.info("GPU available: False")
            warnings.warn("The 'train_dataloader' does not have many workers", stacklevel=1)
            warnings.warn("loss is NaN", stacklevel=1)
            sys.stdout.write("noise\n")
    assert [str(w.message) for w in seen] == ["loss is NaN"]
    assert records == []
    assert capfd.readouterr() == ("noise\n", "")
    assert logger.level == before


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_two_classes_are_measured_on_the_positive_one(rng):
    labels = rng.integers(0, 2, 300)
    logits = rng.normal(size=(300, 2)) + np.eye(2)[labels]
    p = softmax(logits, axis=1)
    for positive in (0, 1):
        figures = classification_figures(logits, labels, positive, threshold=0.6)
        truth = labels == positive
        assert figures["loss"] == pytest.approx(log_loss(labels, p))
        assert figures["mcc"] == pytest.approx(matthews_corrcoef(truth, p[:, positive] >= 0.6))
        assert figures["auprc"] == pytest.approx(average_precision_score(truth, p[:, positive]))


def test_a_score_at_the_threshold_is_a_call():
    logits = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert classification_figures(logits, np.array([1, 0]), positive=1, threshold=0.5)["accuracy"] == 1


def test_more_classes_are_averaged_one_against_the_rest(rng):
    labels = rng.integers(0, 4, 400)
    logits = rng.normal(size=(400, 4)) + 1.5 * np.eye(4)[labels]
    p, called = softmax(logits, axis=1), logits.argmax(axis=1)
    figures = classification_figures(logits, labels, positive=3)
    assert figures["f1"] == pytest.approx(f1_score(labels, called, average="macro"))
    assert figures["auroc"] == pytest.approx(roc_auc_score(labels, p, multi_class="ovr", average="macro"))
    mcc = [matthews_corrcoef(labels == k, called == k) for k in range(4)]
    assert figures["mcc"] == pytest.approx(np.mean(mcc))
    assert figures["ece"] == pytest.approx(calibration_error(p.max(axis=1), called == labels))


def test_a_models_logits_are_those_of_each_sequence_by_itself(rng):
    config = ModelConfig(d_model=16, layers=1, heads=2, max_length=32)
    card = Card(
        name="m", classes=("a", "b"), positive="b", window=32, model=config, members=2, temperature=1.7
    )
    model = TrainedModel(card, (build_model(config), build_model(config)))
    sequences = ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(5, 33, 40)]
    data = SequenceExamples(sequences, np.zeros(40), CharacterTokenizer(DNA))
    together = model_logits(model, data)
    padded = [data.batch(np.array([i])).tokens.numpy() for i in range(40)]
    alone = [
        model.logits(tokens[:, : len(sequence) + 1])[0]
        for tokens, sequence in zip(padded, sequences, strict=True)
    ]
    assert together == pytest.approx(np.array(alone), abs=1e-5)
