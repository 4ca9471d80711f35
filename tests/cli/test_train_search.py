"""``seqray train --budget``: a table of what was tried, the best as a model, and signals."""

from __future__ import annotations

import csv
import random
import signal
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from seqray.cli.main import main
from seqray.core.errors import InputError, terminate
from seqray.core.run_config import load_run_config
from seqray.modelfile.file import load_model_file
from seqray.modelfile.header import read_card
from seqray.training import halving as successive_halving, settings_from_data
from seqray.training.module import Classifier

SMALL = ("model.d_model=16", "model.heads=2", "model.layers=1", "model.stem.stride=4", "model.words=0")


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """48 windows of 30 letters; promoters carry TATAAT at one place."""
    rng = random.Random(0)
    rows = ["sequence\tlabel"]
    for i in range(48):
        letters = "".join(rng.choices("ACGT", k=30))
        rows.append(f"{letters[:12]}TATAAT{letters[18:]}\tpromoter" if i % 2 else f"{letters}\tbackground")
    (tmp_path / "t.tsv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def command(*words: str, budget: str, epochs: int, members: int = 1) -> list[str]:
    settings = [word for setting in (*SMALL, f"trainer.max_epochs={epochs}") for word in ("--set", setting)]
    common = ["--device", "cpu", "--threads", "1", "--members", str(members), "--budget", budget]
    return ["train", "--train", "t.tsv", "--out", "m.safetensors", *common, *settings, *words]


def search(*words: str, budget: str = "60steps", epochs: int = 3) -> int:
    return main(command(*words, budget=budget, epochs=epochs))


def rows() -> list[dict[str, str]]:
    lines = Path("m.safetensors.search.tsv").read_text().splitlines()
    return list(csv.DictReader([line for line in lines if not line.startswith("#")], delimiter="\t"))


@pytest.fixture
def at_step(monkeypatch):
    """Call something at one training step, counted over all trainings."""
    original, count = Classifier.training_step, [0]

    def plan(number: int, act) -> None:
        def step(self, batch, index):
            count[0] += 1
            if count[0] == number:
                act()
            return original(self, batch, index)

        monkeypatch.setattr(Classifier, "training_step", step)

    return plan


def test_the_best_of_the_table_becomes_the_model(folder, capsys):
    assert search("--save-config", "best.yaml") == 0
    printed = capsys.readouterr().err
    table = rows()
    assert [row["changes"] for row in table[:2]] == ["as begun", "as begun"]
    assert [row["epochs"] for row in table[:2]] == ["1", "3"]
    assert sum(int(row["steps"]) for row in table) <= 60
    assert len(table) > 4
    chosen = [row for row in table if row["state"] == "chosen"]
    assert len(chosen) == 1
    assert float(chosen[0]["auprc"]) == max(float(row["auprc"]) for row in table)
    assert printed.count("seqray: trial ") == len(table)
    assert f"search: {len(table)} trainings of " in printed
    card = read_card("m.safetensors")
    facts = card.training["search"]
    assert (facts["budget"], facts["trainings"], facts["figure"]) == ("60 steps", len(table), "auprc")
    assert facts["best"] == pytest.approx(float(chosen[0]["auprc"]), abs=5e-5)
    assert load_run_config("best.yaml").trainer["max_epochs"] == int(chosen[0]["epochs"])
    again = ["--config", "best.yaml", "--train", "t.tsv", "--out", "again.safetensors", "--threads", "1"]
    assert main(["train", *again, "--quiet"]) == 0
    assert read_card("again.safetensors").training["validation"] == card.training["validation"]


def test_all_outputs_of_a_search_appear_together_or_none(folder, capsys, monkeypatch):
    def fail(path, config):
        raise InputError("no space is left", where=str(path))

    monkeypatch.setattr("seqray.cli.train_learn.write_config", fail)
    before = {path.name for path in folder.iterdir()}
    assert search("--save-config", "best.yaml", budget="6steps", epochs=1) == 2
    assert "best.yaml: no space is left" in capsys.readouterr().err
    assert {path.name for path in folder.iterdir()} - before == {"m.safetensors.training"}


@pytest.mark.parametrize(("words", "networks"), [([], 3), (["--members", "2"], 2)])
def test_a_search_keeps_time_for_three_networks_or_as_many_as_asked_for(
    folder, capsys, monkeypatch, words, networks
):
    few = replace(settings_from_data._SMALL_DATA, members=1)  # as with many examples
    monkeypatch.setattr(settings_from_data, "_SMALL_DATA", few)
    asked = [word for word in command(budget="6steps", epochs=1) if word not in ("--members", "1")]
    asked.insert(asked.index("--threads") + 1, "1")
    assert main([*asked, *words]) == 0
    assert f"networks: {networks};" in capsys.readouterr().err


def test_a_budget_without_time_for_all_networks_says_so(folder, capsys, monkeypatch):
    monkeypatch.setattr(successive_halving._Search, "affordable_members", lambda self: 1)
    assert main(command(budget="6steps", epochs=1, members=2)) == 0
    assert "the budget left time for 1 of 2 networks" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_the_best_so_far_and_the_search_goes_on(folder, capsys, at_step, number, status):
    # 3 steps an epoch: one epoch of the short training, two and a half of the long one
    at_step(8, partial(terminate, number))
    assert search(budget="24steps") == status
    assert {row["state"] for row in rows()} == {"done", "chosen"} or len(rows()) == 2
    assert load_model_file("m.safetensors").card.members == 1
    word = {130: "interrupted", 143: "terminated"}[status]
    assert f"{word}: the model is the best so far, one network" in capsys.readouterr().err
    assert search(budget="24steps", epochs=3) == 0
    assert [row["epochs"] for row in rows()[:2]] == ["1", "3"]


def test_a_process_that_is_ended_writes_the_best_so_far(seqray_forks, folder):
    words = [seqray_forks.folder / "seqray", *command(budget="100000steps", epochs=400)]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("seqray: trial 1:"):
                process.terminate()
                break
        rest = process.stderr.read()
    assert process.returncode == 143
    assert "terminated: the model is the best so far, one network; the same command goes on" in rest
    assert [row["state"] for row in rows()].count("chosen") == 1
    assert load_model_file("m.safetensors").card.training["search"]["trainings"] == len(rows())


def test_a_signal_before_the_first_epoch_leaves_no_model(folder, capsys, at_step):
    at_step(1, partial(terminate, signal.SIGINT))
    assert search() == 130
    assert not Path("m.safetensors").exists()
    assert "interrupted; the same command resumes from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--budget", "10"], "'10' is not a budget such as 90s, 10m, 1h or 5000steps"),
        (["--budget", "10m", "--teacher", "mouse-tata-promoter"], "--budget and --teacher don't go together"),
        (["--budget", "10m", "--init", "mouse-tata-promoter"], "--budget and --init don't go together"),
        (["--budget", "10m", "--like", "bacteria-genome"], "is a locator"),
        (["--budget", "10m", "--config", "c.yaml"], "--budget is for models of single sequences, but"),
    ],
)
def test_what_does_not_go_with_a_budget_is_refused(folder, capsys, words, message):
    Path("c.yaml").write_text("model: {kind: locator, positions: rotary, classes: 1}\n")
    assert main(["train", "--train", "t.tsv", "--out", "m.safetensors", *words]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")
    assert not Path("m.safetensors.training").exists()
