"""The reference of the command line as a page, from the parsers themselves."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from seqray.cli.main import VERBS, parser_of

HEAD = """# Command line

Made from the parser of each verb, so it can't say anything else than `seqray VERB --help`.

Exit status: 0 done, 1 a fault of seqray, 2 unusable input or setting, 3 a finding under `--strict`,
130 Ctrl-C, 141 the reader of standard output went away, 143 terminated. Errors are one line on standard
error. Files and columns are described under [formats](../formats.md).
"""


def page() -> str:
    """The whole reference, as Markdown."""
    parts = [HEAD]
    for verb, (_, summary) in VERBS.items():
        parts += [f"## seqray {verb}\n", f"{summary[0].upper()}{summary[1:]}.\n"]
        parts += describe(parser_of(verb), "###")
    return "\n".join(parts)


def describe(parser: argparse.ArgumentParser, level: str) -> Iterator[str]:
    """Usage and a table for each group of options; subcommands below."""
    usage = " ".join(parser.format_usage().split()).removeprefix("usage: ")
    yield f"```text\n{fold(usage)}\n```\n"
    for group in parser._action_groups:
        actions = [a for a in group._group_actions if a.help != argparse.SUPPRESS and shown(a)]
        if actions:
            yield f"{level} {group.title}\n"
            yield "| option | meaning |\n|---|---|"
            yield "\n".join(f"| {name(action)} | {meaning(parser, action)} |" for action in actions) + "\n"
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, sub in action.choices.items():
                yield f"{level} {parser.prog} {verb}\n"
                yield from describe(sub, f"{level}#")


def shown(action: argparse.Action) -> bool:
    return not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)


def fold(usage: str, width: int = 78) -> str:
    """Wrap a usage line, never within an option and its value."""
    lines, indent = [""], "    "
    depth, word = 0, ""
    for letter in usage + " ":
        depth += (letter == "[") - (letter == "]")
        if letter != " " or depth:
            word += letter
            continue
        if lines[-1] and len(lines[-1]) + len(word) + 1 > width:
            lines.append(indent)
        lines[-1] += word if not lines[-1].strip() else f" {word}"
        word = ""
    return "\n".join(lines)


def name(action: argparse.Action) -> str:
    """Option strings and the value they take."""
    value = ""
    if action.choices and not action.metavar:
        value = "{" + ",".join(map(str, action.choices)) + "}"
    elif action.nargs != 0:
        value = str(action.metavar or action.dest.upper())
    words = [f"{option} {value}".strip() for option in action.option_strings] or [value]
    return "<br>".join(f"`{word}`" for word in words)


def meaning(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    """The help, with defaults filled in as argparse does."""
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    text = text + ("; required" if action.required and action.option_strings else "")
    for mark in "<*_|":
        text = text.replace(mark, f"\\{mark}")
    return text
