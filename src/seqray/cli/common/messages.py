"""Messages of every verb on standard error: versions, resources, and lines as JSON under ``--log-json``.

Verbs print lines for people. ``--log-json`` turns each line into a JSON object, so that no verb needs to know
about it.
"""

from __future__ import annotations

import io
import resource
import shlex
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

from seqray.core import RSS_UNIT, SERVED

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

    from seqray.core import __version__

    print(
        f"seqray: {__version__} under Python {platform.python_version()}, {platform.platform()}",
        file=sys.stderr,
    )
    print(f"seqray: command: {shlex.join(command)}", file=sys.stderr)


def calibration_cautions(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each of `seqray.calibration.calibration_shortfalls`."""
    from seqray.calibration import calibration_shortfalls

    for text in calibration_shortfalls(facts):
        yield f"caution: {text}"
