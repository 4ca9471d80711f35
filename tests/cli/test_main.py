"""The command line as a whole: verbs, help, and how it ends."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from seqray import __version__
from seqray.cli.dispatch import VERBS, main
from seqray.core.errors import InputError, SeqrayError


@pytest.fixture
def verb(monkeypatch):
    """Install a verb ``try`` that does what the test says."""

    def install(action, add_arguments=lambda parser: None):
        module = types.ModuleType("tried")
        module.__dict__.update(add_arguments=add_arguments, run=action)
        monkeypatch.setitem(sys.modules, "tried", module)
        monkeypatch.setitem(VERBS, "try", ("tried", "do as told"))

    return install


def fail_with(error):
    def run(args):
        raise error

    return run


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_lists_every_verb(word, capsys):
    assert main([word]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    for name, (_, summary) in VERBS.items():
        [line] = [line for line in out.splitlines() if line.split()[:1] == [name]]
        assert line.endswith(summary)


def test_no_verb_shows_help_as_an_error(capsys):
    assert main([]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[0]) == ("", "usage: seqray VERB [OPTIONS]")


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_explains_itself(name, capsys):
    assert main([name, "--help"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith(f"usage: seqray {name}")
    assert "--debug" in out


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["predict", "--help"], ["scan", "--help"]])
def test_help_loads_nothing_heavy(words):
    program = (
        "import sys\nfrom seqray.cli.dispatch import main\n"
        f"assert main({words!r}) == 0\n"
        "print('LOADED', *{m.split('.')[0] for m in sys.modules} & {'torch', 'numpy', 'yaml', 'pandas'})"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.rpartition("LOADED")[2].split() == []


def test_version_also_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "seqray", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"seqray {__version__}\n"


# --- wrong words ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["predit"], "seqray: error: unknown verb 'predit'; did you mean 'predict'?"),
        (["--modle"], "seqray: error: unknown verb '--modle'; did you mean 'models'?"),
        (["xyz"], f"seqray: error: unknown verb 'xyz'; known are {', '.join(VERBS)}"),
        (
            ["predict", "a.fa", "--model", "m", "--treshold", "1"],
            "seqray: error: unrecognized arguments: --treshold 1; did you mean '--threshold'?",
        ),
        (
            ["predict", "a.fa"],
            "seqray: error: the following arguments are required: --model/-m; see 'seqray predict --help'",
        ),
        (
            ["predict", "a.fa", "--model", "m", "--threads", "0"],
            "seqray: error: argument --threads: '0' is not a whole number of 1 or more; "
            "see 'seqray predict --help'",
        ),
        (
            ["predict", "a.fa", "--model", "m", "--prior", "2"],
            "seqray: error: argument --prior: '2' is not a number between 0 and 1; "
            "see 'seqray predict --help'",
        ),
    ],
)
def test_a_wrong_word_is_one_line_that_helps(words, line, capsys):
    assert main(words) == 2
    assert capsys.readouterr() == ("", line + "\n")


def test_options_are_not_abbreviated(capsys):
    assert main(["predict", "a.fa", "--mod", "m"]) == 2
    assert "--model" in capsys.readouterr().err


# --- endings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("is odd", where="x.fa", remedy="mend it"), 2, "seqray: error: x.fa: is odd; mend it"),
        (SeqrayError("broke\n  here"), 1, "seqray: error: broke here"),
        (
            ZeroDivisionError("by\nzero"),
            1,
            "seqray: error: a fault of seqray (ZeroDivisionError: by zero); '--debug' shows where",
        ),
        (KeyboardInterrupt(), 130, "seqray: interrupted"),
    ],
)
def test_an_error_is_one_line_and_a_status(verb, error, status, line, capsys):
    verb(fail_with(error))
    assert main(["try"]) == status
    assert capsys.readouterr() == ("", line + "\n")
    assert main(["try", "--debug"]) == status
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith(line + "\n")


def test_sigterm_unwinds_what_is_open():
    """In a process of its own: libraries that other tests load leave stacks for signals behind."""
    program = """
import os, signal, sys, types
from seqray.cli import main

def run(args):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    finally:
        print("closed")

sys.modules["try_verb"] = types.SimpleNamespace(add_arguments=lambda parser: None, run=run)
main.VERBS["try"] = ("try_verb", "do as told")
before = signal.getsignal(signal.SIGTERM)
print(main.main(["try", "--quiet"]), signal.getsignal(signal.SIGTERM) is before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "closed\n143 True\n"
    assert done.stderr == "seqray: terminated\n"


def test_a_verb_gets_its_options_and_the_whole_command(verb):
    seen = {}

    def add_arguments(parser):
        deeper = parser.add_subparsers(dest="what")
        deeper.add_parser("show").add_argument("name")

    verb(lambda args: seen.update(vars(args)) or 0, add_arguments)
    assert main(["try", "show", "x", "--debug"]) == 0
    assert (seen["what"], seen["name"]) == ("show", "x")
    assert seen["command"] == ("seqray", "try", "show", "x", "--debug")


def test_the_status_of_a_verb_is_passed_on(verb):
    verb(lambda args: 7)
    assert main(["try"]) == 7


def test_the_words_of_the_process_are_the_default(verb, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["seqray", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"seqray {__version__}\n"
