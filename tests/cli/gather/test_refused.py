"""Files that ``gather`` refuses, and why: of other scans, cut, or no shards."""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file

from cli.gather.commands import run, scan_words
from seqray.cli.main import main
from seqray.scanning.shards import ShardFile
from tables import letters


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"genes": [["x.gff", [], {"one": [["gene", 0, 9, "+"]] * 5000}]]},
            "was scanned with other genes than",
        ),
        ({"engine": "ONNX Runtime 1.31"}, "its engine is ONNX Runtime 1.31, not PyTorch"),
    ],
)
def test_shards_of_other_genes_or_another_engine_are_refused(shards, tmp_path, capfd, change, message):
    changed(shards / "2.shard", tmp_path / "2.shard", header=lambda header: header | change)
    files = [shards / "1.shard", tmp_path / "2.shard", shards / "3.shard"]
    assert main(["gather", *map(str, files), "--out", str(tmp_path / "calls.tsv")]) == 2
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
    "min_distance",
    "threshold",
    "strands",
    "contigs",
    "sequences",
    "counted",
    "skipped",
    "version",
    "command",
    "model",
    "engine",
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
