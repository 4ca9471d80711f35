"""A target: something that reads a file; and the judgment of one input."""

import hashlib
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType

from seqray.core.errors import SeqrayError

SECONDS = 10.0
"""Processor time that one input may take; inputs are some kilobytes."""
MEGABYTES = 512.0
"""Memory that one input may add to the largest size of the process so far."""
_UNIT = 1e6 if sys.platform == "darwin" else 1e3  # of ru_maxrss in a MB


@dataclass(frozen=True)
class Target:
    """Something that reads all of a file, or raises a `SeqrayError` of exit status 2."""

    name: str
    read: Callable[[Path], object]
    seeds: Callable[[], list[bytes]]
    """Makes valid inputs."""
    build: Callable[[bytes], bytes] = bytes
    """Turns an input into the bytes of the file, such as one with a checksum that holds."""
    suffix: str = ".txt"
    tokens: tuple[bytes, ...] = ()
    """Words of the format, for the mutator."""
    is_json: bool = False
    """Whether inputs are JSON up to the first line end, so that `mutation.mutate_json` applies."""


@cache
def write_beside(path: Path, content: bytes) -> Path:
    """Write a file that is read together with the input; once for a process."""
    path.write_bytes(content)
    return path


@dataclass(frozen=True)
class Finding:
    """What an input did that no input may do, in one line, and where it happened."""

    what: str
    trace: str

    @property
    def signature(self) -> str:
        """The same for inputs that fail alike."""
        return hashlib.sha256(self.what.encode("utf-8", "replace")).hexdigest()[:12]


class Hang(BaseException):
    """Raised into a reader that takes too long; no ``except Exception`` stops it."""


def examine(target: Target, data: bytes, path: Path) -> Finding | None:
    """Read one input, from a file at the path, and return a finding unless it was read or refused in time."""
    before, started = _peak_megabytes(), time.process_time()
    try:
        with _limited_time(SECONDS), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)  # of numpy, on standard error
            path.write_bytes(target.build(data))
            target.read(path)
    except SeqrayError as error:
        if error.exit_code != 2:
            return _finding(f"exit status {error.exit_code}", error)
    except Hang as error:
        return _finding(f"more than {SECONDS:g} s", error)
    except Exception as error:
        return _finding(type(error).__name__, error)
    if (grown := _peak_megabytes() - before) > MEGABYTES:
        return Finding(f"{target.name}: more than {MEGABYTES:g} MB", f"{grown:.0f} MB")
    if (seconds := time.process_time() - started) > SECONDS:
        return Finding(f"{target.name}: more than {SECONDS:g} s outside of Python", f"{seconds:.0f} s")
    return None


def _finding(what: str, error: BaseException) -> Finding:
    places = [f"{Path(f.filename).name}:{f.lineno}" for f in traceback.extract_tb(error.__traceback__)]
    kind = "hang" if isinstance(error, Hang) else places[-1]  # which ends anywhere
    own = next(
        (
            f"{Path(f.filename).parent.name}/{Path(f.filename).name}:{f.lineno}"
            for f in reversed(traceback.extract_tb(error.__traceback__))
            if "/seqray/" in f.filename
        ),
        "outside",
    )
    return Finding(f"{what} at {own} ({kind})", "".join(traceback.format_exception(error)))


def _peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / _UNIT


@contextmanager
def _limited_time(seconds: float) -> Iterator[None]:
    """Raise `Hang` after so much processor time, which a busy machine doesn't change."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
