"""Progress of long work: a bar on a terminal, a line every half minute in a log, JSON events."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from seqray.cli.common.messages import JsonLines

T = TypeVar("T")

LOG_SECONDS = 30.0  # between two lines in a log
_LINE = "seqray: {desc}: {percentage:.0f} % ({n_fmt} of {total_fmt}{unit}), {rate_fmt}, {remaining} left"
_LINE_WITHOUT_TOTAL = "seqray: {desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed} so far"


class Progress:
    """Reports how far a run is: the share done, the rate and the time left.

    To be used in ``with``. Libraries report to `update`, or iterate over `watch`.

    Parameters
    ----------
    phase, unit
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
        phase: str,
        unit: str,
        total: int | None = None,
        *,
        quiet: bool = False,
        interval: float = LOG_SECONDS,
    ) -> None:
        self._unit, self._total, self._phase = unit, total, phase
        self._quiet, self._interval = quiet, interval
        self._done = 0
        self._meter: Any = None

    def __enter__(self) -> Self:
        self._begin(self._phase, self._total)
        return self

    def __exit__(self, *reason: object) -> None:
        if self._meter is not None:
            self._meter.close()

    def _begin(self, phase: str, total: int | None) -> None:
        self.__exit__()
        self._phase, self._total = phase, total
        if self._quiet:
            return
        if not sys.stderr.isatty():
            self._meter = _LogMeter(phase, self._unit, total, self._interval)
            return
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no thread beside ours
        self._meter = tqdm(
            desc=phase,
            unit=f" {self._unit}",
            total=total,
            file=sys.stderr,
            leave=False,
            dynamic_ncols=True,
            unit_scale=True,
        )

    def update(self, done: int, total: int | None = None, phase: str | None = None) -> None:
        """Set the number of units done, and the total and the phase if they changed.

        Parameters
        ----------
        done
            Units done so far.
        total
            Units in all; None leaves it as it is.
        phase
            Name of the current step; None leaves it as it is.
        """
        if phase not in (None, self._phase):
            self._begin(str(phase), total)
        self._total = total or self._total
        if self._meter is not None:
            self._meter.total = max(self._total, done) if self._total else None  # some totals are estimates
            self._meter.update(done - self._meter.n)

    def advance(self) -> None:
        """Count one more unit."""
        self._done += 1
        self.update(self._done)

    def watch(self, items: Iterable[T]) -> Iterator[T]:
        """Pass items on, counting them."""
        for item in items:
            yield item
            self.advance()


class _LogMeter:
    """Writes a line, or an event, once per interval."""

    def __init__(self, phase: str, unit: str, total: int | None, interval: float) -> None:
        self.n, self.total = 0, total
        self._phase, self._unit, self._interval = phase, unit, interval
        self._started = self._reported = time.monotonic()

    def update(self, count: int) -> None:
        self.n += count
        now = time.monotonic()
        if now - self._reported >= self._interval:
            self._reported = now
            self._report(now - self._started)

    def close(self) -> None:
        """Write nothing: the verb writes a summary."""

    def _report(self, elapsed: float) -> None:
        from tqdm import tqdm

        style = _LINE if self.total else _LINE_WITHOUT_TOTAL
        if 0 < self.n < elapsed:  # where tqdm would write 50.05s/ records
            style = style.replace("{rate_fmt}", f"{60 * self.n / elapsed:.3g} {self._unit}/min")
        line = tqdm.format_meter(
            self.n, self.total or 0, elapsed, prefix=self._phase, unit=f" {self._unit}", bar_format=style
        )
        if isinstance(sys.stderr, JsonLines):
            sys.stderr.event(line, progress=self._figures(elapsed))
        else:
            print(line, file=sys.stderr, flush=True)

    def _figures(self, elapsed: float) -> dict[str, Any]:
        rate = self.n / elapsed if elapsed else None
        return {
            "phase": self._phase,
            "unit": self._unit,
            "done": self.n,
            "total": self.total,
            "share": round(self.n / self.total, 4) if self.total else None,
            "per_second": round(rate, 3) if rate else None,
            "seconds_left": round((self.total - self.n) / rate, 1) if self.total and rate else None,
        }
