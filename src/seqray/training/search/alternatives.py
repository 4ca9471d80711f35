"""Settings that the data decide on: the first member is trained with each, and the best one goes on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seqray.core import LabeledSequence, RunConfig, change_settings
from seqray.training.data_hashes import data_sha256
from seqray.training.fit import count_letters, train, train_member
from seqray.training.member import TrainResult
from seqray.training.partitions import partition
from seqray.training.run_options import RunOptions
from seqray.training.search.space import Changes
from seqray.training.search.trials import Trial, drop_checkpoints, prepare_trainings, read_trial, trial_folder
from seqray.training.side_by_side import WorkerPool
from seqray.training.trainer import quiet


@dataclass(frozen=True)
class TriedResult:
    """What the alternatives reached, and the model of the best.

    Attributes
    ----------
    trained
        The model, as of `seqray.training.train`.
    trials
        The first member with each alternative, in their order.
    chosen
        The one whose settings the model has.
    """

    trained: TrainResult
    trials: tuple[Trial, ...]
    chosen: Trial


def train_best(
    config: RunConfig,
    alternatives: Sequence[Changes],
    data: Sequence[LabeledSequence],
    out: Path | None,
    run: RunOptions,
    *,
    classes: Sequence[str] | None = None,
    on_trial: Callable[[Trial], None] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> TriedResult:
    """Train the first member with each alternative, and the other members with the best of them.

    Parameters
    ----------
    config
        Settings that the alternatives change.
    alternatives
        Changes, two or more; of equally good ones the first is taken.
    data, out, run, classes, metrics
        As in `seqray.training.train`; each training has a folder of its own in ``run.work_dir``.
    on_trial
        Receives each first member when all are trained.

    Raises
    ------
    ConfigError, InputError, ModelFileError, SeqrayError
        As in `seqray.training.train`.
    """
    run = prepare_trainings(config, out, run)
    parts, sha256 = partition(data, config, classes), data_sha256(data)
    calls = []
    for changes in alternatives:
        one = change_settings(config, changes)
        folder = trial_folder(run, one, parts, sha256)
        calls.append({"config": one, "number": 1, "parts": parts, "folder": folder})
    processes, threads = run.plan(config, len(calls), count_letters(data, parts.train))
    with (
        quiet(),
        WorkerPool(
            train_member, {"data": data}, processes=processes, threads=threads, on_progress=run.on_progress
        ) as pool,
    ):
        for call in calls:
            call["folder"].claim()
        pool.run([call for call in calls if call["folder"].result(1) is None], "try settings")
    steps = -(-len(parts.train) // config.optimizer.batch_size)
    trials = []
    for number, (changes, call) in enumerate(zip(alternatives, calls, strict=True), start=1):
        trial = read_trial(number, 0, changes, call["config"], call["folder"], steps)
        assert isinstance(trial, Trial)  # its training came to its end
        trials.append(trial)
        if on_trial is not None:
            on_trial(trial)
    chosen = max(trials, key=lambda trial: trial.score)
    tried = {trial.title: trial.score for trial in trials}
    trained = train(
        chosen.config,
        data,
        out,
        replace(run, work_dir=chosen.folder.path),
        classes=classes,
        metrics=metrics,
        search={"figure": config.stopping.monitor, "tried": tried, "changes": dict(chosen.changes)},
    )
    for trial in trials:
        if trial is not chosen:
            drop_checkpoints(trial)
    return TriedResult(trained, tuple(trials), chosen)
