"""Shards of a scan, gathered: the bytes of the whole scan; and what ``gather`` refuses."""

import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from tables import body, fasta, gff3, letters, write

# Contigs of two pieces, of one, of too few letters, of unknown letters, and a repeat of equal scores.
CONTIGS = {
    "long": letters(60_000) + "ACGT" * 3_000 + letters(12_345, seed=1),
    "tiny": "ACGT",
    "ring": letters(1501, seed=2),
    "gaps": letters(300, seed=3) + "N" * 100 + letters(300, seed=4),
}
OUTPUTS = (
    "--out c.gff3 --out c.tsv --out c.bed --skipped s.tsv --track x.bedgraph --track x.bw --html page.html"
)
NAMES = ("c.gff3", "c.tsv", "c.bed", "s.tsv", "page.html")
NAMES += tuple(f"x.{strand}.{end}" for strand in ("plus", "minus") for end in ("bedgraph", "bw"))


@pytest.fixture
def scan(run, tiny_model_file, tmp_path):
    """Scan genome.fa with the tiny model."""
    write(tmp_path / "genome.fa", fasta(CONTIGS))
    return run.to("scan genome.fa --threads 1 --model", tiny_model_file)


@pytest.fixture
def gathered(run):
    """Scan in shards, and gather them."""

    def call(scan, total, words, outputs="--out c.tsv"):
        for number in range(1, total + 1):
            scan(words, f"--shard {number}/{total} --out {number}.shard --quiet")
        return run("gather", [f"{number}.shard" for number in range(total, 0, -1)], outputs)

    return call


SETTINGS = {
    "engine": "--engine onnx --threshold 0.5 --null-mb 0",
    "threshold": "--threshold 0.55 --stride 7 --null-mb 0.02",
    "fdr": "--fdr 0.9 --null-mb 0.05 --circular-id ring",
    "parts": "--threshold 0.5 --region long:55000-62000 --region ring:1-40 --circular",
    "one strand": "--strand minus --null-mb 0 --min-distance 200 --threshold 0.5",
}


@pytest.mark.parametrize(
    ("name", "total"), [("threshold", 5), ("fdr", 3), ("parts", 2), ("one strand", 20), ("engine", 2)]
)
def test_gathered_shards_are_the_whole_scan(scan, gathered, tmp_path, name, total):
    told = scan(SETTINGS[name], OUTPUTS)
    whole = {file: (tmp_path / file).read_bytes() for file in NAMES}
    ended = gathered(scan, total, SETTINGS[name], OUTPUTS)
    for file in NAMES:
        assert (tmp_path / file).read_bytes() == whole[file], file
    assert whole["c.tsv"].count(b"\n") > 20
    assert b"<article class=card" in whole["page.html"]
    assert b"<h2 id=card-title>Model description" in whole["page.html"]
    cautions = [[line for line in said.err.splitlines() if "caution" in line] for said in (told, ended)]
    assert cautions[0] == cautions[1]


@pytest.mark.parametrize(
    ("contigs", "words"),
    [
        (CONTIGS, "--threshold 1"),
        ({}, "--allow-empty"),
        ({"first": letters(400), "unknown": "N" * 400}, "--threshold 0.5"),
    ],
    ids=["no calls", "no contigs", "no calls in the last contig"],
)
@pytest.mark.parametrize("total", [1, 2])
def test_shards_without_calls_are_the_whole_scan(scan, gathered, tmp_path, contigs, words, total):
    write(tmp_path / "genome.fa", fasta(contigs))
    scan(words, "--null-mb 0 --out c.tsv")
    whole = (tmp_path / "c.tsv").read_text()
    gathered(scan, total, f"{words} --null-mb 0")
    assert (tmp_path / "c.tsv").read_text() == whole
    assert {row.split("\t")[1] for row in body(whole)[1:]} <= {"first"}


def test_the_page_of_gathered_calls_of_a_locator_lacks_only_what_needs_the_model(
    run, gathered, locator_file, tmp_path
):
    write(tmp_path / "genome.fa", fasta(CONTIGS))
    scan = run.to("scan genome.fa --genes none --threshold 0.4 --threads 1 --model", locator_file)
    pages = []
    scan("--out c.tsv --html page.html")
    pages.append(Path("page.html").read_text())
    gathered(scan, 2, "", "--out c.tsv --html page.html")
    pages.append(Path("page.html").read_text())
    strips = r"<svg class=strip .*?</svg>|<p class=note>Bars above a base.*?</p>\n"
    assert re.sub(strips, "", pages[0]) == re.sub(strips, "", pages[1])
    shown = [re.findall("Bases around the site: [ACGTN]+", page) for page in pages]
    assert shown[0] == shown[1] != []


def test_a_shard_has_the_same_bytes_each_time_and_says_that_windows_are_left_out(scan, tmp_path):
    words = "--null-mb 0.01 --shard 2/7 --out a.shard"
    made = []
    for _ in range(2):
        assert "every 10th window" in scan(words).err
        made.append((tmp_path / "a.shard").read_bytes())
    assert made[0] == made[1]
    assert "every 10th" not in scan(words, "--stride 1").err


def test_other_threads_and_outputs_in_one_word_with_quiet_give_the_same_scan(
    scan, run, tmp_path, tiny_model_file
):
    write(tmp_path / "genome.fa", fasta({"one": letters(400)}))
    words = "--threshold 0.5 --null-mb 0"
    scan(words, "--out whole.tsv")
    others = run.to("scan genome.fa --model", tiny_model_file, words)
    for shard in ("--shard 1/3 -qo 1.shard", "--threads=2 --shard 2/3 -qo2.shard"):
        others(shard)
    others("--threads 1 --shard 3/3 -o3.shard")
    run("gather 1.shard 2.shard 3.shard -qo gathered.tsv")
    whole, gathered = ((tmp_path / f"{name}.tsv").read_text() for name in ("whole", "gathered"))
    assert gathered == whole.replace("--out whole.tsv", "-o gathered.tsv")


# --- what is refused ------------------------------------------------------------------------------


@pytest.fixture
def shards(scan, run, tmp_path):
    """Shards of one scan and of others: gather them."""
    write(tmp_path / "genome.fa", fasta({"one": letters(300)}))
    words = "--null-mb 0 --threshold 0.5"
    for name, more in {
        **{f"{number}.shard": f"{words} --shard {number}/3" for number in (1, 2, 3)},
        "other.shard": "--null-mb 0 --threshold 0.6 --shard 3/3",
        "quarter.shard": f"{words} --shard 3/4",
        "onnx.shard": f"{words} --shard 2/3 --engine onnx",
    }.items():
        scan(more, "--quiet --out", name)
    content = (tmp_path / "1.shard").read_bytes()
    write(tmp_path / "copy.shard", content)
    write(tmp_path / "cut.shard", content[:-9])
    for place in (100, len(content) - 9):
        changed = bytes([content[place] ^ 1])
        write(tmp_path / f"flip{place == 100}.shard", content[:place] + changed + content[place + 1 :])
    save_file({"x": torch.zeros(1)}, tmp_path / "new.shard", {"seqray_shard": '{"format": 99}'})
    return run.to("gather --out c.tsv")


@pytest.mark.parametrize(
    ("names", "told"),
    [
        ("1.shard 3.shard", ("3 shards", "2/3")),
        ("1.shard 2.shard 2.shard 3.shard", ("2.shard", "twice")),
        ("1.shard 2.shard copy.shard 3.shard", ("1.shard", "copy.shard", "1/3")),
        ("1.shard 2.shard other.shard", ("other.shard", "0.6", "0.5")),
        ("1.shard onnx.shard 3.shard", ("onnx.shard", "--engine onnx")),
        ("1.shard quarter.shard", ("quarter.shard", "4 shards", "3")),
        ("cut.shard 2.shard 3.shard", ("cut.shard",)),
        ("flipTrue.shard 2.shard 3.shard", ("flipTrue.shard",)),
        ("flipFalse.shard 2.shard 3.shard", ("flipFalse.shard",)),
        ("new.shard", ("new.shard", "format 99")),
    ],
)
def test_shards_that_do_not_belong_together_are_refused(shards, names, told):
    shards.refused(names, names=told)


@pytest.mark.parametrize(
    ("after", "words", "is_the_same"),
    [("C", "", False), ("N", "", False), ("g", "--skip-soft-masked", False), ("g", "", True)],
)
def test_shards_of_sequences_that_changed_are_refused(scan, run, tmp_path, after, words, is_the_same):
    for number, letter in enumerate(("G", after), start=1):
        write(tmp_path / "genome.fa", fasta({"one": letters(50), "two": letters(40, seed=1) + letter}))
        scan(f"--null-mb 0 --shard {number}/2 --quiet --out {number}.shard", words)
    if is_the_same:
        run("gather 1.shard 2.shard --out c.tsv")
    else:
        run.refused("gather 1.shard 2.shard --out c.tsv", names=("1.shard", "2.shard", "sequences"))


def test_shards_of_other_genes_are_refused(run, locator_file, tmp_path):
    write(tmp_path / "genome.fa", fasta({"one": letters(900)}))
    for number, end in ((1, 300), (2, 330)):
        write(tmp_path / "genes.gff3", gff3([("one", 100, end, "+")]))
        words = f"scan genome.fa --genes genes.gff3 --shard {number}/2 --out {number}.shard --quiet --model"
        run(words, locator_file)
    line = run.refused("gather 1.shard 2.shard --out c.tsv", names=("2.shard", "genes"))
    assert len(line) < 600


def test_contigs_that_cannot_be_read_are_left_out_of_the_whole_and_of_shards_where_asked(scan, run, tmp_path):
    usable = {"ring": letters(1501, seed=2), "more": letters(700, seed=3)}
    write(tmp_path / "genome.fa", fasta(usable))
    scan("--stride 1 --threshold 0.4 --null-mb 0 --out c.tsv")
    expected = body(Path("c.tsv").read_text())
    write(tmp_path / "genome.fa", fasta({"odd": "ACG!" * 50, **usable, "none": ""}))
    words = "--stride 1 --threshold 0.4 --null-mb 0 --skip-unusable"
    scan.refused(
        words.replace(" --skip-unusable", ""), "--out c2.tsv", names="unknown letter '!' at position 4"
    )
    whole = scan(words, "--out c.tsv --skipped s.tsv --out c.gb")
    skipped, called = body(Path("s.tsv").read_text()), body(Path("c.tsv").read_text())
    assert skipped == ["id\treason", "odd\tunknown letter '!' at position 4", "none\tempty sequence"]
    assert called == expected
    assert "2 sequences, 2 skipped" in whole.err
    for i in (1, 2):
        scan(words, f"--shard {i}/2 --out {i}.shard --quiet")
    gathered = run("gather 1.shard 2.shard --out c.tsv --skipped s.tsv")
    assert "2 sequences, 2 skipped" in gathered.err
    assert (body(Path("s.tsv").read_text()), body(Path("c.tsv").read_text())) == (skipped, called)
