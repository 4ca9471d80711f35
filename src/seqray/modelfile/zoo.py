"""The models inside the package. Listing and finding them needs no torch."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.core.errors import ModelFileError, require_type
from seqray.modelfile.header import SUFFIX

if TYPE_CHECKING:
    from seqray.modelfile.model import TrainedModel

FOLDER = Path(__file__).parents[1] / "zoo_models"


def available_models() -> list[str]:
    """Return the names of the shipped models, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def locate_model(name_or_path: str | Path) -> Path:
    """Find a model file by the name of a shipped model or by path.

    Raises `ModelFileError` for a name that no shipped model has (the nearest is suggested) or a path without
    a file. Raises `ConfigError` for an object of another type.
    """
    if not isinstance(name_or_path, Path):
        require_type(name_or_path, str, "give the name of a shipped model, or the path of a model file")
    text = str(name_or_path)
    path = Path(text)
    if text in available_models():
        return FOLDER / f"{text}{SUFFIX}"
    if isinstance(name_or_path, Path) or "/" in text or path.suffix or path.is_file():
        if not path.exists():
            raise ModelFileError("no such file", where=text, remedy=_suggestion(path.stem))
        if not path.is_file() and not path.is_dir():
            raise ModelFileError("is a pipe or a device", where=text, remedy="save the model to a file")
        return path
    raise ModelFileError(f"no shipped model is called '{text}'", remedy=_suggestion(text))


def _suggestion(name: str) -> str:
    names = available_models()
    by_fold = {known.casefold(): known for known in names}
    near = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=0.5)
    if near:
        return f"did you mean '{by_fold[near[0]]}'?"
    shipped = f"shipped are {', '.join(names)}" if names else "this installation ships none"
    return f"{shipped}; a model of your own is given by its path"


def load_model(name_or_path: str | Path, backbone: str | Path | None = None) -> TrainedModel:
    """Load a shipped model by name, or a model file by path, and check it.

    Parameters
    ----------
    name_or_path
        See `locate_model`.
    backbone
        Directory of the encoder of the model, if it has moved since training.

    Raises
    ------
    ModelFileError, ConfigError
        As `locate_model` and `load_model_file`.
    """
    path = locate_model(name_or_path)
    from seqray.modelfile.file import load_model_file

    return load_model_file(path, backbone)
