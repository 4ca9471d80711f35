"""The command line as a whole: help, how a verb is called, what it loads, and how it ends."""

import subprocess
import sys
import types

import pytest

from seqray.cli.main import VERBS, main, parse
from seqray.cli.options import Outcome, Request, option
from seqray.core.errors import InputError, SeqrayError
from seqray.core.version import __version__
from tables import fasta, letters, tsv, write


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


def python(program):
    """Run a program in a process of its own."""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["--help", "-h", "help"])
def test_help_lists_every_verb(word, run):
    _, out, err = run(word)
    assert err == ""
    named = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert set(VERBS) <= set(named)


def test_help_of_a_verb_may_be_asked_for_in_two_ways(run):
    assert run("help models") == run("models --help")


def test_no_verb_shows_help_as_an_error(run):
    _, out, err = run(status=2)
    assert (out, err.splitlines()[0]) == ("", "usage: seqray VERB [OPTIONS]")


def test_version_also_as_a_module_and_by_the_words_of_the_process(run, monkeypatch, capfd):
    command = [sys.executable, "-m", "seqray", "--version"]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
        == f"seqray {__version__}\n"
    )
    monkeypatch.setattr(sys, "argv", ["seqray", "--version"])
    assert main() == 0
    assert capfd.readouterr().out == f"seqray {__version__}\n"


# --- endings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "status", "names"),
    [
        (InputError("is odd", where="x.fa", remedy="mend it"), 2, "error: x.fa: is odd; mend it"),
        (SeqrayError("broke\n  here"), 1, "error: broke here"),
        (MemoryError(), 2, "memory ran out"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), 2, "memory ran out"),
        (RuntimeError("could not create a primitive"), 2, "memory ran out"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), 2, "memory ran out"),
        (ZeroDivisionError("by\nzero"), 1, "(ZeroDivisionError: by zero); '--debug' shows where"),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_an_error_is_one_line_and_a_status(verb, error, status, names, run):
    def fail(request):
        raise error

    verb(fail)
    _, out, line = run("try", status=status)
    assert (out, line.count("\n")) == ("", 1)
    assert line.startswith("seqray: ")
    assert names in line
    told = run("try --debug", status=status).err
    assert told.startswith("Traceback")
    assert told.endswith(line)


VERB = """
import os, signal, sys, types
from seqray.cli.main import main
from seqray.cli.options import Outcome, Request
from seqray.cli.main import VERBS

class Open:
    def __del__(self):
        stop()

def stop():
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()

def run(request):
    {body}
    return Outcome()

sys.modules["try_verb"] = types.SimpleNamespace(TryRequest=Request, run=run)
VERBS["try"] = ("try_verb", "do as told")
before = signal.getsignal(signal.SIGTERM)
status = main(["try", "--quiet"])
print("the same" if signal.getsignal(signal.SIGTERM) is before else "another")
sys.exit(status)
"""


@pytest.mark.parametrize(
    ("body", "printed"),
    [
        ("try: stop()\n    finally: print('closed')", "closed\nthe same\n"),
        ("try: stop()\n    except BaseException: raise ImportError('failed') from None", "the same\n"),
        ("Open()", "the same\n"),
    ],
    ids=["what is open is closed", "a library makes an error of it", "within a finalizer"],
)
def test_a_signal_ends_the_run_and_its_handler_is_put_back(body, printed):
    """In a process of its own: libraries that other tests load leave stacks for signals behind."""
    done = python(VERB.format(body=body))
    assert (done.returncode, done.stdout, done.stderr) == (143, printed, "seqray: terminated\n")


def test_a_verb_gets_a_frozen_request_with_the_command_of_a_header(verb, run):
    seen = []
    verb(lambda request: seen.append(request) or Outcome())
    run("try --letter a --name x --letter b --debug")
    command = ("seqray", "try", "--letter", "a", "--name", "x", "--letter", "b")
    assert seen == [TryRequest(command=command, name="x", letters=("a", "b"), debug=True)]
    with pytest.raises(AttributeError):
        seen[0].name = "y"


def test_the_outcome_of_a_verb_decides_the_status_and_the_line_on_resources(verb, run):
    verb(lambda request: Outcome(records=3, status=7))
    assert run("try", status=7).err.endswith(", records 3\n")
    verb(lambda request: Outcome(resources=False))
    assert run("try").err == ""


@pytest.mark.parametrize(
    ("verb", "by_place", "by_name"),
    [
        ("export", ["m", "--out", "x.onnx"], ["--out", "x.onnx", "-m", "m"]),
        ("prefilter", ["m", "a.fa", "b.fa", "-o", "x"], ["a.fa", "b.fa", "-o", "x", "--model=m"]),
        ("models", ["show", "m", "--json"], ["show", "--json", "--model", "m"]),
        ("calibrate", ["m", "--test", "t.tsv", "-o", "x"], ["--model", "m", "--test", "t.tsv", "-o", "x"]),
    ],
)
def test_the_model_is_named_by_an_option_everywhere(verb, by_place, by_name):
    requests = [vars(parse(verb, words)) | {"command": None} for words in (by_place, by_name)]
    assert requests[0] == requests[1]


HEAVY = ("torch", "lightning", "pandas", "sklearn", "scipy", "scipy.stats", "pyarrow", "Bio.Seq", "pysam")
HEAVY += ("matplotlib", "transformers", "peft", "pyrodigal", "onnx", "onnxruntime", "openvino", "jinja2")
INPUT = "one.fa --model ecoli-promoter --quiet"
PROGRAM = """\
import sys
from seqray.cli.main import main
for words in {runs}:
    assert main(words) == 0, words
    print("LOADED", words[0], *({heavy} & set(sys.modules)), file=sys.stderr)
"""


@pytest.fixture
def loaded(tmp_path):
    """Heavy packages in memory after each of some commands, which run in one process, in turn."""
    write(tmp_path / "one.fa", fasta({"one": "ACGTTGCATA" * 8 + "C"}))

    def run(*commands):
        program = PROGRAM.format(runs=[command.split() for command in commands], heavy=set(HEAVY))
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        lines = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("LOADED ")]
        return {verb: set(packages) for verb, *packages in lines}

    return run


def test_verbs_without_a_network_load_none(loaded, tmp_path):
    rows = [(letters(40, i), "np"[i % 2]) for i in range(40)]
    write(tmp_path / "labels.tsv", tsv("sequence label", rows))
    found = loaded(
        "completion bash",
        "models",
        "models show ecoli-promoter",
        "split labels.tsv --out split.tsv --quiet",
        "audit split.tsv --no-baselines --out audit.tsv --quiet",
    )
    assert found["completion"] == found["models"] == set()
    assert not (found["split"] | found["audit"]) & {"sklearn", "scipy.stats", "pandas", "torch"}


def test_predict_and_scan_load_torch_alone_and_explain_no_statistics(loaded):
    found = loaded(
        f"predict {INPUT} --out predictions.tsv",
        f"scan {INPUT} --null-mb 0 --out calls.gff3 --out calls.tsv --out calls.bed",
        f"explain {INPUT} --out positions.tsv",
    )
    assert found["predict"] == found["scan"] == {"torch"}
    assert found["explain"] <= {"torch", "scipy"}  # scipy.special, for intervals


@pytest.mark.parametrize("engine", ["onnx", "auto"])
def test_predict_and_scan_by_onnx_runtime_load_no_torch(loaded, tmp_path, engine):
    words = f"--engine {engine} --device cpu"
    found = loaded(
        f"scan {INPUT} {words} --null-mb 0 --out calls.gff3",
        f"predict {INPUT} {words} --out predictions.tsv",
        "scan one.fa --model bacteria-genome --engine onnx --quiet --out sites.gff3",
    )
    assert found["predict"] == {"onnx", "onnxruntime"}  # the first scan has loaded no more
    assert not found["scan"] & {"torch", "scipy", "pandas"}
    for name in ("predictions.tsv", "calls.gff3"):
        assert "# engine: ONNX Runtime " in (tmp_path / name).read_text()
