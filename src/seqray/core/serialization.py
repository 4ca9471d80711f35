"""Settings dataclasses to plain data and back, with errors that name the key.

A key that no dataclass knows, a value of the wrong type and a number out of range are errors that
name the key, what is allowed and, for a misspelt key, the nearest one.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar

import yaml

from seqray.core.errors import ConfigError

T = TypeVar("T")


class _Loader(yaml.SafeLoader):
    """Plain data without aliases: with them a short text can mean any amount of data, or endless data."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.YAMLError(f"'*{event.anchor}' is an alias: write its value out")
        return super().compose_node(parent, index)


def parse_yaml(text: str) -> Any:
    """Plain data from YAML; raises `ConfigError` with the reason if the text is not valid, or has aliases."""
    try:
        return yaml.load(text, _Loader)
    except MemoryError:
        raise
    except Exception as error:  # of many types: of values that Python can't hold, of what is nested too deep
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise ConfigError(f"is not valid YAML ({reason})") from None


def _describe(annotation: Any) -> str:
    if typing.get_origin(annotation) is Literal:
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
        return _convert(value, annotation, key)
    if dataclasses.is_dataclass(annotation) and isinstance(annotation, type):
        return from_mapping(annotation, value, key)
    if origin is Literal and value in arguments:
        return value
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(_convert(v, arguments[0], f"{key}[{i}]") for i, v in enumerate(value))
    if origin is dict and isinstance(value, Mapping):
        return dict(value)
    if annotation is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if annotation is str and isinstance(value, int) and not isinstance(value, bool):
        return str(value)  # a label or a name that YAML reads as a number
    if annotation is float and isinstance(value, str):  # YAML 1.1 reads 1e-3 as text
        try:
            return float(value)
        except ValueError:
            pass
    if (
        isinstance(annotation, type)
        and isinstance(value, annotation)
        and not (annotation is int and isinstance(value, bool))
    ):
        return value
    raise ConfigError(f"'{key}' is {value!r}", remedy=f"give {_describe(annotation)}")


def from_mapping(cls: type[T], mapping: Any, key: str = "") -> T:
    """Build a settings dataclass from nested plain data.

    Raises `ConfigError` for an unknown key (the nearest known one is named), a wrong type or a value out of
    range.
    """
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"'{key or 'the file'}' is not a mapping of settings")
    hints = typing.get_type_hints(cls)
    prefix = f"{key}." if key else ""
    for name in mapping:
        if name not in hints:
            near = difflib.get_close_matches(str(name), hints, n=1)
            hint = f"did you mean '{prefix}{near[0]}'?" if near else f"known are {', '.join(sorted(hints))}"
            raise ConfigError(f"unknown setting '{prefix}{name}'", remedy=hint)
    return cls(**{name: _convert(value, hints[name], prefix + name) for name, value in mapping.items()})


def to_mapping(settings: Any) -> dict[str, Any]:
    """Turn a settings dataclass into plain data that `from_mapping` and JSON take."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, list | tuple) else value

    return plain(dataclasses.asdict(settings))
