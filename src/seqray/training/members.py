"""Members of a model, one after the other or side by side."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import torch

from seqray.core.card import Card
from seqray.core.errors import RSS_UNIT, SERVED, OnProgress, SeqrayError, Usage
from seqray.core.model_config import LocatorConfig
from seqray.core.run_config import RunConfig
from seqray.core.text import counted
from seqray.modelfile.file import build_network
from seqray.modelfile.initial_weights import InitialWeights
from seqray.modelfile.model import TrainedModel
from seqray.models.locator import LocatorStem
from seqray.models.sequence import Network
from seqray.training.module import NetworkModule, best_epoch
from seqray.training.trainer import (
    BEST,
    LAST,
    WorkDir,
    check_whole,
    is_main_process,
    make_trainer,
    on_gpu,
    quiet,
    run_fit,
    run_identity,
)

# --- How many networks to train at once

MIN_PROCESS_LETTERS = 3_000_000  # read by a network in all epochs: a process takes ten seconds to begin
PROCESS_BYTES = 600 << 20  # torch, Lightning and what else a process loads


def plan_processes(config: RunConfig, networks: int, threads: int, letters: int) -> tuple[int, int]:
    """Tell how many networks to train at once, and how many threads each gets.

    Threads, which decide on last digits, follow from settings and data, not from the free memory.
    """
    genomes, epochs = config.genomes, config.max_epochs
    chunks = genomes.steps_per_epoch * config.optimizer.batch_size * genomes.chunk
    alone = (
        not (config.model.is_plain or config.model.reads_alignments or config.model.is_locator)
        or on_gpu(config)
        or config.trainer.get("devices", 1) != 1
        or epochs * (chunks if config.model.is_locator else letters) < MIN_PROCESS_LETTERS
    )
    at_once = 1 if alone else max(1, min(networks, threads))
    fitting = min(at_once, free_memory() / network_bytes(config, letters))  # infinity where memory is unknown
    return max(1, int(fitting)), max(1, threads // at_once)


def network_bytes(config: RunConfig, letters: int) -> int:
    """Estimate the memory of the process that trains a network, from above."""
    model, stem, locator = config.model, config.model.stem, config.model.locator or LocatorConfig()
    batch, width = config.optimizer.batch_size, config.model.d_model
    if model.is_locator:  # whose tokens attend to a window each
        token = model.layers * (24 * width + 8 * model.heads * (2 * locator.window + 1))
        of_letter = 4 * locator.stem + 3 * len(model.tracks) + token // LocatorStem.stride
        floats = batch * (config.genomes.chunk + 2 * model.radius) * of_letter
    else:
        window, batch = config.data.window, batch * (model.max_rows if model.reads_alignments else 1)
        tokens = -(-window // (stem.stride if stem else 1))
        full = batch * window * width * (4 + (len(stem.kernels) + 4 * stem.depth if stem else 0))
        floats = full + batch * model.layers * (24 * tokens * width + 4 * model.heads * tokens**2)
    return PROCESS_BYTES + 8 * letters + 4 * floats


def free_memory(root: Path = Path("/")) -> float:
    """Bytes that a further process may take: those of the machine, and of the cgroup; infinity if unknown."""
    free = float("inf")
    with contextlib.suppress(OSError, ValueError):
        lines = dict(line.split(":", 1) for line in (root / "proc/meminfo").read_text().splitlines())
        free = int(lines["MemAvailable"].split()[0]) * 1024
    group = root / "sys/fs/cgroup"
    with contextlib.suppress(OSError, ValueError):
        limit, used = ((group / name).read_text() for name in ("memory.max", "memory.current"))
        free = min(free, int(limit) - int(used))
    return free


# --- Calls of a function, some at once, each in a process of its own

REPORT_SECONDS = 0.3
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _StoppedError(Exception):
    """Another call failed, or the user ended the training."""


def call_side_by_side(
    work: Callable[..., Any],
    calls: Sequence[Mapping[str, Any]],
    shared: Mapping[str, Any],
    phase: str,
    *,
    processes: int,
    threads: int,
    on_progress: OnProgress | None = None,
) -> None:
    """Call ``work(**call, **shared, progress=report)``, a function of a module, for each call."""
    if processes == 1 or len(calls) < 2:
        torch.set_num_threads(threads)
        for call in calls:
            with quiet(call.get("config")):
                work(
                    **call,
                    **shared,
                    progress=lambda done, total, _: on_progress and on_progress(done, total, phase),
                )
        return
    # A fork of a process with threads may hang; the server that forks has only loaded what they need. On
    # macOS libraries of the system do not survive a fork.
    context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
    context.set_forkserver_preload(["seqray.training.fit", "seqray.training.genomes.fit"])
    stop, reports = context.Event(), context.SimpleQueue()
    pool = ProcessPoolExecutor(processes, context, _begin, (work, shared, threads, stop, reports))
    try:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # a new process begins with this mask
        try:
            futures = [pool.submit(_in_process, i, call) for i, call in enumerate(calls)]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        _wait(futures, reports, phase, on_progress)
        for future in futures:
            SERVED.add(future.result())
    except BrokenProcessPool:
        raise SeqrayError(
            "a process that trained a network was ended from outside",
            remedy="if memory ran out, give --threads 1, which trains them one after the other",
        ) from None
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _wait(futures: Sequence[Future[Usage]], reports: Any, phase: str, on_progress: OnProgress | None) -> None:
    """Wait for all, or for the first error, and pass progress on."""
    steps: dict[int, tuple[int, int]] = {}
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=REPORT_SECONDS)
        for future in done:
            future.result()  # raises its error
        while not reports.empty():
            number, taken, total = reports.get()
            steps[number] = taken, total
        if steps and on_progress is not None:
            totals = [total for _, total in steps.values()]
            expected = sum(totals) * len(futures) // len(totals)  # those that wait are like the others
            on_progress(sum(taken for taken, _ in steps.values()), expected, phase)


_process: dict[str, Any] = {}  # what a process is given once


def _begin(work: Any, shared: Mapping[str, Any], threads: int, stop: Any, reports: Any) -> None:
    """Prepare a process: it leaves signals to the one that started it, and ends with that one."""

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            wait_for_end([parent.sentinel])
            os.kill(os.getpid(), signal.SIGKILL)

    for number in _ENDING:  # they reach the first process, which ends this one
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    threading.Thread(target=end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    _process.update(work=work, shared=shared, stop=stop, reports=reports)


def _in_process(number: int, call: Mapping[str, Any]) -> Usage:
    """Make a call; what this process has used for it."""
    reported, before = 0.0, resource.getrusage(resource.RUSAGE_SELF)

    def report(done: int, total: int | None, _: str) -> None:
        nonlocal reported
        if _process["stop"].is_set():
            raise _StoppedError
        if time.monotonic() - reported >= REPORT_SECONDS:
            reported = time.monotonic()
            _process["reports"].put((number, done, total or done))

    with quiet(call.get("config")):
        _process["work"](**call, **_process["shared"], progress=report)
    after = resource.getrusage(resource.RUSAGE_SELF)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Usage(seconds, after.ru_maxrss * RSS_UNIT)


# --- Where a training keeps its state, and with what it runs


@dataclass(frozen=True)
class RunOptions:
    """Where a training keeps its state in ``work_dir``, from which it resumes, and with what it runs.

    Weights are the same for a seed and ``threads``; with ``restart_if_changed`` a run of other settings or
    data is removed, else it is an error.
    """

    work_dir: Path
    resume: bool = True
    restart_if_changed: bool = False
    progress: OnProgress | None = None
    threads: int | None = None
    side_by_side: bool = False
    callbacks: tuple[lightning.Callback, ...] = ()
    note: Callable[[str], None] = lambda _: None

    def use_threads(self) -> int:
        """Set the threads of PyTorch, and return their number."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return torch.get_num_threads()

    def folder(
        self,
        config: RunConfig,
        classes: tuple[str, ...],
        data: str,
        *,
        part: str = "",
        teacher: TrainedModel | None = None,
        start: InitialWeights | None = None,
    ) -> WorkDir:
        """Name the folder of a run, not claimed yet; ``data`` and ``part`` are hashes, see `WorkDir`."""
        sources = {"teacher": teacher.sha256 if teacher else "", "start": start.sha256 if start else ""}
        identity = run_identity(config, classes, data, **sources)
        how = (self.resume, self.restart_if_changed, is_main_process(config), self.callbacks)
        return WorkDir(Path(self.work_dir), identity, part, *how)

    def claim(self, folder: WorkDir, networks: int = 0) -> None:
        """Claim the folder of a run, with the threads that its training began with; say if it resumes."""
        asked = torch.get_num_threads()
        threads = folder.claim(asked)
        if threads != asked:
            torch.set_num_threads(threads)
            self.note(
                f"the training in {folder.path} began with {counted(threads, 'thread')} and goes on so, not "
                f"with {asked}: others give other weights"
            )
        numbers = range(1, networks + 1) if folder.writes else ()
        finished = sum(folder.result(number) is not None for number in numbers)
        started = [f", network {n} goes on from epoch {e}" for n in numbers if (e := folder.next_epoch(n))]
        if finished or started:
            done = f"{finished} of {counted(networks, 'network')} finished"
            self.note(f"resumes from {folder.path}: {done}{''.join(started)}")

    def plan(self, config: RunConfig, networks: int, letters: int) -> tuple[int, int]:
        """How many networks to train at once, and how many threads each gets; see `plan_processes`."""
        threads = torch.get_num_threads()
        return plan_processes(config, networks, threads, letters) if self.side_by_side else (1, threads)


# --- One member of a model: its training from start to the weights of the best epoch


@dataclass(frozen=True)
class TrainResult:
    """Card of a model, as saved, its members in evaluation mode, and how they did on validation."""

    card: Card
    networks: tuple[Network, ...]
    validation: dict[str, float]
    history: tuple[list[dict[str, float]], ...]


def fit_member(
    config: RunConfig,
    number: int,
    folder: WorkDir,
    build: Callable[[int], tuple[NetworkModule, lightning.LightningDataModule]],
    *,
    progress: OnProgress | None = None,
) -> tuple[Network, dict[str, Any]]:
    """Train a member, from 1, or load it from ``folder``: weights of the best epoch, on the CPU."""
    seed = config.seed + number - 1
    result = folder.result(number)
    if result is None:
        random.seed(seed)
        np.random.seed(seed)
        torch.manual_seed(seed)
        module, batches = build(seed)
        trainer = make_trainer(config, folder.member(number), progress=progress, callbacks=folder.callbacks)
        began = time.monotonic()
        run_fit(trainer, module, batches, folder.checkpoint(number, LAST))
        result = {
            "seed": seed,
            "best_epoch": best_epoch(module.history, config.stopping.monitor),
            "history": module.history,
            "seconds": round(time.monotonic() - began, 1),
        }
    path = folder.member(number) / f"{BEST}.ckpt"
    if not path.is_file():
        raise SeqrayError("training left no checkpoint", where=str(path))
    check_whole(path)
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    prefix = "average." if config.optimizer.ema > 0 else "network."
    network = build_network(config.model)
    network.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
    folder.finish(number, result)
    return network.eval(), result


def train_members(
    train_member: Callable[..., tuple[Network, dict[str, Any]]],
    config: RunConfig,
    shared: Mapping[str, Any],
    folder: WorkDir,
    run: RunOptions,
    *,
    letters: int,
) -> list[tuple[Network, dict[str, Any]]]:
    """Claim the folder, train the members that it lacks, in turn or side by side, and load all of them."""
    calls: list[dict[str, Any]] = [{"config": config, "number": 1 + i} for i in range(config.members)]
    with quiet(config):
        make_trainer(config, folder.path)  # settings that Lightning refuses, before any work
        run.claim(folder, config.members)
        before = torch.get_num_threads()
        try:
            processes, threads = run.plan(config, len(calls), letters)
            torch.set_num_threads(threads)
            missing = [call for call in calls if folder.result(call["number"]) is None]
            if processes > 1 and len(missing) > 1:
                folder = replace(folder, resume=True)  # what was there before is gone
                call_side_by_side(
                    train_member,
                    missing,
                    {**shared, "folder": folder},
                    "train networks",
                    processes=processes,
                    threads=threads,
                    on_progress=run.progress,
                )
            return [train_member(**call, **shared, folder=folder, progress=run.progress) for call in calls]
        finally:
            torch.set_num_threads(before)
