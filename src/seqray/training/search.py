"""Alternatives that a training tries."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from seqray.core.errors import ConfigError
from seqray.core.records import LabeledSequence
from seqray.core.run_config import RunConfig, change_settings
from seqray.core.serialization import to_mapping
from seqray.modelfile.header import check_model_path
from seqray.training.data_facts import DataFacts, has_rare_class
from seqray.training.fit import count_letters, open_folder, train, train_member
from seqray.training.members import RunOptions, TrainResult, WorkerPool
from seqray.training.module import best_epoch
from seqray.training.partitions import Partition, data_sha256, partition
from seqray.training.trainer import BEST, LAST, WorkDir, fingerprint, make_trainer, quiet

# --- The settings that a search tries; docs/how-to/train.md shows the same table

MAX_TOKENS = 512
"""Of a sequence, unless the search begins with more: the time of attention grows with their square."""
TWO_CHANGES = 0.5
"""Probability that a configuration after the first round differs in two rows of the table."""
_MAX_ATTEMPTS = 40  # draws for each configuration that is wanted

Changes = Mapping[str, Any]
"""Settings by ``section.key``, as in ``--set``."""


def _each(setting: str, *values: Any) -> tuple[Changes, ...]:
    return tuple({setting: value} for value in values)


def _always(facts: DataFacts) -> bool:
    return True


@dataclass(frozen=True)
class Row:
    """A row of the table.

    The name and the condition are in words, the condition empty for all data. Each of the alternatives is a
    set of settings that go together, for data that ``applies`` accepts.
    """

    name: str
    alternatives: tuple[Changes, ...]
    applies: Callable[[DataFacts], bool] = field(default=_always, repr=False)
    condition: str = ""


def _one_length(facts: DataFacts) -> bool:
    return facts.one_length and not facts.contexts


def _any_length(facts: DataFacts) -> bool:
    return not facts.one_length


def _rare_class(facts: DataFacts) -> bool:
    return has_rare_class(facts.counts)


def _either_strand(facts: DataFacts) -> bool:
    return facts.alphabet.is_nucleotide and not facts.site


SPACE: tuple[Row, ...] = (
    Row("learning rate", _each("optimizer.learning_rate", 5e-4, 1e-3, 2e-3, 4e-3)),
    Row("dropout", _each("model.dropout", 0.1, 0.2, 0.3, 0.4, 0.5)),
    Row(
        "width",
        tuple(
            {"model.d_model": width, "model.heads": width // 32, "model.d_ff": 2 * width}
            for width in (32, 64, 128, 192)
        ),
    ),
    Row("layers", _each("model.layers", 1, 2, 3, 4)),
    Row("kernels of the stem", _each("model.stem.kernels", (3, 7), (7, 15), (5, 9, 15, 21))),
    Row("letters to a token", _each("model.stem.stride", 1, 2, 3, 4, 6, 8)),
    Row("k-mers", _each("model.words", 0, 2, 3, 4)),
    Row(
        "letters by position",
        tuple(
            {"model.position_gain": gain, "model.position_matrix": matrix}
            for gain, matrix in (("none", "none"), ("shared", "none"), ("shared", "shared"))
        ),
        _one_length,
        "windows of one length, without contexts",
    ),
    Row("letters by end", _each("model.ends", 0, 12, 24, 48), _any_length, "sequences of different lengths"),
    Row(
        "what the head reads",
        _each("model.pooling", ("cls",), ("cls", "mean", "max"), ("mean", "max"), ("mean", "max", "ends")),
        _any_length,
        "sequences of different lengths",
    ),
    Row(
        "composition",
        _each("model.composition", (), ("whole",), ("whole", "pairs"), ("whole", "ends", "pairs")),
        _any_length,
        "sequences of different lengths",
    ),
    Row(
        "margin of rare classes",
        _each("optimizer.logit_adjustment", 0.0, 0.5, 1.0),
        _rare_class,
        "data with a rare class",
    ),
    Row("masked letters", _each("augment.mask", 0.0, 0.1, 0.2)),
    Row("label smoothing", _each("optimizer.label_smoothing", 0.0, 0.05, 0.1)),
    Row("mixup", _each("optimizer.mixup", 0.0, 0.3)),
    Row("weight decay", _each("optimizer.weight_decay", 0.01, 0.05, 0.2)),
    Row(
        "other strand",
        _each("augment.reverse_complement", 0.0, 0.5),
        _either_strand,
        "DNA and RNA, not cut around a site",
    ),
)


def rows_for(facts: DataFacts, fixed: Set[str]) -> list[Row]:
    """Rows that apply to the data and change none of the ``fixed`` settings."""
    return [
        row
        for row in SPACE
        if row.applies(facts) and not any(setting in fixed for one in row.alternatives for setting in one)
    ]


def draw_configurations(
    begin: RunConfig,
    best: Changes,
    rows: Sequence[Row],
    count: int,
    rng: np.random.Generator,
    *,
    tried: Sequence[RunConfig],
    two: bool,
) -> list[tuple[Changes, RunConfig]]:
    """Draw configurations beside the best one: each differs from it in one row of the table, or in two.

    Parameters
    ----------
    best
        What the best one changes in it.
    count
        Number of configurations; fewer come back where there are no more.
    tried
        Configurations that are not drawn again.
    two
        Whether some differ in two rows.
    """
    drawn: list[tuple[Changes, RunConfig]] = []
    seen = list(tried)
    order: list[Row] = []
    for _ in range(count * _MAX_ATTEMPTS if rows else 0):
        if len(drawn) == count:
            break
        order = order or [rows[i] for i in rng.permutation(len(rows))]
        chosen = [order.pop()]
        if two and rng.random() < TWO_CHANGES:
            chosen.append(rows[int(rng.integers(len(rows)))])
        changes = dict(best)
        for row in chosen:
            changes |= row.alternatives[int(rng.integers(len(row.alternatives)))]
        config = _changed(begin, changes)
        if config is not None and config not in seen:
            seen.append(config)
            drawn.append((_effective(begin, changes), config))
    return drawn


def _changed(begin: RunConfig, changes: Changes) -> RunConfig | None:
    """The configuration; None where the settings don't go together, or make too many tokens."""
    try:
        config = change_settings(begin, changes)
    except ConfigError:
        return None
    stem = config.model.stem
    tokens = -(-config.data.window // (stem.stride if stem else 1))
    before = -(-begin.data.window // (begin.model.stem.stride if begin.model.stem else 1))
    return config if tokens <= max(MAX_TOKENS, before) else None


def _effective(begin: RunConfig, changes: Changes) -> Changes:
    """Those that are none in the configuration that the search began with are left out."""
    before = to_mapping(begin)
    return {path: value for path, value in changes.items() if _value(before, path) != _plain(value)}


def _value(mapping: Any, path: str) -> Any:
    for key in path.split("."):
        mapping = mapping.get(key) if isinstance(mapping, dict) else None
    return mapping


def _plain(value: Any) -> Any:
    """A value as `to_mapping` has it: lists, no tuples."""
    return list(value) if isinstance(value, tuple) else value


# --- One training of a search: its settings, what it reached, and its folder

TRIAL_COLUMNS = (
    "trial",
    "round",
    "epochs",
    "steps",
    "seconds",
    "auprc",
    "auroc",
    "mcc",
    "accuracy",
    "loss",
    "state",
    "changes",
)
"""Of the table of a search."""


@dataclass(frozen=True)
class Trial:
    """A training of a search.

    Attributes
    ----------
    number, round
        Of the trial in the search, from 1, and of its round, from 0.
    changes, config
        What it changes in the configuration that the search began with, and all of its settings.
    folder
        Of its checkpoints.
    epochs, steps, seconds
        That it took; with early stopping fewer than its settings allow. Of one that was cut no seconds are
        known: 0.
    figures
        Of its best epoch on the held-out part.
    score
        The figure that decides, where more is better.
    cut
        Whether it ended before its time.
    """

    number: int
    round: int
    changes: Changes
    config: RunConfig
    folder: WorkDir
    epochs: int
    steps: int
    seconds: float
    figures: Mapping[str, float]
    score: float
    cut: bool = False

    @property
    def title(self) -> str:
        """The changes in words."""
        return " ".join(f"{path}={_shown(value)}" for path, value in self.changes.items()) or "as begun"


def _shown(value: Any) -> str:
    return f"[{','.join(map(str, value))}]" if isinstance(value, list | tuple) else str(value)


def trial_row(trial: Trial, chosen: bool) -> list[object]:
    """Cells of a trial in the table, see `TRIAL_COLUMNS`.

    Parameters
    ----------
    trial
        The training.
    chosen
        Whether the model has its settings.
    """
    figures = [f"{trial.figures[name]:.4f}" if name in trial.figures else "" for name in TRIAL_COLUMNS[5:10]]
    state = "chosen" if chosen else "cut" if trial.cut else "done"
    seconds = "" if trial.cut else f"{trial.seconds:.0f}"
    begin = [trial.number, trial.round, trial.epochs, trial.steps, seconds]
    return [*begin, *figures, state, trial.title]


def read_trial(
    number: int, round_: int, changes: Changes, config: RunConfig, folder: WorkDir, steps: int
) -> Trial | None:
    """Read what a training left in its folder; None where no epoch was finished.

    ``steps`` counts those of an epoch.
    """
    result = folder.result(1) or _cut_result(config, folder)
    if result is None:
        return None
    history = result["history"]
    figures = next(row for row in history if row["epoch"] == result["best_epoch"])
    name = config.stopping.monitor
    return Trial(
        number=number,
        round=round_,
        changes=changes,
        config=config,
        folder=folder,
        epochs=len(history),
        steps=len(history) * steps,
        seconds=result.get("seconds", 0.0),
        figures=figures,
        score=-figures[name] if name == "loss" else figures[name],
        cut=result.get("cut", False),
    )


def prepare_trainings(config: RunConfig, out: Path | None, run: RunOptions) -> RunOptions:
    """Refuse wrong settings, then empty the folder of all trainings unless they are resumed.

    The result names the number of threads, which processes of their own share.
    """
    if out is not None:
        check_model_path(out)
    with quiet():
        make_trainer(config, Path(run.work_dir), progress=False)
    if not run.resume:
        for folder in Path(run.work_dir).glob("settings-*"):
            shutil.rmtree(folder)
    return replace(run, threads=run.use_threads(), resume=True)


def trial_folder(run: RunOptions, config: RunConfig, parts: Partition, data: str) -> WorkDir:
    """Name the folder of a training, which is not claimed yet."""
    path = Path(run.work_dir) / f"settings-{fingerprint(config, parts.classes)[:12]}"
    return open_folder(replace(run, work_dir=path), config, [parts], data)


def _cut_result(config: RunConfig, folder: WorkDir) -> dict[str, Any] | None:
    """Result of a training that was cut: what its best checkpoint holds."""
    path = folder.checkpoint(1, BEST)
    if path is None:
        return None
    history = torch.load(path, map_location="cpu", weights_only=True)["history"]
    best = best_epoch(history, config.stopping.monitor)
    return {"seed": config.seed, "best_epoch": best, "history": history, "cut": True}


def close_trial(trial: Trial) -> None:
    """Make the best epoch of a training the network of its folder, even where the training was cut."""
    result = _cut_result(trial.config, trial.folder)
    if result is None:  # the weights were dropped by an earlier search: train them again
        trial.folder.reopen(1)
    elif trial.cut:
        trial.folder.finish(1, result | {"seconds": trial.seconds})


def reopen_trial(folder: WorkDir) -> bool:
    """Let a training that was cut in an earlier search go on; return whether anything is left to do."""
    result = folder.result(1)
    if result is not None and result.get("cut"):
        folder.reopen(1)
        return True
    return result is None


def drop_checkpoints(trial: Trial) -> None:
    """Remove the weights of a training that is not chosen; its result stays."""
    for name in (BEST, LAST):
        path = trial.folder.checkpoint(1, name)
        if path is not None:
            path.unlink()


# --- Settings that the data decide on: the first member is trained with each, and the best one goes on


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
