"""``seqray scan`` with a locator: pipes, shards, empty files, GenBank out, and what is refused."""

from __future__ import annotations

import gzip
import io
import sys

import pytest
from Bio import SeqIO

from cli.scan_locator.records import genbank
from seqray.cli.main import main
from tables import facts, letters, table

NAMES = ("calls.gff3", "calls.tsv", "x.plus.bedgraph", "x.minus.bedgraph", "x.plus.bw", "x.minus.bw")


@pytest.mark.parametrize("kind", ["fasta", "genbank"])
def test_a_pipe_gives_what_its_file_gives(scan, genome, tmp_path, monkeypatch, kind):
    if kind == "genbank":
        genome = tmp_path / "x.gb"
        genome.write_text(genbank("r.1", letters(900), ["200..499"]))
    whole, _ = scan(genome)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(genome.read_bytes())))
    piped, _ = scan("-")
    assert table(piped) == table(whole)
    expected = facts(whole)["genes"].replace(genome.name, "standard input")
    assert facts(piped)["genes"] == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b">a\nAC!GT\n")))
    _, err = scan("-", "--strict", status=2)
    assert "standard input" in err


@pytest.mark.parametrize("more", [[], ["--circular"], ["--region", "one:500-1200", "--per-kb", "2"]])
def test_gathered_shards_are_the_whole_scan(scan, genome, annotation, tmp_path, more):
    words = [genome, "--genes", annotation, "--min-distance", "9", *more]

    def outputs(folder):
        folder.mkdir()
        named = [w for name in NAMES[:2] for w in ("--out", folder / name)]
        return [*named, "--track", folder / "x.bedgraph", "--track", folder / "x.bw"]

    scan(*words, *outputs(tmp_path / "whole"))
    shards = [tmp_path / f"{number}.shard" for number in (1, 2, 3)]
    for number, shard in enumerate(shards, start=1):
        scan(*words, "--shard", f"{number}/3", "--out", shard)
    assert main([str(w) for w in ["gather", *shards, *outputs(tmp_path / "gathered")]]) == 0
    for name in NAMES:
        assert (tmp_path / "gathered" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert (tmp_path / "whole" / "calls.tsv").read_text().count("\n") > 14


def test_what_does_not_fit_is_refused_in_one_line(scan, genome, annotation, tiny_model_file, capfd):
    for words, message in (
        (["--stride", "5"], "--stride is for models of windows, and 'tiny-locator' is a locator"),
        (["--fdr", "0.1"], "--fdr is for models of windows"),
        (["--genes", "nowhere.gff"], "nowhere.gff: no such file"),
        (["--threshold", "0.5", "--per-kb", "1"], "--threshold and --per-kb can't both be given; give one"),
        (["--per-kb", "0"], "--per-kb must be above 0 and at most 2000"),
        (["--fdr", "0.1", "--null-mb", "0"], "--fdr needs shuffled sequence, so --null-mb above 0"),
        (["--precision", "0.5"], "the model's card states no precision with"),
        (["--engine", "onnx"], "the engine 'onnx' computes no locators"),
    ):
        _, err = scan(genome, *words, status=2)
        assert message in err
        assert len(err.splitlines()) == 1
    other = annotation.read_text().replace("one\t", "chr\t").replace("two\t", "plasmid\t")
    annotation.write_text(other)
    assert "has genes of 'chr', 'plasmid', but" in scan(genome, "--genes", annotation, status=2)[1]
    assert main(["scan", str(genome), "-m", str(tiny_model_file), "--genes", "none"]) == 2
    assert "--genes is for locators, and 'tiny' is a model of windows" in capfd.readouterr().err


def test_other_verbs_refuse_a_locator(genome, tmp_path, locator_file, capfd):
    sheet = tmp_path / "labels.tsv"
    sheet.write_text("sequence\tlabel\nACGT\tpromoter\n")
    for words in (
        ["predict", genome, "--model", locator_file],
        ["evaluate", "--test", sheet, "--model", locator_file],
        ["calibrate", locator_file, "--test", sheet, "--out", tmp_path / "x.safetensors"],
        ["export", locator_file, "--out", tmp_path / "x.onnx"],
    ):
        assert main([str(word) for word in words]) == 2
        err = capfd.readouterr().err
        advice = "only 'seqray scan' and 'seqray explain' take locators"
        assert err == f"seqray: error: model 'tiny-locator' is a locator; {advice}\n"


@pytest.mark.parametrize("genes", ["predict", "none"])
def test_an_empty_file_gives_every_output(scan, tmp_path, genes):
    empty, outputs = tmp_path / "empty.fa", [tmp_path / f"x.{end}" for end in ("gb", "gff3", "bed", "tsv")]
    empty.write_text("")
    page = tmp_path / "x.html"
    words = [word for path in outputs for word in ("--out", path)]
    _, err = scan(empty, "--genes", genes, "--allow-empty", "--html", page, *words)
    assert "0 sequences" in err
    assert outputs[0].read_text() == ""
    assert all(path.read_text().startswith("#") for path in outputs[1:])
    assert "There are no calls." in page.read_text()


def test_genbank_out_of_fasta(scan, genome, annotation, tmp_path):
    out = tmp_path / "x.gb"
    scan(genome, "--genes", annotation, "--circular-id", "two", "--out", out, "--out", tmp_path / "c.tsv")
    assert facts((tmp_path / "c.tsv").read_text())["circular"] == "1 of 3 sequences"
    records = list(SeqIO.parse(out, "genbank"))
    assert [(r.id, len(r), r.annotations["topology"]) for r in records] == [
        *(("one", 3000, "linear"), ("two", 700, "circular"), ("tiny", 40, "linear"))
    ]
    assert [str(r.seq) for r in records] == [letters(3000), letters(700, 1), letters(40, 2)]
    assert [sum(f.type == "CDS" for f in r.features) for r in records] == [2, 1, 0]
    sites = [f for r in records for f in r.features if f.qualifiers.get("regulatory_class") == ["promoter"]]
    rows = table((tmp_path / "c.tsv").read_text())
    assert [f.qualifiers["note"][0].split(",")[:2] for f in sites] == [
        [row["id"], f" site {int(row['site']) + 1}"] for row in rows
    ]
    signals = [
        (f.qualifiers["regulatory_class"][0], str(f.extract(r.seq)))
        for r in records
        for f in r.features
        if f.qualifiers.get("regulatory_class", [""])[0].endswith("signal")
    ]
    assert sorted(signals) == sorted(
        (f"{name.replace('minus', 'minus_')}_signal", row[name])
        for row in rows
        for name in ("minus10", "minus35")
        if row[name] != "."
    )


def test_a_circle_by_its_fasta_header_is_scanned_and_written_as_one(scan, tmp_path):
    """Also where nothing is called; the same as with the option."""
    plain, marked, out = tmp_path / "a.fa", tmp_path / "b.fa", tmp_path / "x.gb"
    plain.write_text(f">one\n{letters(900)}\n")
    marked.write_text(f">one [topology=circular]\n{letters(900)}\n")
    words = ("--genes", "none", "--threshold", "0.3")
    linear, circular = table(scan(plain, *words)[0]), table(scan(plain, *words, "--circular")[0])
    assert table(scan(marked, *words)[0]) == circular != linear
    scan(marked, "--genes", "none", "--threshold", "1", "--out", out)
    assert SeqIO.read(out, "genbank").annotations["topology"] == "circular"


def test_genbank_out_of_a_pipe_of_genbank(scan, tmp_path, monkeypatch):
    text = genbank("r.1", letters(900), ["200..499", "join(801..900,1..80)"])
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    scan("-", "--threshold", "0.3", "--genes", "none", "--out", tmp_path / "x.gbk.gz")
    with gzip.open(tmp_path / "x.gbk.gz", "rt") as handle:
        record = SeqIO.read(handle, "genbank")
    assert (record.id, str(record.seq), record.annotations["topology"]) == ("r.1", letters(900), "circular")
    assert [f.qualifiers["gene"] for f in record.features if f.type == "CDS"] == [["g0"], ["g1"]]
    assert any(f.type == "regulatory" for f in record.features)


def test_shards_have_no_letters_for_genbank(capfd, tmp_path):
    assert main(["gather", str(tmp_path / "1.shard"), "--out", str(tmp_path / "x.gb")]) == 2
    assert "GenBank holds the sequences, which shards lack" in capfd.readouterr().err
