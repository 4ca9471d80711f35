"""Messages, progress and standard streams."""

from __future__ import annotations

import io
import json
import os
import resource
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, Self, TextIO, TypeVar, cast

from seqray.core.errors import RSS_UNIT, SERVED, InputError

# --- Messages of every verb on standard error: versions, resources, and lines as JSON under ``--log-json``

_ERRORS = ("seqray: error:", "seqray: interrupted", "seqray: terminated")
_WARNINGS = ("seqray: caution:", "seqray: skipped", "caution:")


class JsonLines:
    """Standard error in which each line that is written becomes one JSON object, which names the verb."""

    def __init__(self, target: TextIO, verb: str) -> None:
        self._target, self._verb = target, verb
        self._pending = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def isatty(self) -> bool:
        return False

    def write(self, text: str, /) -> int:
        *lines, self._pending = (self._pending + text).split("\n")
        for line in filter(str.strip, lines):
            self.event(line)
        return len(text)

    def event(self, message: str, **more: Any) -> None:
        """Write one object: a message with its level, and what is known beside it."""
        from datetime import UTC, datetime

        level = "warning" if message.startswith(_WARNINGS) else "info"
        level = "error" if message.startswith(_ERRORS) else level
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"time": now, "level": level, "verb": self._verb, "message": message} | more
        self._target.write(json.dumps(entry, ensure_ascii=False) + "\n")


def write_line(line: str, **more: Any) -> None:
    """Write a line to standard error; under ``--log-json`` with what is known beside it."""
    if isinstance(sys.stderr, JsonLines):
        sys.stderr.event(line, **more)
    else:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def json_lines(words: Sequence[str]) -> Iterator[None]:
    """Write standard error as JSON within the block, where ``--log-json`` is among the words."""
    if "--log-json" not in words:
        yield
        return
    before = sys.stderr
    sys.stderr = cast(TextIO, JsonLines(before, words[0]))
    try:
        yield
    finally:
        print(file=sys.stderr)  # ends what has no line end
        sys.stderr = before


_PROCESSES = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)  # this one, and its children that have ended


class Resources:
    """Wall time, processor time and peak memory (of the largest process) of a run, which begins here."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._own, self._children = map(resource.getrusage, _PROCESSES)
        SERVED.reset()

    def report(self, records: int | None, verbose: bool) -> None:
        """Write the line that ends a run."""
        own, children = map(resource.getrusage, _PROCESSES)
        user, system = own.ru_utime - self._own.ru_utime, own.ru_stime - self._own.ru_stime
        others = sum(children[:2]) - sum(self._children[:2]) + SERVED.cpu_seconds
        # Of all children the largest is known, not when it ran: no larger one means none of this run.
        grown = children.ru_maxrss > self._children.ru_maxrss
        largest = max(children.ru_maxrss * RSS_UNIT if grown else 0, SERVED.peak_bytes) / 1e6
        wall, cpu = round(time.monotonic() - self._started, 3), round(user + system + others, 3)
        peak = round(max(_peak_memory(own), largest))
        parts = [f"wall {wall:.1f} s", f"CPU {cpu:.1f} s", f"peak memory {peak} MB"]
        parts += [] if records is None else [f"records {records}"]
        if verbose:
            parts += [f"user {user:.1f} s", f"system {system:.1f} s"]
            parts.append(f"major page faults {own.ru_majflt - self._own.ru_majflt}")
            parts.append(f"largest process that it started {largest:.0f} MB")
        figures = {"wall_s": wall, "cpu_s": cpu, "peak_mb": peak, "records": records}
        write_line(f"seqray: resources: {', '.join(parts)}", resources=figures)


def _peak_memory(own: resource.struct_rusage) -> float:
    """Largest memory of this process in MB; ``ru_maxrss`` of Linux is no less than that of its parent."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as handle:
            peaks = [line.split()[1] for line in handle if line.startswith("VmHWM:")]
    except OSError:
        peaks = []
    return int(peaks[0]) * 1024 / 1e6 if peaks else own.ru_maxrss * RSS_UNIT / 1e6


def report_versions(command: Sequence[str]) -> None:
    """Report what runs where, for ``--verbose``."""
    import platform

    from seqray.core.version import __version__

    write_line(f"seqray: {__version__} under Python {platform.python_version()}, {platform.platform()}")
    write_line(f"seqray: command: {shlex.join(command)}")


# --- Progress of long work: a bar on a terminal, a line every half minute in a log, JSON events

T = TypeVar("T")

LOG_SECONDS = 30.0  # between two lines in a log
_LINE = "seqray: {desc}: {percentage:.0f} % ({n_fmt} of {total_fmt}{unit}), {rate_fmt}, {remaining} left"
_LINE_WITHOUT_TOTAL = "seqray: {desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed} so far"


class Progress:
    """Reports how far a run is: the share done, the rate and the time left."""

    def __init__(
        self,
        phase: str,
        unit: str,
        total: int | None = None,
        *,
        quiet: bool = False,
        interval: float = LOG_SECONDS,
    ) -> None:
        self._unit, self._quiet, self._interval, self._done = unit, quiet, interval, 0
        self._bar: Any = None
        self._begin(phase, total)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *reason: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def _begin(self, phase: str, total: int | None) -> None:
        self.__exit__()
        self._phase, self._total = phase, total
        self._started = self._reported = time.monotonic()
        if self._quiet or not sys.stderr.isatty():
            return
        from tqdm import tqdm

        tqdm.monitor_interval = 0  # no thread beside ours
        about = {"desc": phase, "unit": f" {self._unit}", "total": total, "file": sys.stderr}
        self._bar = tqdm(**about, leave=False, dynamic_ncols=True, unit_scale=True)

    def update(self, done: int, total: int | None = None, phase: str | None = None) -> None:
        """Set the number of units done, and the total and the phase if they changed."""
        if phase not in (None, self._phase):
            self._begin(str(phase), total)
        self._total = total or self._total
        total = max(self._total, done) if self._total else None  # some totals are estimates
        now = time.monotonic()
        if self._bar is not None:
            self._bar.total = total
            self._bar.update(done - self._bar.n)
        elif not self._quiet and now - self._reported >= self._interval:
            self._reported = now
            self._log(done, total, now - self._started)

    def advance(self) -> None:
        """Count one more unit."""
        self._done += 1
        self.update(self._done)

    def watch(self, items: Iterable[T]) -> Iterator[T]:
        """Pass items on, counting them."""
        for item in items:
            yield item
            self.advance()

    def _log(self, done: int, total: int | None, elapsed: float) -> None:
        """Write a line, or an event."""
        from tqdm import tqdm

        style, rate = _LINE if total else _LINE_WITHOUT_TOTAL, done / elapsed if elapsed else None
        if 0 < done < elapsed:  # where tqdm would write 50.05s/ records
            style = style.replace("{rate_fmt}", f"{60 * done / elapsed:.3g} {self._unit}/min")
        unit = f" {self._unit}"
        line = tqdm.format_meter(done, total or 0, elapsed, prefix=self._phase, unit=unit, bar_format=style)
        figures = {
            "phase": self._phase,
            "unit": self._unit,
            "done": done,
            "total": total,
            "share": round(done / total, 4) if total else None,
            "per_second": round(rate, 3) if rate else None,
            "seconds_left": round((total - done) / rate, 1) if total and rate else None,
        }
        write_line(line, progress=figures)


# --- Standard streams that are closed, full, or lack some letters; and what a terminal would obey

_KEPT = dict.fromkeys(map(ord, "\n\r\t"))


@contextmanager
def guard_streams() -> Iterator[None]:
    """Let every stream be written within the block, or say why it can't be; drop messages nobody can read."""
    with suppress(OSError):  # else the next files get the numbers of closed streams; where none can be opened
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # none gets them
            pass
        os.close(number)
    before = sys.stdout, sys.stderr
    output = sys.stdout or cast(TextIO, _Closed())
    if isinstance(output, io.TextIOWrapper):
        output.reconfigure(errors="backslashreplace")
    sys.stdout = cast(TextIO, _Guarded(output))
    sys.stderr = cast(TextIO, _Guarded(sys.stderr or cast(TextIO, _Closed()), drops=True))
    try:
        yield
    finally:
        sys.stderr.flush()
        try:
            output.flush()
        except OSError:  # the interpreter would fail once more as it ends
            _discard(output)
        sys.stdout, sys.stderr = before


def _discard(stream: TextIO) -> None:
    """Let all that is still written to a stream go nowhere."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stream.fileno())
        os.close(null)


class _Closed(io.TextIOBase):
    """In the place of a stream that is closed."""

    @property
    def buffer(self) -> _Closed:
        return self

    def write(self, data: object, /) -> NoReturn:
        raise InputError("is closed", where="standard output", remedy="redirect it, or name a file")


def escape_controls(text: str) -> str:
    """Text with escapes for what a terminal obeys, as names from files may hold; line ends and tabs stay."""
    if text.translate(_KEPT).isprintable():
        return text
    return "".join(
        letter if letter.isprintable() or ord(letter) in _KEPT else json.dumps(letter)[1:-1]
        for letter in text
    )


class _Guarded:
    """A standard stream without controls; what can't be written is an error, or dropped with ``drops``."""

    def __init__(self, target: TextIO, *, drops: bool = False) -> None:
        self._target, self._drops = target, drops

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def write(self, text: str, /) -> int:
        self._do("write", escape_controls(text))
        return len(text)

    def flush(self) -> None:
        self._do("flush")

    def _do(self, action: str, *data: str) -> None:
        try:
            getattr(self._target, action)(*data)
        except (OSError, InputError) as error:
            if self._drops:
                _discard(self._target)
            elif isinstance(error, BrokenPipeError | InputError):  # nobody reads on, or it is closed
                raise
            else:
                what = f"can't be written ({error.strerror})"
                raise InputError(what, where="standard output") from None
