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

from seqray.cli.inputs import GenomeInput, RecordOptions
from seqray.cli.messages import JsonLines, Progress
from seqray.core.alphabet import DNA
from tables import write


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
