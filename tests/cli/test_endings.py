"""How a run ends: damaged input, signals, readers that go away; whatever happens, nothing half-written stays.

test_errors.py holds what is refused at once.
"""

import array
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tables import fasta, letters, write

RECORD = ">a\nACGTACGTAGCTAGCTAGCA\n"
OUTPUTS = {"predict": "-o out/x.tsv --skipped out/s.tsv", "scan": "-o out/x.gff3 --track out/x.bw"}


class Opens:
    """Unpickling this would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (Path(self.path), "ran")


@pytest.fixture
def out(tmp_path) -> Path:
    (tmp_path / "in.fa").write_text(RECORD)
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", OUTPUTS)
def test_a_fault_late_in_the_file_leaves_nothing(run, out, tiny_model_file, verb):
    """Most rows are written before the fault is met."""
    records = {f"r{i}": letters(20, i) for i in range(800)} | {"bad": letters(500) + "*"}
    write(out.parent / "in.fa", fasta(records))
    more = "--quiet --threads 1 " + {"predict": "--truncate none", "scan": "--null-mb 0"}[verb]
    run.refused(verb, "in.fa", more, OUTPUTS[verb], "--model", tiny_model_file, names=("in.fa", "'bad'"))
    assert list(out.iterdir()) == []


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_is_refused_unread(run, out, protocol):
    content = pickle.dumps(Opens(str(out / "ran")), protocol=protocol)
    model = write(out.parent / "bad.safetensors", content)
    run.refused("predict in.fa -o out/x.tsv --model", model, names="bad.safetensors")
    assert not (out / "ran").exists()


# --- stopped half-way -----------------------------------------------------------------------------


def unread(pipe):
    """Bytes that the other side of a pipe has not taken yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


@pytest.mark.parametrize("verb", OUTPUTS)
@pytest.mark.parametrize(
    ("number", "status", "line"),
    [(signal.SIGINT, 130, b"seqray: interrupted\n"), (signal.SIGTERM, 143, b"seqray: terminated\n")],
)
def test_a_stopped_run_leaves_nothing(process, tiny_model_file, out, verb, number, status, line):
    """It waits for more input, and its output is open: an earlier signal would meet imports."""
    running = process.begin(verb, "-", OUTPUTS[verb], "--model", tiny_model_file)
    running.stdin.write(RECORD.encode())
    running.stdin.flush()
    while running.poll() is None and (not list(out.iterdir()) or unread(running.stdin)):
        time.sleep(0.05)
    assert running.poll() is None
    running.send_signal(number)
    printed, told = running.communicate(timeout=600)
    # Python ends by the signal itself where Ctrl-C meets it in exec(), as in an import: 130 to a shell, too.
    code = running.returncode if running.returncode >= 0 else 128 - running.returncode
    assert (code, printed, told) == (status, b"", line)
    assert list(out.iterdir()) == []


SWALLOWS = """
import os, signal, sys, torch
from seqray.cli.main import main

compute = torch.nn.Module.__call__

def stopped(*given, **named):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException:  # as an import in a library may do
        pass
    return compute(*given, **named)

torch.nn.Module.__call__ = stopped
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_that_a_library_swallows_is_not_lost(tiny_model_file, out):
    words = ["predict", str(out.parent / "in.fa"), "--model", str(tiny_model_file), "-o", str(out / "x.tsv")]
    done = subprocess.run([sys.executable, "-c", SWALLOWS, *words], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (143, b"")
    assert done.stderr.decode().endswith("seqray: terminated\n")
    assert list(out.iterdir()) == []


def test_a_reader_that_goes_away_ends_the_run_quietly(process, tiny_model_file, out):
    write(out.parent / "in.fa", "".join(f">record_{i}\nACGTACGTACGTACGTTCGA\n" for i in range(10_000)))
    running = process.begin("predict in.fa --model", tiny_model_file)
    assert running.stdout.readline().startswith(b"# seqray")
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait(timeout=600) == 141


def test_standard_output_that_can_not_be_written_is_told(process, tiny_model_file, out):
    closed = os.open(os.devnull, os.O_RDONLY)
    done = process("predict in.fa --quiet --model", tiny_model_file, status=2, stdout=closed)
    assert done.stderr.startswith(b"seqray: error: standard output: ")
    assert done.stderr.count(b"\n") == 1
