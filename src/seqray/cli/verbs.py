"""The table of verbs, and the parser of each; a verb's module is loaded when it is used.

The module of the verb ``scan`` offers ``ScanRequest``, a dataclass of its options, and ``run``, which takes
one and returns an `Outcome`.
"""

from __future__ import annotations

import argparse
import re
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from seqray.core import ConfigError

if TYPE_CHECKING:
    from seqray.cli.common import Request

VERBS = {
    "predict": ("seqray.cli.predict", "classify each record of a FASTA or GenBank file, or alignments"),
    "scan": ("seqray.cli.scan.run", "find sites in long sequences, on both strands"),
    "gather": ("seqray.cli.gather", "merge the shards of one scan"),
    "summary": ("seqray.cli.summary", "summarize several scans or evaluations, one row each"),
    "explain": (
        "seqray.cli.explain.run",
        "rank the letters or columns that drive a call, and check the ranking",
    ),
    "negatives": ("seqray.cli.negatives.run", "make negatives, and report what each kind teaches"),
    "audit": ("seqray.cli.audit", "find leaks and shortcuts in labeled sequences, before training"),
    "split": (
        "seqray.cli.split.run",
        "split labeled sequences, keeping relatives together, and check the split",
    ),
    "pretrain": ("seqray.cli.pretrain", "learn from sequences without labels, to initialize a training"),
    "train": ("seqray.cli.train.run", "train a model on labeled sequences"),
    "evaluate": ("seqray.cli.evaluate.run", "compare predictions with labels, and with simple rules"),
    "calibrate": ("seqray.cli.calibrate", "recalibrate a model on your own labeled sequences"),
    "prefilter": (
        "seqray.cli.prefilter",
        "add a prefilter to a model of windows, so that scans are faster",
    ),
    "export": ("seqray.cli.export", "write a model as a file that other programs run"),
    "models": ("seqray.cli.models", "list, show and verify models"),
    "completion": ("seqray.cli.completion", "print a script that completes words in your shell"),
}
ANYWHERE = ("--debug", "--verbose", "--log-json", "--quiet", "-q")
"""Options that may stand before or after the subcommand of a verb that has subcommands."""
RENAMED = {"--precision": "--dtype", "--no-context": "--context"}
"""Options by the names that they had in version 0.2."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that names the nearest option."""

    def error(self, message: str) -> NoReturn:
        remedy = f"see '{self.prog} --help'"
        unknown = re.search(r"unrecognized arguments:.*?(--[\w-]+)", message)
        if unknown:
            known = re.findall(r"--[\w-]+", self.format_usage())
            import difflib

            near = difflib.get_close_matches(RENAMED.get(unknown[1], unknown[1]), known, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else remedy
        elif message.startswith("unrecognized arguments:"):
            remedy = f"{self._inputs()}; {remedy}"
        raise ConfigError(message, remedy=remedy)

    def _inputs(self) -> str:
        """How many inputs may stand without an option before them."""
        positional = [action for action in self._actions if not action.option_strings]
        if any(action.nargs in ("+", "*") for action in positional):
            return "write all inputs next to each other"
        count = len(positional)
        if not count:
            return "every input of this command needs its option"
        return f"this command takes {count} {'input' if count == 1 else 'inputs'} without an option"


def parser_of(verb: str) -> Parser:
    """The parser of one verb."""
    summary = VERBS[verb][1]
    parser = Parser(
        prog=f"seqray {verb}", description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    request_type(verb).add_arguments(parser)
    return parser


def request_type(verb: str) -> type[Request]:
    """The options of one verb."""
    return getattr(import_module(VERBS[verb][0]), f"{verb.capitalize()}Request")


def parse(verb: str, words: list[str]) -> Request:
    """The request of a verb, from the words after it.

    ConfigError is raised for words that the verb doesn't know, and for ``--quiet`` with ``--verbose``.
    """
    first = [word for word in words if word in ANYWHERE]
    parsed = parser_of(verb).parse_args([*first, *(word for word in words if word not in ANYWHERE)])
    if parsed.quiet and parsed.verbose:
        raise ConfigError("--quiet and --verbose can't both be given", remedy="give one of them")
    return request_type(verb).of(parsed, ("seqray", verb, *words))
