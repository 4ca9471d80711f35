"""Options are declared once, as fields of frozen dataclasses; `Request` turns the command line into one.

A field is declared by `option`, `choice`, `flag`, `repeated` or `positional`; `group` nests the options that
several verbs share. The default of an option is stated here only where the library has no settings for it:
elsewhere it is read from there by `default_of`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, ClassVar, Self


def option(
    names: str,
    metavar: str | None,
    text: str,
    *,
    type: Callable[[str], Any] | None = None,
    default: Any = None,
    required: bool = False,
    **more: Any,
) -> Any:
    """Declare an option with a value.

    Parameters
    ----------
    names
        ``--out -o``: long and short name.
    metavar, text
        Name of the value, and what the option does. The default is added unless the text states it.
    type
        Converts and checks the word; see `seqray.cli.common.argument_types`.
    default
        None where the library or the model decides.
    required
        Whether the option must be given.
    more
        As for ``add_argument``.
    """
    if default not in (None, "-") and "default" not in text:
        text += " (default: %(default)s)"
    more |= {"metavar": metavar, "help": text, "type": type, "required": required}
    return _argument(names.split(), MISSING if required else default, more)


def choice(names: str, choices: Sequence[Any], text: str, *, default: Any = None, **more: Any) -> Any:
    """Declare an option whose value is one of a few."""
    return option(names, None, text, choices=tuple(choices), default=default, **more)


def flag(names: str, text: str) -> Any:
    """Declare an option without a value."""
    return _argument(names.split(), False, {"action": "store_true", "help": text})


def repeated(names: str, metavar: str | None, text: str, **more: Any) -> Any:
    """Declare an option that may be given several times; the field is a tuple."""
    return _argument(names.split(), (), {"action": "append", "metavar": metavar, "help": text} | more)


def positional(metavar: str, text: str, **more: Any) -> Any:
    """Declare an argument without a name."""
    default = () if more.get("nargs") == "*" else MISSING
    return _argument([], default, {"metavar": metavar, "help": text} | more)


def _argument(names: list[str], default: Any, settings: dict[str, Any]) -> Any:
    settings = {key: value for key, value in settings.items() if value not in (None, False)}
    return field(default=default, metadata={"names": names, "settings": settings})


def group(options: type) -> Any:
    """Nest a dataclass of options; its ``title``, if it has one, heads them in the help."""
    return field(metadata={"group": options})


def default_of(settings: type, name: str) -> Any:
    """The default of a field of a dataclass."""
    return next(f.default for f in fields(settings) if f.name == name)


def fill(settings: type[Any], *requested: object, **others: Any) -> Any:
    """Make settings of the library from the requested fields of the same names, and others.

    A field that is None leaves the default of the library.
    """
    known = {f.name for f in fields(settings)}
    values = {
        f.name: getattr(part, f.name)
        for part in requested
        for f in fields(part)  # pyright: ignore[reportArgumentType]
        if f.name in known and getattr(part, f.name) is not None
    }
    return settings(**values | others)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line asks for; a verb adds its options.

    Attributes
    ----------
    command
        All words, for the header of outputs.
    """

    epilog: ClassVar[str | None] = None
    raw_epilog: ClassVar[bool] = False

    command: tuple[str, ...] = ()
    quiet: bool = flag("--quiet -q", "write nothing but errors to standard error")
    verbose: bool = flag("--verbose", "report versions, the device and resources")
    log_json: bool = flag("--log-json", "write a JSON object per line to standard error")
    debug: bool = flag("--debug", "show where an error was raised")

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options of the verb, then those of every verb."""
        shared = {f.name for f in fields(Request)}
        _add(parser, [f for f in fields(cls) if f.name not in shared])
        _add(parser, [f for f in fields(cls) if f.name in shared])
        parser.epilog = cls.epilog
        if cls.raw_epilog:
            parser.formatter_class = argparse.RawDescriptionHelpFormatter

    @classmethod
    def of(cls, parsed: argparse.Namespace, command: Sequence[str]) -> Self:
        """Build the request from what the parser found."""
        return _build(cls, vars(parsed) | {"command": command})

    def say(self, *lines: str) -> None:
        """Write lines for the user to standard error, unless ``--quiet`` is given."""
        if not self.quiet:
            for line in lines:
                print(line, file=sys.stderr)

    def note(self, *lines: str) -> None:
        """The same, each line as one of seqray's."""
        self.say(*(f"seqray: {line}" for line in lines))


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a verb reports when it is done.

    Attributes
    ----------
    records
        Read from the input; None where the verb reads no records.
    status
        Exit status.
    resources
        Whether time and memory are worth a line.
    """

    records: int | None = None
    status: int = 0
    resources: bool = True


def _add(parser: Any, declared: Sequence[Any]) -> None:
    for one in declared:
        nested = one.metadata.get("group")
        if nested is not None:
            title = getattr(nested, "title", None)
            _add(parser.add_argument_group(title) if title else parser, fields(nested))
        elif "settings" in one.metadata:
            add_option(parser, one.name, one)


def add_option(parser: Any, name: str, declared: Any) -> None:
    """Add what `option` and its like declared to a parser, as ``name`` of the result."""
    names, settings = declared.metadata["names"], dict(declared.metadata["settings"])
    if settings.get("action") == "append":
        settings["default"] = []
    elif settings.get("action") is None and declared.default is not MISSING:
        settings["default"] = declared.default
    parser.add_argument(*(names or [name]), **settings, **({"dest": name} if names else {}))


def _build(cls: type[Any], values: Mapping[str, Any]) -> Any:
    def value_of(one: Any) -> Any:
        if nested := one.metadata.get("group"):
            return _build(nested, values)
        value = values[one.name]
        return tuple(value) if isinstance(value, list) else value

    return cls(**{one.name: value_of(one) for one in fields(cls)})
