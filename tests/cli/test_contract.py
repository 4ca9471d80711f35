"""What a pipeline may rely on, of every verb: streams, compression, exit codes, quiet, bytes, signals."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from seqray.cli.main import VERBS, main, parser_of
from seqray.core.alphabet import DNA

LINES = re.compile(r"^seqray: resources: wall [\d.]+ s, CPU [\d.]+ s, peak memory \d+ MB, records (\d+)$")


def fasta(count, length=20, seed=0):
    rng = np.random.default_rng(seed)
    return "".join(f">r{i}\n{DNA.decode(rng.integers(0, 4, length))}\n" for i in range(count))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.fa"
    path.write_text(fasta(12))
    return path


@pytest.fixture
def run(tiny_model_file, capfd):
    """Run a verb with the tiny model: exit status, standard output, standard error."""

    def call(verb, *words):
        status = main([verb, *map(str, words), "--model", str(tiny_model_file), "--threads", "1"])
        return status, *capfd.readouterr()

    return call


@pytest.fixture
def seqray(seqray_forks):
    """Run it in a process of its own."""

    def call(*words, **more):
        command = [seqray_forks.folder / "seqray", *map(str, words)]
        return subprocess.run(
            command, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | more, timeout=600
        )

    return call


# --- streams and compression ----------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["predict", "scan", "explain"])
def test_standard_streams_and_gz_carry_the_same_rows(seqray, verb, tiny_model_file, source, tmp_path, run):
    more = {"scan": ["--null-mb", "0"], "explain": ["--no-check"]}.get(verb, [])
    assert run(verb, source, "--out", tmp_path / "a.tsv", *more)[0] == 0
    packed = tmp_path / "in.fa.gz"
    packed.write_bytes(gzip.compress(source.read_bytes()))
    assert run(verb, packed, "--out", tmp_path / "b.tsv.gz", *more)[0] == 0
    words = [verb, "-", "--model", tiny_model_file, "--threads", "1", *more]
    piped = seqray(*words, input=source.read_bytes())
    assert piped.returncode == 0, piped.stderr

    def rows(text):
        return [line for line in text.splitlines() if not line.startswith("#")]

    plain = rows((tmp_path / "a.tsv").read_text())
    assert len(plain) > 1
    assert rows(gzip.decompress((tmp_path / "b.tsv.gz").read_bytes()).decode()) == plain
    assert rows(piped.stdout.decode()) == plain


@pytest.mark.parametrize("verb", ["predict", "scan", "explain"])
def test_an_empty_input_gives_a_valid_empty_output(verb, tmp_path, run):
    empty = tmp_path / "none.fa"
    empty.write_text("")
    assert run(verb, empty, "--out", tmp_path / "out.tsv", "--allow-empty")[0] == 0
    rows = [line for line in (tmp_path / "out.tsv").read_text().splitlines() if line[0] != "#"]
    assert len(rows) == 1
    assert "\t" in rows[0]
    assert run(verb, empty, "--out", tmp_path / "other.tsv")[0] == 2


@pytest.mark.parametrize("verb", ["predict", "scan"])
@pytest.mark.parametrize("words", [("--batch-size", "auto"), ("--device", "cpu"), ("--device", "auto")])
def test_where_and_how_it_is_computed_changes_no_row(verb, words, source, tmp_path, run):
    more = ["--null-mb", "0"] if verb == "scan" else []
    tables = []
    for name, options in (("a.tsv", ()), ("a.tsv", words)):
        assert run(verb, source, "--out", tmp_path / name, *more, *options)[0] == 0
        text = (tmp_path / name).read_text()
        tables.append([line for line in text.splitlines() if not line.startswith("# command")])
    assert tables[0] == tables[1]


@pytest.mark.parametrize("verb", ["predict", "scan"])
def test_a_second_run_has_the_same_bytes(verb, source, tmp_path, run):
    found = []
    for _ in range(2):
        assert run(verb, source, "--out", tmp_path / "out.tsv.gz")[0] == 0
        found.append((tmp_path / "out.tsv.gz").read_bytes())
    assert found[0] == found[1]


# --- what is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_the_same_options_of_telling(verb):
    known = {option for action in parser_of(verb)._actions for option in action.option_strings}
    assert {"--quiet", "--verbose", "--log-json", "--debug"} <= known


def test_the_last_line_names_what_it_took(run, source, tmp_path):
    status, out, err = run("predict", source, "--out", tmp_path / "a.tsv")
    assert (status, out) == (0, "")
    assert LINES.match(err.splitlines()[-1])[1] == "12"


def test_quiet_turns_all_of_it_off(run, source, tmp_path):
    assert run("predict", source, "--out", tmp_path / "a.tsv", "--quiet") == (0, "", "")
    assert main(["models", "verify", "--quiet", "ecoli-promoter"]) == 0


def test_quiet_and_verbose_exclude_each_other(run, source):
    status, _, err = run("predict", source, "--quiet", "--verbose")
    assert status == 2
    assert err == "seqray: error: --quiet and --verbose can't both be given; give one of them\n"


def test_verbose_names_versions_model_and_device(run, source, tmp_path):
    _, _, err = run("predict", source, "--out", tmp_path / "a.tsv", "--verbose")
    assert "under Python" in err
    assert "model tiny sha256:" in err
    assert "1 threads, cpu" in err


def test_log_json_makes_every_line_an_object(run, source, tmp_path):
    source.write_text(source.read_text() + ">empty\n")
    status, out, err = run("predict", source, "--out", tmp_path / "a.tsv", "--log-json")
    entries = [json.loads(line) for line in err.splitlines()]
    assert (status, out) == (0, "")
    assert all(set(entry) == {"time", "level", "verb", "message"} for entry in entries)
    assert {entry["verb"] for entry in entries} == {"predict"}
    assert [e["level"] for e in entries if "skipped record" in e["message"]] == ["warning"]
    assert LINES.match(entries[-1]["message"])
    assert "log-json" not in sys.stderr.__class__.__name__.lower()


def test_log_json_tells_errors_too(run, tmp_path):
    status, _, err = run("predict", tmp_path / "none.fa", "--log-json")
    [entry] = [json.loads(line) for line in err.splitlines()]
    assert (status, entry["level"]) == (2, "error")
    assert entry["message"].endswith("none.fa: no such file")


def test_no_colour_and_no_bar_without_a_terminal(seqray, tiny_model_file, source):
    done = seqray("predict", source, "--model", tiny_model_file)
    assert b"\x1b" not in done.stdout + done.stderr
    assert b"\r" not in done.stdout + done.stderr


def test_a_terminal_gets_no_colour_either_under_log_json(seqray, tiny_model_file, source, tmp_path):
    ours, theirs = pty.openpty()
    words = ["predict", source, "--model", tiny_model_file, "--log-json", "--out", tmp_path / "a.tsv"]
    done = seqray(*words, stdout=None, stderr=theirs)
    os.close(theirs)
    text = os.read(ours, 1 << 16)
    os.close(ours)
    assert done.returncode == 0
    assert b"\x1b" not in text
    assert all(json.loads(line) for line in text.decode().splitlines())


# --- how it ends ----------------------------------------------------------------------------------


def test_sigterm_leaves_nothing_half_written(seqray_forks, tiny_model_file, tmp_path):
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(
        [
            *(seqray_forks.folder / "seqray", "scan", "-", "--model", str(tiny_model_file)),
            *("--out", str(tmp_path / "out" / "a.gff3"), "--track", str(tmp_path / "out" / "a.bw")),
        ],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(fasta(3, 500).encode())
    process.stdin.flush()
    while not list((tmp_path / "out").iterdir()) and process.poll() is None:
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (143, b"seqray: terminated\n")
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--version"], 0),
        (["predict", "--help"], 0),
        ([], 2),
        (["nope"], 2),
        (["predict"], 2),
        (["predict", "none.fa", "--model", "ecoli-promoter"], 2),
        (["models", "show", "nope"], 2),
        (["gather", "none.shard"], 2),
        (["summary", "none"], 2),
    ],
)
def test_exit_codes(words, status, capfd):
    assert main(words) == status


# --- completion -----------------------------------------------------------------------------------


def complete(script, *words):
    """What bash offers for the last word."""
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n'
        '_shtab_seqray "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-c", program, "bash", str(script), "seqray", *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.stdout.split()


def test_bash_completes_verbs_options_and_choices(tmp_path, capfd):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "seqray.bash"
    script.write_text(capfd.readouterr().out)
    assert set(complete(script, "")) >= set(VERBS)
    assert complete(script, "pre")[0] == "predict"
    assert "--threshold" in complete(script, "predict", "--thre")
    assert complete(script, "scan", "--strand", "p") == ["plus"]


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "#compdef seqray"), ("fish", "complete -c seqray")])
def test_other_shells_get_a_script_with_every_verb(shell, mark, capfd):
    assert main(["completion", shell]) == 0
    out, err = capfd.readouterr()
    assert err == ""
    assert mark in out
    assert all(verb in out for verb in VERBS)
