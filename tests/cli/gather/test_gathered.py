"""Shards of a scan, gathered: the bytes of the whole scan, whatever the number of shards."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.gather.commands import run, scan_words
from seqray.cli.scan_options import divide_words
from tables import letters

TRACKS = ("score.plus.bedgraph", "score.minus.bedgraph", "score.plus.bw", "score.minus.bw")
OUTPUTS = ("calls.gff3", "calls.tsv", "calls.bed", "skipped.tsv", *TRACKS)


def outputs_in(folder: Path) -> list[str]:
    words = ["--skipped", str(folder / "skipped.tsv")]
    for name in ("calls.gff3", "calls.tsv", "calls.bed"):
        words += ["--out", str(folder / name)]
    return [*words, "--track", str(folder / "score.bedgraph"), "--track", str(folder / "score.bw")]


SETTINGS = {
    "engine": ["--engine", "onnx", "--threshold", "0.5", "--null-mb", "0"],
    "threshold": ["--threshold", "0.55", "--stride", "3", "--null-mb", "0.02"],
    "fdr": ["--fdr", "0.9", "--null-mb", "0.05", "--circular-id", "ring"],
    "parts": ["--threshold", "0.5", "--region", "long:55000-62000", "--region", "ring:1-40", "--circular"],
    "one strand": ["--strand", "minus", "--null-mb", "0", "--min-distance", "200", "--threshold", "0.5"],
}


@pytest.mark.parametrize(
    ("name", "total"), [("threshold", 5), ("fdr", 3), ("parts", 2), ("one strand", 20), ("engine", 2)]
)
def test_gathered_shards_are_the_whole_scan(genome, tiny_model_file, tmp_path, name, total):
    words = scan_words(genome, tiny_model_file, *SETTINGS[name])
    whole, parts, gathered = (tmp_path / folder for folder in ("whole", "parts", "gathered"))
    for folder in (whole, parts, gathered):
        folder.mkdir()
    run(*words, *outputs_in(whole))
    shards = [parts / f"{number}.shard" for number in range(1, total + 1)]
    for number, shard in enumerate(shards, start=1):
        run(*words, "--shard", f"{number}/{total}", "--out", shard, "--quiet")
    run("gather", *reversed(shards), *outputs_in(gathered))
    assert {path.name for path in whole.iterdir()} == set(OUTPUTS)
    for file in OUTPUTS:
        assert (gathered / file).read_bytes() == (whole / file).read_bytes(), file
    assert (whole / "calls.tsv").read_text().count("\n") > 20


@pytest.mark.parametrize("name", ["threshold", "parts", "one strand"])
def test_the_page_of_gathered_shards_is_that_of_the_whole_scan(
    genome, tiny_model_file, tmp_path, monkeypatch, capfd, name
):
    monkeypatch.chdir(tmp_path)
    words = scan_words(genome, tiny_model_file, *SETTINGS[name])
    run(*words, "--out", "calls.tsv", "--html", "page.html")
    whole, told = Path("page.html").read_bytes(), capfd.readouterr().err
    for number in (1, 2, 3):
        run(*words, "--shard", f"{number}/3", "--out", f"{number}.shard", "--quiet")
    capfd.readouterr()
    run("gather", "1.shard", "2.shard", "3.shard", "--out", "calls.tsv", "--html", "page.html")
    assert Path("page.html").read_bytes() == whole
    assert b"<article class=card" in whole
    assert b"<h2 id=card-title>Model card" in whole
    gathered = capfd.readouterr().err
    cautions = [[line for line in text.splitlines() if "caution" in line] for text in (told, gathered)]
    assert cautions[0] == cautions[1]


def test_the_page_of_gathered_calls_of_a_locator_lacks_only_what_needs_the_model(
    genome, locator_file, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    words = scan_words(genome, locator_file, "--genes", "none", "--threshold", "0.4")
    run(*words, "--out", "calls.tsv", "--html", "page.html")
    whole = Path("page.html").read_text()
    for number in (1, 2):
        run(*words, "--shard", f"{number}/2", "--out", f"{number}.shard", "--quiet")
    run("gather", "2.shard", "1.shard", "--out", "calls.tsv", "--html", "page.html")
    gathered = Path("page.html").read_text()
    assert "without genes a locator finds fewer sites" in gathered
    strips = r"<svg class=strip .*?</svg>|<p class=note>Bars above a letter.*?</p>\n"
    assert re.sub(strips, "", gathered) == re.sub(strips, "", whole)
    letters_shown = [re.findall("Letters around the site: [ACGTN]+", page) for page in (whole, gathered)]
    assert letters_shown[0] == letters_shown[1] != []


def test_a_shard_has_the_same_bytes_each_time(genome, tiny_model_file, tmp_path):
    words = scan_words(genome, tiny_model_file, "--null-mb", "0.01", "--shard", "2/7")
    for name in ("a.shard", "b.shard"):
        run(*words, "--out", tmp_path / name)
    assert (tmp_path / "a.shard").read_bytes() == (tmp_path / "b.shard").read_bytes()


def test_an_empty_file_in_shards(tiny_model_file, tmp_path):
    empty = tmp_path / "none.fa"
    empty.write_text("")
    for number in (1, 2):
        shard = tmp_path / f"{number}.shard"
        run(*scan_words(empty, tiny_model_file, "--allow-empty"), "--shard", f"{number}/2", "--out", shard)
    run("gather", tmp_path / "2.shard", tmp_path / "1.shard", "--out", tmp_path / "calls.tsv")
    run(
        *scan_words(empty, tiny_model_file, "--allow-empty"), "--out", tmp_path / "whole" / ".." / "calls.bed"
    )
    rows = [line for line in (tmp_path / "calls.tsv").read_text().splitlines() if line[0] != "#"]
    assert [row.split("\t")[0] for row in rows] == ["id"]


def is_gathered(words, total, tmp_path):
    """Hold the table of gathered shards against that of the whole scan; returns its rows."""
    run(*words, "--out", tmp_path / "calls.tsv")
    whole = (tmp_path / "calls.tsv").read_bytes()
    shards = [tmp_path / f"{number}.shard" for number in range(1, total + 1)]
    for number, shard in enumerate(shards, start=1):
        run(*words, "--shard", f"{number}/{total}", "--out", shard)
    run("gather", *shards, "--out", tmp_path / "calls.tsv")
    assert (tmp_path / "calls.tsv").read_bytes() == whole
    return [line for line in whole.decode().splitlines() if line[0] != "#"][1:]


@pytest.mark.parametrize("total", [1, 2])
def test_shards_without_calls(genome, tiny_model_file, tmp_path, total):
    words = scan_words(genome, tiny_model_file, "--threshold", "1", "--null-mb", "0")
    assert is_gathered(words, total, tmp_path) == []


@pytest.mark.parametrize("total", [1, 2])
def test_shards_whose_last_contig_has_no_calls(tiny_model_file, tmp_path, total):
    genome = tmp_path / "genome.fa"
    genome.write_text(f">first\n{letters(400)}\n>unknown\n{'N' * 400}\n")
    words = scan_words(genome, tiny_model_file, "--threshold", "0.5", "--null-mb", "0")
    rows = is_gathered(words, total, tmp_path)
    assert {row.split("\t")[1] for row in rows} == {"first"}


def test_a_shard_says_that_windows_are_left_out(genome, tiny_model_file, tmp_path, capfd):
    words = scan_words(
        genome, tiny_model_file, "--null-mb", "0", "--shard", "2/7", "--out", tmp_path / "2.shard"
    )
    run(*words)
    assert "seqray: only every 10th window is scored" in capfd.readouterr().err
    run(*words, "--stride", "1")
    assert "only every" not in capfd.readouterr().err


def test_outputs_stand_last_in_the_command_on_record():
    words = "seqray scan -ox.bed a.fa --out=y.tsv -q --shard 1/2 -m m --skipped s.tsv --stride 5 --debug"
    settings, outputs = divide_words(words.split())
    assert settings == ["seqray", "scan", "a.fa", "-m", "m", "--stride", "5"]
    assert outputs == ["-ox.bed", "--out=y.tsv", "--skipped", "s.tsv"]


@pytest.mark.parametrize(
    ("words", "settings", "outputs"),
    [
        ("-qo x.tsv a.fa", "a.fa", "-o x.tsv"),
        ("a.fa -qox.tsv", "a.fa", "-ox.tsv"),
        ("-qqo x.tsv -m m", "-m m", "-o x.tsv"),
        ("-qq a.fa -qm m", "a.fa -m m", ""),
        ("-om a.fa -mo --out -", "a.fa -mo", "-om --out -"),
        ("-qmo - -qqmq", "-mo - -mq", ""),
    ],
)
def test_short_options_in_one_word_are_told_apart(words, settings, outputs):
    assert divide_words(words.split()) == (settings.split(), outputs.split())


def test_outputs_in_one_word_with_quiet_give_the_same_scan(tiny_model_file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("genome.fa").write_text(f">one\n{letters(400)}\n")
    words = scan_words("genome.fa", tiny_model_file, "--threshold", "0.5", "--null-mb", "0")
    run(*words, "--out", "whole.tsv")
    run(*words, "--shard", "1/3", "-qo", "1.shard")
    run(*words, "--shard", "2/3", "-qo2.shard")
    run(*words, "--shard", "3/3", "-o3.shard")
    run("gather", "1.shard", "2.shard", "3.shard", "-qo", "gathered.tsv")
    whole, gathered = (Path(f"{name}.tsv").read_text() for name in ("whole", "gathered"))
    assert gathered == whole.replace("--out whole.tsv", "-o gathered.tsv")
