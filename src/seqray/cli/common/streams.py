"""Standard streams that are closed, full, or lack some letters; and what a terminal would obey."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, TextIO, cast

from seqray.core import InputError

_KEPT = dict.fromkeys(map(ord, "\n\r\t"))


@contextmanager
def guard_streams() -> Iterator[None]:
    """Let every stream be written within the block, or say why it can't be.

    Messages that nobody can read are dropped, and end no run. Standard output that is closed is an error when
    it is written to. Letters that its encoding lacks are written as escapes, and so are, in text for people,
    characters that a terminal obeys.
    """
    _occupy_closed()
    before = sys.stdout, sys.stderr
    output = sys.stdout or cast(TextIO, _ClosedOutput())
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")
    sys.stdout = cast(TextIO, _Printed(output))
    sys.stderr = cast(TextIO, _Messages(sys.stderr))
    try:
        yield
    finally:
        _flush_or_discard(output)
        sys.stdout, sys.stderr = before


def _occupy_closed() -> None:
    """Open the null device in the place of closed streams, whose numbers the next files would get."""
    with suppress(OSError):  # where no file can be opened, none gets their numbers
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
            pass
        os.close(number)


def _flush_or_discard(stream: TextIO) -> None:
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


def escape_controls(text: str) -> str:
    """Text with every character that can't be printed as an escape of JSON, such as ``\\u001b``.

    Names come from files, and a terminal obeys what they hold. Line ends and tabs stay, and what returns to
    the beginning of a line, as meters of progress do.
    """
    if text.translate(_KEPT).isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or ord(letter) in _KEPT else json.dumps(letter)[1:-1]
        for letter in text
    )


class _Printed(io.TextIOBase):
    """Standard output; what is printed has no controls, what is written as bytes stays as it is."""

    def __init__(self, target: TextIO | None) -> None:
        self._target = target

    @property
    def buffer(self) -> Any:
        return getattr(self._target, "buffer")  # noqa: B009 (some streams have none)

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
        self._do("write", escape_controls(text))
        return len(text)

    def flush(self) -> None:
        self._do("flush")

    def _do(self, action: str, *data: str) -> None:
        if self._target is None:
            return
        try:
            getattr(self._target, action)(*data)
        except BrokenPipeError:  # nobody reads on
            raise
        except OSError as error:
            raise InputError(f"can't be written ({error.strerror})", where="standard output") from None


class _Messages(_Printed):
    """Standard error; a message that can't be written is dropped, and so are all after it."""

    def _do(self, action: str, *data: str) -> None:
        try:
            super()._do(action, *data)
        except (OSError, InputError):
            _discard(cast(TextIO, self._target))
