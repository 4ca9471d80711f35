"""What a pipeline may rely on, of every verb: streams, compression, exit codes, quiet, bytes."""

import gzip
import json
import os
import pty
import re
import subprocess

import pytest

from seqray.cli.main import VERBS
from tables import body, fasta, letters, write

LINES = re.compile(r"^seqray: resources: wall [\d.]+ s, CPU [\d.]+ s, peak memory \d+ MB, records (\d+)$")
MORE = {"predict": "", "scan": "--null-mb 0", "explain": "--no-check"}


@pytest.fixture
def source(tmp_path):
    return write(tmp_path / "in.fa", fasta({f"r{i}": letters(20, i) for i in range(12)}))


@pytest.fixture
def seqray(run, tiny_model_file):
    """Run a verb with the tiny model."""
    return lambda verb, *words, **more: run(verb, "--threads 1 --model", tiny_model_file, *words, **more)


# --- streams and compression ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        *(f"{verb} promoter.fa --model tiny.safetensors --threads 1 {MORE[verb]} --out" for verb in MORE),
        "negatives promoter.fa --recipe shuffle --out",
        "negatives table.tsv --recipe shuffle --out",
        "split table.tsv --shares 60,20,20 --out",
        "audit table.tsv --no-baselines --out",
    ],
)
def test_standard_streams_and_gz_carry_the_same_rows(run, process, input_files, tmp_path, command):
    verb, name, *_ = command.split()
    for file in (name, "tiny.safetensors"):
        write(tmp_path / file, input_files[file])
    run(command, "a.tsv")
    write(tmp_path / f"{name}.gz", gzip.compress(input_files[name]))
    run(command.replace(name, f"{name}.gz"), "b.tsv.gz")
    piped = process(command.replace(name, "-"), "- --quiet", given=gzip.compress(input_files[name]))
    plain = body((tmp_path / "a.tsv").read_text())
    assert len(plain) > 1
    assert body(gzip.decompress((tmp_path / "b.tsv.gz").read_bytes()).decode()) == plain
    assert body(piped.stdout.decode()) == plain
    assert piped.stderr == b"" or verb == "audit"  # whose findings are no messages
    assert b"\x1b" not in piped.stdout + piped.stderr  # no colour and no bar without a terminal
    assert b"\r" not in piped.stdout + piped.stderr


@pytest.mark.parametrize("verb", MORE)
def test_an_empty_input_gives_a_valid_empty_output(verb, tmp_path, seqray):
    for content in (b"", b"; only a comment\n", gzip.compress(b"", mtime=0)):
        write(tmp_path / "none.fa", content)
        seqray(verb, "none.fa --out out.tsv --allow-empty")
        [header] = body((tmp_path / "out.tsv").read_text())
        assert "\t" in header
        seqray(verb, "none.fa --out other.tsv", status=2)


@pytest.mark.parametrize("verb", ["predict", "scan"])
@pytest.mark.parametrize("words", ["--batch-size auto", "--device cpu", "--device auto"])
def test_where_and_how_it_is_computed_changes_no_row(verb, words, source, seqray):
    assert seqray(verb, "in.fa", MORE[verb]).rows == seqray(verb, "in.fa", MORE[verb], words).rows


# --- what is told ---------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_itself_and_has_the_same_options_of_telling(verb, run):
    help_ = run(verb, "--help")
    assert help_.err == ""
    assert help_.out.startswith(f"usage: seqray {verb}")
    assert all(option in help_.out for option in ("--quiet", "--verbose", "--log-json", "--debug"))


def test_the_last_line_names_what_it_took_and_quiet_turns_all_of_it_off(seqray, source, run):
    ended = seqray("predict", "in.fa --out a.tsv")
    assert ended.out == ""
    assert LINES.match(ended.err.splitlines()[-1])[1] == "12"
    source.write_text(source.read_text() + ">empty\n")
    for verb in MORE:
        assert seqray(verb, "in.fa --out a.tsv --quiet") == (0, "", "")
    run("models verify --quiet ecoli-promoter")


def test_verbose_names_versions_model_and_device(seqray, source):
    told = seqray("predict", "in.fa --out a.tsv --verbose").err
    assert all(word in told for word in ("under Python", "tiny sha256:", "1 threads, cpu"))


def test_log_json_makes_every_line_an_object(seqray, source):
    source.write_text(source.read_text() + ">empty\n")
    ended = seqray("predict", "in.fa --out a.tsv --log-json")
    entries = [json.loads(line) for line in ended.err.splitlines()]
    assert ended.out == ""
    figures = entries[-1].pop("resources")
    assert all(set(entry) == {"time", "level", "verb", "message"} for entry in entries)
    assert {entry["verb"] for entry in entries} == {"predict"}
    assert [e["level"] for e in entries if "skipped record" in e["message"]] == ["warning"]
    stated = LINES.match(entries[-1]["message"])[0]
    assert [*figures] == ["wall_s", "cpu_s", "peak_mb", "records"]
    assert (
        f"wall {figures['wall_s']:.1f} s, CPU {figures['cpu_s']:.1f} s, peak memory {figures['peak_mb']} MB"
        in stated
    )
    assert figures["records"] == 12
    [entry] = map(json.loads, seqray("predict", "none.fa --log-json", status=2).err.splitlines())
    assert (entry["level"], entry["message"]) == ("error", "seqray: error: none.fa: no such file")
    assert entry["error"] == {"where": "none.fa", "what": "no such file", "remedy": ""}


def test_a_terminal_gets_no_colour_either_under_log_json(process, tiny_model_file, source):
    ours, theirs = pty.openpty()
    process("predict in.fa --log-json --out a.tsv --model", tiny_model_file, stderr=theirs)
    os.close(theirs)
    text = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"\x1b" not in text
    assert all(json.loads(line) for line in text.decode().splitlines())


# --- completion -----------------------------------------------------------------------------------


def complete(script, *words):
    """What bash offers for the last word."""
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()\n'
        '_shtab_seqray "$1" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    command = ["bash", "-c", program, "bash", str(script), "seqray", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stdout.split()


def test_bash_completes_verbs_options_and_choices(tmp_path, run):
    script = write(tmp_path / "seqray.bash", run("completion bash").out)
    assert set(complete(script, "")) >= set(VERBS)
    assert complete(script, "pre")[0] == "predict"
    assert "--threshold" in complete(script, "predict", "--thre")
    assert complete(script, "scan", "--strand", "p") == ["plus"]


@pytest.mark.parametrize(("shell", "mark"), [("zsh", "#compdef seqray"), ("fish", "complete -c seqray")])
def test_other_shells_get_a_script_with_every_verb(shell, mark, run):
    _, out, err = run("completion", shell)
    assert err == ""
    assert mark in out
    assert all(verb in out for verb in VERBS)
