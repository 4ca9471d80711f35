"""Networks trained side by side: the same weights as one after the other, and ends of every kind."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from seqray.core.errors import SERVED, InputError, SeqrayError
from seqray.core.model_config import ModelConfig
from seqray.training import fit, members as side_by_side
from seqray.training.members import RunOptions, call_side_by_side, free_memory, network_bytes, plan_processes

WORK = """
import os, time, torch
from seqray.core.errors import InputError

def touch(folder, name, *, progress, steps=3, fault=""):
    for step in range(1, steps + 1):
        progress(step, steps, "work")
        time.sleep(0.01)
    stop = time.process_time() + 1
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
    assert SERVED.cpu_seconds >= 2  # each of the two calls goes on until it has used a second
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
