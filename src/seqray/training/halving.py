"""Successive halving on one held-out part, in rounds around the best configuration so far."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError, SeqrayError, Terminated, reset_termination
from seqray.core.records import LabeledSequence
from seqray.core.run_config import RunConfig, change_settings
from seqray.core.serialization import check_plain
from seqray.training.budget import Budget
from seqray.training.data_facts import measure_data
from seqray.training.fit import count_letters, train, train_member
from seqray.training.members import RunOptions, TrainResult, WorkerPool
from seqray.training.partitions import Partition, data_sha256, partition
from seqray.training.search import (
    Changes,
    Trial,
    close_trial,
    draw_configurations,
    drop_checkpoints,
    prepare_trainings,
    read_trial,
    reopen_trial,
    rows_for,
    trial_folder,
)
from seqray.training.trainer import WorkDir, quiet

REDUCTION_FACTOR = 3
"""A third of the configurations goes on, with three times the epochs."""
MAX_CONFIGURATIONS, MIN_CONFIGURATIONS = 9, 3  # of a round
MIN_SECONDS = 0.1  # of a training, whose seconds are rounded
MAX_STALE_ROUNDS = 3
"""Rounds in a row without a better configuration: the search ends."""

Drawn = tuple[Changes, RunConfig]


@dataclass(frozen=True)
class SearchResult:
    """What a search found.

    Attributes
    ----------
    trained
        The model, as of `seqray.training.train`.
    config
        Its settings.
    trials
        All trainings of the search, in their order.
    chosen
        The one whose settings the model has.
    ended
        ``done``, or the signal that ended the search before its budget.
    """

    trained: TrainResult
    config: RunConfig
    trials: tuple[Trial, ...]
    chosen: Trial
    ended: Literal["done", "interrupted", "terminated"]


def search_settings(
    config: RunConfig,
    data: Sequence[LabeledSequence],
    out: Path | None,
    run: RunOptions,
    *,
    budget: Budget,
    fixed: Set[str] = frozenset(),
    on_trial: Callable[[Trial], None] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> SearchResult:
    """Search for better settings, then train the members with the best, calibrate them and save one model.

    The first configuration is ``config``, trained to its end before any other, so that the best one is never
    worse on the held-out part, where the budget suffices for that. A round draws up to nine configurations
    beside the best so far (`space.SPACE`) and trains them for a ninth of the epochs, the best third of these
    for a third, and the best of these for all. Each of these is a training of its own with a schedule of its
    own: a training that is stopped on the way says less. The search ends when its budget does, or after three
    rounds without a better configuration.

    Ctrl-C and SIGTERM end the search, and the model is that of the best epoch so far, with one member.

    Parameters
    ----------
    config
        Settings to begin with.
    data
        Labeled sequences; what the first member of `seqray.training.train` would hold out decides.
    out
        The model file; None saves nothing.
    run, metrics
        As in `seqray.training.train`; each training has a folder of its own in ``run.work_dir``.
    budget
        For the search and the members together. At least a ninth of the first training is completed.
    fixed
        Settings, as in ``section.key``, that are not changed.
    on_trial
        Receives each training when it ends.

    Raises
    ------
    ConfigError, InputError, ModelFileError
        As in `seqray.training.train`, and for models of other kinds than ``sequence``.
    KeyboardInterrupt, Terminated
        If no epoch was finished when the signal came.
    """
    if config.model.kind != "sequence":
        what = f"a search is for models of single sequences, but 'model.kind' is {config.model.kind}"
        raise ConfigError(what, remedy="leave out the budget")
    check_plain(metrics or {}, "metrics")
    run = prepare_trainings(config, out, run)
    parts = partition(data, config)
    facts = measure_data(data, ALPHABETS[config.model.alphabet])
    processes, threads = run.plan(config, MAX_CONFIGURATIONS, count_letters(data, parts.train))
    with (
        quiet(),
        WorkerPool(
            train_member, {"data": data}, processes=processes, threads=threads, on_progress=run.on_progress
        ) as pool,
    ):
        running = _Search(config, parts, data_sha256(data), run, budget, pool, on_trial)
        ended = running.run(rows_for(facts, fixed))
    chosen = running.best
    close_trial(chosen)
    members = 1 if ended != "done" else running.affordable_members()
    final = replace(chosen.config, members=members)
    finish = partial(
        train,
        data=data,
        out=out,
        run=replace(run, work_dir=chosen.folder.path),
        metrics=metrics,
        search=running.facts(),
    )
    try:
        trained = finish(final)
    except (KeyboardInterrupt, Terminated) as signal:  # the first member is trained already
        ended, final = _obey_later(signal), replace(final, members=1)
        trained = finish(final)
    if ended == "done":
        for trial in running.trials:
            if trial.folder != chosen.folder:
                drop_checkpoints(trial)
    return SearchResult(trained, final, tuple(running.trials), chosen, ended)


def _obey_later(signal: BaseException) -> Literal["interrupted", "terminated"]:
    """Name the signal that ends a search, which is obeyed once the model is written."""
    reset_termination()
    return "terminated" if isinstance(signal, Terminated) else "interrupted"


class _Search:
    """A search that runs, and what it knows so far."""

    def __init__(
        self,
        begin: RunConfig,
        parts: Partition,
        data: str,
        run: RunOptions,
        budget: Budget,
        pool: WorkerPool,
        on_trial: Callable[[Trial], None] | None,
    ) -> None:
        self._begin, self._parts, self._data, self._options = begin, parts, data, run
        self._budget, self._workers, self._on_trial = budget, pool, on_trial
        self._epochs = int(begin.max_epochs)
        self._epoch_steps = -(-len(parts.train) // begin.optimizer.batch_size)
        self._started = time.time()
        self._rng = np.random.default_rng(begin.seed)
        self._known: list[RunConfig] = [begin]
        self._round = 0
        self._waiting: list[tuple[Drawn, WorkDir]] = []
        self.trials: list[Trial] = []

    # ------------------------------------------------------------------------------------- the search

    def run(self, rows: Sequence[Any]) -> Literal["done", "interrupted", "terminated"]:
        """Search until the budget ends, nothing better is found, or a signal comes."""
        try:
            self._try_first()
            stale = 0
            while stale < MAX_STALE_ROUNDS and self._left() > 0:
                before = self.best
                if not self._try_round(rows):
                    break
                stale = 0 if self.best is not before else stale + 1
        except (KeyboardInterrupt, Terminated) as signal:
            ended = _obey_later(signal)
            self._workers.stop()
            self._collect()
            if not self.trials:
                raise
            return ended
        return "done"

    def _try_first(self) -> None:
        """Train the first configuration: shortly, to know the time it takes, then as long as it asks."""
        short = self._train([({}, self._begin)], self._rung(2), whole=True)
        if not short:
            raise SeqrayError("the training left no finished epoch", where=str(self._options.work_dir))
        affordable = int(self._left() / self._cost(short[0]))
        self._epochs = min(self._epochs, affordable)
        if self._epochs > short[0].epochs:
            self._train([({}, self._begin)], self._epochs)

    def _rung(self, times: int) -> int:
        """Epochs of a rung: all, a third, a ninth."""
        return max(1, -(-self._epochs // REDUCTION_FACTOR**times))

    def _try_round(self, rows: Sequence[Any]) -> bool:
        """Draw configurations, halve them until one is left; False where time or space is used up."""
        count = self._affordable_count()
        if count < MIN_CONFIGURATIONS:
            return False
        self._round += 1
        drawn = draw_configurations(
            self._begin,
            self.best.changes,
            rows,
            count,
            self._rng,
            tried=self._known,
            two=self._round > 1,
        )
        self._known += [config for _, config in drawn]
        found = bool(drawn)
        for times, kept in ((2, max(1, len(drawn) // REDUCTION_FACTOR)), (1, 1), (0, 1)):
            tried = self._train(drawn, self._rung(times))
            ranked = sorted((one for one in tried if not one.cut), key=lambda one: -one.score)
            drawn = [(one.changes, one.config) for one in ranked[:kept] if self._fits(one, times)]
            if not drawn:
                break
        return found

    def _fits(self, trial: Trial, times: int) -> bool:
        """Whether the next rung of a configuration fits into what is left."""
        return times > 0 and self._cost(trial) * self._rung(times - 1) <= self._left()

    # ----------------------------------------------------------------------------------- its trainings

    def _train(self, drawn: Sequence[Drawn], epochs: int, *, whole: bool = False) -> list[Trial]:
        """Train configurations for so many epochs; ``whole`` ones beyond the budget, too."""
        self._waiting = []
        for changes, config in drawn:
            config = change_settings(config, {"trainer.max_epochs": epochs})
            self._waiting.append(((changes, config), self._folder(config)))
        calls = [
            {"config": config, "number": 1, "parts": self._parts, "folder": folder}
            for (_, config), folder in self._waiting
            if reopen_trial(folder)
        ]
        timed = self._budget.unit == "seconds" and not whole
        self._workers.run(calls, f"search round {self._round}", time.time() + self._left() if timed else None)
        return self._collect()

    def _folder(self, config: RunConfig) -> WorkDir:
        folder = trial_folder(self._options, config, self._parts, self._data)
        folder.claim()
        return folder

    def _collect(self) -> list[Trial]:
        """Read what the trainings that were begun last have left."""
        found = []
        for (changes, config), folder in self._waiting:
            number = len(self.trials) + 1
            trial = read_trial(number, self._round, changes, config, folder, self._epoch_steps)
            if trial is not None:
                found.append(trial)
                self.trials.append(trial)
                if self._on_trial is not None:
                    self._on_trial(trial)
        self._waiting = []
        return found

    @property
    def best(self) -> Trial:
        """The best so far; of equals the first."""
        return max(self.trials, key=lambda trial: trial.score)

    # ---------------------------------------------------------------------------------------- its budget

    def _spent(self) -> float:
        if self._budget.unit == "steps":
            return sum(trial.steps for trial in self.trials)
        return time.time() - self._started

    def _left(self) -> float:
        """What the search may still take: the other members of the best need their share."""
        rest = self._budget.amount - self._spent()
        return rest - self._members_cost(self._begin.members - 1) if self.trials else rest

    def _cost(self, trial: Trial) -> float:
        """Of an epoch, in the unit of the budget."""
        known = self.trials[0] if trial.cut else trial  # of what was cut no time is known
        taken = known.steps if self._budget.unit == "steps" else max(known.seconds, MIN_SECONDS)
        return taken / known.epochs

    def _members_cost(self, members: int) -> float:
        best = self.best
        waves = members if self._budget.unit == "steps" else -(-members // self._workers.processes)
        return waves * self._cost(best) * max(best.epochs, 1)

    def _affordable_count(self) -> int:
        """Configurations that a round can begin with."""
        cost = self._cost(self.best)
        at_once = 1 if self._budget.unit == "steps" else self._workers.processes
        for count in range(MAX_CONFIGURATIONS, MIN_CONFIGURATIONS - 1, -1):
            epochs = -(-count // at_once) * self._rung(2) + -(
                -(count // REDUCTION_FACTOR) // at_once
            ) * self._rung(1)
            if (epochs + self._rung(0)) * cost <= self._left():
                return count
        return 0

    def affordable_members(self) -> int:
        """Members that fit into the budget, from 1 to those of the settings."""
        rest = self._budget.amount - self._spent()
        for members in range(self._begin.members, 1, -1):
            if self._members_cost(members - 1) <= rest:
                return members
        return 1

    def facts(self) -> dict[str, Any]:
        """What the card says of the search."""
        best, first = self.best, [trial for trial in self.trials if not trial.changes]
        return {
            "budget": f"{self._budget.amount:g} {self._budget.unit}",
            "trainings": len(self.trials),
            "configurations": len({trial.title for trial in self.trials}),
            "figure": self._begin.stopping.monitor,
            "first": max(trial.score for trial in first),
            "best": best.score,
            "changes": dict(best.changes),
        }
