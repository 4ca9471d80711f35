"""The command ``seqray``: run one verb, and turn whatever ends it into an exit status.

Exit status: 0 done; 1 a fault of ours; 2 the input, a setting or a model can't be used; 3 a finding
under --strict; 130 Ctrl-C; 141 the reader of standard output went away; 143 SIGTERM or SIGHUP. Errors are
one line on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from seqray.cli.common import (
    Resources,
    check_address_space,
    guard_streams,
    json_lines,
    keep_kernels,
    let_waiting_threads_sleep,
    name_options,
    report_versions,
)
from seqray.cli.verbs import VERBS, parse
from seqray.core import (
    ConfigError,
    SeqrayError,
    Terminated,
    __version__,
    raise_if_terminated,
    terminable,
)
from seqray.io import single_reading_of_pipes

if TYPE_CHECKING:
    from seqray.cli.common import Outcome

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
    with guard_streams(), json_lines(words):
        return _end(words)


def _end(words: list[str]) -> int:
    """Run a verb, and turn whatever ends it into an exit status."""
    debug = "--debug" in words
    try:
        with terminable(), single_reading_of_pipes():
            try:
                status = _dispatch(words)
            except SystemExit as done:  # argparse ends a verb's --help so
                status = int(done.code or 0)
                sys.stdout.flush()
            except Exception:  # which a library may have made of a signal that came while it was loaded
                raise_if_terminated()
                raise
            raise_if_terminated()
            return status
    except BrokenPipeError:  # nobody reads on, as behind `| head`
        return 141
    except OSError as error:  # of standard output, for the most part: a full disk, a closed stream
        where = f" ({error.filename})" if error.filename else ""
        return _report(f"error: {error.strerror or error}{where}", 2, debug)
    except KeyboardInterrupt:
        return _report("interrupted", 130, debug)
    except Terminated:
        return _report("terminated", 143, debug)
    except SeqrayError as error:
        return _report(f"error: {name_options(str(error))}", error.exit_code, debug)
    except Exception as error:
        if _lacks_memory(error):
            return _report(f"error: {LACKS_MEMORY}", 2, debug)
        known = f"{type(error).__name__}: {error}"
        return _report(f"error: a fault of seqray ({known}); '--debug' shows where", 1, debug)


def _lacks_memory(error: Exception) -> bool:
    """Whether memory ran out: in Python and numpy, in torch, or while a library was loaded."""
    words = ("allocate memory", "out of memory", "failed to map segment", "can't start new thread")
    words += ("could not create a primitive",)  # as oneDNN says it
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


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
        import difflib

        near = difflib.get_close_matches(verb, VERBS, n=1)
        remedy = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(VERBS)}"
        raise ConfigError(f"unknown verb '{verb}'", remedy=remedy)
    return _run_verb(verb, words[1:])


def _run_verb(verb: str, words: list[str]) -> int:
    from seqray.io import flush_standard_output  # here, because help does without readers

    resources = Resources()
    check_address_space()
    let_waiting_threads_sleep()
    keep_kernels()
    request = parse(verb, words)
    if request.verbose:
        report_versions(request.command)
    outcome: Outcome = import_module(VERBS[verb][0]).run(request)
    flush_standard_output()  # a reader that went away shows itself here
    request.note(*request.notes_at_end)
    if outcome.resources and not request.quiet:
        resources.report(outcome.records, request.verbose)
    return outcome.status
