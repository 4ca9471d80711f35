"""The command ``seqray``: a table of verbs that are loaded on use, and one way to end.

Exit status: 0 done; 1 a fault of ours; 2 the input, a setting or a model can't be used; 3 a finding
under --strict; 130 Ctrl-C; 141 the reader of standard output went away; 143 SIGTERM. Errors are one line on
standard error.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from seqray.cli.common import (
    EVERYWHERE,
    Resources,
    add_telling_arguments,
    check_telling,
    json_lines,
    tell_versions,
)
from seqray.core import ConfigError, SeqrayError, Terminated, __version__, go_on, stop, stop_if_wanted

VERBS = {
    "predict": ("seqray.cli.predict", "classify each record of a FASTA or GenBank file, or alignments"),
    "scan": ("seqray.cli.scan.run", "find sites in long sequences, on both strands"),
    "gather": ("seqray.cli.gather", "put the shards of one scan together"),
    "summary": ("seqray.cli.summary", "sum up several scans or evaluations, a row each"),
    "explain": ("seqray.cli.explain.run", "rank the letters or columns that calls rest on, and check it"),
    "negatives": ("seqray.cli.negatives.run", "make negatives, and say what each kind teaches"),
    "audit": ("seqray.cli.audit", "find what would fool a model in labelled sequences, before training"),
    "split": ("seqray.cli.split.run", "divide labelled sequences without dividing relatives, and prove it"),
    "pretrain": ("seqray.cli.pretrain", "learn without labels, to begin a training with"),
    "train": ("seqray.cli.train", "train a model on labelled sequences"),
    "evaluate": ("seqray.cli.evaluate.run", "measure predictions against labels, beside a floor"),
    "calibrate": ("seqray.cli.calibrate", "calibrate a model anew on labelled sequences of your own"),
    "export": ("seqray.cli.export", "write a model as a file that other programs run"),
    "models": ("seqray.cli.models", "list, show and verify models"),
    "completion": ("seqray.cli.completion", "print a script that completes words in your shell"),
}
USAGE = """\
usage: seqray VERB [OPTIONS]

Classify biological sequences with transformers.

verbs:
{verbs}

  seqray VERB --help   options of a verb
  seqray --version     version

Exit status: 0 done, 1 a fault of seqray, 2 unusable input or setting, 3 a finding under --strict,
130 Ctrl-C, 143 terminated."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line that names the nearest option."""

    def error(self, message: str) -> NoReturn:
        remedy = f"see '{self.prog} --help'"
        unknown = re.search(r"unrecognized arguments:.*?(--[\w-]+)", message)
        if unknown:
            known = re.findall(r"--[\w-]+", self.format_usage())
            near = difflib.get_close_matches(unknown[1], known, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else remedy
        raise ConfigError(message, remedy=remedy)


def usage() -> str:
    """The text of ``seqray --help``."""
    width = max(map(len, VERBS))
    return USAGE.format(
        verbs="\n".join(f"  {verb:{width}}  {summary}" for verb, (_, summary) in VERBS.items())
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb.

    Parameters
    ----------
    argv
        Words after ``seqray``; those of the process where None.

    Returns
    -------
    int
        Exit status. Help and a wrong use of options end here too; nothing exits from within.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    with json_lines(words):
        return _end(words)


def _end(words: list[str]) -> int:
    """Run a verb, and turn whatever ends it into an exit status."""
    debug = "--debug" in words
    try:
        with _terminable():
            status = _dispatch(words)
            stop_if_wanted()
            return status
    except SystemExit as done:  # argparse ends a verb's --help so
        return int(done.code or 0)
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        _abandon_output()
        return 141
    except OSError as error:  # of standard output, for the most part: a full disk, a closed stream
        _abandon_output()
        where = f" ({error.filename})" if error.filename else ""
        return _report(f"error: {error.strerror or error}{where}", 2, debug)
    except KeyboardInterrupt:
        return _report("interrupted", 130, debug)
    except Terminated:
        return _report("terminated", 143, debug)
    except SeqrayError as error:
        return _report(f"error: {error}", error.exit_code, debug)
    except Exception as error:
        known = f"{type(error).__name__}: {error}"
        return _report(f"error: a fault of seqray ({known}); '--debug' shows where", 1, debug)


def _abandon_output() -> None:
    """Send what is left in the buffer nowhere: the interpreter flushes once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _report(message: str, status: int, debug: bool) -> int:
    if debug:
        import traceback

        traceback.print_exc()
    print(f"seqray: {' '.join(message.split())}", file=sys.stderr)
    return status


def _dispatch(words: list[str]) -> int:
    if not words:
        print(usage(), file=sys.stderr)
        return 2
    verb = words[0]
    if verb in ("-h", "--help", "help"):
        print(usage(), flush=True)
        return 0
    if verb in ("-V", "--version"):
        print(f"seqray {__version__}", flush=True)
        return 0
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(VERBS)}"
        raise ConfigError(f"unknown verb '{verb}'", remedy=remedy)
    return _run_verb(verb, words[1:])


def _run_verb(verb: str, words: list[str]) -> int:
    resources = Resources()
    module: Any = import_module(VERBS[verb][0])
    # A verb with subcommands would look for these before the subcommand only.
    everywhere = [word for word in words if word in EVERYWHERE]
    args = parser_of(verb).parse_args([*everywhere, *(w for w in words if w not in EVERYWHERE)])
    check_telling(args)
    args.command = ("seqray", verb, *words)
    args.verbs = {name: (VERBS[name][1], partial(_add_arguments, name)) for name in VERBS}
    args.records = None  # counted by what reads them
    if args.verbose:
        tell_versions(args.command)
    status = int(module.run(args))
    sys.stdout.flush()  # a reader that went away shows itself here, not in the interpreter's last breath
    if not args.quiet and getattr(module, "TELLS_RESOURCES", True):
        resources.tell(args.records, args.verbose)
    return status


def _add_arguments(verb: str, parser: argparse.ArgumentParser) -> None:
    import_module(VERBS[verb][0]).add_arguments(parser)
    add_telling_arguments(parser)


def parser_of(verb: str) -> Parser:
    """The parser of one verb, with what all verbs have in common."""
    summary = VERBS[verb][1]
    parser = Parser(
        prog=f"seqray {verb}", description=f"{summary[0].upper()}{summary[1:]}.", allow_abbrev=False
    )
    _add_arguments(verb, parser)
    return parser


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM unwind the stack as Ctrl-C does."""
    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread, which alone hears signals
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        go_on()
