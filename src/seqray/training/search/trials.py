"""One training of a search: its settings, what it reached, and its folder."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from seqray.core import RunConfig
from seqray.modelfile import check_model_path
from seqray.training.fit import open_folder
from seqray.training.module import best_epoch
from seqray.training.partitions import Partition
from seqray.training.run_options import RunOptions
from seqray.training.search.space import Changes
from seqray.training.trainer import BEST, LAST, make_trainer, quiet
from seqray.training.workdir import WorkDir, fingerprint

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
