"""Progress of long work: plain functions that receive counts, so the library draws nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class OnProgress(Protocol):
    """Called with the units done, their total (None if unknown) and the phase of the work."""

    def __call__(self, done: int, total: int | None, phase: str, /) -> None: ...


def track(items: Iterable[T], total: int, phase: str, on_progress: OnProgress | None) -> Iterator[T]:
    """Yield items, and report each one when the next is requested.

    Parameters
    ----------
    items
        Any iterable.
    total
        Number of items.
    phase
        What is being done, for the user.
    on_progress
        Receives the report; None for nobody.
    """
    for done, item in enumerate(items, start=1):
        yield item
        if on_progress is not None:
            on_progress(done, total, phase)
