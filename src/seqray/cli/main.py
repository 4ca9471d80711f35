"""The table of verbs, and the run of one."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from seqray.cli.messages import Resources, guard_streams, json_lines, report_versions, write_line
from seqray.cli.model import check_address_space, prepare_process
from seqray.core import errors
from seqray.core.errors import ConfigError, SeqrayError
from seqray.core.text import did_you_mean
from seqray.core.version import __version__
from seqray.io.files import single_reading_of_pipes

if TYPE_CHECKING:
    from seqray.cli.options import Outcome, Request


# --- The table of verbs, and the parser of each; a verb's module is loaded when it is used

OPTIONS_OF = {"circular_ids": "--circular-id", "positive": "--label-positive"}  # where names differ
VERBS = {
    "predict": ("seqray.cli.predict", "classify each record of a FASTA or GenBank file, or alignments"),
    "scan": ("seqray.cli.scan", "find sites in long sequences, on both strands"),
    "gather": ("seqray.cli.gather", "merge the shards of one scan"),
    "summary": ("seqray.cli.summary", "summarize predictions, scans or evaluations, one row each"),
    "compare": ("seqray.cli.compare", "compare the calls of two strains: same, moved, lost, gained"),
    "explain": ("seqray.cli.explain", "rank the positions that drive a call, and check the ranking"),
    "negatives": ("seqray.cli.negatives", "make negatives, and report what each kind teaches"),
    "audit": ("seqray.cli.audit", "find leaks and shortcuts in labeled sequences, before training"),
    "split": ("seqray.cli.split", "split labeled sequences, keeping relatives together, and check the split"),
    "pretrain": ("seqray.cli.pretrain", "learn from sequences without labels, to initialize a training"),
    "train": ("seqray.cli.train", "train a model on labeled sequences"),
    "evaluate": ("seqray.cli.evaluate", "compare predictions with labels, and with simple rules"),
    "calibrate": ("seqray.cli.calibrate", "recalibrate a model on your own labeled sequences"),
    "prefilter": ("seqray.cli.prefilter", "add a prefilter to a model of windows, so that scans are faster"),
    "export": ("seqray.cli.export", "write a model as a file that other programs run"),
    "models": ("seqray.cli.models", "list, show and verify models"),
    "completion": ("seqray.cli.completion", "print a script that completes words in your shell"),
}
WITH_POSITIONAL_MODEL = ("calibrate", "export", "models", "prefilter")
"""Verbs whose model needs no option; ``--model`` names it, too, as for the others."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that names the nearest option."""

    def error(self, message: str) -> NoReturn:
        remedy = f"see '{self.prog} --help'"
        unknown = re.search(r"unrecognized arguments:.*?(--[\w-]+)", message)
        if unknown:
            known = re.findall(r"--[\w-]+", self.format_usage())
            remedy = did_you_mean(unknown[1], known, otherwise=remedy)
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
    """The request of a verb, from the words after it."""
    from seqray.cli.options import ANYWHERE

    first = [word for word in words if word in ANYWHERE]
    rest = [word for word in words if word not in ANYWHERE]
    if verb in WITH_POSITIONAL_MODEL:
        rest = _model_by_place(rest)
    parsed = parser_of(verb).parse_args([*first, *rest])
    if parsed.quiet and parsed.verbose:
        raise ConfigError("--quiet and --verbose can't both be given", remedy="give one of them")
    return request_type(verb).of(parsed, ("seqray", verb, *words))


def _model_by_place(words: list[str]) -> list[str]:
    """The same words with the model of ``-m MODEL`` or ``--model MODEL`` first, behind a subcommand."""
    for i, word in enumerate(words):
        name, given, value = word.partition("=")
        if name in ("-m", "--model") and (given or i + 1 < len(words)):
            others = [*words[:i], *words[i + (1 if given else 2) :]]
            behind = int(others[:1] in (["show"], ["verify"]))
            return [*others[:behind], value if given else words[i + 1], *others[behind:]]
    return words


# --- The command ``seqray``: run one verb, and turn whatever ends it into an exit status

LACKS_MEMORY = "memory ran out; free some, raise its limit, or give smaller input"
USAGE = """\
usage: seqray VERB [OPTIONS]

Classify biological sequences with transformers.

verbs:
{verbs}

  seqray VERB --help   options of a verb
  seqray --version     version

Exit status: 0 done, 1 a fault of seqray, 2 unusable input or setting, 3 a finding under --strict,
130 Ctrl-C, 141 the reader of standard output went away, 143 terminated."""


def usage() -> str:
    """The text of ``seqray --help``."""
    width = max(map(len, VERBS))
    return USAGE.format(
        verbs="\n".join(f"  {verb:{width}}  {summary}" for verb, (_, summary) in VERBS.items())
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb."""
    words = list(sys.argv[1:] if argv is None else argv)
    with guard_streams(), json_lines(words):
        return _end(words)


def _end(words: list[str]) -> int:
    """Run a verb, and turn whatever ends it into an exit status."""
    debug = "--debug" in words
    try:
        with errors.terminable(), single_reading_of_pipes(), errors.settings_as_options(OPTIONS_OF):
            try:
                status = _dispatch(words)
            except SystemExit as done:  # argparse ends a verb's --help so
                status = int(done.code or 0)
                sys.stdout.flush()
            except Exception:  # which a library may have made of a signal that came while it was loaded
                errors.raise_if_terminated()
                raise
            errors.raise_if_terminated()
            return status
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        return 141
    except OSError as error:  # of standard output, for the most part: a full disk, a closed stream
        where = f" ({error.filename})" if error.filename else ""
        return _report(f"error: {error.strerror or error}{where}", 2, debug)
    except KeyboardInterrupt:
        return _report("interrupted", 130, debug)
    except errors.Terminated:
        return _report("terminated", 143, debug)
    except SeqrayError as error:
        parts = {"where": error.where, "what": error.what, "remedy": error.remedy}
        return _report(f"error: {error}", error.exit_code, debug, error=parts)
    except Exception as error:
        if errors.lacks_memory(error):
            return _report(f"error: {LACKS_MEMORY}", 2, debug)
        known = f"{type(error).__name__}: {error}"
        return _report(f"error: a fault of seqray ({known}); '--debug' shows where", 1, debug)


def _report(message: str, status: int, debug: bool, **more: object) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    write_line(f"seqray: {' '.join(message.split())}", **more)
    return status


def _dispatch(words: list[str]) -> int:
    if not words:
        print(usage(), file=sys.stderr)
        return 2
    verb = words[0]
    if verb == "help" and words[1:]:
        verb, words = words[1], [*words[1:2], "--help"]
    if verb in ("-h", "--help", "help"):
        print(usage(), flush=True)
        return 0
    if verb in ("-V", "--version"):
        if words[1:]:
            raise ConfigError(f"'{verb}' takes no other words, such as {words[1]}", remedy="leave them out")
        print(f"seqray {__version__}", flush=True)
        return 0
    if verb not in VERBS:
        remedy = did_you_mean(verb, VERBS)
        raise ConfigError(f"unknown verb '{verb}'", remedy=remedy)
    return _run_verb(verb, words[1:])


def _run_verb(verb: str, words: list[str]) -> int:
    from seqray.io.files import flush_standard_output

    started, resources = time.monotonic(), Resources()
    check_address_space(verb)
    prepare_process()
    request = parse(verb, words)
    if request.verbose:
        report_versions(("seqray", verb, *words))
    outcome: Outcome = import_module(VERBS[verb][0]).run(request)
    flush_standard_output()  # a reader that went away shows itself here
    if outcome.last:
        request.say(f"{outcome.last}, {time.monotonic() - started:.1f} s")
    request.note(*request.notes_at_end)
    if outcome.resources and not request.quiet:
        resources.report(outcome.records, request.verbose)
    return outcome.status
