"""Errors, signals, and how work tells of its progress."""

from __future__ import annotations

import math
import re
import reprlib
import shlex
import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import FrameType, MappingProxyType
from typing import Any, Protocol, TypeVar

# --- Every error that seqray raises on purpose: what was wrong, where, and what to do about it


class SeqrayError(Exception):
    """Base of all errors raised on purpose; its text is one line fit for a terminal.

    Parameters
    ----------
    what
        What was wrong, in words that a user understands.
    where
        File, record, line or position, where one is known.
    remedy
        What the user can do about it.

    Attributes
    ----------
    exit_code
        Exit status of the command line: 2 for the user's input, 1 for a fault of ours.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        text = f"{where}: {what}" if where else what
        super().__init__(f"{text}; {remedy}" if remedy else text)


class InputError(SeqrayError):
    """The user's data can't be used as it is."""

    exit_code = 2


class OtherLettersError(InputError):
    """Sequences are of another kind than expected: ``found`` is ``protein`` or ``nucleotides``, if known."""

    def __init__(self, what: str, *, where: str = "", remedy: str = "", found: str = "") -> None:
        super().__init__(what, where=where, remedy=remedy)
        self.found = found


class NoRecordsError(InputError):
    """A file of the right format contains no records; ``--allow-empty`` accepts it."""


class ConfigError(SeqrayError):
    """A setting is unknown, of the wrong type or out of range."""

    exit_code = 2


class ModelFileError(SeqrayError):
    """A model file is missing, damaged, unsafe or made by a newer seqray."""

    exit_code = 2


@contextmanager
def reading_card(part: str) -> Iterator[None]:
    """Turn the errors that a damaged part of a card causes into a ModelFileError."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(f"model description: '{part}' can't be read ({reason})") from None


# --- Names of settings in messages: as Python writes them, or as the command line does

_names: Mapping[str, str] | None = None
"""Options whose names differ from those of their settings, within a run of the command line; else None."""
_fields: ContextVar[Mapping[str, str | None]] = ContextVar("fields", default=MappingProxyType({}))
"""How the settings that are being filled are called; None for those that the user can't set."""


@contextmanager
def settings_as_options(names: Mapping[str, str]) -> Iterator[None]:
    """Write settings as options of the command line within the block; ``names`` are those that differ."""
    global _names
    before, _names = _names, names
    try:
        yield
    finally:
        _names = before


@contextmanager
def fields_named(names: Mapping[str, str | None]) -> Iterator[None]:
    """Let errors about settings call them by other names within the block; None: the user has none such."""
    before = _fields.set(names)
    try:
        yield
    finally:
        _fields.reset(before)


def setting(name: str, value: Any = ..., form: str = "") -> str:
    """Write a setting as its user would, ``genes='predict'`` or ``--genes predict``; ``...`` is any value."""
    text = format(value, form) if form else "..." if value is ... else repr(value)
    if _names is None:
        return f"{name}={text}"
    option = _names.get(name, f"--{name.replace('_', '-')}")
    if value is ... or value is True:
        return option
    if isinstance(value, Mapping):
        return f"{option} {','.join(f'{key}={one}' for key, one in value.items())}"
    return f"{option} {'none' if value is None else shlex.quote(value) if isinstance(value, str) else text}"


def verb(name: str, **settings: Any) -> str:
    """Write a verb as its user would: ``seqray.split(identity=0.8)`` or ``'seqray split --identity 0.8'``."""
    words = [setting(key, value) for key, value in settings.items()]
    if _names is None:
        return f"seqray.{name}" + (f"({', '.join(words)})" if words else "")
    return f"'{' '.join(('seqray', name, *words))}'"


def field_name(name: str) -> str:
    """The name of a setting alone, as its user knows it."""
    return _fields.get().get(name) or (_names or {}).get(name) or f"'{name}'"


def advise(name: str, advice: str, otherwise: str) -> str:
    """Advice about a setting, or other advice where the user does not have it."""
    return otherwise if _fields.get().get(name, name) is None else advice


def missing_package(package: str, extra: str) -> ConfigError:
    """Error for a missing package, with the extra that installs it."""
    remedy = f"install it: pip install {package}, or seqray with its extra '{extra}'"
    return ConfigError(f"the package '{package}' is not installed", remedy=remedy)


def require(condition: bool, key: str, rule: str) -> None:
    """Raise `ConfigError` unless a condition holds."""
    if not condition:
        raise ConfigError(f"{field_name(key)} {rule}")


def require_all(section: str, *rules: tuple[bool, str, str]) -> None:
    """Raise `ConfigError` for the first rule (condition, name, rule) of some settings that does not hold."""
    for condition, name, rule in rules:
        require(condition, f"{section}.{name}", rule)


def require_ranges(settings: object, section: str, **ranges: str) -> None:
    """Raise `ConfigError` for the first number of some settings out of its range.

    A range is ``[0, 1)`` (a bracket includes the bound), ``1 or more`` or ``between 1 and 64``.
    """
    for name, text in ranges.items():
        value, bounds = getattr(settings, name), [float(number) for number in re.findall(r"[\d.]+", text)]
        low, high = (*bounds, math.inf)[:2]
        inside = (low < value if text[0] == "(" else low <= value) and (
            value < high if text[-1] == ")" else value <= high
        )
        rule = f"must {'be' if text.endswith('more') else 'lie'} {'in ' if text[0] in '[(' else ''}{text}"
        require(inside, f"{section}.{name}", rule)


def require_type(value: T, kind: type, remedy: str) -> T:
    """Return an object; raises `ConfigError` for one of another type."""
    if not isinstance(value, kind):
        raise ConfigError(f"got {type(value).__name__}, not {kind.__name__}", remedy=remedy)
    return value


def require_number(value: Any, key: str, *, whole: bool = False, least: float = -math.inf) -> None:
    """Raise `ConfigError` unless a value is a number, of Python or NumPy, or None."""
    kind: type[Any] = Integral if whole else Real
    known = isinstance(value, kind) and not isinstance(value, bool) and value >= least
    if value is not None and not known:
        remedy = "give a whole number" if whole else "give a number"
        limit = "" if least == -math.inf else f", {least:g} or more"
        raise ConfigError(f"{field_name(key)} is {reprlib.repr(value)}", remedy=remedy + limit)


def python_number(value: Any) -> Any:
    """A number of NumPy as that of Python, which doesn't overflow; any other value as it is."""
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value


def use_python_numbers(options: Any) -> None:
    """Make the numbers of NumPy among frozen options those of Python."""
    for field in fields(options):
        object.__setattr__(options, field.name, python_number(getattr(options, field.name)))


def lacks_memory(error: Exception) -> bool:
    """Whether memory ran out: in Python and numpy, in torch, or while a library was loaded."""
    words = ("allocate memory", "out of memory", "failed to map segment", "can't start new thread")
    words += ("could not create a primitive",)  # as oneDNN says it
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


# --- Ctrl-C, SIGTERM and SIGHUP that aren't lost

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terminated(BaseException):
    """SIGTERM or SIGHUP, as an exception: what is open is closed, and half-written files go."""


_RAISED = (KeyboardInterrupt, Terminated)
"""Python prints those that are raised within ``__del__``, and goes on; the request is kept."""


_RETRY = 0.02  # seconds


class _Request:
    """The exception that was asked for last, if any; and how many imports were under way at the start."""

    error: type[BaseException] | None = None
    imports: int = 0


def terminate(number: int, frame: FrameType | None = None) -> None:
    """Raise `KeyboardInterrupt` or `Terminated`; the handler of SIGINT, SIGTERM and SIGHUP.

    While a module is loaded it waits: an exception there may leave the lock of imports taken, for which other
    threads then wait for ever, or end in C++ code that aborts.
    """
    _Request.error = KeyboardInterrupt if number == signal.SIGINT else Terminated
    if _imports_under_way(frame) > _Request.imports:
        later = threading.Timer(_RETRY, _raise_again, (number,))
        later.daemon = True
        later.start()
    else:
        raise _Request.error


def _raise_again(number: int) -> None:
    if signal.getsignal(number) is terminate:  # else the run is over, and has heard of it
        signal.raise_signal(number)


def _imports_under_way(frame: FrameType | None) -> int:
    """Calls of the import system on the stack of the main thread."""
    count = 0
    while frame is not None:
        count += frame.f_code.co_filename.startswith("<frozen importlib")
        frame = frame.f_back
    return count


def raise_if_terminated() -> None:
    """Raise `KeyboardInterrupt` or `Terminated` if that was requested earlier."""
    if _Request.error is not None:
        raise _Request.error


def reset_termination() -> None:
    """Forget the request: the run ends, or has heard it."""
    _Request.error = None


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the stack as Ctrl-C does; what is ignored, as under nohup, stays so."""
    try:
        before = {signal.SIGTERM: signal.signal(signal.SIGTERM, terminate)}
    except ValueError:  # not the main thread, which alone hears signals
        yield
        return
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is default:
            before[number] = signal.signal(number, terminate)
    _Request.imports = _imports_under_way(sys._getframe())
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


# --- Progress of long work: plain functions that receive counts, so the library draws nothing

T = TypeVar("T")


class OnProgress(Protocol):
    """Called with the units done, their total (None if unknown) and the phase of the work."""

    def __call__(self, done: int, total: int | None, phase: str, /) -> None: ...


def track(items: Iterable[T], total: int, phase: str, on_progress: OnProgress | None) -> Iterator[T]:
    """Yield items, and report each one when the next is requested."""
    for done, item in enumerate(items, start=1):
        yield item
        if on_progress is not None:
            on_progress(done, total, phase)


# --- Processor time and memory of processes that the system does not count as children of this one

RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes of a unit of ``ru_maxrss``, see getrusage(2)


@dataclass(slots=True)
class Usage:
    """Seconds of the processor of all such processes, and bytes of memory of the largest."""

    cpu_seconds: float = 0.0
    peak_bytes: int = 0

    def add(self, other: Usage) -> None:
        """Add that of a process."""
        self.cpu_seconds += other.cpu_seconds
        self.peak_bytes = max(self.peak_bytes, other.peak_bytes)

    def reset(self) -> None:
        """Begin anew."""
        self.cpu_seconds, self.peak_bytes = 0.0, 0


SERVED = Usage()  # that of all processes which a fork server started for this one
