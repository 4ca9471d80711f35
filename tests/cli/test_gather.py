"""Shards of a scan, gathered: the bytes of the whole scan, whatever the number of shards."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from seqray.cli.dispatch import main
from seqray.cli.scan.command import divide_words
from seqray.scanning.shard_file import ShardFile
from tables import letters

TRACKS = ("score.plus.bedgraph", "score.minus.bedgraph", "score.plus.bw", "score.minus.bw")
OUTPUTS = ("calls.gff3", "calls.tsv", "calls.bed", "skipped.tsv", *TRACKS)


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    """Contigs of two pieces, of one, of too few letters, of unknown letters, and a repeat of equal scores."""
    path = tmp_path_factory.mktemp("genome") / "genome.fa"
    contigs = {
        "long": letters(60_000) + "ACGT" * 12_000 + letters(12_345, seed=1),
        "tiny": "ACGT",
        "ring": letters(1501, seed=2),
        "gaps": letters(300, seed=3) + "N" * 100 + letters(300, seed=4),
    }
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in contigs.items()))
    return path


def outputs_in(folder: Path) -> list[str]:
    words = ["--skipped", str(folder / "skipped.tsv")]
    for name in ("calls.gff3", "calls.tsv", "calls.bed"):
        words += ["--out", str(folder / name)]
    return [*words, "--track", str(folder / "score.bedgraph"), "--track", str(folder / "score.bw")]


def run(*words):
    assert main([str(word) for word in words]) == 0


def scan_words(genome, model, *more):
    return ["scan", genome, "--model", model, "--threads", "1", *more]


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


@pytest.fixture(scope="module")
def shards(genome, tiny_model_file, tmp_path_factory):
    """Three shards of one scan, one of another, and one of the same in four."""
    folder = tmp_path_factory.mktemp("shards")
    shards = [("1", "1/3", 0.5), ("2", "2/3", 0.5), ("3", "3/3", 0.5), ("other", "3/3", 0.6)]
    for name, shard, threshold in (*shards, ("quarter", "3/4", 0.5)):
        words = scan_words(genome, tiny_model_file, "--null-mb", "0", "--threshold", threshold)
        run(*words, "--shard", shard, "--out", folder / f"{name}.shard")
    return folder


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["1.shard", "3.shard"], ["missing of 3 shards: 2/3"]),
        (["1.shard", "2.shard", "2.shard", "3.shard"], ["2.shard: is given twice"]),
        (["1.shard", "2.shard", "copy.shard", "3.shard"], ["is shard 1/3, and so is"]),
        (
            ["1.shard", "2.shard", "other.shard"],
            ["other.shard", "another scan", "0.6 in place of 0.5", "the same command"],
        ),
        (["1.shard", "quarter.shard"], ["quarter.shard: is a shard of another", "of 4 shards, not of 3"]),
        (["1.shard", "none.shard"], ["none.shard: no such file"]),
        (["cut.shard"], ["cut.shard", "is no shard of a scan, or is cut short"]),
        (["words.shard"], ["words.shard", "is no shard of a scan"]),
        (["model.safetensors"], ["is no shard of a scan"]),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(
    shards, tiny_model_file, tmp_path, capfd, names, parts
):
    (tmp_path / "copy.shard").write_bytes((shards / "1.shard").read_bytes())
    (tmp_path / "cut.shard").write_bytes((shards / "1.shard").read_bytes()[:-9])
    (tmp_path / "words.shard").write_text("not a shard\n")
    (tmp_path / "model.safetensors").write_bytes(tiny_model_file.read_bytes())
    files = [tmp_path / name if (tmp_path / name).exists() else shards / name for name in names]
    assert main(["gather", *map(str, files), "--out", str(tmp_path / "calls.tsv")]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert all(part in err for part in parts)
    assert not (tmp_path / "calls.tsv").exists()


@pytest.mark.parametrize(
    ("before", "after", "options"),
    [
        ("G", "C", []),
        ("G", "N", []),
        ("G", "g", ["--skip-soft-masked"]),
    ],
)
def test_shards_of_sequences_that_changed_are_refused(
    tiny_model_file, tmp_path, capfd, before, after, options
):
    genome = tmp_path / "genome.fa"
    words = scan_words(genome, tiny_model_file, "--null-mb", "0", *options)
    for number, letter in enumerate((before, after), start=1):
        genome.write_text(f">one\n{letters(50)}\n>two\n{letters(40, seed=1)}{letter}\n")
        run(*words, "--shard", f"{number}/2", "--out", tmp_path / f"{number}.shard", "--quiet")
    files = [str(tmp_path / f"{number}.shard") for number in (1, 2)]
    capfd.readouterr()
    assert main(["gather", *files, "--out", str(tmp_path / "calls.tsv")]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert f"{files[1]}: was scanned from other sequences than '{files[0]}'" in err
    assert not (tmp_path / "calls.tsv").exists()


def test_shards_of_other_genes_or_another_engine_are_refused(shards, tmp_path, capfd):
    for name, value, message in (
        (
            "genes",
            [["x.gff", [], {"one": [["gene", 0, 9, "+"]] * 5000}]],
            "was scanned with other genes than",
        ),
        ("engine", "ONNX Runtime 1.31", "its engine is ONNX Runtime 1.31, not PyTorch"),
    ):
        changed(
            shards / "2.shard", tmp_path / "2.shard", header=lambda known, pair={name: value}: known | pair
        )
        words = [
            "gather",
            shards / "1.shard",
            tmp_path / "2.shard",
            shards / "3.shard",
            "--out",
            tmp_path / "c.tsv",
        ]
        assert main(list(map(str, words))) == 2
        said = capfd.readouterr().err
        assert message in said
        assert len(said) < 600


def test_letters_in_lower_case_are_the_same_unless_they_are_skipped(tiny_model_file, tmp_path):
    genome = tmp_path / "genome.fa"
    for number, text in enumerate((letters(50), letters(50).lower()), start=1):
        genome.write_text(f">one\n{text}\n")
        words = scan_words(genome, tiny_model_file, "--null-mb", "0", "--shard", f"{number}/2")
        run(*words, "--out", tmp_path / f"{number}.shard")
    run("gather", tmp_path / "1.shard", tmp_path / "2.shard", "--out", tmp_path / "calls.tsv")


def test_the_checksum_of_the_sequences_is_that_of_their_codes_and_masks(tiny_model_file, tmp_path):
    genome = tmp_path / "genome.fa"
    genome.write_text(">one\n" + "ACGT" * 5 + "N\n>two\n" + "TTTT" * 4 + "aaggC\n")
    codes = [bytes([0, 1, 2, 3] * 5 + [4]), bytes([3] * 16 + [0, 0, 2, 2, 1])]
    masks = [b"", struct.pack("<qq", 16, 20)]
    expected = {
        (): hashlib.sha256(b"".join(codes)),
        ("--skip-soft-masked",): hashlib.sha256(codes[0] + masks[0] + codes[1] + masks[1]),
    }
    for options, checksum in expected.items():
        words = scan_words(genome, tiny_model_file, "--null-mb", "0", *options)
        run(*words, "--shard", "1/2", "--out", tmp_path / "1.shard")
        with ShardFile(tmp_path / "1.shard") as shard:
            assert shard.header["sequences"] == checksum.hexdigest()


def changed(shard, path, *, header=None, arrays=None):
    """Copy a shard, signed anew, with another header, or with some arrays left out or replaced."""
    with safe_open(shard, framework="numpy") as file:
        metadata = file.metadata()
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    header = (header or dict)(json.loads(metadata["seqray_shard"]))
    tensors = (arrays or dict)(tensors)
    if isinstance(header, dict):
        header = sign(header, tensors)
    save_file(tensors, path, {"seqray_shard": json.dumps(header)})


def sign(header, tensors):
    """A header with its checksum: the sha256 of its JSON without that, then each array after its name."""
    header = {key: value for key, value in header.items() if key != "checksum"}
    digest = hashlib.sha256(json.dumps(header, separators=(",", ":")).encode())
    for name in ("places", "counts", "starts", "origin", "edges", "scores", "null", "letters", "profile"):
        digest.update(f"\n{name}\n".encode() + tensors.get(name, np.empty(0)).tobytes())
    return header | {"checksum": digest.hexdigest()}


def without(name):
    return lambda mapping: {key: value for key, value in mapping.items() if key != name}


HEADERS = (
    "share",
    "label",
    "rule",
    "points",
    "threshold",
    "strands",
    "contigs",
    "sequences",
    "counted",
    "skipped",
)
HEADERS += (
    "version",
    "command",
    "model",
    "alphabet",
    "facts",
    "card",
    "findings",
    "options",
    "track name",
    "extent",
    "genes",
    "around",
    "expected",
)
ARRAYS = ("places", "edges", "counts", "starts", "scores", "origin", "profile", "null", "letters")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"header": lambda _: []}, id="list"),
        pytest.param({"header": lambda _: 3}, id="number"),
        pytest.param({"header": lambda _: {"format": 5}}, id="only the format"),
        pytest.param({"header": lambda header: header | {"share": "1/3"}}, id="share in words"),
        pytest.param({"header": lambda header: header | {"share": [1]}}, id="share without total"),
        pytest.param({"header": lambda header: header | {"counted": {}}}, id="nothing counted"),
        pytest.param({"header": lambda header: header | {"rule": {}}}, id="no rule"),
        *(pytest.param({"header": without(name)}, id=f"no {name}") for name in HEADERS),
        *(pytest.param({"arrays": without(name)}, id=f"no {name}") for name in ARRAYS),
        *(
            pytest.param(
                {"arrays": lambda arrays, name=name: arrays | {name: arrays[name][:-1]}}, id=f"cut {name}"
            )
            for name in ARRAYS[:-2]
        ),
        pytest.param(
            {"arrays": lambda arrays: arrays | {"starts": arrays["starts"].reshape(1, -1)}}, id="table"
        ),
    ],
)
@pytest.mark.parametrize("place", [0, 2])
def test_a_file_without_what_a_shard_holds_is_no_shard(shards, tmp_path, capfd, change, place):
    files = [shards / f"{number}.shard" for number in (1, 2, 3)]
    changed(files[place], tmp_path / "changed.shard", **change)
    files[place] = tmp_path / "changed.shard"
    capfd.readouterr()
    assert main(["gather", *map(str, files), "--out", str(tmp_path / "calls.tsv")]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert f"{files[place]}: is no shard of a scan" in err
    assert not (tmp_path / "calls.tsv").exists()


@pytest.mark.parametrize("score", [-0.1, 1.1, np.inf])
def test_a_track_of_scores_that_are_no_probabilities_is_refused(shards, tmp_path, capfd, score):
    files = [shards / f"{number}.shard" for number in (1, 2, 3)]
    scores = {"arrays": lambda arrays: arrays | {"profile": np.full_like(arrays["profile"], score)}}
    changed(files[1], tmp_path / "changed.shard", **scores)
    files[1] = tmp_path / "changed.shard"
    words = [*map(str, files), "--out", str(tmp_path / "calls.tsv"), "--track", str(tmp_path / "x.bw")]
    assert main(["gather", *words]) == 2
    assert f"{files[1]}: is no shard of a scan" in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["changed.shard"]


def test_a_shard_of_a_newer_format_is_told(shards, tmp_path, capfd):
    changed(shards / "1.shard", tmp_path / "new.shard", header=lambda _: {"format": 99})
    assert main(["gather", str(tmp_path / "new.shard"), "--out", str(tmp_path / "calls.tsv")]) == 2
    assert "is a shard of format 99" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--shard", "0/3", "--out", "x.shard"], ["'0/3' is not I/N"]),
        (["--shard", "4/3", "--out", "x.shard"], ["'4/3' is not I/N"]),
        (["--shard", "1/3"], ["--shard needs one output", "give --out FILE.shard"]),
        (["--shard", "1/3", "--out", "x.tsv"], ["give --out FILE.shard"]),
        (["--shard", "1/3", "--out", "x.shard", "--track", "x.bw"], ["give --track to 'seqray gather'"]),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(genome, tiny_model_file, capfd, words, parts):
    assert main(["scan", str(genome), "--model", str(tiny_model_file), *words]) == 2
    err = capfd.readouterr().err
    assert err.count("\n") == 1
    assert all(part in err for part in parts)


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
