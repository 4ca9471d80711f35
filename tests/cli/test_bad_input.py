"""Bad input: one clear line, exit status 2, and nothing left behind; also when stopped half-way."""

from __future__ import annotations

import array
import fcntl
import gzip
import os
import pickle
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest

from seqray.cli.main import main

RECORD = ">a\nACGTACGTAGCTAGCTAGCA\n"
PROTEIN = ">p1\nMKVLAAGIVGLALLGAWPEQ\n"
ONE_LINE = ">long\n" + "ACGTACGGTC" * 500_000 + "\n"
TRUNCATED = gzip.compress("".join(f">r{i}\n{'ACGTTGCA' * 2}\n" for i in range(5000)).encode())[:-500]


class Opens:
    """Unpickling this would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (Path(self.path), "ran")


@pytest.fixture
def out(tmp_path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.fixture(params=["predict", "scan"])
def run(request, tiny_model_file, out, capfd):
    """Run a verb on an input; gives exit status and standard error, and checks that nothing was written."""

    def call(source, *words, model=tiny_model_file):
        outputs = [] if "-o" in words else ["-o", str(out / "x.tsv")]
        status = main([request.param, str(source), "--model", str(model), *outputs, *map(str, words)])
        text, err = capfd.readouterr()
        assert text == ""
        assert list(out.iterdir()) == []
        return status, err

    return call


def assert_refused(result, *parts):
    status, err = result
    assert status == 2
    assert err.startswith("seqray: error: ")
    assert len(err.splitlines()) == 1
    for part in parts:
        assert part in err


# --- sequences ------------------------------------------------------------------------------------

BAD_FILES = {
    "empty": (b"", "contains no records", "--allow-empty"),
    "blank": (b"\n\n", "contains no records"),
    "table": (
        b"sequence\tlabel\nACGT\tx\n",
        "no FASTA header",
        "tables are read by train, evaluate, calibrate, audit, split and negatives",
    ),
    "no header": (b"ACGTACGTACGT\n", "no FASTA header", "the first line must start with '>'"),
    "header only": (b">\n", "record 1 has no id", "write a name after '>'"),
    "protein": (PROTEIN.encode(), "record 'p1'", "looks like protein, but DNA is expected"),
    "NUL bytes": (b">a\nACGT\0ACGT\n", "NUL byte at byte 8"),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0", "NUL byte"),
    "truncated gzip": (TRUNCATED, "the gzip data ends too early"),
    "damaged gzip": (TRUNCATED[:400] + b"\xff" * 200 + TRUNCATED[600:], "the gzip data is damaged"),
    "duplicate ids": ((RECORD * 2).encode(), "record 'a'", "the id occurs more than once"),
    "unknown letter": (b">a\nACGTACG!TT\n", "record 'a'", "unknown letter '!' at position 8"),
    "alignment": (b">a\nACGT--ACGT\n", "record 'a'", "unknown letter '-' at position 5", "remove the gaps"),
    "FASTQ": (b"@r\nACGT\n+\nIIII\n", "is FASTQ, not FASTA"),
    "zip": (b"PK\x03\x04rest", "is a zip archive"),
    "UTF-16": (">a\nACGT\n".encode("utf-16"), "is UTF-16; save it as UTF-8"),
    "UTF-16, big end first": (b"\xfe\xff\0>\0a", "is UTF-16; save it as UTF-8"),
    "gzipped twice": (
        gzip.compress(gzip.compress(RECORD.encode())),
        "is compressed twice, by gzip and gzip; unpack it once",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_a_bad_file_is_named_with_the_reason(run, tmp_path, name):
    content, *parts = BAD_FILES[name]
    path = tmp_path / "in.fa"
    path.write_bytes(content)
    assert_refused(run(path), "in.fa", *parts)


def test_a_missing_file(run, tmp_path):
    assert_refused(run(tmp_path / "none.fa"), "none.fa: no such file")


def test_a_directory(run, tmp_path):
    assert_refused(run(tmp_path), f"{tmp_path}: is a directory")


def test_five_million_letters_on_one_line_are_too_long_to_predict(tiny_model_file, tmp_path, out, capfd):
    path = tmp_path / "in.fa"
    path.write_text(ONE_LINE)
    status = main(["predict", str(path), "--model", str(tiny_model_file), "-o", str(out / "x.tsv")])
    assert_refused(
        (status, capfd.readouterr().err),
        "record 'long': has 5000000 letters, model 'tiny' reads at most 20",
        "'seqray scan'",
    )
    assert list(out.iterdir()) == []


def test_five_million_letters_on_one_line_can_be_scanned(tiny_model_file, tmp_path, out):
    path = tmp_path / "in.fa"
    path.write_text(ONE_LINE)
    words = ["--stride", "10000", "--threshold", "1", "--null-mb", "0", "-o", str(out / "x.gff3")]
    assert main(["scan", str(path), "--model", str(tiny_model_file), *words, "--quiet"]) == 0
    assert re.search(r"\b5000000\b", (out / "x.gff3").read_text())


def test_a_fault_late_in_the_file_leaves_nothing(run, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "seqray.inference.sequences.CHUNK_RECORDS", 100
    )  # most rows are written before the fault is met
    path = tmp_path / "in.fa"
    letters = np.random.default_rng(0).choice(list("ACGT"), (250, 20))
    path.write_text("".join(f">r{i}\n{''.join(row)}\n" for i, row in enumerate(letters)) + ">bad\nAC*GT\n")
    skipped = path.parent / "out" / "s.tsv"
    assert_refused(run(path, "--skipped", skipped), "record 'bad'", "unknown letter '*'")


# --- models ---------------------------------------------------------------------------------------


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.fa"
    path.write_text(RECORD)
    return path


def test_a_wrong_model_name_suggests_the_nearest(run, source, tiny_model_file, monkeypatch):
    monkeypatch.setattr("seqray.modelfile.zoo.FOLDER", tiny_model_file.parent)
    assert_refused(run(source, model="tinny"), "no shipped model is called 'tinny'", "did you mean 'tiny'?")


def test_a_missing_model_file(run, source, tmp_path):
    assert_refused(run(source, model=tmp_path / "none.safetensors"), "none.safetensors: no such file")


@pytest.mark.parametrize("damage", ["cut", "changed", "empty", "text"])
def test_a_corrupt_model_file(run, source, tmp_path, tiny_model_file, damage):
    data = tiny_model_file.read_bytes()
    content = {
        "cut": data[:-10],
        "changed": data[:-10] + bytes(10),
        "empty": b"",
        "text": b"no model at all, only words\n",
    }[damage]
    path = tmp_path / "bad.safetensors"
    path.write_bytes(content)
    assert_refused(run(source, model=path), "bad.safetensors")


@pytest.mark.parametrize("protocol", [0, 2, 5])
def test_a_pickle_is_refused_unread(run, source, tmp_path, protocol):
    path = tmp_path / "bad.safetensors"
    path.write_bytes(pickle.dumps(Opens(str(tmp_path / "ran")), protocol=protocol))
    assert_refused(run(source, model=path), "bad.safetensors")
    assert not (tmp_path / "ran").exists()


# --- outputs and settings -------------------------------------------------------------------------


def test_an_output_in_a_missing_directory(run, source, tmp_path):
    target = tmp_path / "none" / "x.tsv"
    assert_refused(run(source, "-o", target), f"{target}: can't be written (its directory doesn't exist)")


def test_an_output_that_is_a_directory(run, source, tmp_path):
    target = tmp_path / "x.tsv"
    target.mkdir()
    assert_refused(run(source, "-o", target), f"{target}: is a directory")


def test_an_output_of_unknown_kind(run, source, tmp_path):
    assert_refused(run(source, "-o", tmp_path / "x.docx"), "x.docx: ", "; use .")


def test_the_input_is_never_overwritten(run, tmp_path):
    path = tmp_path / "in.tsv"  # a link to itself by another name does not help
    path.write_text(RECORD)
    link = tmp_path / "other.tsv"
    link.symlink_to(path)
    assert_refused(run(path, "-o", link), "other.tsv: is an input and would be overwritten")
    assert path.read_text() == RECORD


def test_one_file_can_not_be_two_outputs(run, source, tmp_path):
    assert_refused(
        run(source, "-o", tmp_path / "x.tsv", "--skipped", tmp_path / "x.tsv"),
        "x.tsv: is named twice as an output",
    )


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("--device", "gpu"), ("unknown device 'gpu'", "give auto, cpu, cuda or cuda:N")),
        (("--device", "cuda:"), ("unknown device 'cuda:'",)),
        (("--device", "cuda:999"), ("the device is 'cuda:999'", "use the device cpu")),
        (("--batch-size", "many"), ("--batch-size: 'many' is not a whole number",)),
        (("--threshold", "-1"), ("--threshold",)),
    ],
)
def test_a_setting_that_makes_no_sense(run, source, words, parts):
    assert_refused(run(source, *words), *parts)


def test_a_prior_must_leave_both_classes_possible(tiny_model_file, source, capfd):
    status = main(["predict", str(source), "--model", str(tiny_model_file), "--prior", "0"])
    assert_refused((status, capfd.readouterr().err), "the prior is 0; give a share above 0 and below 1")


# --- stopped half-way -----------------------------------------------------------------------------


def start(forks, verb, model, target):
    """Begin a run that waits for more input; return once its output is opened and its input read so far.

    A signal that comes earlier meets imports, some of which swallow whatever is raised in them.
    """
    process = subprocess.Popen(
        [forks.folder / "seqray", verb, "-", "--model", str(model), "-o", str(target)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(RECORD.encode())
    process.stdin.flush()
    while process.poll() is None and (not list(target.parent.iterdir()) or unread(process.stdin)):
        time.sleep(0.05)
    assert process.poll() is None
    return process


def unread(pipe):
    """Bytes that the other side of a pipe has not taken yet."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


@pytest.mark.parametrize("verb", ["predict", "scan"])
@pytest.mark.parametrize(
    ("number", "status", "line"),
    [
        (signal.SIGINT, 130, "seqray: interrupted\n"),
        (signal.SIGTERM, 143, "seqray: terminated\n"),
    ],
)
def test_a_stopped_run_leaves_nothing(seqray_forks, tiny_model_file, out, verb, number, status, line):
    process = start(seqray_forks, verb, tiny_model_file, out / "x.tsv")
    process.send_signal(number)
    text, err = process.communicate(timeout=600)
    # Python ends by the signal itself where Ctrl-C meets it in exec(), as in an import: 130 to a shell, too.
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    assert (code, text, err.decode()) == (status, b"", line)
    assert list(out.iterdir()) == []


SWALLOWS = """
import os, signal, sys
import seqray.inference.sequences
from seqray.cli.main import main

predict = seqray.inference.sequences.predict_records

def stopped(*given, **named):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
    except BaseException:  # as an import in a library may do
        pass
    return predict(*given, **named)

seqray.inference.sequences.predict_records = stopped
sys.exit(main(sys.argv[1:]))
"""


def test_a_signal_that_a_library_swallows_is_not_lost(tiny_model_file, source, out):
    words = ["predict", str(source), "--model", str(tiny_model_file), "--out", str(out / "x.tsv")]
    done = subprocess.run([sys.executable, "-c", SWALLOWS, *words], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (143, b"")
    assert done.stderr.decode().endswith("seqray: terminated\n")
    assert list(out.iterdir()) == []


def test_a_reader_that_goes_away_ends_the_run_quietly(tiny_model_file, tmp_path):
    path = tmp_path / "in.fa"
    path.write_text("".join(f">record_{i}\nACGTACGTACGTACGTTCGA\n" for i in range(10_000)))
    process = subprocess.Popen(
        [sys.executable, "-m", "seqray", "predict", str(path), "--model", str(tiny_model_file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith(b"# seqray")
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(timeout=600) == 141


def test_standard_output_that_can_not_be_written_is_told(tiny_model_file, source):
    done = subprocess.run(
        [sys.executable, "-m", "seqray", "predict", str(source), "--model", str(tiny_model_file), "--quiet"],
        stdout=os.open(os.devnull, os.O_RDONLY),
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    message = "seqray: error: standard output: can't be written (Bad file descriptor)\n"
    assert (done.returncode, done.stderr) == (2, message)
