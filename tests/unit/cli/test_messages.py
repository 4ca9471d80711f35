"""The line on resources, and names of the files that ``seqray explain`` writes."""

import argparse
import re
import resource
import subprocess
import sys

import pytest

from seqray.cli import messages
from seqray.cli.explain_options import ExplainRequest, faithfulness_path, output_paths, track_names
from seqray.cli.messages import Resources
from seqray.core import errors as usage
from seqray.core.errors import SERVED

REPORT = "from seqray.cli.messages import Resources; Resources().report(None, False)"


class Usage(tuple):
    """What `resource.getrusage` returns, as far as it is read."""

    def __new__(cls, user, system, memory, faults=0):
        made = super().__new__(cls, (user, system, memory))
        made.ru_utime, made.ru_stime, made.ru_maxrss, made.ru_majflt = user, system, memory, faults
        return made


@pytest.mark.parametrize(
    ("largest", "stated"),
    [(900_000, "0 MB"), (2_000_000, "2048 MB")],  # KiB of children: before the run, and of a larger one
)
def test_what_was_used_before_the_run_does_not_count(monkeypatch, capsys, largest, stated):
    now = {resource.RUSAGE_SELF: Usage(5.0, 1.0, 0, 3), resource.RUSAGE_CHILDREN: Usage(70.0, 9.0, 900_000)}
    monkeypatch.setattr(resource, "getrusage", lambda who: now[who])
    monkeypatch.setattr(messages, "RSS_UNIT", 1024)
    resources = Resources()
    now[resource.RUSAGE_SELF] = Usage(7.0, 1.5, 0, 4)
    now[resource.RUSAGE_CHILDREN] = Usage(70.5, 9.25, largest)
    resources.report(12, verbose=True)
    line = capsys.readouterr().err
    assert "CPU 3.2 s" in line  # 2 + .5 of its own, .5 + .25 of its children
    assert "records 12, user 2.0 s, system 0.5 s, major page faults 1" in line
    assert line.rstrip().endswith(f"largest process that it started {stated}")


def test_what_processes_of_a_fork_server_used_counts_once(capsys):
    SERVED.add(usage.Usage(500.0, 9_000_000_000))  # before the run
    resources = Resources()
    SERVED.add(usage.Usage(30.0, 2_000_000_000))
    SERVED.add(usage.Usage(70.0, 1_000_000_000))
    resources.report(None, verbose=False)
    [(cpu, peak)] = re.findall(r"CPU ([\d.]+) s, peak memory (\d+) MB", capsys.readouterr().err)
    assert 100 <= float(cpu) < 101
    assert peak == "2000"
    Resources()
    assert usage.Usage() == SERVED


@pytest.mark.skipif(sys.platform != "linux", reason="other systems count each process by itself")
def test_memory_of_the_process_that_began_the_run_does_not_count():
    command = [sys.executable, "-c", REPORT]
    program = f"held = b'x' * 300_000_000; import os; os.execv({command[0]!r}, {command!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    [peak] = re.findall(r"peak memory (\d+) MB", done.stderr)
    assert 5 < int(peak) < 200


def request_of(*words):
    parser = argparse.ArgumentParser()
    ExplainRequest.add_arguments(parser)
    return ExplainRequest.of(parser.parse_args(["x.fa", "--model", "m", *words]), words)


def test_a_track_is_named_for_its_method_where_there_are_several():
    one = request_of("--track", "t.bw", "--method", "ism")
    two = request_of("--track", "t.bedgraph.gz", "--method", "ism", "--method", "rollout")
    assert (track_names(one, "ism"), track_names(two, "ism")) == (["t.bw"], ["t.ism.bedgraph.gz"])
    assert output_paths(two) == [
        "-",
        *("t.ism.plus.bedgraph.gz", "t.ism.minus.bedgraph.gz"),
        *("t.rollout.plus.bedgraph.gz", "t.rollout.minus.bedgraph.gz"),
    ]


def test_the_table_of_the_checks_is_beside_the_scores_unless_it_is_named():
    assert faithfulness_path(request_of()) is None
    assert faithfulness_path(request_of("--out", "a.tsv.gz")) == "a.faithfulness.tsv"
    assert faithfulness_path(request_of("--out", "a.tsv", "--faithfulness", "b.tsv")) == "b.tsv"
    assert faithfulness_path(request_of("--out", "a.tsv", "--no-check")) is None
