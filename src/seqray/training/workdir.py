"""The folder of a run: its identity, its finished members, and the point to resume from."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lightning.fabric.utilities.rank_zero import rank_zero_only

from seqray.core import InputError, RunConfig, to_mapping
from seqray.io import write_file
from seqray.training.trainer import training_precision

_RUN, _FINISHED = "run.json", "finished.json"
# What a card says can be reworded, and members added, without training again.
_NOT_TRAINING = ("name", "summary", "card", "members", "calibration")


def fingerprint(config: RunConfig, classes: tuple[str, ...]) -> str:
    """Hash every setting that changes the weights of a member, and the order of the classes.

    Defaults are not counted, so a version that adds settings can resume runs of an earlier one. The precision
    is not counted either: see `run_identity`.
    """
    settings = _unlike(to_mapping(config), to_mapping(RunConfig()))
    settings = {key: value for key, value in settings.items() if key not in _NOT_TRAINING}
    for place in ("path", "name"):  # of a backbone that is known by its checksums
        (settings.get("model", {}).get("backbone") or {}).pop(place, None)
    for scores in ("smoothing", "region"):  # which are made after training
        (settings.get("model", {}).get("locator") or {}).pop(scores, None)
    settings.get("trainer", {}).pop("precision", None)
    text = json.dumps([settings, list(classes)], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def run_identity(
    config: RunConfig, classes: tuple[str, ...], data: str, *, teacher: str = "", start: str = ""
) -> dict[str, str]:
    """What a run is known by, so that it goes on with the same settings, data and precision only.

    ``data``, ``teacher`` and ``start`` are checksums, empty without these.
    """
    precision = training_precision(config)  # depends on the machine if the settings name none
    return {
        "settings": fingerprint(config, classes),
        "precision": "" if precision == "32-true" else precision,  # which earlier versions did not note
        "data": data,
        "teacher": teacher,
        "start": start,
    }


def _unlike(settings: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """What differs from the defaults, section by section."""
    differing = {key: value for key, value in settings.items() if value != defaults.get(key)}
    return {
        key: _unlike(value, defaults[key])
        if isinstance(value, dict) and isinstance(defaults.get(key), dict)
        else value
        for key, value in differing.items()
    }


def is_main_process() -> bool:
    """Whether this process is the one that writes: rank 0 of a run on several devices."""
    return getattr(rank_zero_only, "rank", 0) == 0


@dataclass(frozen=True)
class WorkDir:
    """Folder of a run, with one sub-folder a member; with ``resume`` what it holds is used.

    ``identity`` has the hashes of the ``settings``, the ``data`` and the ``teacher``, if any; ``parts`` for
    each member a hash of what it learns from and what it holds out. ``restart_if_changed`` is that of
    `RunOptions`.
    """

    path: Path
    identity: dict[str, str]
    parts: tuple[str, ...]
    resume: bool
    restart_if_changed: bool = False

    def claim(self) -> None:
        """Make the folder this run's, or find that it is; a run that is not resumed is removed.

        Raises InputError if it belongs to other settings or data, or can't be written.
        """
        if not is_main_process():
            return
        try:
            if not self.resume or (self.restart_if_changed and self._differing()):
                self._remove()
            self._check()
            _write(self.path / _RUN, {**self.identity, "parts": self._all_parts()})
        except OSError as error:
            raise InputError(f"can't be used ({error.strerror})", where=str(self.path)) from None

    def _remove(self) -> None:
        for folder in self.path.glob("member-*"):
            shutil.rmtree(folder)
        (self.path / _RUN).unlink(missing_ok=True)

    def _check(self) -> None:
        if differing := self._differing():
            raise InputError(
                f"holds a training run with other {' and '.join(differing)}",
                where=str(self.path),
                remedy="choose another --work-dir, or start afresh with --no-resume",
            )

    def _differing(self) -> list[str]:
        """What differs from the run that the folder holds."""
        found = _read(self.path / _RUN)
        if found is None:
            return ["settings"] if any(self.path.glob("member-*")) else []
        differing = [key for key, value in self.identity.items() if found.get(key, "") != value]
        shared = zip(self.parts, found.get("parts", [""]), strict=False)  # members may have been added
        return differing + (["held-out parts"] if any(mine != other for mine, other in shared) else [])

    def _all_parts(self) -> list[str]:
        """The parts of this run, and of further members of an earlier, larger run."""
        known = (_read(self.path / _RUN) or {}).get("parts", [])
        return [*self.parts, *known[len(self.parts) :]]

    def member(self, number: int) -> Path:
        """Folder of a member, counted from 1."""
        return self.path / f"member-{number}"

    def result(self, number: int) -> dict[str, Any] | None:
        """Output of `finish` for a member; None if it isn't finished or nothing is resumed."""
        return _read(self.member(number) / _FINISHED) if self.resume else None

    def finish(self, number: int, result: dict[str, Any]) -> None:
        """Mark a member as finished."""
        if is_main_process():
            _write(self.member(number) / _FINISHED, result)

    def reopen(self, number: int) -> None:
        """Let a member that was marked as finished go on."""
        (self.member(number) / _FINISHED).unlink(missing_ok=True)

    def checkpoint(self, number: int, name: str) -> Path | None:
        """Checkpoint to resume a member from, if there is one. Raises InputError if it is damaged."""
        path = self.member(number) / f"{name}.ckpt"
        if not self.resume or not path.is_file():
            return None
        check_whole(path)
        return path


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
