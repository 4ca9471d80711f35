"""Progress: a bar on a terminal, lines in a log, events under ``--log-json``, nothing under ``--quiet``."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from seqray.cli.inputs import letters_in, records_in
from seqray.cli.messages import JsonLines, Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def show(monkeypatch, stream, *, total=4, **settings):
    """What standard error shows of four steps of one letter."""
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("scan", "letters", total, **settings) as progress:
        assert list(progress.watch("abcd")) == list("abcd")
    return stream.getvalue()


def test_a_terminal_shows_share_rate_and_time_left_and_is_wiped():
    program = (
        "import time\nfrom seqray.cli.messages import Progress\n"
        "with Progress('scan', 'letters', 40) as progress:\n"
        "    for done in range(8):\n        time.sleep(0.06)\n        progress.update(5 * done + 5)\n"
        "print('done')"
    )
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    done = subprocess.run(
        [sys.executable, "-c", program], stderr=theirs, stdout=subprocess.PIPE, timeout=600, check=True
    )
    text = os.read(ours, 1 << 16).decode()
    os.close(theirs)
    os.close(ours)
    frames = text.split("\r")
    assert done.stdout == b"done\n"
    assert any("%|" in frame and "letters/s" in frame and "<" in frame for frame in frames)
    assert frames[-1].strip() == ""


def test_a_log_has_a_line_for_each_interval(monkeypatch):
    lines = show(monkeypatch, io.StringIO(), interval=0.0).splitlines()
    assert len(lines) == 4
    assert lines[1].startswith("seqray: scan: 50 % (2 of 4 letters), ")
    assert lines[1].endswith(" left")
    assert "letters/s" in lines[1]


def test_a_slow_rate_is_stated_per_minute(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    now = iter((0.0, 50.0))
    monkeypatch.setattr("seqray.cli.messages.time.monotonic", lambda: next(now))
    with Progress("explain", "records", 30) as progress:
        progress.advance()
    assert sys.stderr.getvalue() == "seqray: explain: 3 % (1 of 30 records), 1.2 records/min, 24:10 left\n"


def test_a_log_has_no_line_before_the_interval_is_over(monkeypatch):
    assert show(monkeypatch, io.StringIO(), interval=3600.0) == ""


def test_without_a_total_count_and_rate_are_shown(monkeypatch):
    lines = show(monkeypatch, io.StringIO(), total=None, interval=0.0).splitlines()
    assert lines[-1].startswith("seqray: scan: 4 letters, ")
    assert "%" not in lines[-1]


def test_json_events_have_figures(monkeypatch):
    target = io.StringIO()
    monkeypatch.setattr(sys, "stderr", JsonLines(target, "scan"))
    with Progress("scan", "letters", interval=0.0) as progress:
        progress.update(1, 4)
        progress.update(3)
    events = [json.loads(line) for line in target.getvalue().splitlines()]
    assert [event["progress"]["done"] for event in events] == [1, 3]
    assert [event["progress"]["share"] for event in events] == [0.25, 0.75]
    assert {event["progress"]["unit"] for event in events} == {"letters"}
    assert {event["progress"]["phase"] for event in events} == {"scan"}
    assert {event["level"] for event in events} == {"info"}
    assert events[1]["progress"]["seconds_left"] >= 0


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_quiet_shows_nothing(monkeypatch, stream):
    assert show(monkeypatch, stream, quiet=True, interval=0.0) == ""


def test_a_new_phase_starts_again(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("scan", "letters", 10, interval=0.0) as progress:
        progress.update(10)
        progress.update(1, 4, "scan shuffled sequence")
    first, second = stream.getvalue().splitlines()
    assert first.startswith("seqray: scan: 100 % (10 of 10 letters)")
    assert second.startswith("seqray: scan shuffled sequence: 25 % (1 of 4 letters)")


# --- totals ---------------------------------------------------------------------------------------------


def test_totals_of_plain_fasta_are_its_records_and_its_size(tmp_path):
    path = tmp_path / "a.fa"
    path.write_text(">a\nACGT\nAC\n>b\nA\n")
    assert records_in([str(path), str(path)]) == 4
    assert letters_in(str(path)) == path.stat().st_size


def test_totals_come_from_an_index_unless_it_is_older(tmp_path):
    path, index = tmp_path / "a.fa.gz", tmp_path / "a.fa.gz.fai"
    path.write_bytes(b"packed")
    index.write_text("a\t6\t3\t4\t5\nb\t1\t15\t1\t2\n")
    assert (records_in([str(path)]), letters_in(str(path))) == (2, 7)
    os.utime(index, (0, 0))
    assert (records_in([str(path)]), letters_in(str(path))) == (None, None)


@pytest.mark.parametrize("name", ["-", "none.fa", "table.tsv"])
def test_totals_of_other_inputs_are_unknown(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.tsv").write_text("sequence\tlabel\n")
    assert (records_in([name]), letters_in(name)) == (None, None)
