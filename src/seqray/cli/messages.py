"""Messages, progress and standard streams."""

from __future__ import annotations

import io
import json
import os
import resource
import shlex
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NoReturn, Self, TextIO, TypeVar, cast

from seqray.core.errors import RSS_UNIT, SERVED, InputError

# --- Messages of every verb on standard error: versions, resources, and lines as JSON under ``--log-json`

_LEVELS = (("seqray: error:", "error"), ("seqray: interrupted", "error"), ("seqray: terminated", "error"))
_WARNINGS = ("seqray: caution:", "seqray: skipped", "caution:")


class JsonLines(io.TextIOBase):
    """Standard error in which each line that is written becomes one JSON object, which names the verb."""

    def __init__(self, target: TextIO, verb: str) -> None:
        self._target, self._verb = target, verb
        self._pending = ""

    def isatty(self) -> bool:
        return False

    def fileno(self) -> int:
        return self._target.fileno()

    def writable(self) -> bool:
        return True

    def write(self, text: str, /) -> int:
        *lines, self._pending = (self._pending + text).split("\n")
        for line in lines:
            self._emit(line)
        return len(text)

    def flush(self) -> None:
        self._target.flush()

    def finish(self) -> None:
        """Write what has no line end."""
        if self._pending:
            self._emit(self._pending)
        self._pending = ""

    def _emit(self, line: str) -> None:
        if line.strip():
            self.event(line)

    def event(self, message: str, **more: Any) -> None:
        """Write one object: a message, and what is known beside it."""
        import json
        from datetime import UTC, datetime

        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"time": now, "level": level_of(message), "verb": self._verb, "message": message} | more
        self._target.write(json.dumps(entry, ensure_ascii=False) + "\n")


def level_of(line: str) -> str:
    """``error``, ``warning`` or ``info``."""
    for beginning, level in _LEVELS:
        if line.startswith(beginning):
            return level
    return "warning" if line.startswith(_WARNINGS) else "info"


@contextmanager
def json_lines(words: Sequence[str]) -> Iterator[None]:
    """Write standard error as JSON within the block, where ``--log-json`` is among the words."""
    if "--log-json" not in words:
        yield
        return
    before = sys.stderr
    lines = JsonLines(before, words[0])
    sys.stderr = lines
    try:
        yield
    finally:
        lines.finish()
        sys.stderr = before


class Resources:
    """Wall time, processor time and peak memory of a run, from when this was made.

    Processor time is that of this process, of its children that have ended, and of the processes of a fork
    server; peak memory that of the largest one of them, because the system knows no sum. What the process, or
    the shell that it replaced, had used or started before does not count.
    """

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._own, self._children = _usage()
        SERVED.reset()

    def report(self, records: int | None, verbose: bool) -> None:
        """Write the line that ends a run."""
        own, children = _usage()
        user, system = own.ru_utime - self._own.ru_utime, own.ru_stime - self._own.ru_stime
        others = sum(children[:2]) - sum(self._children[:2]) + SERVED.cpu_seconds
        # Of all children the largest is known, not when it ran: no larger one means none of this run.
        grown = children.ru_maxrss > self._children.ru_maxrss
        largest = max(children.ru_maxrss * RSS_UNIT if grown else 0, SERVED.peak_bytes) / 1e6
        parts = [f"wall {time.monotonic() - self._started:.1f} s", f"CPU {user + system + others:.1f} s"]
        parts.append(f"peak memory {max(_peak_memory(own), largest):.0f} MB")
        parts += [] if records is None else [f"records {records}"]
        if verbose:
            parts += [f"user {user:.1f} s", f"system {system:.1f} s"]
            parts.append(f"major page faults {own.ru_majflt - self._own.ru_majflt}")
            parts.append(f"largest process that it started {largest:.0f} MB")
        print(f"seqray: resources: {', '.join(parts)}", file=sys.stderr)


def _usage() -> tuple[resource.struct_rusage, resource.struct_rusage]:
    """What this process, and its children that have ended, have used."""
    return resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)


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

    print(
        f"seqray: {__version__} under Python {platform.python_version()}, {platform.platform()}",
        file=sys.stderr,
    )
    print(f"seqray: command: {shlex.join(command)}", file=sys.stderr)


def calibration_cautions(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each of `seqray.calibration.calibration_shortfalls`."""
    from seqray.calibration.fit import calibration_shortfalls

    for text in calibration_shortfalls(facts):
        yield f"caution: {text}"


# --- Progress of long work: a bar on a terminal, a line every half minute in a log, JSON events

T = TypeVar("T")

LOG_SECONDS = 30.0  # between two lines in a log
_LINE = "seqray: {desc}: {percentage:.0f} % ({n_fmt} of {total_fmt}{unit}), {rate_fmt}, {remaining} left"
_LINE_WITHOUT_TOTAL = "seqray: {desc}: {n_fmt}{unit}, {rate_fmt}, {elapsed} so far"


class Progress:
    """Reports how far a run is: the share done, the rate and the time left.

    To be used in ``with``. Libraries report to `update`, or iterate over `watch`.
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
        """Set the number of units done, and the total and the phase if they changed."""
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


# --- Standard streams that are closed, full, or lack some letters; and what a terminal would obey

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
