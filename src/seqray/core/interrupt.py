"""Ctrl-C, SIGTERM and SIGHUP that aren't lost.

All raise an exception wherever the program is, and some libraries swallow all that is raised while they
are imported. So the request is kept, and the code that publishes outputs checks it once more.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terminated(BaseException):
    """SIGTERM or SIGHUP, as an exception: what is open is closed, and half-written files go."""


_RAISED = (KeyboardInterrupt, Terminated)
"""Python prints those that are raised within ``__del__``, and goes on; the request is kept."""


class _Request:
    """The exception that was asked for last, if any."""

    error: type[BaseException] | None = None


def terminate(number: int, frame: object = None) -> NoReturn:
    """Raise `KeyboardInterrupt` or `Terminated`; the handler of SIGINT, SIGTERM and SIGHUP."""
    _Request.error = KeyboardInterrupt if number == signal.SIGINT else Terminated
    raise _Request.error


def raise_if_terminated() -> None:
    """Raise `KeyboardInterrupt` or `Terminated` if that was requested earlier."""
    if _Request.error is not None:
        raise _Request.error


def reset_termination() -> None:
    """Forget the request: the run ends, or has heard it."""
    _Request.error = None


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does, and lose none.

    Ctrl-C and SIGHUP stay ignored where they are, as under nohup.
    """
    try:
        before = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminate)}
    except ValueError:  # not the main thread, which alone hears signals
        yield
        return
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is default:
            before[number] = signal.signal(number, terminate)
    known = sys.unraisablehook
    sys.unraisablehook = lambda one: None if one.exc_type in _RAISED else known(one)
    try:
        yield
    finally:
        sys.unraisablehook = known
        for number, handler in before.items():
            signal.signal(number, handler)
        reset_termination()


@contextmanager
def signals_held() -> Iterator[None]:
    """Hold signals that would end the program until the block ends, then let them act.

    They are not blocked by the system's mask, which is that of one thread: libraries have threads of their
    own, which would take them. Outside the main thread, which alone hears signals, nothing is held.
    """
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    found = {number: signal.getsignal(number) for number in _ENDING}
    before = {number: known for number, known in found.items() if known is not None}  # else it is not ours
    for number in before:
        signal.signal(number, hear)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in dict.fromkeys(heard):
            signal.raise_signal(number)
