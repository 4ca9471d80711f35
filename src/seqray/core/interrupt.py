"""Termination by SIGTERM that isn't lost.

SIGTERM raises an exception wherever the program is, and some libraries swallow all that is raised while they
are imported. So the request is kept, and the code that publishes outputs checks it once more.
"""

from __future__ import annotations

from typing import NoReturn


class Terminated(BaseException):
    """SIGTERM, as an exception: what is open is closed, and half-written files go."""


class _Termination:
    requested = False


def terminate(*_: object) -> NoReturn:
    """Raise `Terminated`; the handler of the signal."""
    _Termination.requested = True
    raise Terminated


def raise_if_terminated() -> None:
    """Raise `Terminated` if a termination was requested earlier."""
    if _Termination.requested:
        raise Terminated


def reset_termination() -> None:
    """Forget the request, as a run ends."""
    _Termination.requested = False
