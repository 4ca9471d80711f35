"""Settings of the trainer, and a workplace that is quiet."""

from __future__ import annotations

import logging
import sys
import warnings
from dataclasses import replace

import pytest
import torch

from seqray.core.errors import ConfigError
from seqray.core.model_config import LocatorConfig
from seqray.core.run_config import RunConfig
from seqray.training.trainer import make_trainer, quiet, trainer_settings


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
        ({"callbacks": []}, "'trainer.callbacks' can't be set; seqray train chooses it"),
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
    assert capfd.readouterr() == ("", "noise\n")
    assert logger.level == before
