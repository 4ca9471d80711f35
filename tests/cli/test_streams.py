"""Standard streams that are closed, full, or of a narrow encoding: a line and exit 2, or no matter."""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from seqray.cli.main import main
from seqray.cli.messages import guard_streams
from tables import changed_model, tsv, write

TABLE = (
    "# model: tiny\n# threshold: 0.5, chosen\n# scanned: 1 sequence, 1000 letters, 5 windows\n"
    "# calls: 1, 1000 per Mb\n"
    "id\tcontig\tsite\tscore\na\tone\t5\t0.9\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.tsv", TABLE)
    rows = [(i, "xy"[i % 2], "ACGT"[i % 4] * 9, i / 40) for i in range(40)]
    write(tmp_path / "l.tsv", tsv("id label sequence p_x", rows))
    return tmp_path


def full():
    return Path("/dev/full").open("w")


@pytest.mark.parametrize("stream", [None, full])
def test_messages_that_nobody_reads_end_no_run(folder, monkeypatch, capsys, stream):
    monkeypatch.setattr(sys, "stderr", stream and stream())
    assert main(["summary", "x=a.tsv", "--out", "o.tsv"]) == 0
    assert (folder / "o.tsv").read_text().startswith("sample\t")
    assert main(["summary", "x=b.tsv", "--out", "o.tsv"]) == 2
    assert capsys.readouterr().out == ""
    if sys.stderr:
        sys.stderr.close()


PRINTING = (
    "summary x=a.tsv",
    "models",
    "evaluate --predictions l.tsv --labels l.tsv --positive x --no-floor --bootstrap 9 --out o.tsv",
    "audit l.tsv --no-baselines --out o.tsv",
    "--help",
    "predict --help",
    "completion bash",
)


@pytest.mark.parametrize(("stream", "what"), [(None, "is closed"), (full, "No space left on device")])
@pytest.mark.parametrize("words", PRINTING)
def test_standard_output_that_cant_be_written_is_named_and_no_file_appears(
    folder, monkeypatch, capsys, stream, what, words
):
    monkeypatch.setattr(sys, "stdout", stream and stream())
    assert main(words.split()) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("seqray: error: standard output: ")
    assert what in line
    assert sorted(path.name for path in folder.iterdir()) == ["a.tsv", "l.tsv"]
    if sys.stdout:
        sys.stdout.close()


def test_a_closed_standard_input_is_named(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    run.refused("summary x=-", names=("standard input", "closed"))


def test_no_file_is_needed_where_none_can_be_opened(monkeypatch):
    def refuse(*_):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", refuse)
    with guard_streams():
        pass


def test_letters_that_the_encoding_lacks_are_escaped(monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    with guard_streams():
        sys.stdout.write("\u2265 0.5 \udce4\n")
    assert stream.buffer.getvalue() == b"\\u2265 0.5 \\udce4\n"


RED = "\x1b[31mred \x9b \u202e \U000e0041"


def test_what_a_terminal_obeys_is_escaped_and_bytes_stay(monkeypatch):
    printed, said = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setattr(sys, "stderr", said)
    with guard_streams():
        sys.stdout.write(f"\u2265 {RED}\t1\r\n")
        sys.stdout.flush()
        sys.stdout.buffer.write(b"\x1b")
        sys.stderr.write(f"{RED}\n")
    escaped = r"\u001b[31mred \u009b \u202e \udb40\udc41"
    assert printed.buffer.getvalue().decode() == f"\u2265 {escaped}\t1\r\n\x1b"
    assert said.buffer.getvalue().decode() == f"{escaped}\n"
    assert json.loads(f'"{escaped}"') == RED  # so it stays JSON under --log-json


@pytest.mark.parametrize("words", ["show", "show --json", "verify"])
def test_a_card_says_nothing_to_the_terminal(run, tiny_model, tmp_path, words):
    path = changed_model(tmp_path / f"{RED}.safetensors", tiny_model, summary=RED)
    printed = run("models", words, path).out
    assert printed.replace("\n", "").replace("\t", "").isprintable()
    assert "show" not in words or "31mred" in printed
    assert run.refused("models show", [f"{path}{RED}"]).isprintable()


def test_an_output_never_gets_the_number_of_a_closed_stream(folder):
    program = (
        "import sys\nfrom seqray.cli.main import main\n"
        "status = main(['summary', 'x=a.tsv', '--out', 'o.tsv'])\n"
        "open('number', 'w').write(f'{status} {open(\"a.tsv\").fileno()}')"
    )
    command = ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "-", sys.executable, "-c", program]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run(command, env=environment, check=False).returncode == 0
    status, number = (folder / "number").read_text().split()
    assert (status, int(number) > 2) == ("0", True)
