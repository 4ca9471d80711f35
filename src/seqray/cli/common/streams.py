"""Standard streams that are closed, full, or of an encoding without some letters."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn, TextIO, cast

from seqray.core import InputError


@contextmanager
def sound_streams() -> Iterator[None]:
    """Let every stream be written within the block, or say why it can't be.

    Messages that nobody can read are dropped, and end no run. Standard output that is closed is an error when
    it is written to. Letters that its encoding lacks are written as escapes.
    """
    _occupy_closed()
    before = sys.stdout, sys.stderr
    sys.stdout = sys.stdout or cast(TextIO, _ClosedOutput())
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.stderr = cast(TextIO, _Messages(sys.stderr))
    try:
        yield
    finally:
        _settle(sys.stdout)
        sys.stdout, sys.stderr = before


def _occupy_closed() -> None:
    """Open the null device in the place of closed streams, whose numbers the next files would get."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(number)


def _settle(stream: TextIO) -> None:
    """Write what is buffered, or discard it: the interpreter would fail once more as it ends."""
    try:
        stream.flush()
    except OSError:
        _discard(stream)


def _discard(stream: TextIO) -> None:
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class _ClosedOutput(io.TextIOBase):
    """In the place of standard output that is closed."""

    @property
    def buffer(self) -> _ClosedOutput:
        return self

    def write(self, data: object, /) -> NoReturn:
        raise InputError("is closed", where="standard output", remedy="redirect it, or name a file")


class _Messages(io.TextIOBase):
    """Standard error; a message that can't be written is dropped, and so are all after it."""

    def __init__(self, target: TextIO | None) -> None:
        self._target = target

    @property
    def encoding(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._target.encoding if self._target else "utf-8"

    def isatty(self) -> bool:
        return self._target is not None and self._target.isatty()

    def fileno(self) -> int:
        return self._target.fileno() if self._target else super().fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        self._try("write", text)
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    def _try(self, action: str, *data: str) -> None:
        if self._target is None:
            return
        try:
            getattr(self._target, action)(*data)
        except OSError:
            _discard(self._target)
