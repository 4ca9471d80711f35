"""Settings dataclasses to plain data and back, with errors that name the key and the nearest known one."""

from __future__ import annotations

import dataclasses
import functools
import math
import reprlib
import types
import typing
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Literal, TypeVar

import numpy as np
import yaml
from yaml.parser import ParserError
from yaml.scanner import ScannerError

from seqray.core.errors import ConfigError, field_name
from seqray.core.text import did_you_mean

T = TypeVar("T")

# Evaluated once for each class: a model file, whose card has many parts, is opened by each command.
_type_hints = functools.cache(typing.get_type_hints)

MAX_INTEGER = 2**63  # of settings and cards: Python refuses to print those of thousands of digits

RETIRED = {"matrix_rank": 8, "row_choice": "diverse", "mixup": 0.0, "rows": None}
"""Settings that files of before hold, and the value that is still computed: with it they are passed over."""


class CardPart:
    """Base of the parts of a card: unknown keys are ignored, and fields at their default aren't written."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and to_mapping(self) == to_mapping(other)


class _Loader(yaml.SafeLoader):
    """Plain data without keys that are given twice, of which PyYAML takes the last in silence.

    There are no aliases: with them a short text can mean any amount of data, or endless data.
    """

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        names = [key.value for key, _ in node.value]
        if twice := [i for i, name in enumerate(names) if name in names[:i]]:
            where = node.value[twice[0]][0].start_mark
            raise yaml.MarkedYAMLError(
                problem=f"'{names[twice[0]]}' is given twice: remove one", problem_mark=where
            )
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: Any) -> int:
        value = super().construct_yaml_int(node)
        if abs(value) >= MAX_INTEGER:
            raise yaml.YAMLError("a whole number has more than 64 bits")
        return value

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.MarkedYAMLError(
                problem=f"'*{event.anchor}' is an alias: write its value out", problem_mark=event.start_mark
            )
        return super().compose_node(parent, index)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def parse_yaml(text: str) -> Any:
    """Plain data from YAML; raises `ConfigError` with the reason if the text is not valid, or has aliases."""
    try:
        return yaml.load(text, _Loader)
    except MemoryError:
        raise
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark and "\n" in text.strip() else ""
        by_syntax = isinstance(error, ScannerError | ParserError)
        remedy = "check brackets, quotes and indentation" if by_syntax else ""
        raise ConfigError(f"is not valid YAML ({line}{error.problem})", remedy=remedy) from None
    except Exception as error:  # of many types: of values that Python can't hold, of what is nested too deep
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(f"is not valid YAML ({reason})") from None


_WORDS = {int: "a whole number", float: "a finite number", str: "text", bool: "true or false"}


def _describe(annotation: Any) -> str:
    origin = typing.get_origin(annotation)
    if annotation in _WORDS:
        return _WORDS[annotation]
    if origin is np.ndarray:
        return "a table of numbers"
    if origin is tuple:
        return f"a list such as {'[3, 7]' if int in typing.get_args(annotation) else '[one, two]'}"
    if origin is dict:
        return "settings below it"
    if origin is Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(annotation)))
    if isinstance(annotation, types.UnionType):
        return " or ".join(_describe(a) for a in typing.get_args(annotation))
    return "nothing" if annotation is type(None) else getattr(annotation, "__name__", str(annotation))


def _convert(value: Any, annotation: Any, key: str) -> Any:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is Any:
        return value
    if isinstance(annotation, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        [annotation] = [a for a in arguments if a is not type(None)]
        is_part = isinstance(annotation, type) and issubclass(annotation, CardPart)
        return None if is_part and value == {} else _convert(value, annotation, key)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return from_mapping(annotation, value, key)
    if origin is Literal and value in arguments:
        return value
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_convert(v, arguments[0], f"{key}[{i}]") for i, v in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return {name: _convert(v, arguments[1], f"{key}.{name}") for name, v in value.items()}
    if origin is np.ndarray:
        with suppress(ValueError, OverflowError):  # rows of different lengths, numbers that are too large
            array, kind = np.asarray(value), np.dtype(typing.get_args(arguments[1])[0])
            fits = array.dtype.kind in ("iu" if kind.kind == "i" else "iuf") or not array.size
            if fits and array.ndim and np.isfinite(array).all():
                return array.astype(kind)
        what = f"{field_name(key)} is {reprlib.repr(value)}"
        raise ConfigError(what, remedy=f"give {_describe(annotation)}")
    if annotation is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a label or a name that YAML reads as a number
    if annotation is float and isinstance(value, int | float | str) and not isinstance(value, bool):
        with suppress(ValueError, OverflowError):  # YAML 1.1 reads 1e-3 as text
            if math.isfinite(number := float(value)):
                return number
    elif (
        isinstance(annotation, type)
        and isinstance(value, annotation)
        and not (annotation is int and isinstance(value, bool))
    ):
        return value
    quoted = " in quotes, as in 'no'" if annotation is str and isinstance(value, bool | float) else ""
    what = f"{field_name(key)} is {reprlib.repr(value)}"
    raise ConfigError(what, remedy=f"give {_describe(annotation)}{quoted}")


def from_mapping(cls: type[T], mapping: Any, key: str = "") -> T:
    """Build a dataclass of settings, or a card or one of its parts, from nested plain data."""
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"'{key or 'the file'}' is not a mapping of settings")
    hints = _type_hints(cls)
    mapping = {k: v for k, v in mapping.items() if k in hints or k not in RETIRED or v != RETIRED[k]}
    prefix = f"{key}." if key else ""
    if issubclass(cls, CardPart):  # a later version may add facts
        mapping = {name: value for name, value in mapping.items() if name in hints}
    for name in mapping:
        if name not in hints:
            remedy = did_you_mean(str(name), sorted(hints), prefix=prefix)
            raise ConfigError(f"unknown setting '{prefix}{name}'", remedy=remedy)
    values = {name: _convert(value, hints[name], prefix + name) for name, value in mapping.items()}
    fields: Any = dataclasses.fields(cls)  # pyright: ignore[reportArgumentType]
    for field in fields:
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in values:
            raise ConfigError(f"'{prefix}{field.name}' is missing")
    try:
        return cls(**values)
    except ValueError as error:  # of the parts of a card
        raise ConfigError(f"'{key}' {error}") from None


MAX_VALUES, MAX_DEPTH = 100_000, 50


def check_plain(value: Any, key: str) -> None:
    """Refuse what a model file can't hold: all but text, numbers, lists and mappings of these.

    It reads no more than `MAX_VALUES`, so that lists that hold themselves, or one list many times, end here.
    """
    waiting: list[tuple[str, Any, int]] = [(key, value, 0)]
    read = 0
    while waiting:
        name, one, depth = waiting.pop()
        read += 1
        if depth > MAX_DEPTH or read + len(waiting) > MAX_VALUES:
            limit = f"more than {MAX_VALUES} values, or lists in lists {MAX_DEPTH} deep"
            raise ConfigError(f"'{key}' holds {limit}", remedy="shorten it")
        if dataclasses.is_dataclass(one):
            one = {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}
        if isinstance(one, Mapping):
            for word, inner in one.items():
                if not _is_text(word):
                    raise ConfigError(f"'{name}' has the key {word!r}", remedy="put text in its place")
                waiting.append((f"{name}.{word}", inner, depth + 1))
        elif isinstance(one, list | tuple):
            waiting += ((f"{name}[{i}]", inner, depth + 1) for i, inner in enumerate(one))
        elif not _is_text(one) and not _is_number(one):
            kind = type(one).__name__
            shown = repr(one) if isinstance(one, str | float) else f"of the type {kind}"
            raise ConfigError(f"'{name}' is {shown}", remedy="give text or a finite number")


def _is_text(value: Any) -> bool:
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def _is_number(value: Any) -> bool:
    if isinstance(value, int):  # booleans, too
        return abs(value) < MAX_INTEGER
    return value is None or (isinstance(value, float) and math.isfinite(value))


def to_mapping(settings: Any) -> Any:
    """Turn a dataclass, and what it holds, into plain data that `from_mapping` and JSON take."""
    if isinstance(settings, Mapping):
        return {name: to_mapping(value) for name, value in settings.items()}
    if isinstance(settings, list | tuple):
        return [to_mapping(value) for value in settings]
    if isinstance(settings, np.ndarray):
        return settings.tolist()
    if not dataclasses.is_dataclass(settings):
        return settings
    values = {field.name: getattr(settings, field.name) for field in dataclasses.fields(settings)}
    if isinstance(settings, CardPart):
        defaults = {field.name: field.default for field in dataclasses.fields(settings)}
        values = {name: value for name, value in values.items() if value is not defaults[name]}
    return to_mapping(values)
