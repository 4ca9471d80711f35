"""Every error that seqray raises on purpose: what was wrong, where, and what to do about it."""

from __future__ import annotations

import math
import reprlib
from numbers import Integral, Real
from typing import Any


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
    """Sequences are of another kind than the one expected.

    Parameters
    ----------
    what, where, remedy
        As in `SeqrayError`.
    found
        ``protein`` or ``nucleotides``, where it is known what they are.
    """

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


def missing_package(package: str, extra: str) -> ConfigError:
    """Error for a missing package, with the extra that installs it."""
    return ConfigError(
        f"the package '{package}' is not installed", remedy=f"install it: pip install 'seqray[{extra}]'"
    )


def require(condition: bool, key: str, rule: str) -> None:
    """Raise `ConfigError` unless a condition holds.

    Parameters
    ----------
    condition, key, rule
        What must hold, name of the setting, and what the message says after the name.
    """
    if not condition:
        raise ConfigError(f"'{key}' {rule}")


def require_type(value: object, kind: type, remedy: str) -> None:
    """Raise `ConfigError` for an object of another type.

    Parameters
    ----------
    value, kind, remedy
        The object, its type, and what to give instead.
    """
    if not isinstance(value, kind):
        raise ConfigError(f"got {type(value).__name__}, not {kind.__name__}", remedy=remedy)


def require_number(value: Any, key: str, *, whole: bool = False, least: float = -math.inf) -> None:
    """Raise `ConfigError` unless a value is a number, of Python or NumPy, or None.

    Parameters
    ----------
    value, key
        The value, and name of the setting.
    whole, least
        Whether it must be a whole number, and the smallest one allowed.
    """
    kind: type[Any] = Integral if whole else Real
    known = isinstance(value, kind) and not isinstance(value, bool) and value >= least
    if value is not None and not known:
        remedy = "give a whole number" if whole else "give a number"
        limit = "" if least == -math.inf else f", {least:g} or more"
        raise ConfigError(f"'{key}' is {reprlib.repr(value)}", remedy=remedy + limit)
