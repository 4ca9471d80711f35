"""Several output files that appear together, or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from seqray.core import InputError, raise_if_terminated


class Staging:
    """Hidden folders next to the outputs of one run, whose files are moved to their places at the end.

    Use it in ``with``: if its block ends without an exception all files appear, else none does and the
    folders are removed. Writers get the path of a staged file in place of the user's; an `InputError` that
    names a staged file names the user's when it leaves the block.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, Path] = {}  # of the user's files -> hidden
        self._originals: dict[Path, str] = {}

    def path(self, target: str | Path) -> Path | str:
        """Where to write what shall appear as ``target``.

        Standard output (``-``), devices and pipes are written directly. Raises `InputError` if the target
        can't be written or was staged before.
        """
        real = Path(os.path.realpath(target))
        if str(target) == "-" or (real.exists() and not real.is_file() and not real.is_dir()):
            return target
        if real.is_dir():
            raise InputError("is a directory", where=str(target), remedy="give a file")
        if real.exists() and not os.access(real, os.W_OK):
            raise InputError("can't be written (it is read-only)", where=str(target))
        staged = self._folder(real.parent, str(target)) / real.name
        if staged in self._originals:
            raise InputError("is named twice as an output", where=str(target))
        self._originals[staged] = str(target)
        return staged

    def _folder(self, parent: Path, where: str) -> Path:
        if parent not in self._folders:
            try:
                self._folders[parent] = Path(tempfile.mkdtemp(prefix=".seqray-", dir=parent))
            except FileNotFoundError:
                raise InputError("can't be written (its directory doesn't exist)", where=where) from None
            except OSError as error:
                raise InputError(f"can't be written ({error.strerror})", where=where) from None
        return self._folders[parent]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                raise_if_terminated()
                self._move()
        finally:
            for folder in self._folders.values():
                shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, InputError) and Path(error.where) in self._originals:
            where = self._originals[Path(error.where)]
            raise InputError(error.what, where=where, remedy=error.remedy) from None

    def _move(self) -> None:
        for parent, folder in self._folders.items():
            for staged in sorted(folder.iterdir()):
                target = parent / staged.name
                if target.exists():
                    shutil.copymode(target, staged)
                os.replace(staged, target)
