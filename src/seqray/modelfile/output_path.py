"""The name of a model file, and where one may be written."""

from __future__ import annotations

import os
from pathlib import Path

from seqray.core import InputError, ModelFileError

SUFFIX = ".safetensors"


def check_model_path(path: str | Path) -> None:
    """Refuse a place where a model file can't be written, before hours go into the model.

    Parameters
    ----------
    path
        The file.

    Raises
    ------
    ModelFileError
        For another suffix.
    InputError
        For a directory, and a folder that does not exist or can't be written to.
    """
    out, where = Path(path), str(path)
    if out.suffix != SUFFIX:
        raise ModelFileError(f"a model file ends in {SUFFIX}", where=where, remedy="give another name")
    if out.is_dir():
        raise InputError("is a directory, not a model file to write", where=where)
    if not out.parent.is_dir():
        raise InputError("can't be written: its folder does not exist", where=where)
    if not os.access(out.parent, os.W_OK):
        raise InputError("can't be written: no permission for its folder", where=where)
