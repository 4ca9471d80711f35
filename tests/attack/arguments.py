"""Every argument of every verb, as the parsers declare it, and what it takes."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

from seqray.cli.main import VERBS, parser_of

# What an argument takes, by its name, or by verb and name where that differs. Numbers, choices and flags are
# known by the parser.
TAKES = {
    **dict.fromkeys(("input", "positives", "--genome", "--genome-a", "--genome-b"), "sequences"),
    **dict.fromkeys(("--train", "--validation", "--test", "unnamed"), "labeled table"),
    "--class": "sequences of a class",
    **dict.fromkeys(("--labels", "--alignment-labels"), "labels"),
    "--predictions": "predictions",
    "--bed": "parts",
    **dict.fromkeys(("--genes", "--annotation"), "genes"),
    "--calls": "calls",
    **dict.fromkeys(("--starts", "--sites"), "sites"),
    "--sheet": "sheet",
    "tables": "table to sum up",
    **dict.fromkeys(("a", "b"), "table of calls"),
    "--genes-out": "output",
    "shards": "shard",
    **dict.fromkeys(("--model", "model", "models", "--like", "--teacher", "--init", "--fold"), "model"),
    "--against": "model",
    "--config": "settings",
    "--metrics": "figures",
    "--backbone": "encoder",
    **dict.fromkeys(("--out", "--html", "--json", "--multiqc", "--proof", "--skipped", "--track"), "output"),
    **dict.fromkeys(("--plot", "--motifs", "--heads", "--inputs", "--faithfulness"), "output"),
    **dict.fromkeys(("--row-profile", "--save-config"), "output"),
    "--work-dir": "folder",
    **dict.fromkeys(("--context", "--device", "explain --class", "scan --species"), "word"),
    **dict.fromkeys(("--recipe", "--group-by"), "word"),
    **dict.fromkeys(("--positions", "--positive", "--score-column", "--id-column", "--map", "--set"), "word"),
    **dict.fromkeys(("--region", "--circular-id", "--feature", "--hold-out", "--shard", "--shares"), "word"),
    **dict.fromkeys(("--gene", "--columns", "--failed"), "word"),
}
TYPES = {
    **dict.fromkeys(("_probability", "_call_precision", "parse", "_number", "_positive_number"), "number"),
    **dict.fromkeys(("_auto_or_positive_int",), "number"),
    "_class_name": "class name",
    "_printable": "text",
}


@dataclass(frozen=True)
class Argument:
    """One argument of a verb."""

    verb: str  # with its subcommand, such as ``models show``
    name: str  # the long option, or the name of a positional argument
    takes: str  # empty where nobody has said
    metavar: str = ""

    @property
    def is_option(self) -> bool:
        return self.name.startswith("-")

    def __str__(self) -> str:
        return f"{self.verb} {self.name}"


def arguments() -> Iterator[Argument]:
    """All arguments of all verbs, and of their subcommands, but ``--help``."""
    for verb in VERBS:
        yield from _of(verb, parser_of(verb))


def _of(verb: str, parser: argparse.ArgumentParser) -> Iterator[Argument]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from _of(f"{verb} {name}", inner)
        elif not isinstance(action, argparse._HelpAction):
            name = action.option_strings[0] if action.option_strings else action.dest
            yield Argument(verb, name, _takes(verb, name, action), str(action.metavar or ""))


def _takes(verb: str, name: str, action: argparse.Action) -> str:
    if action.nargs == 0:
        return "nothing"
    if action.choices:
        return "choice"
    known = TYPES.get(getattr(action.type, "__name__", ""), "")
    return known or TAKES.get(f"{verb} {name}") or TAKES.get(name, "")
