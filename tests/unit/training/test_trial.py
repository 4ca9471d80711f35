"""A few settings that the data decide on, on sequences so small that a training takes a second."""

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
from seqray.training.plan import train_best

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
    data, folder, lines = examples(), tmp_path_factory.mktemp("tried"), []
    result, config = train_best(
        CONFIG, WIDTHS, data, None, RunOptions(folder, threads=1), on_trial=lines.append
    )
    return data, folder, result, config, lines


def test_the_best_first_member_decides(tried, tmp_path):
    data, _, result, config, lines = tried
    losses = []
    for number, changes in enumerate(WIDTHS):
        one = replace(CONFIG, members=1, model=replace(CONFIG.model, d_model=changes["model.d_model"]))
        [history] = train(one, data, None, RunOptions(tmp_path / str(number), threads=1)).history
        losses.append(min(row["loss"] for row in history))
    assert [line.partition(": epochs")[0] for line in lines] == [
        "trial 1: model.d_model=4",
        "trial 2: model.d_model=8",
    ]
    facts = result.card.training["search"]
    assert [-score for score in facts["tried"].values()] == pytest.approx(losses, abs=0)
    assert facts["changes"] == WIDTHS[int(np.argmin(losses))]
    assert config.model.d_model == facts["changes"]["model.d_model"]
    assert (result.card.members, result.card.model) == (2, config.model)  # the others have its settings


def test_the_same_run_trains_nothing_again(tried):
    data, folder, result, _, lines = tried
    again = []
    repeated, _ = train_best(CONFIG, WIDTHS, data, None, RunOptions(folder, threads=1), on_trial=again.append)
    assert again == lines  # with the seconds that they took
    for old, new in zip(result.networks, repeated.networks, strict=True):
        assert all(map(torch.equal, old.parameters(), new.parameters()))


def test_a_fresh_start_removes_what_was_there(tried):
    data, folder, *_ = tried
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
