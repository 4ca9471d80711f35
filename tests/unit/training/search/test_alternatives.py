"""A few settings that the data decide on, on sequences so small that a training takes a second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.core.records import LabeledSequence
from seqray.core.run_config import DataConfig, RunConfig, StoppingConfig
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.search import train_best

RNG = np.random.default_rng(8)
WIDTHS = ({"model.d_model": 4}, {"model.d_model": 8})
CONFIG = RunConfig(
    model=ModelConfig(d_model=4, heads=1, layers=1, max_length=12),
    data=DataConfig(window=12, positive="a", validation=0.25),
    stopping=StoppingConfig(monitor="loss"),
    trainer={"max_epochs": 2},
    members=2,
)


def examples() -> list[LabeledSequence]:
    """60 random sequences; those of class ``a`` hold no G."""
    letters = {"a": list("ACT"), "b": list("ACGT")}
    labels = ["a", "b"] * 30
    return [
        LabeledSequence("".join(RNG.choice(letters[label], 12)), label, f"s{i}")
        for i, label in enumerate(labels)
    ]


@pytest.fixture(scope="module")
def tried(tmp_path_factory):
    data, folder = examples(), tmp_path_factory.mktemp("tried")
    seen = []
    result = train_best(CONFIG, WIDTHS, data, None, RunOptions(folder, threads=1), on_trial=seen.append)
    return data, folder, result, seen


def test_the_best_first_member_decides(tried, tmp_path):
    data, _, result, seen = tried
    assert list(result.trials) == seen
    assert [trial.config.model.d_model for trial in seen] == [4, 8]
    losses = []
    for number, changes in enumerate(WIDTHS):
        config = replace(CONFIG, members=1, model=replace(CONFIG.model, d_model=changes["model.d_model"]))
        [history] = train(config, data, None, RunOptions(tmp_path / str(number), threads=1)).history
        losses.append(min(row["loss"] for row in history))
    assert [-trial.score for trial in seen] == pytest.approx(losses, abs=0)
    assert result.chosen is seen[int(np.argmin(losses))]


def test_the_others_are_trained_with_its_settings(tried):
    _, _, result, _ = tried
    card = result.trained.card
    assert card.members == 2
    assert card.model == result.chosen.config.model
    facts = card.training["search"]
    assert facts["tried"] == {trial.title: trial.score for trial in result.trials}
    assert facts["changes"] == dict(result.chosen.changes)


def test_the_same_run_trains_nothing_again(tried):
    data, folder, result, _ = tried
    again = train_best(CONFIG, WIDTHS, data, None, RunOptions(folder, threads=1))
    assert again.trials == result.trials  # with the seconds that they took
    for old, new in zip(result.trained.networks, again.trained.networks, strict=True):
        assert all(map(torch.equal, old.parameters(), new.parameters()))


def test_a_fresh_start_removes_what_was_there(tried):
    data, folder, _, _ = tried
    stale = folder / "settings-000000000000"
    stale.mkdir()
    train_best(CONFIG, WIDTHS, data, None, RunOptions(folder, resume=False, threads=1))
    assert not stale.exists()


def test_settings_that_are_refused_remove_nothing(tmp_path):
    kept = tmp_path / "settings-a"
    kept.mkdir()
    wrong = replace(CONFIG, trainer={**CONFIG.trainer, "no_such_setting": 1})
    with pytest.raises(ConfigError, match="no_such_setting"):
        train_best(wrong, WIDTHS, examples(), None, RunOptions(tmp_path, resume=False))
    assert kept.is_dir()
