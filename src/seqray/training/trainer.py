"""The Lightning trainer, and the folder of a run."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import logging
import math
import os
import shutil
import signal
import threading
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import lightning
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.fabric.utilities.rank_zero import rank_zero_only
from lightning.pytorch import callbacks as lightning_callbacks
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger, Logger, TensorBoardLogger
from lightning.pytorch.trainer.states import TrainerStatus
from torch import Tensor

from seqray.core.errors import ConfigError, InputError, OnProgress
from seqray.core.run_config import RunConfig, StoppingConfig
from seqray.core.serialization import to_mapping
from seqray.core.text import did_you_mean, first_and_more
from seqray.io.files import write_file
from seqray.models.attention import keep_freed_memory
from seqray.training.module import NetworkModule, best_epoch

# --- The Lightning trainer of one member: defaults, allowed settings, and suppressed notes

BEST, LAST = "best", "last"

# What resumption, the choice of the best epoch or several processes rest on.
_RESERVED = {
    *("barebones", "check_val_every_n_epoch", "default_root_dir", "enable_checkpointing"),
    *("enable_progress_bar", "fast_dev_run", "limit_val_batches", "overfit_batches"),
    *("reload_dataloaders_every_n_epochs", "use_distributed_sampler", "val_check_interval"),
}
_AMOUNTS = ("max_epochs", "max_steps", "accumulate_grad_batches", "limit_train_batches")
_NOISE = (
    r".*does not have many workers.*",
    r".*GPU available but not used.*",
    r".*srun.* command is available on your system.*",
    r".*Checkpoint directory .* exists and is not empty.*",
    r".*The number of training batches .* is smaller than the logging interval.*",
    r".*`isinstance\(treespec, LeafSpec\)` is deprecated.*",
)


def on_gpu(config: RunConfig) -> bool:
    """Whether the settings, on this machine, mean CUDA."""
    accelerator = config.trainer.get("accelerator", "auto")
    return accelerator in ("cuda", "gpu") or (accelerator == "auto" and torch.cuda.is_available())


class _Alone(LightningEnvironment):
    """One process; the variables of the program that it belongs to stay."""

    def teardown(self) -> None:
        pass  # Lightning removes WORLD_SIZE


def count_devices(config: RunConfig) -> int:
    """On how many devices of all nodes the settings train, on this machine."""
    devices = config.trainer.get("devices", 1)
    if devices in ("auto", -1, "-1"):
        devices = torch.cuda.device_count() if on_gpu(config) else 1
    elif isinstance(devices, str):
        devices = devices.strip(",").split(",") if "," in devices else devices
    try:
        number = int(devices) if isinstance(devices, int | str) else len(devices)
        return number * int(config.trainer.get("num_nodes", 1))
    except (TypeError, ValueError):
        return 1  # Lightning says what is wrong with them


def trainer_settings(config: RunConfig) -> dict[str, Any]:
    """Fill the ``trainer`` section: one device, CUDA if available, bf16-mixed where fast, else float32."""
    known = set(inspect.signature(lightning.Trainer.__init__).parameters) - {"self"} - _RESERVED
    for name in config.trainer:
        if name in _RESERVED:
            raise ConfigError(f"'trainer.{name}' can't be set", remedy="seqray train chooses it")
        if name not in known:
            hint = did_you_mean(name, known, prefix="trainer.", otherwise="see lightning.Trainer")
            raise ConfigError(f"unknown setting 'trainer.{name}'", remedy=hint)
    settings = {"accelerator": "cuda" if torch.cuda.is_available() else "cpu", "devices": 1}
    settings |= {"gradient_clip_val": 1.0, "num_sanity_val_steps": 0, "enable_model_summary": False}
    settings |= config.trainer | {"max_epochs": config.max_epochs}
    bfloat16 = on_gpu(config)
    if not bfloat16 and config.model.backbone is None and config.model.locator is None:  # see decision 23
        able = torch.cpu.get_capabilities()
        bfloat16 = bool(able.get("amx_bf16") or able.get("avx512_bf16"))
    settings.setdefault("precision", "bf16-mixed" if bfloat16 else "32-true")
    if not isinstance(settings["max_epochs"], int):
        raise ConfigError(
            f"'trainer.max_epochs' is {settings['max_epochs']!r}", remedy="give a whole number, 1 or more"
        )
    for name in _AMOUNTS:  # Lightning accepts a training of no steps
        value = settings.get(name)
        wrong = isinstance(value, bool) or (isinstance(value, int | float) and not value > 0)
        if wrong and (name, value) != ("max_steps", -1):
            raise ConfigError(f"'trainer.{name}' is {value!r}", remedy="give more than 0")
    return settings


def training_precision(config: RunConfig) -> str:
    """The precision of a run, which depends on the machine if the settings name none."""
    return str(trainer_settings(config)["precision"])


def make_trainer(
    config: RunConfig,
    folder: Path,
    *,
    progress: OnProgress | None = None,
    callbacks: Sequence[lightning.Callback] = (),
) -> lightning.Trainer:
    """Build the trainer, with further callbacks."""
    settings = trainer_settings(config)
    loggers = _loggers(settings.pop("logger", "csv"), folder)
    named = settings.pop("callbacks", {})
    if wrong := [one for one in callbacks if not isinstance(one, lightning.Callback)]:
        raise ConfigError(f"{wrong[0]!r} is no callback", remedy="give objects of lightning.Callback")
    if count_devices(config) == 1:  # what a cluster says of other tasks is then not about this training
        settings.setdefault("plugins", [_Alone()])
    elif "SLURM_NTASKS" in os.environ and "SLURM_STEP_NUM_TASKS" not in os.environ:
        # A script of sbatch without srun is one task, and Lightning would wait for the others.
        settings.setdefault("plugins", [LightningEnvironment()])
    try:
        return lightning.Trainer(
            **settings,
            logger=loggers,
            callbacks=[*_callbacks(config.stopping, folder, progress), *_named_callbacks(named), *callbacks],
            default_root_dir=folder,
            enable_progress_bar=False,
            use_distributed_sampler=False,  # the orders in data.py deal to the processes themselves
        )
    except (TypeError, ValueError, RuntimeError, ImportError, MisconfigurationException) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"Lightning refuses the 'trainer' settings ({reason})") from error


def _loggers(names: Any, folder: Path) -> list[Logger]:
    """The loggers of 'trainer.logger', one or several."""
    wanted = [names] if isinstance(names, str) else names
    makers = {"csv": (CSVLogger, "log"), "tensorboard": (TensorBoardLogger, "tensorboard")}
    if not isinstance(wanted, list | tuple) or not all(name in makers for name in wanted):
        remedy = f"give {' or '.join(makers)}, or a list of both"
        raise ConfigError(f"'trainer.logger' is {names!r}", remedy=remedy)
    try:
        return [make(folder, name=place) for make, place in (makers[name] for name in wanted)]
    except ModuleNotFoundError:
        raise ConfigError("'tensorboard' is not installed", remedy="pip install tensorboard") from None


def _named_callbacks(named: Any) -> Iterator[lightning.Callback]:
    """The callbacks of 'trainer.callbacks': those of Lightning by name, with their arguments."""
    known = sorted(set(lightning_callbacks.__all__) - {"Callback"})
    if not isinstance(named, Mapping):
        raise ConfigError("'trainer.callbacks' holds no names", remedy="write {LearningRateMonitor: {}}")
    for name, arguments in named.items():
        if name not in known:
            hint = did_you_mean(str(name), known, otherwise="see lightning.pytorch.callbacks")
            raise ConfigError(f"'trainer.callbacks' has no '{name}'", remedy=hint)
        yield getattr(lightning_callbacks, name)(**(arguments or {}))


def _callbacks(
    stopping: StoppingConfig, folder: Path, progress: OnProgress | None
) -> list[lightning.Callback]:
    monitor, mode = f"validation_{stopping.monitor}", "min" if stopping.monitor == "loss" else "max"
    # Saved at the end of training epochs: a checkpoint is then the border of an epoch, which resumes exactly.
    when: dict[str, Any] = {"save_on_train_epoch_end": True, "enable_version_counter": False}
    callbacks: list[lightning.Callback] = [
        _Stopping(monitor, mode=mode, patience=stopping.patience, check_on_train_epoch_end=True),
        _Best(folder, BEST, monitor=monitor, mode=mode, **when),
        ModelCheckpoint(folder, LAST, **when),  # holds the state of the two before it
    ]
    if progress:
        callbacks.append(_StepReport(progress, f"train {folder.name}"))
    return callbacks


class _StepReport(lightning.Callback):
    """Reports each step of the optimizer, of as many as there are without early stopping."""

    def __init__(self, on_progress: OnProgress, phase: str) -> None:
        self._on_progress, self._phase = on_progress, phase

    def on_train_batch_end(self, trainer: lightning.Trainer, *args: Any, **more: Any) -> None:
        total = trainer.estimated_stepping_batches
        if trainer.is_global_zero:
            self._on_progress(trainer.global_step, int(total) if math.isfinite(total) else None, self._phase)


class _Best(ModelCheckpoint):
    """Keeps the checkpoint of `best_epoch`, which may be one whose figure is no better."""

    def check_monitor_top_k(self, trainer: lightning.Trainer, current: Tensor | None = None) -> bool:
        if super().check_monitor_top_k(trainer, current):
            return True
        history = cast(NetworkModule, trainer.lightning_module).history
        tied = current is not None and bool(current == self.best_model_score)
        monitor = str(self.monitor).removeprefix("validation_")
        is_best = tied and best_epoch(history, monitor) == trainer.current_epoch + 1
        return trainer.strategy.reduce_boolean_decision(is_best)


class _Stopping(EarlyStopping):
    """Early stopping that stays stopped when a run resumes from its last checkpoint."""

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        trainer.should_stop = trainer.should_stop or self.wait_count >= self.patience


@contextlib.contextmanager
def quiet(config: RunConfig | None) -> Iterator[None]:
    """Silence Lightning's notes; important warnings still appear, and nothing goes to stdout.

    Lightning takes this process for one of several if the cluster has numbered it: with one device it is not.
    """
    lightnings: Any = rank_zero_only
    rank = lightnings.rank
    if config is not None and count_devices(config) == 1:
        lightnings.rank = 0
    loggers = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric")]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.WARNING)
        with warnings.catch_warnings():  # not `own_warnings`: other threads may read files meanwhile
            for pattern in _NOISE:
                warnings.filterwarnings("ignore", pattern)
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        lightnings.rank = rank


def run_fit(
    trainer: lightning.Trainer,
    module: lightning.LightningModule,
    data: lightning.LightningDataModule,
    checkpoint: Path | None,
) -> None:
    """Fit the module, from a ``checkpoint`` if given; Ctrl-C raises KeyboardInterrupt."""
    keep_freed_memory()
    main_thread = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(module, datamodule=data, ckpt_path=None if checkpoint is None else str(checkpoint))
    except SystemExit as error:
        if trainer.state.status == TrainerStatus.INTERRUPTED and isinstance(
            error.__context__, KeyboardInterrupt
        ):
            raise KeyboardInterrupt from None
        raise
    finally:
        if main_thread:
            signal.signal(signal.SIGINT, handler)


# --- The folder of a run: its identity, its finished members, and the point to resume from

_RUN, _FINISHED = "run.json", "finished.json"
# Beginnings of settings that change no weights of a member: words of the card, scores made after training and
# the kingdom, the place of a backbone, which is known by its checksums, and what is noted apart.
_NOT_TRAINING = (
    *("name", "summary", "card", "members", "calibration", "genomes.kingdom", "model.locator.smoothing"),
    *("model.locator.region", "model.backbone.path", "model.backbone.name"),
    *("trainer.precision", "trainer.logger", "trainer.callbacks"),
)


def trained_by(config: RunConfig, classes: tuple[str, ...]) -> dict[str, Any]:
    """Each setting that changes the weights of a member, as ``section.key``, and the classes; no defaults."""
    defaults = _leaves(to_mapping(RunConfig()))
    settings = {
        name: value
        for name, value in _leaves(to_mapping(config)).items()
        if value != defaults.get(name) and not name.startswith(_NOT_TRAINING)
    }
    return json.loads(json.dumps({**settings, "classes": classes}, default=str))


def fingerprint(config: RunConfig, classes: tuple[str, ...]) -> str:
    """Hash of what a member is `trained_by`."""
    return hashlib.sha256(json.dumps(trained_by(config, classes), sort_keys=True).encode()).hexdigest()


def run_identity(
    config: RunConfig, classes: tuple[str, ...], data: str, *, teacher: str = "", start: str = ""
) -> dict[str, Any]:
    """What a run is known by: settings, precision, and checksums of its data, teacher and first weights."""
    precision = training_precision(config)  # depends on the machine if the settings name none
    return {
        "settings": trained_by(config, classes),
        "precision": "" if precision == "32-true" else precision,  # which earlier versions did not note
        "data": data,
        "teacher": teacher,
        "start": start,
    }


def _changes(before: Any, now: dict[str, Any]) -> str:
    """Name each setting that differs, with both values."""
    if not isinstance(before, dict):
        return "settings, or of an earlier version"
    defaults = _leaves(to_mapping(RunConfig()))
    old, new = defaults | before, defaults | now
    shown = (
        f"{name} {json.dumps(old.get(name))}, now {json.dumps(new.get(name))}"
        for name in {**old, **new}
        if old.get(name) != new.get(name)
    )
    return f"settings ({first_and_more(shown, 5, separator='; ')})"


def _leaves(settings: Mapping[str, Any], section: str = "") -> dict[str, Any]:
    """Settings by their names, ``section.key``."""
    named: dict[str, Any] = {}
    for key, value in settings.items():
        named |= _leaves(value, f"{section}{key}.") if isinstance(value, dict) else {section + key: value}
    return named


def is_main_process(config: RunConfig) -> bool:
    """Whether this process is the one that writes: rank 0 of a run on several devices."""
    return count_devices(config) == 1 or not getattr(rank_zero_only, "rank", 0)


@dataclass(frozen=True)
class WorkDir:
    """Folder of a run, with one sub-folder a member; see `RunOptions`; ``part`` is a hash of its data."""

    path: Path
    identity: dict[str, Any]
    part: str
    resume: bool
    restart_if_changed: bool = False
    writes: bool = True  # whether this is the main process
    callbacks: tuple[lightning.Callback, ...] = ()  # of the trainings in it

    def claim(self, threads: int) -> int:
        """Make the folder this run's, or find that it is; returns the threads that the run began with."""
        if not self.writes:
            return threads
        try:
            if not self.resume or (self.restart_if_changed and self._differing()):
                for folder in self.path.glob("member-*"):
                    shutil.rmtree(folder)
                (self.path / _RUN).unlink(missing_ok=True)
            if differing := self._differing():
                raise InputError(
                    f"holds a training run with other {' and '.join(differing)}",
                    where=str(self.path),
                    remedy="choose another --work-dir, or start afresh with --no-resume",
                )
            threads = (_read(self.path / _RUN) or {}).get("threads", threads)
            _write(self.path / _RUN, {**self.identity, "part": self.part, "threads": threads})
            return threads
        except OSError as error:
            raise InputError(f"can't be used ({error.strerror})", where=str(self.path)) from None

    def _differing(self) -> list[str]:
        """What differs from the run that the folder holds."""
        found = _read(self.path / _RUN)
        if found is None:
            return ["settings"] if any(self.path.glob("member-*")) else []
        differing = [
            _changes(found.get(key), value) if key == "settings" else key
            for key, value in self.identity.items()
            if found.get(key, "") != value
        ]
        return differing + (["held-out part"] if found.get("part", "") != self.part else [])

    def member(self, number: int) -> Path:
        """Folder of a member, counted from 1."""
        return self.path / f"member-{number}"

    def result(self, number: int) -> dict[str, Any] | None:
        """Output of `finish` for a member; None if it isn't finished or nothing is resumed."""
        return _read(self.member(number) / _FINISHED) if self.resume else None

    def finish(self, number: int, result: dict[str, Any]) -> None:
        """Mark a member as finished."""
        if self.writes:
            _write(self.member(number) / _FINISHED, result)

    def checkpoint(self, number: int, name: str) -> Path | None:
        """Checkpoint to resume a member from, if there is one. Raises InputError if it is damaged."""
        path = self.member(number) / f"{name}.ckpt"
        if not self.resume or not path.is_file():
            return None
        check_whole(path)
        return path

    def next_epoch(self, number: int) -> int | None:
        """Epoch, from 1, from which a member goes on; None if it has none behind it, or is finished."""
        if self.result(number) is not None or (path := self.checkpoint(number, LAST)) is None:
            return None
        return 1 + len(torch.load(path, map_location="cpu", weights_only=True, mmap=True)["history"])


def check_whole(checkpoint: Path) -> None:
    """Raise InputError if a checkpoint is cut off. It is a zip file, whose directory is at the end."""
    if not zipfile.is_zipfile(checkpoint):
        raise _damaged(checkpoint)


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("no JSON object")
        return content
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError):
        raise _damaged(path) from None


def _write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, json.dumps(content, sort_keys=True, indent=1))


def _damaged(path: Path) -> InputError:
    return InputError("is damaged", where=str(path), remedy="start afresh with --no-resume")
