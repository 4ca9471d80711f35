"""Progress of long work: a bar on a terminal, a line every half minute in a log, JSON events."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from seqray.cli.common.messages import JsonLines

T = TypeVar("T")

LOG_SECONDS = 30.0  # between two lines in a log
_LINE = "seqray: {desc}: {percentage:.0f} % ({n_fmt} of {total_fmt}{unit}), {rate_fmt}, {remaining} left"
_LINE_WITHOUT_TOTAL = "seqray: {desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed} so far"


class Progress:
    """Reports how far a run is: the share done, the rate and the time left.

    To be used in ``with``. Libraries report to `update` or `advance`, or iterate over `watch`.

    Parameters
    ----------
    what, unit
        The work, such as ``scan``, and what is counted, such as ``letters``.
    total
        Number of units; None where it can't be known, and then rate and count alone are shown.
    quiet
        Show nothing.
    interval
        Seconds between two lines, where standard error is no terminal.
    """

    def __init__(
        self,
        what: str,
        unit: str,
        total: int | None = None,
        *,
        quiet: bool = False,
        interval: float = LOG_SECONDS,
    ) -> None:
        self._settings: dict[str, Any] = {"desc": what, "unit": unit, "total": total}
        self._quiet, self._interval = quiet, interval
        self._meter: Any = None

    def __enter__(self) -> Self:
        if not self._quiet:
            self._meter = _meter(self._settings, self._interval)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._meter is not None:
            self._meter.close()

    def advance(self, count: int = 1) -> None:
        """Add units that are done."""
        if self._meter is not None:
            self._meter.update(count)

    def update(self, done: int, total: int | None = None) -> None:
        """Set the number of units done, and their total where it is only now known."""
        if self._meter is not None:
            if total is not None:
                self._meter.total = total
            self._meter.update(done - self._meter.n)

    def watch(self, items: Iterable[T]) -> Iterator[T]:
        """Pass items on, counting them."""
        for item in items:
            yield item
            self.advance()


def _meter(settings: dict[str, Any], interval: float) -> Any:
    if not sys.stderr.isatty():
        return _LogMeter(**settings, interval=interval)
    from tqdm import tqdm

    tqdm.monitor_interval = 0  # no thread beside ours
    settings = settings | {"unit": f" {settings['unit']}"}
    return tqdm(**settings, file=sys.stderr, leave=False, dynamic_ncols=True, unit_scale=True)


class _LogMeter:
    """Writes a line, or an event, once per interval."""

    def __init__(self, desc: str, unit: str, total: int | None, interval: float) -> None:
        self.n, self.total = 0, total
        self._desc, self._unit, self._interval = desc, unit, interval
        self._started = self._reported = time.monotonic()

    def update(self, count: int) -> None:
        self.n += count
        now = time.monotonic()
        if now - self._reported >= self._interval:
            self._reported = now
            self._report(now - self._started)

    def close(self) -> None:
        """The summary of the verb follows."""

    def _report(self, elapsed: float) -> None:
        from tqdm import tqdm

        style = _LINE if self.total else _LINE_WITHOUT_TOTAL
        line = tqdm.format_meter(
            self.n, self.total or 0, elapsed, prefix=self._desc, unit=f" {self._unit}", bar_format=style
        )
        if isinstance(sys.stderr, JsonLines):
            sys.stderr.event(line, progress=self._figures(elapsed))
        else:
            print(line, file=sys.stderr, flush=True)

    def _figures(self, elapsed: float) -> dict[str, Any]:
        rate = self.n / elapsed if elapsed else None
        left = (self.total - self.n) / rate if self.total and rate else None
        return {
            "what": self._desc,
            "unit": self._unit,
            "done": self.n,
            "total": self.total,
            "share": round(self.n / self.total, 4) if self.total else None,
            "per_second": round(rate, 3) if rate else None,
            "seconds_left": round(left, 1) if left is not None else None,
        }
