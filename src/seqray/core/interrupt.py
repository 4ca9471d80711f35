"""A wish to stop that isn't lost.

SIGTERM raises an exception wherever the program is, and some libraries swallow all that is raised while they
are imported. So the wish is kept, and what makes outputs appear looks once more.
"""

from __future__ import annotations

from typing import NoReturn


class Terminated(BaseException):
    """SIGTERM, as an exception: what is open is closed, and half-written files go."""


class _Wish:
    wanted = False


def stop(*_: object) -> NoReturn:
    """Stop here; the handler of the signal."""
    _Wish.wanted = True
    raise Terminated


def stop_if_wanted() -> None:
    """Stop here if somebody wanted to stop earlier."""
    if _Wish.wanted:
        raise Terminated


def go_on() -> None:
    """Forget the wish, as a run ends."""
    _Wish.wanted = False
