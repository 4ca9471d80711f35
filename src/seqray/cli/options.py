"""Options of a verb as typed fields."""

from __future__ import annotations

import argparse
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from types import NoneType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from seqray.core.errors import ConfigError, fields_named
from seqray.core.text import class_name_fault, parse_float

# --- Types of arguments: each turns a word into a value, or raises the error that argparse shows


def whole_number(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """Make the type of whole numbers from ``least`` to ``most``."""

    def parse(text: str) -> int:
        first = text.lstrip("0")[:20] or "0"  # int() takes long for thousands of digits
        number = int(first) if text.isascii() and text.isdigit() else -1
        if number < least:
            raise argparse.ArgumentTypeError(f"'{text}' is not a whole number of {least} or more")
        if number > most:
            raise argparse.ArgumentTypeError(f"{first} is above {most}")
        return number

    return parse


_positive_int = whole_number(1)


def _auto_or_positive_int(text: str) -> int | str:
    return text if text == "auto" else _positive_int(text)


def _number(text: str) -> float:
    value = parse_float(text)
    if not math.isfinite(value):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number")
    return value


def _probability(text: str) -> float:
    value = parse_float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number between 0 and 1")
    return value


def _class_name(text: str) -> str:
    if fault := class_name_fault(text):
        raise argparse.ArgumentTypeError(f"{text!r} {fault}")
    return text


def _printable(text: str) -> str:
    if not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} holds characters that can't be printed")
    return text


def _columns(text: str) -> dict[str, str]:
    pairs = [pair.partition("=") for pair in text.split(",")]
    names = {known.strip().lower(): own.strip() for known, _, own in pairs}
    if not all(names) or not all(names.values()) or len(names) < len(pairs):
        raise argparse.ArgumentTypeError(f"'{text}' is not a list such as sequence=seq,label=class")
    return names


PositiveInt = Annotated[int, _positive_int]
WholeNumber = Annotated[int, whole_number(0)]
Draws = Annotated[int, whole_number(0, 1_000_000)]
Steps = Annotated[int, whole_number(1, 1_000_000)]
Threads = Annotated[int, whole_number(1, 1024)]
AutoOrPositiveInt = Annotated[int | Literal["auto"], _auto_or_positive_int]
Number = Annotated[float, _number]
Probability = Annotated[float, _probability]
ColumnNames = Annotated[dict[str, str], _columns]
ClassName = Annotated[str, _class_name]
Printable = Annotated[str, _printable]


# --- Options are declared once, as typed fields of frozen classes

type_hints = cache(get_type_hints)  # once for each class: it takes longer than the parser itself


def option(
    spec: str,
    text: str,
    default: Any = MISSING,
    *,
    choices: Sequence[str] = (),
    required: bool = False,
    only_for: str = "",
) -> Any:
    """Declare the option of a field by its names and the name of its value, such as ``--out -o FILE``.

    Without a dash it is positional; ``TABLE*``, ``FILE+``: several. ``only_for``: see `refuse_unused`.
    """
    return _Declared(spec, text, default, choices, required, only_for)


class _Declared(NamedTuple):
    spec: str
    text: str
    default: Any
    choices: Sequence[str]
    required: bool
    only_for: str


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Options:
    """Options that belong together, under a heading in the help; ``only_for`` is what all of them need."""

    heading: ClassVar[str | None] = None

    def __init_subclass__(cls, *, heading: str | None = None, only_for: str = "") -> None:
        cls.heading = heading or cls.heading
        hints = get_type_hints(cls, include_extras=True)
        for name, declared in list(vars(cls).items()):
            if isinstance(declared, _Declared):
                settings, default = _argument(declared, hints[name])
                settings["only_for"] = [*filter(None, f"{declared.only_for}, {only_for}".split(", "))]
                setattr(cls, name, field(default=default, metadata=settings))
        dataclass(frozen=True, kw_only=True)(cls)


def _argument(declared: _Declared, hint: Any) -> tuple[dict[str, Any], Any]:
    """What ``add_argument`` is given, and the default of the field."""
    words = declared.spec.split()
    names = [word for word in words if word.startswith("-")]
    settings: dict[str, Any] = {"names": names, "metavar": words[-1] if len(words) > len(names) else None}
    optional = NoneType in get_args(hint)
    plain = next(part for part in get_args(hint) if part is not NoneType) if optional else hint
    several = get_origin(plain) is tuple
    default = declared.default
    if default is MISSING and (optional or several or plain is bool):
        default = False if plain is bool else () if several else None
    if plain is bool:
        settings["action"] = "store_true"
    elif not names and settings["metavar"][-1] in "*+":
        settings |= {"metavar": settings["metavar"][:-1], "nargs": settings["metavar"][-1]}
        default = () if settings["nargs"] == "*" else MISSING
    elif several:
        settings["action"] = "append"
    if plain is not bool:
        settings |= _value_settings(get_args(plain)[0] if several else plain, declared.choices)
    text = declared.text
    if default is not False and default not in (MISSING, None, "-", ()) and "default" not in text:
        text += " (default: %(default)s)"
    return settings | {
        "help": text,
        "required": declared.required or (bool(names) and default is MISSING),
    }, default


def _value_settings(hint: Any, choices: Sequence[str]) -> dict[str, Any]:
    """How one word is parsed: by a checked type, or as one of a few choices."""
    if get_origin(hint) is Annotated:
        return {"type": hint.__metadata__[0]}
    if get_origin(hint) is Literal:
        return {"choices": get_args(hint), "type": type(get_args(hint)[0])}
    return {"choices": choices or None, "type": _filled}


def _filled(text: str) -> str:
    """Refuse an empty word, which a shell gives for a variable that isn't set."""
    if not text:
        raise argparse.ArgumentTypeError("the value is empty")
    return text


def fill(settings: type[Any], /, *requested: Options, **others: Any) -> Any:
    """Make settings of the library from requested fields of the same names that are not None, and others."""
    known = {f.name for f in fields(settings)}
    values = {f.name: getattr(part, f.name) for part in requested for f in fields(part) if f.name in known}  # pyright: ignore[reportArgumentType]
    values = {name: value for name, value in values.items() if value is not None} | others
    with fields_named({name: f"--{name.replace('_', '-')}" for name in values}):
        return settings(**values)


def _given_fields(options: Options) -> Iterator[Mapping[str, Any]]:
    for one in fields(options):  # pyright: ignore[reportArgumentType]
        value = getattr(options, one.name)
        if isinstance(value, Options):
            yield from _given_fields(value)
        elif value != one.default and one.metadata.get("names"):
            yield one.metadata


def given(options: Options) -> list[str]:
    """Names of the options whose value isn't their default, those of groups too."""
    return [about["names"][0] for about in _given_fields(options)]


def refuse_unused(options: Options, absent: Mapping[str, tuple[str, str]]) -> None:
    """Refuse a given option that is only for something absent, each with what to say of it and the remedy."""
    for about in _given_fields(options):
        for uses in (needed.split(" or ") for needed in about["only_for"]):
            if all(use in absent for use in uses):
                what, remedy = absent[uses[0]]
                raise ConfigError(f"{about['names'][0]} {what}", remedy=remedy)


ANYWHERE = ("--debug", "--verbose", "--log-json", "--quiet", "-q")
"""Options of every verb, without a value; they may also stand before a subcommand."""
_UNRECORDED = (*ANYWHERE, "--threads", "--shard")
"""Options that change no byte of what a verb writes; the command in a header omits them."""


def divide_words(words: Sequence[str], names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Divide a command line into the options of some names, with their values, and all other words."""
    chosen: list[str] = []
    others: list[str] = []
    rest = iter(words)
    for given in rest:
        word = re.sub("^-q+(?=[^q])", "-", given)  # -qo FILE is -q -o FILE
        name = word[:2] if re.match("-[^-]", word) else word.partition("=")[0]
        if name not in names:
            others.append(word)
        else:
            chosen += [word, next(rest, "")] if word == name and name not in ANYWHERE else [word]
    return chosen, others


class Request(Options):
    """A parsed command line; a verb adds its options."""

    epilog: ClassVar[str | None] = None
    keep_epilog_lines: ClassVar[bool] = False

    command: tuple[str, ...] = ()
    notes_at_end: list[str] = field(default_factory=list, init=False)
    quiet: bool = option("--quiet -q", "write nothing but errors to standard error")
    verbose: bool = option("--verbose", "report versions, the device and resources")
    log_json: bool = option("--log-json", "write a JSON object per line to standard error")
    debug: bool = option("--debug", "show where an error was raised")

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options of the verb, then those of every verb."""
        shared = {f.name for f in fields(Request)}
        add_options(parser, cls, [f.name for f in fields(cls) if f.name not in shared])
        add_options(parser, cls, sorted(shared))
        parser.epilog = cls.epilog
        if cls.keep_epilog_lines:
            parser.formatter_class = argparse.RawDescriptionHelpFormatter

    @classmethod
    def of(cls, parsed: argparse.Namespace, command: Sequence[str]) -> Self:
        """Build the request from what the parser found."""
        _, recorded = divide_words(command, _UNRECORDED)
        return _build(cls, vars(parsed) | {"command": recorded})

    def say(self, *lines: str) -> None:
        """Write lines for the user to standard error, unless ``--quiet`` is given."""
        if not self.quiet:
            for line in lines:
                print(line, file=sys.stderr)

    def note(self, *lines: str) -> None:
        """Write lines for the user, each with the prefix ``seqray:``."""
        self.say(*(f"seqray: {line}" for line in lines))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a verb reports when it is done; ``last`` is its last line, which also states the seconds."""

    records: int | None = None
    last: str = ""
    status: int = 0
    resources: bool = True


def add_options(parser: Any, options: type[Options], names: Sequence[str] | None = None) -> None:
    """Add declared options to a parser: all of a class, or some."""
    hints = type_hints(options)
    for one in fields(options):  # pyright: ignore[reportArgumentType]
        if names is not None and one.name not in names:
            continue
        if _is_group(hints[one.name]):
            heading = hints[one.name].heading
            add_options(parser.add_argument_group(heading) if heading else parser, hints[one.name])
        elif "names" in one.metadata:
            settings = {key: value for key, value in one.metadata.items() if value not in (None, False)}
            option_names, _ = settings.pop("names"), settings.pop("only_for")
            if settings.get("action") == "append":
                settings["default"] = []
            elif settings.get("action") is None:
                settings["action"] = _Once
                if one.default is not MISSING:
                    settings["default"] = one.default
            more = {"dest": one.name} if option_names else {}
            parser.add_argument(*(option_names or [one.name]), **settings, **more)


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Options)


class _Once(argparse.Action):
    """An option of one value: a second value would replace the first in silence."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any
    ) -> None:
        found = vars(namespace).setdefault("_given", set())
        if self.dest in found:
            raise argparse.ArgumentError(self, "is given twice; give it once")
        found.add(self.dest)
        setattr(namespace, self.dest, values)


def _build(cls: type[Any], values: Mapping[str, Any]) -> Any:
    hints, made = type_hints(cls), dict[str, Any]()
    for one in fields(cls):
        if _is_group(hints[one.name]):
            made[one.name] = _build(hints[one.name], values)
        elif one.init:
            value = values[one.name]
            made[one.name] = tuple(value) if isinstance(value, list) else value
    return cls(**made)
