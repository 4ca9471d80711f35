"""Standard streams, and how a run tells of its progress."""

import errno
import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from seqray.cli.inputs import GenomeInput, RecordOptions
from seqray.cli.main import main
from seqray.cli.messages import JsonLines, Progress, guard_streams
from seqray.core.alphabet import DNA
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


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show(total=4, **settings):
    """Four steps of one letter."""
    with Progress("scan", "letters", total, **settings) as progress:
        assert list(progress.watch("abcd")) == list("abcd")


def test_a_terminal_shows_share_rate_and_time_left_and_is_wiped():
    program = (
        "import time\nfrom seqray.cli.messages import Progress\n"
        "with Progress('scan', 'letters', 40) as progress:\n"
        "    for done in range(8):\n        time.sleep(0.06)\n        progress.update(5 * done + 5)\n"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    subprocess.run([sys.executable, "-c", program], stderr=theirs, timeout=600, check=True)
    frames = os.read(ours, 1 << 16).decode().split("\r")
    os.close(theirs)
    os.close(ours)
    assert any("%|" in frame and "letters/s" in frame and "<" in frame for frame in frames)
    assert frames[-1].strip() == ""


def test_a_log_has_a_line_for_each_interval(capsys):
    show(interval=0.0)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("seqray: scan: 50 % (2 of 4 letters), ")
    assert lines[1].endswith(" left")
    assert "letters/s" in lines[1]


@pytest.mark.parametrize("settings", [{"interval": 3600.0}, {"quiet": True, "interval": 0.0}])
def test_nothing_is_shown_before_the_interval_is_over_or_if_quiet(capsys, settings):
    show(**settings)
    assert capsys.readouterr().err == ""


def test_a_quiet_terminal_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    show(quiet=True, interval=0.0)
    assert sys.stderr.getvalue() == ""


def test_without_a_total_count_and_rate_are_shown(capsys):
    show(total=None, interval=0.0)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith("seqray: scan: 4 letters, ")
    assert "%" not in last


def test_json_events_have_figures(monkeypatch):
    target = io.StringIO()
    monkeypatch.setattr(sys, "stderr", JsonLines(target, "scan"))
    with Progress("scan", "letters", interval=0.0) as progress:
        progress.update(1, 4)
        progress.update(3)
    events = [json.loads(line) for line in target.getvalue().splitlines()]
    assert [(e["progress"]["done"], e["progress"]["share"]) for e in events] == [(1, 0.25), (3, 0.75)]
    assert {(e["level"], e["progress"]["unit"], e["progress"]["phase"]) for e in events} == {
        ("info", "letters", "scan")
    }
    assert events[1]["progress"]["seconds_left"] >= 0


def test_a_new_phase_starts_again(capsys):
    with Progress("scan", "letters", 10, interval=0.0) as progress:
        progress.update(10)
        progress.update(1, 4, "scan shuffled sequence")
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("seqray: scan: 100 % (10 of 10 letters)")
    assert second.startswith("seqray: scan shuffled sequence: 25 % (1 of 4 letters)")


# --- totals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "known"), [("a.fa", True), ("a.FNA", True), ("a.fa.gz", False), ("a", False)]
)
def test_the_size_of_plain_fasta_is_about_its_letters(tmp_path, name, known):
    path = write(tmp_path / name, ">a\nACGT\n")
    source = GenomeInput(str(path), DNA, RecordOptions(), None)
    assert source.letters() == (8 if known else None)
    assert [record.sequence for record in source.records] == ["ACGT"]
