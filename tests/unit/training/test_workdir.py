"""The folder of a run knows whose it is."""

import json
from dataclasses import replace

import pytest
import torch

from seqray.core.errors import InputError
from seqray.core.model_config import LocatorConfig, ModelConfig
from seqray.core.run_config import RunConfig
from seqray.training.trainer import WorkDir, fingerprint, run_identity

MINE = {"settings": "a", "data": "b"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"settings": "x", "data": "b"}, "settings"),
        ({"settings": "a", "data": "x"}, "data"),
        ({"settings": "x", "data": "x"}, "settings and data"),
    ],
)
def test_a_folder_of_another_run_is_refused_unless_told_to_start_afresh(tmp_path, other, words):
    WorkDir(tmp_path, MINE, "p", True).claim()
    WorkDir(tmp_path, MINE, "p", True).finish(1, {"seed": 1})
    with pytest.raises(InputError, match=f"holds a training run with other {words}; choose another"):
        WorkDir(tmp_path, other, "p", True).claim()
    assert WorkDir(tmp_path, MINE, "p", True).result(1) == {"seed": 1}
    (tmp_path / "notes.txt").write_text("mine")
    fresh = WorkDir(tmp_path, other, "p", False)
    fresh.claim()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "run.json"]
    assert json.loads((tmp_path / "run.json").read_text()) == {**other, "part": "p"}


def test_a_changed_run_is_started_again_where_that_is_asked_for(tmp_path):
    def folder(identity, part="p"):
        return WorkDir(tmp_path, identity, part, True, restart_if_changed=True)

    folder(MINE).claim()
    folder(MINE).finish(1, {"seed": 1})
    folder(MINE).claim()
    assert folder(MINE).result(1) == {"seed": 1}
    other = {**MINE, "data": "x"}
    folder(other).claim()
    assert folder(other).result(1) is None
    folder(other).finish(1, {"seed": 2})
    folder(other, "q").claim()
    assert folder(other).result(1) is None
    assert json.loads((tmp_path / "run.json").read_text()) == {**other, "part": "q"}


def test_a_run_goes_on_in_its_precision_only(make_config, monkeypatch, tmp_path):
    """On another machine it has to be named, if it is not the one that this machine would choose."""

    def claim(**trainer):
        config = make_config()
        config.trainer.pop("precision")
        config.trainer.update(trainer)
        WorkDir(tmp_path, run_identity(config, ("a", "b"), "data"), "p", True).claim()

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_bf16": True})
    claim()
    monkeypatch.setattr(torch.cpu, "get_capabilities", dict)
    with pytest.raises(InputError, match="other precision"):
        claim()
    claim(precision="bf16-mixed")


def test_words_on_the_card_and_further_members_do_not_make_another_run(make_config):
    config, classes = make_config(), ("a", "b")
    mark = fingerprint(config, classes)
    same = replace(config, name="other", summary="s", card={"use": "x"}, members=3)
    assert fingerprint(same, classes) == mark
    for other in (
        replace(config, seed=9),
        make_config(optimizer={"ema": 0.5}),
        make_config(trainer={"devices": 2}),
    ):
        assert fingerprint(other, classes) != mark
    assert fingerprint(config, ("b", "a")) != mark


def test_scores_that_are_made_after_training_do_not_make_another_run():
    def mark(**locator: int) -> str:
        model = ModelConfig(kind="locator", positions="rotary", locator=LocatorConfig(**locator))
        return fingerprint(RunConfig(model=model), ("a",))

    assert mark(window=8) == mark(window=8, smoothing=8, region=80)
    assert mark(window=8) != mark(window=9)


def test_members_that_held_out_something_else_are_refused(tmp_path):
    """The settings may be the same, and the rule by which they hold out another."""
    WorkDir(tmp_path, MINE, "p", True).claim()
    with pytest.raises(InputError, match="holds a training run with other held-out part"):
        WorkDir(tmp_path, MINE, "r", True).claim()
    (tmp_path / "run.json").write_text(json.dumps(MINE))  # as an earlier version wrote it
    with pytest.raises(InputError, match="other held-out part"):
        WorkDir(tmp_path, MINE, "p", True).claim()


@pytest.mark.parametrize("content", ["[]", "1", "{", "[" * 100_000])
def test_a_damaged_folder_is_refused(tmp_path, content):
    work = WorkDir(tmp_path, MINE, "p", True)
    work.claim()
    for path in tmp_path.glob("*.json"):
        path.write_text(content)
    with pytest.raises(InputError, match="is damaged; start afresh with --no-resume"):
        work.claim()
