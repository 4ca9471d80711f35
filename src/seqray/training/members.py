"""Members of a model, one after the other or side by side."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
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
from typing import Any, Self

import lightning
import torch

from seqray.core.card import Card
from seqray.core.errors import RSS_UNIT, SERVED, OnProgress, SeqrayError, Usage
from seqray.core.model_config import LocatorConfig
from seqray.core.run_config import RunConfig
from seqray.modelfile.networks import Network, build_network
from seqray.models.locator import LocatorStem, locator_radius
from seqray.training.module import NetworkModule, best_epoch
from seqray.training.trainer import BEST, LAST, WorkDir, check_whole, make_trainer, on_gpu, quiet, run_fit

# --- Train several networks side by side, each in a process of its own

MIN_PROCESS_LETTERS = 3_000_000
"""Letters that a network must read, over all epochs: a process needs some ten seconds to begin."""
PROCESS_BYTES = 600 << 20  # torch, Lightning and what else a process loads
REPORT_SECONDS = 0.3
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Arguments = Mapping[str, Any]
Done = tuple[bool, Usage]
"""Whether a call came to its end, and what it used."""


class OutOfTimeError(Exception):
    """The time for a network is over."""


def plan_processes(config: RunConfig, networks: int, threads: int, letters: int) -> tuple[int, int]:
    """Tell how many networks to train at once, and how many threads each gets.

    The threads, which decide on the last digits of the weights, depend on the settings and the data, and not
    on the memory that is free.

    Encoders of others, and networks on a GPU or on several devices, are trained one after the other.
    ``threads`` are for all networks together, ``letters`` those of the training part.
    """
    alone = (
        config.model.kind == "backbone"
        or on_gpu(config)
        or config.trainer.get("devices", 1) != 1
        or letters_read(config, letters) < MIN_PROCESS_LETTERS
    )
    at_once = 1 if alone else max(1, min(networks, threads))
    fitting = min(at_once, free_memory() / network_bytes(config, letters))  # infinity where memory is unknown
    return max(1, int(fitting)), max(1, threads // at_once)


def letters_read(config: RunConfig, letters: int) -> int:
    """Letters that a network reads in all its epochs."""
    epochs, genomes = config.max_epochs, config.genomes
    if config.model.kind == "locator":
        return epochs * genomes.steps_per_epoch * config.optimizer.batch_size * genomes.chunk
    return epochs * letters


def network_bytes(config: RunConfig, letters: int) -> int:
    """Estimate the memory of the process that trains a network, from above."""
    floats = _locator_floats(config) if config.model.kind == "locator" else _window_floats(config)
    return PROCESS_BYTES + 8 * letters + 4 * floats


def _window_floats(config: RunConfig) -> int:
    """Numbers that a step keeps for its gradients, of models of windows and alignments."""
    model, stem, window = config.model, config.model.stem, config.data.window
    batch = config.optimizer.batch_size * (model.max_rows if model.kind == "alignment" else 1)
    tokens = -(-window // (stem.stride if stem else 1))
    full = batch * window * model.d_model * (4 + (len(stem.kernels) + 4 * stem.depth if stem else 0))
    return full + batch * model.layers * (24 * tokens * model.d_model + 4 * model.heads * tokens**2)


def _locator_floats(config: RunConfig) -> int:
    """The same of locators, whose tokens attend to a window each."""
    model, locator = config.model, config.model.locator or LocatorConfig()
    letters = config.optimizer.batch_size * (config.genomes.chunk + 2 * locator_radius(model))
    attended = 2 * locator.window + 1
    token = model.layers * (24 * model.d_model + 8 * model.heads * attended)
    return letters * (4 * locator.stem + 3 * len(model.tracks) + token // LocatorStem.stride)


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


class WorkerPool:
    """Calls a function many times, some at once, each in a process of its own.

    To be used in ``with``: the processes begin with the first run of several calls, and end with the block.

    ``work`` is a function of a module, called as ``work(**call, **shared, progress=report)``; each process
    receives ``shared`` once. One process is this one. ``on_progress`` receives steps and total over all calls
    of a `run`; None for nobody.
    """

    def __init__(
        self,
        work: Callable[..., Any],
        shared: Mapping[str, Any],
        *,
        processes: int,
        threads: int,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._work, self._shared, self._on_progress = work, shared, on_progress
        self.processes, self._threads = processes, threads
        # A fork of a process with threads may hang; the server that forks has only loaded what they need. On
        # macOS libraries of the system do not survive a fork.
        context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        context.set_forkserver_preload(["seqray.training.fit", "seqray.training.genomes.fit"])
        self._stop, self._reports = context.Event(), context.SimpleQueue()
        self._context, self._pool = context, None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all processes at the next step of their work."""
        self._stop.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def run(self, calls: Sequence[Arguments], phase: str, stop_at: float | None = None) -> list[bool]:
        """Make all calls; return for each whether it came to its end before time ran out.

        After the moment ``stop_at`` of `time.time`, the next step of a call ends it. SeqrayError is raised
        where a call does, or a process was ended from outside.
        """
        if self.processes == 1 or len(calls) < 2:
            torch.set_num_threads(self._threads)
            return [self._here(call, phase, stop_at) for call in calls]
        try:
            futures = self._submitted(calls, stop_at)
            self._wait(futures, phase)
            results = [future.result() for future in futures]
        except BrokenProcessPool:
            raise SeqrayError(
                "a process that trained a network was ended from outside",
                remedy="if memory ran out, give --threads 1, which trains them one after the other",
            ) from None
        for _, used in results:
            SERVED.add(used)
        return [finished for finished, _ in results]

    def _here(self, call: Arguments, phase: str, stop_at: float | None) -> bool:
        def report(done: int, total: int | None, _: str) -> None:
            if self._on_progress is not None:
                self._on_progress(done, total, phase)
            _check_time(stop_at)

        return _finished(self._work, call, report, self._shared)

    def _submitted(self, calls: Sequence[Arguments], stop_at: float | None) -> list[Future[Done]]:
        """Start what is to be done, in processes that hear no Ctrl-C until they can ignore it."""
        if self._pool is None:
            given = (self._work, self._shared, self._threads, self._stop, self._reports)
            self._pool = ProcessPoolExecutor(self.processes, self._context, _begin, given)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)  # a new process begins with this mask
        try:
            return [self._pool.submit(_in_process, i, call, stop_at) for i, call in enumerate(calls)]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _wait(self, futures: Sequence[Future[Done]], phase: str) -> None:
        """Wait for all, or for the first error, and pass progress on."""
        steps: dict[int, tuple[int, int]] = {}
        pending = set(futures)
        while pending:
            done, pending = wait(pending, timeout=REPORT_SECONDS)
            for future in done:
                future.result()  # raises its error
            while not self._reports.empty():
                number, taken, total = self._reports.get()
                steps[number] = taken, total
            if steps and self._on_progress is not None:
                totals = [total for _, total in steps.values()]
                expected = sum(totals) * len(futures) // len(totals)  # those that wait are like the others
                self._on_progress(sum(taken for taken, _ in steps.values()), expected, phase)


def _check_time(stop_at: float | None) -> None:
    if stop_at is not None and time.time() >= stop_at:
        raise OutOfTimeError


def _finished(
    work: Callable[..., Any], call: Arguments, report: OnProgress, shared: Mapping[str, Any]
) -> bool:
    try:
        with quiet():
            work(**call, **shared, progress=report)
    except OutOfTimeError:
        return False
    return True


# ------------------------------------------------------------------------------------- in the processes

_given: dict[str, Any] = {}


def _begin(work: Any, shared: Mapping[str, Any], threads: int, stop: Any, reports: Any) -> None:
    """Prepare a process: it leaves signals to the one that started it, and ends with that one."""
    for number in _ENDING:  # they reach the first process, which ends this one
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    _given.update(work=work, shared=shared, stop=stop, reports=reports)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
        os.kill(os.getpid(), signal.SIGKILL)


def _in_process(number: int, call: Arguments, stop_at: float | None) -> Done:
    reported, before = 0.0, _used()

    def report(done: int, total: int | None, _: str) -> None:
        nonlocal reported
        if _given["stop"].is_set():
            raise OutOfTimeError
        if time.monotonic() - reported >= REPORT_SECONDS:
            reported = time.monotonic()
            _given["reports"].put((number, done, total or done))
        _check_time(stop_at)

    finished = _finished(_given["work"], call, report, _given["shared"])
    used = _used()
    return finished, Usage(used.cpu_seconds - before.cpu_seconds, used.peak_bytes)


def _used() -> Usage:
    """What this process has used."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return Usage(own.ru_utime + own.ru_stime, own.ru_maxrss * RSS_UNIT)


# --- Where a training keeps its state, and with what it runs


@dataclass(frozen=True)
class RunOptions:
    """Where a training keeps its state, and with what it runs.

    Attributes
    ----------
    work_dir
        Folder for checkpoints and logs. A network that is finished there is not trained again; one that was
        interrupted resumes after its last epoch and ends with the same weights.
    resume
        False removes what ``work_dir`` holds of an earlier run.
    restart_if_changed
        Whether an earlier run with other settings or data is removed, too; else it is an error.
    progress
        True shows a bar for each epoch on standard error; a function is called after each step.
    threads
        Threads for PyTorch; its own choice by default. Results are the same for the same seed and threads.
    side_by_side
        Train several networks at once where that is faster, see `plan_processes`: the threads are shared out,
        and each network has the same weights as if it were trained alone with its share of the threads.
    """

    work_dir: Path
    resume: bool = True
    restart_if_changed: bool = False
    progress: bool | OnProgress = False
    threads: int | None = None
    side_by_side: bool = False

    def use_threads(self) -> int:
        """Set the threads of PyTorch, and return their number."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return torch.get_num_threads()

    def plan(self, config: RunConfig, networks: int, letters: int) -> tuple[int, int]:
        """How many networks to train at once, and how many threads each gets.

        ``letters`` are those of the training part.
        """
        threads = torch.get_num_threads()
        return plan_processes(config, networks, threads, letters) if self.side_by_side else (1, threads)

    @property
    def on_progress(self) -> OnProgress | None:
        """The function to call after each step."""
        return None if isinstance(self.progress, bool) else self.progress


# --- One member of a model: its training from start to the weights of the best epoch


@dataclass(frozen=True)
class TrainResult:
    """Result of a training run.

    Attributes
    ----------
    card, networks
        Card of the model, as saved, and the members, in evaluation mode on the CPU.
    validation
        Figures of merit of the calibrated model on the validation part, at the card's threshold.
    history
        For each member one mapping an epoch, see `Classifier.history`.
    """

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
    progress: bool | OnProgress = False,
) -> tuple[Network, dict[str, Any]]:
    """Train one member, or load it from ``folder`` if it is finished.

    Parameters
    ----------
    number
        Number of the member, from 1; it also sets the seed.
    build
        Makes the module and its data from the seed of the member; torch is seeded before.

    Returns
    -------
    network
        Weights of the best epoch, in evaluation mode on the CPU.
    result
        ``seed``, ``best_epoch``, ``history``, and the ``seconds`` since the member was last resumed.
    """
    seed = config.seed + number - 1
    result = folder.result(number)
    if result is None:
        lightning.seed_everything(seed, workers=True, verbose=False)
        module, batches = build(seed)
        trainer = make_trainer(config, folder.member(number), progress=progress)
        began = time.monotonic()
        run_fit(trainer, module, batches, folder.checkpoint(number, LAST))
        result = {
            "seed": seed,
            "best_epoch": best_epoch(module.history, config.stopping.monitor),
            "history": module.history,
        }
        result["seconds"] = round(time.monotonic() - began, 1)  # since it was last resumed
    network = _load_network(config, folder.member(number) / f"{BEST}.ckpt")
    folder.finish(number, result)
    return network, result


def _load_network(config: RunConfig, path: Path) -> Network:
    if not path.is_file():
        raise SeqrayError("training left no checkpoint", where=str(path))
    check_whole(path)
    state = torch.load(path, map_location="cpu", weights_only=True)["state_dict"]
    prefix = "average." if config.optimizer.ema > 0 else "network."
    network = build_network(config.model)
    network.load_state_dict({k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)})
    return network.eval()


# --- All members of a model: trained one after the other, or side by side

Member = tuple[Network, dict[str, Any]]
"""A network, and the result of `seqray.training.member.fit_member`."""


def train_members(
    train_member: Callable[..., Member],
    calls: Sequence[Mapping[str, Any]],
    shared: Mapping[str, Any],
    folder: WorkDir,
    run: RunOptions,
    *,
    letters: int,
) -> list[Member]:
    """Train the members that ``folder`` lacks, and load all of them.

    Parameters
    ----------
    train_member
        A function of a module, called as ``train_member(**call, **shared, folder=folder, progress=...)``.
    calls
        For each member its ``config``, its ``number`` and what else differs between members.
    shared
        What all members are called with.
    letters
        Of the training part, see `plan_processes`.
    """
    before = torch.get_num_threads()
    try:
        processes, threads = run.plan(calls[0]["config"], len(calls), letters)
        torch.set_num_threads(threads)
        missing = [call for call in calls if folder.result(call["number"]) is None]
        if processes > 1 and len(missing) > 1:
            folder = replace(folder, resume=True)  # what was there before is gone
            given = {**shared, "folder": folder}
            with WorkerPool(
                train_member, given, processes=processes, threads=threads, on_progress=run.on_progress
            ) as pool:
                pool.run(missing, "train members")
        return [train_member(**call, **shared, folder=folder, progress=run.progress) for call in calls]
    finally:
        torch.set_num_threads(before)
