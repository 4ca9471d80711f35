"""The trainer, the folder of a run, and networks side by side."""

import importlib
import json
import logging
import sys
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.metrics import average_precision_score, f1_score, log_loss, matthews_corrcoef, roc_auc_score

from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.errors import SERVED, ConfigError, InputError, SeqrayError
from seqray.core.model_config import LocatorConfig, ModelConfig
from seqray.core.run_config import RunConfig
from seqray.modelfile.file import build_network
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import CharacterTokenizer
from seqray.training import fit, members as side_by_side
from seqray.training.data import SequenceExamples
from seqray.training.members import RunOptions, call_side_by_side, free_memory, network_bytes, plan_processes
from seqray.training.module import classification_figures, model_logits
from seqray.training.trainer import WorkDir, fingerprint, make_trainer, quiet, run_identity, trainer_settings
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
    trainer = make_trainer(make_config(trainer=settings), tmp_path)
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
        make_trainer(make_config(trainer=settings), tmp_path)
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
    model = TrainedModel(card, (build_network(config), build_network(config)))
    sequences = ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(5, 33, 40)]
    data = SequenceExamples(sequences, np.zeros(40), CharacterTokenizer(DNA))
    together = model_logits(model, data)
    padded = [data.batch(np.array([i])).tokens.numpy() for i in range(40)]
    alone = [
        model.logits(tokens[:, : len(sequence) + 1])[0]
        for tokens, sequence in zip(padded, sequences, strict=True)
    ]
    assert together == pytest.approx(np.array(alone), abs=1e-5)


MINE: dict[str, Any] = {"settings": {"seed": 7}, "data": "b"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({**MINE, "settings": {"seed": 2}}, r"settings \(seed 7, now 2\)"),
        ({**MINE, "data": "x"}, "data"),
        ({"settings": {}, "data": "x"}, r"settings \(seed 7, now 1\) and data"),
    ],
)
def test_a_folder_of_another_run_is_refused_unless_told_to_start_afresh(tmp_path, other, words):
    WorkDir(tmp_path, MINE, "p", True).claim(1)
    WorkDir(tmp_path, MINE, "p", True).finish(1, {"seed": 7})
    with pytest.raises(InputError, match=f"holds a training run with other {words}; choose another"):
        WorkDir(tmp_path, other, "p", True).claim(1)
    assert WorkDir(tmp_path, MINE, "p", True).result(1) == {"seed": 7}
    (tmp_path / "notes.txt").write_text("mine")
    fresh = WorkDir(tmp_path, other, "p", False)
    fresh.claim(1)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["notes.txt", "run.json"]
    assert json.loads((tmp_path / "run.json").read_text()) == {**other, "part": "p", "threads": 1}


def test_settings_that_differ_are_named_with_both_values(make_config, tmp_path):

    def claim(classes, **optimizer):
        config = make_config(optimizer=optimizer, model={"dropout": 0.5} if optimizer else {})
        WorkDir(tmp_path, run_identity(config, classes, "data"), "p", True).claim(1)

    claim(("a", "b"))
    with pytest.raises(InputError) as failure:
        claim(("b", "a"), batch_size=RunConfig().optimizer.batch_size, learning_rate=0.5)
    assert set(failure.value.what.partition("(")[2].rstrip(")").split("; ")) == {
        f"optimizer.batch_size 32, now {RunConfig().optimizer.batch_size}",
        "optimizer.learning_rate 0.003, now 0.5",
        f"model.dropout {RunConfig().model.dropout}, now 0.5",
        'classes ["a", "b"], now ["b", "a"]',
    }
    (tmp_path / "run.json").write_text('{"settings": "5f1c"}')
    with pytest.raises(InputError, match="other settings, or of an earlier version"):
        claim(("a", "b"))


def test_a_resumed_run_keeps_the_threads_that_it_began_with(tmp_path):
    """Also that of an earlier version, which noted none, from its first resumption on."""
    (tmp_path / "run.json").write_text(json.dumps({**MINE, "part": "p"}))
    claims = [(MINE, 3, {}, 3), (MINE, 2, {}, 3), ({**MINE, "data": "x"}, 2, {"restart_if_changed": True}, 2)]
    for identity, asked, how, expected in claims:
        assert WorkDir(tmp_path, identity, "p", True, **how).claim(asked) == expected
    assert WorkDir(tmp_path, MINE, "p", False).claim(1) == 1
    assert WorkDir(tmp_path, MINE, "p", True, writes=False).claim(2) == 2


def test_a_changed_run_is_started_again_where_that_is_asked_for(tmp_path):
    def folder(identity, part="p"):
        return WorkDir(tmp_path, identity, part, True, restart_if_changed=True)

    folder(MINE).claim(1)
    folder(MINE).finish(1, {"seed": 7})
    folder(MINE).claim(1)
    assert folder(MINE).result(1) == {"seed": 7}
    other = {**MINE, "data": "x"}
    folder(other).claim(1)
    assert folder(other).result(1) is None
    folder(other).finish(1, {"seed": 2})
    folder(other, "q").claim(1)
    assert folder(other).result(1) is None
    assert json.loads((tmp_path / "run.json").read_text()) == {**other, "part": "q", "threads": 1}


def test_a_run_goes_on_in_its_precision_only(make_config, monkeypatch, tmp_path):
    """On another machine it has to be named, if it is not the one that this machine would choose."""

    def claim(**trainer):
        config = make_config()
        config.trainer.pop("precision")
        config.trainer.update(trainer)
        WorkDir(tmp_path, run_identity(config, ("a", "b"), "data"), "p", True).claim(1)

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
    WorkDir(tmp_path, MINE, "p", True).claim(1)
    with pytest.raises(InputError, match="holds a training run with other held-out part"):
        WorkDir(tmp_path, MINE, "r", True).claim(1)
    (tmp_path / "run.json").write_text(json.dumps(MINE))  # as an earlier version wrote it
    with pytest.raises(InputError, match="other held-out part"):
        WorkDir(tmp_path, MINE, "p", True).claim(1)


@pytest.mark.parametrize("content", ["[]", "1", "{", "[" * 100_000])
def test_a_damaged_folder_is_refused(tmp_path, content):
    work = WorkDir(tmp_path, MINE, "p", True)
    work.claim(1)
    for path in tmp_path.glob("*.json"):
        path.write_text(content)
    with pytest.raises(InputError, match="is damaged; start afresh with --no-resume"):
        work.claim(1)


WORK = """
import os, time, torch
from seqray.core.errors import InputError

def touch(folder, name, *, progress, steps=3, fault=""):
    for step in range(1, steps + 1):
        progress(step, steps, "work")
        time.sleep(0.01)
    stop = time.process_time() + 0.4
    while fault == "burn" and time.process_time() < stop:
        pass
    if fault == "input":
        raise InputError("is bad", where=name)
    if fault == "end":
        os._exit(9)
    (folder / name).write_text(str(torch.get_num_threads()))
"""


@pytest.fixture
def touch(tmp_path, monkeypatch) -> Callable[..., None]:
    """Work of a module that a process can import: a file when it is done."""
    (tmp_path / "work_of_a_process.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "work_of_a_process", raising=False)
    return importlib.import_module("work_of_a_process").touch


@pytest.fixture
def done(tmp_path) -> Path:
    (tmp_path / "done").mkdir()
    return tmp_path / "done"


def test_members_side_by_side_are_those_of_one_after_the_other(
    motif_task, make_config, tmp_path, monkeypatch
):
    config, data = make_config(members=2, trainer={"max_epochs": 1}), motif_task(60)
    one = fit.train(config, data, None, RunOptions(tmp_path / "a", threads=1))
    monkeypatch.setattr(side_by_side, "MIN_PROCESS_LETTERS", 0)
    reports = []
    both = fit.train(
        config,
        data,
        None,
        RunOptions(
            tmp_path / "b", threads=2, side_by_side=True, progress=lambda *report: reports.append(report)
        ),
    )
    for mine, other in zip(one.networks, both.networks, strict=True):
        pairs = zip(mine.state_dict().values(), other.state_dict().values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
    assert both.validation == pytest.approx(one.validation, abs=1e-6)  # read with 2 threads and with 1
    assert torch.get_num_threads() == 2
    assert {phase for *_, phase in reports} == {"train networks"}


def test_calls_share_processes_that_report(touch, done):
    reports = []

    def call(*calls, processes=2):
        call_side_by_side(
            touch,
            calls,
            {"folder": done},
            "work",
            processes=processes,
            threads=1,
            on_progress=lambda *report: reports.append(report),
        )

    SERVED.reset()
    call(*({"name": name, "fault": "burn"} for name in "ab"))
    assert SERVED.cpu_seconds >= 0.8  # each of the two calls goes on until it has used 0.4 s
    assert 10_000_000 < SERVED.peak_bytes < 5_000_000_000
    call({"name": "c"}, processes=4)  # in this process
    call()
    assert sorted(path.name for path in done.iterdir()) == ["a", "b", "c"]
    assert (done / "a").read_text() == "1"
    with pytest.raises(InputError, match="f: is bad"):
        call({"name": "f", "fault": "input"}, {"name": "g", "steps": 100_000})
    assert not (done / "g").exists()
    with pytest.raises(SeqrayError, match="was ended from outside; if memory ran out, give --threads 1"):
        call({"name": "h", "fault": "end"}, {"name": "i", "steps": 500})
    assert {phase for *_, phase in reports} == {"work"}


def test_processes_follow_threads_work_memory_and_device(make_config, monkeypatch):
    config, much = make_config(members=3, trainer={"max_epochs": 10}), 1_000_000
    assert plan_processes(config, 3, 1, much) == (1, 1)
    assert plan_processes(config, 3, 2, much) == (2, 1)
    assert plan_processes(config, 3, 7, much) == (3, 2)
    assert plan_processes(config, 3, 7, 100) == (1, 7)  # 1000 letters are read in a moment
    gpu = replace(config, trainer={**config.trainer, "accelerator": "cuda"})
    assert plan_processes(gpu, 3, 7, much) == (1, 7)
    # a locator reads so many chunks, however long its genomes: 10 epochs of 1 step of 8 chunks
    locator = replace(
        config,
        model=ModelConfig(kind="locator", classes=1, positions="rotary", max_length=1024),
        genomes=replace(config.genomes, chunk=2048, steps_per_epoch=1),
        optimizer=replace(config.optimizer, batch_size=8),
    )
    assert plan_processes(locator, 3, 7, 10 * much) == (1, 7)
    longer = replace(locator, genomes=replace(locator.genomes, steps_per_epoch=100))
    assert plan_processes(longer, 3, 7, 100) == (3, 2)
    monkeypatch.setattr(side_by_side, "free_memory", lambda: 2.5 * network_bytes(config, much))
    assert plan_processes(config, 3, 7, much) == (2, 2)  # fewer at once, each with the same threads
    monkeypatch.setattr(side_by_side, "free_memory", lambda: float("inf"))  # unknown, as on macOS
    assert plan_processes(config, 3, 7, much) == (3, 2)
    monkeypatch.setattr(side_by_side, "free_memory", lambda: 0.0)
    assert plan_processes(config, 3, 7, much) == (1, 2)


def test_free_memory_is_the_smaller_of_machine_and_group(tmp_path):
    assert free_memory(tmp_path) == float("inf")
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 900 kB\nMemAvailable:    500 kB\n")
    assert free_memory(tmp_path) == 512_000
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    (group / "memory.current").write_text("100\n")
    (group / "memory.max").write_text("max\n")
    assert free_memory(tmp_path) == 512_000
    (group / "memory.max").write_text("1100\n")
    assert free_memory(tmp_path) == 1000
