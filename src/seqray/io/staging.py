"""Several output files that appear together, or not at all."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from seqray.core import InputError, raise_if_terminated, signals_held
from seqray.io.files import enter_hidden_folder, flush_standard_output, is_stream, publish


class _Output(NamedTuple):
    """Where a staged file goes, and what the user calls it."""

    target: Path
    name: str


class Staging:
    """Hidden folders beside the outputs of one run, whose files are moved to their places at the end.

    Use it in ``with``: if its block ends without an exception, what was printed is written out and all files
    appear, else none does. Signals wait until all are moved. The folders go last: after a crash in between, a
    folder that is left shows that the outputs beside it may not be of one run. Writers get the path of a
    staged file in place of the user's; an `InputError` that names a staged file names the user's when it
    leaves the block.
    """

    def __init__(self) -> None:
        self._outputs: dict[Path, _Output] = {}  # by the path of the staged file
        self._folders = ExitStack()

    def path(self, target: str | Path) -> Path | str:
        """Where to write what shall appear as ``target``, or as the file that it links to.

        Standard output (``-``), devices and pipes are written directly. Raises `InputError` if the target
        can't be written or was staged before.
        """
        name, real = str(target), Path(os.path.realpath(target))
        if name == "-" or (is_stream(target) and not real.is_dir()):
            return target
        if real.is_dir():
            raise InputError("is a directory", where=name, remedy="give a file")
        if real.exists() and not os.access(real, os.W_OK):
            raise InputError("can't be written (it is read-only)", where=name)
        if any(output.target == real for output in self._outputs.values()):
            raise InputError("is named twice as an output", where=name)
        # The name decides on the format, so it is that of a link, not of the file behind.
        staged = enter_hidden_folder(self._folders, real, name) / Path(target).name
        self._outputs[staged] = _Output(real, name)
        return staged

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._folders:
            if error is None:
                flush_standard_output()
                with signals_held():
                    raise_if_terminated()
                    self._move()
                    self._folders.close()
        if isinstance(error, InputError) and Path(error.where) in self._outputs:
            where = self._outputs[Path(error.where)].name
            raise InputError(error.what, where=where, remedy=error.remedy) from None

    def _move(self) -> None:
        for staged, output in self._outputs.items():
            if staged.exists():  # a writer may have had nothing to say
                publish(staged, output.target, output.name)
