"""The command line as a whole: verbs, help, and how it ends."""

from __future__ import annotations

import subprocess
import sys
import types

import pytest

from seqray.cli.main import VERBS, main
from seqray.cli.options import Outcome, Request, option
from seqray.core.errors import InputError, SeqrayError
from seqray.core.version import __version__


class TryRequest(Request):
    name: str | None = option("--name NAME", "a name")
    letters: tuple[str, ...] = option("--letter X", "a letter")


@pytest.fixture
def verb(monkeypatch):
    """Install a verb ``try`` that does what the test says."""

    def install(action):
        module = types.ModuleType("tried")
        module.__dict__.update(TryRequest=TryRequest, run=action)
        monkeypatch.setitem(sys.modules, "tried", module)
        monkeypatch.setitem(VERBS, "try", ("tried", "do as told"))

    return install


def fail_with(error):
    def run(request):
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
        "import sys\nfrom seqray.cli.main import main\n"
        f"assert main({words!r}) == 0\n"
        "print('LOADED', *{m.split('.')[0] for m in sys.modules} & {'torch', 'yaml', 'pandas'})"
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
            ["predict", "a.fa", "--model", "m", "--precision", "bf16"],  # its name in version 0.2
            "seqray: error: unrecognized arguments: --precision bf16; did you mean '--dtype'?",
        ),
        (
            ["predict", "a.fa", "--model", "m", "b.fa"],
            "seqray: error: unrecognized arguments: b.fa; write all inputs next to each other; "
            "see 'seqray predict --help'",
        ),
        (
            ["scan", "a.fa", "--model", "m", "b.fa"],
            "seqray: error: unrecognized arguments: b.fa; this command takes 1 input without an option; "
            "see 'seqray scan --help'",
        ),
        (
            ["train", "a.tsv", "--out", "m.safetensors"],
            "seqray: error: unrecognized arguments: a.tsv; every input of this command needs its option; "
            "see 'seqray train --help'",
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
        (
            ["scan", "a.fa", "--model", "m", "--precision", "bf16"],
            "seqray: error: argument --precision: 'bf16' is not a number between 0 and 1 "
            "(did you mean --dtype bf16?); see 'seqray scan --help'",
        ),
    ],
)
def test_a_wrong_word_is_one_line_that_helps(words, line, capsys):
    assert main(words) == 2
    assert capsys.readouterr() == ("", line + "\n")


def test_options_are_not_abbreviated(capsys):
    assert main(["predict", "a.fa", "--mod", "m"]) == 2
    assert "--model" in capsys.readouterr().err


OUT_OF_MEMORY = "seqray: error: memory ran out; free some, raise its limit, or give smaller input"


# --- endings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (InputError("is odd", where="x.fa", remedy="mend it"), 2, "seqray: error: x.fa: is odd; mend it"),
        (SeqrayError("broke\n  here"), 1, "seqray: error: broke here"),
        (MemoryError(), 2, OUT_OF_MEMORY),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 2, OUT_OF_MEMORY),
        (RuntimeError("could not create a primitive"), 2, OUT_OF_MEMORY),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), 2, OUT_OF_MEMORY),
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
from seqray.cli.options import Request
from seqray.cli.main import main
from seqray.cli.main import VERBS

def run(request):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    finally:
        print("closed")

sys.modules["try_verb"] = types.SimpleNamespace(TryRequest=Request, run=run)
VERBS["try"] = ("try_verb", "do as told")
before = signal.getsignal(signal.SIGTERM)
print(main(["try", "--quiet"]), signal.getsignal(signal.SIGTERM) is before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "closed\n143 True\n"
    assert done.stderr == "seqray: terminated\n"


def test_a_signal_that_a_library_makes_an_error_of_still_ends_the_run():
    program = """
import os, signal, sys, types
from seqray.cli.options import Request
from seqray.cli.main import main
from seqray.cli.main import VERBS

def run(request):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    except BaseException:
        raise ImportError("initialization failed") from None

sys.modules["try_verb"] = types.SimpleNamespace(TryRequest=Request, run=run)
VERBS["try"] = ("try_verb", "do as told")
sys.exit(main(["try", "--quiet"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "seqray: terminated\n")


def test_a_signal_within_a_finalizer_ends_the_run_without_a_traceback():
    program = """
import os, signal, sys, types
from seqray.cli.options import Outcome, Request
from seqray.cli.main import main
from seqray.cli.main import VERBS

class Open:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()

def run(request):
    Open()
    return Outcome()

sys.modules["try_verb"] = types.SimpleNamespace(TryRequest=Request, run=run)
VERBS["try"] = ("try_verb", "do as told")
sys.exit(main(["try", "--quiet"]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (143, "seqray: terminated\n")


def test_a_verb_gets_a_frozen_request_with_the_whole_command(verb):
    seen = []
    verb(lambda request: seen.append(request) or Outcome())
    assert main(["try", "--letter", "a", "--name", "x", "--letter", "b", "--debug"]) == 0
    command = ("seqray", "try", "--letter", "a", "--name", "x", "--letter", "b", "--debug")
    assert seen == [TryRequest(command=command, name="x", letters=("a", "b"), debug=True)]
    with pytest.raises(AttributeError):
        seen[0].name = "y"


def test_the_outcome_of_a_verb_decides_the_status_and_the_line_on_resources(verb, capsys):
    verb(lambda request: Outcome(records=3, status=7))
    assert main(["try"]) == 7
    assert capsys.readouterr().err.endswith(", records 3\n")
    verb(lambda request: Outcome(resources=False))
    assert main(["try"]) == 0
    assert capsys.readouterr().err == ""


def test_the_words_of_the_process_are_the_default(verb, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["seqray", "--version"])
    assert main() == 0
    assert capsys.readouterr().out == f"seqray {__version__}\n"
