"""Pipes give their bytes once: a second reading is refused, unless the bytes are kept.

A file that is opened twice gives the same bytes twice. A pipe gives nothing the second time, or blocks, and a
result from nothing looks like any other. So what may be read twice is kept first, and all else is an error.
"""

from __future__ import annotations

import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from seqray.core import InputError

_Pipe = tuple[int, int] | str


class _Run:
    """Pipes that a run has read, with the copy of those that are kept; None outside a run."""

    read: dict[_Pipe, BinaryIO | None] | None = None


@contextmanager
def single_reading_of_pipes() -> Iterator[None]:
    """Refuse to read a pipe twice within the block, unless `keep_pipes` was told of it."""
    before, _Run.read = _Run.read, {}
    try:
        yield
    finally:
        for copy in filter(None, _Run.read.values()):
            copy.close()
        _Run.read = before


def keep_pipes(*paths: str | None) -> None:
    """Copy pipes to temporary files without a name, so that each can be read again under its own name.

    Files and None are left alone, and so is all outside `single_reading_of_pipes`. Raises `InputError` if a
    pipe can't be read or copied.
    """
    for path in filter(None, paths):
        if path != "-" and not os.path.exists(path):
            continue  # whoever reads it says so
        pipe = _identify(path)
        if pipe is None or _Run.read is None or _Run.read.get(pipe) is not None:
            continue
        where = display_name(path)
        try:
            with open_stream(path) as source, ExitStack() as stack:
                copy = stack.enter_context(tempfile.TemporaryFile())
                shutil.copyfileobj(source, copy)
                copy.flush()
                stack.pop_all()
        except OSError as error:
            raise InputError(
                f"can't be copied, to be read twice ({error.strerror})",
                where=where,
                remedy="save it to a file",
            ) from None
        _Run.read[pipe] = cast(BinaryIO, copy)


def display_name(path: str | Path) -> str:
    """Name of a file for messages."""
    return "standard input" if str(path) == "-" else str(path)


def short_name(path: str | Path) -> str:
    """The last part of a path; ``pipe`` for one that the shell made, whose number differs between runs."""
    path = Path(path)
    return "pipe" if path.parts[:3] == ("/", "dev", "fd") else path.name


@contextmanager
def open_stream(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file or pipe for reading, as it is; ``-`` is standard input, which stays open.

    Raises `InputError` for a pipe that was read before and isn't kept, and for standard input that is closed.
    """
    pipe = _identify(path)
    if pipe is not None and _Run.read is not None:
        if (copy := _Run.read.get(pipe)) is not None:
            yield cast(BinaryIO, _Replay(copy))
            return
        if pipe in _Run.read:
            raise InputError(
                "was read before, and a pipe can be read only once",
                where=display_name(path),
                remedy="save it to a file, and name the file",
            )
        _Run.read[pipe] = None
    if str(path) == "-":
        yield _standard_input()
        return
    with open(path, "rb") as handle:
        yield handle


def _standard_input() -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise InputError("is closed", where=display_name("-"), remedy="name a file")
    return sys.stdin.buffer


def _identify(path: str | Path) -> _Pipe | None:
    """What a pipe is known by under all its names; None for anything that can be opened again."""
    if str(path) == "-":
        try:
            about = os.fstat(sys.stdin.fileno())
        except (AttributeError, OSError, ValueError):  # closed, or replaced by a caller of `main`
            return "-"
    else:
        about = os.stat(path)
    if stat.S_ISFIFO(about.st_mode) or stat.S_ISSOCK(about.st_mode):
        return about.st_dev, about.st_ino
    return "-" if str(path) == "-" else None


class _Replay(io.RawIOBase):
    """Bytes of a copy from its beginning, however far others have read it."""

    def __init__(self, copy: BinaryIO) -> None:
        self._copy, self._at = copy, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = os.pread(self._copy.fileno(), len(buffer), self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
