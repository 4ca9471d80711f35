"""``seqray scan`` from the command line, with a tiny random model on sequences made here."""

import gzip
import json
import re

import numpy as np
import pyBigWig
import pytest

from seqray.core.alphabet import DNA, reverse_complement
from seqray.inference.sequences import score_codes
from seqray.io.gff3 import read_called
from tables import body, facts, fasta, genbank, letters, table, write

WINDOW, SITE = 20, 12  # of the tiny model


@pytest.fixture
def scan(run, tiny_model_file, tmp_path):
    """Run the verb where genome.fa is."""
    write(tmp_path / "genome.fa", fasta({"one first": letters(3000), "two": letters(1500, seed=1).lower()}))

    def call(*words, **more):
        settings = "" if {"--null-mb", "--fdr"} & {*" ".join(map(str, words)).split()} else "--null-mb 0"
        return run("scan --threads 1", settings, "--model", tiny_model_file, *words, **more)

    return call


def places(rows):
    return [(row["contig"], int(row["start"]), row["strand"]) for row in rows]


# --- formats agree ------------------------------------------------------------------------------------------


def test_every_format_tells_the_same_calls(scan, tmp_path):
    outputs = "-o calls.gff3 -o calls.bed -o calls.tsv -o calls.tsv.gz"
    _, out, err = scan("genome.fa --threshold 0.55", outputs)
    assert out == ""
    text = (tmp_path / "calls.tsv").read_text()
    rows = table(text)
    assert len(rows) > 10
    assert {row["strand"] for row in rows} == {"+", "-"}
    assert {row["contig"] for row in rows} == {"one", "two"}
    assert f"{len(rows)} calls" in err
    assert gzip.decompress((tmp_path / "calls.tsv.gz").read_bytes()).decode() == text
    assert [
        (c.contig, str(c.start), str(c.end), c.strand, str(c.site), f"{c.score:.6g}", c.label)
        for c in read_called(tmp_path / "calls.gff3").calls
    ] == [tuple(row.values())[1:] for row in rows]
    bed = [line.split("\t") for line in body((tmp_path / "calls.bed").read_text())]
    expected = [list(row.values())[:-1] for row in rows]
    assert [[b[3], b[0], b[1], b[2], b[5], b[7], b[6]] for b in bed] == expected


def test_calls_are_windows_that_the_model_scores_so(scan, tiny_model):
    sequences = {"one": letters(3000), "two": letters(1500, seed=1)}
    for row in scan("genome.fa --threshold 0.55").rows:
        start, end, site = int(row["start"]), int(row["end"]), int(row["site"])
        window = sequences[row["contig"]][start:end]
        read = window if row["strand"] == "+" else reverse_complement(window)
        assert site == (start + SITE if row["strand"] == "+" else end - 1 - SITE)
        [score] = score_codes(tiny_model, DNA.encode(read)[None])[:, 0]
        assert float(row["score"]) == pytest.approx(score, abs=1e-5)
        assert score >= 0.55


def test_tracks_hold_the_score_of_every_window(scan, tmp_path, tiny_model):
    scan("genome.fa --stride 7 -o c.tsv --track x.bw --track x.bedgraph")
    text = letters(3000)
    starts = [*range(0, 2980, 7), 2980]
    for strand, offset, name in (("+", 12, "plus"), ("-", 7, "minus")):
        windows = [text[s : s + WINDOW] for s in starts]
        codes = [DNA.encode(w if strand == "+" else reverse_complement(w)) for w in windows]
        expected = score_codes(tiny_model, np.stack(codes))[:, 0]
        lines = (tmp_path / f"x.{name}.bedgraph").read_text().splitlines()
        found = [line.split("\t") for line in lines if line.startswith("one\t")]
        assert [int(f[1]) for f in found] == [s + offset for s in starts]
        assert [int(f[2]) for f in found] == [s + offset for s in starts[1:]] + [2980 + offset + 1]
        np.testing.assert_allclose([float(f[3]) for f in found], expected, atol=1e-5)
        with pyBigWig.open(str(tmp_path / f"x.{name}.bw")) as bigwig:
            assert bigwig.chroms() == {"one": 3000, "two": 1500}
            steps = bigwig.intervals("one")
            assert [step[:2] for step in steps] == [(int(f[1]), int(f[2])) for f in found]
            np.testing.assert_allclose([step[2] for step in steps], expected, atol=1e-5)


def test_the_page_shows_the_calls_of_the_table(scan, tmp_path):
    scan("genome.fa --threshold 0.6 --out calls.tsv --html page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    data = json.loads(re.search(r"<script type=application/json id=data>(.*?)</script>", text)[1])
    shown = [
        (data["names"][contig], int(site) - 1, "+-"[int(minus)])
        for contig, site, minus in zip(data["contig"], np.cumsum(data["site"]), data["minus"], strict=True)
    ]
    rows = table((tmp_path / "calls.tsv").read_text())
    assert shown == [(row["contig"], int(row["site"]), row["strand"]) for row in rows]
    assert data["score"] == pytest.approx([float(row["score"]) for row in rows], abs=6e-4)
    assert len(shown) > 5
    assert f"<dt>Calls<dd><b>{len(rows)}</b>" in text
    assert text.count("<article") == min(48, len(rows))


def test_scores_on_the_page_are_those_of_the_tracks(scan, tmp_path, reports):
    scan("genome.fa --threshold 0.6 --html page.html --track score.bw")
    (report,) = reports
    lengths = {contig.name: contig.length for contig in report.contigs}
    assert lengths == {"one": 3000, "two": 1500}
    strands = [pyBigWig.open(str(tmp_path / f"score.{strand}.bw")) for strand in ("plus", "minus")]
    for i, profiles in report.profiles.items():
        call = report.calls[i]
        for strand, values in zip(strands, profiles, strict=True):
            first, last = max(0, call.site - 400), min(lengths[call.contig], call.site + 401)
            expected = strand.values(call.contig, first, last)
            at = first - (call.site - 400)
            assert values[at : at + last - first] == pytest.approx(expected, abs=1e-3, nan_ok=True)
            assert np.isnan(values[:at]).all()
            assert np.isnan(values[at + last - first :]).all()


def test_a_format_is_named_where_names_do_not_tell(scan, tmp_path):
    scan("genome.fa -o calls.txt --format bed")
    assert "#chrom\tchromStart" in (tmp_path / "calls.txt").read_text()
    assert scan("genome.fa --format gff3 -o x.bed -o -").out.startswith("##gff-version 3\n")


# --- circles, parts, masks ----------------------------------------------------------------------------------


def test_a_circle_by_option_and_by_genbank_topology(scan, tmp_path):
    write(tmp_path / "two.gb", genbank("two", letters(1500, seed=1)))
    settings = "--threshold 0.3 --min-distance 5"
    ring = [place for place in places(scan("genome.fa --circular", settings).rows) if place[0] == "two"]
    named = places(scan("genome.fa --circular-id two", settings).rows)
    assert any(start > 1500 - WINDOW for _, start, _ in ring)
    assert [place for place in named if place[0] == "two"] == ring
    assert places(scan("two.gb", settings).rows) == ring
    assert not any(start > 3000 - WINDOW for contig, start, _ in named if contig == "one")


def test_regions_and_bed_give_the_calls_of_the_whole_scan_within(scan, tmp_path):
    write(tmp_path / "parts.bed", "two\t200\t900\n")
    parts = scan("genome.fa --region one:501-1,000 --bed parts.bed")
    assert "1200 bases of 4500 bases searched in 2 parts, " in parts.err  # 500 + 700
    assert f"{len(parts.rows) / 0.0012:.4g} per Mb searched" in parts.err
    assert "one:501-1000, two:201-900" in parts.facts["parts"]
    assert "1200 positions per strand in 2 parts" in parts.facts["scanned"]
    within = {"one": range(500, 1000), "two": range(200, 900)}
    inside = [row for row in scan("genome.fa").rows if int(row["site"]) in within[row["contig"]]]
    assert places(parts.rows) == places(inside)
    assert len(parts.rows) > 3


def test_soft_masked_sites_are_left_out(scan):
    assert {row["contig"] for row in scan("genome.fa --skip-soft-masked").rows} == {"one"}


# --- expected false calls -----------------------------------------------------------------------------------


def test_expected_false_calls_stand_in_every_header(scan, tmp_path):
    err = scan("genome.fa --null-mb 0.05 -o calls.gff3 -o calls.bed -o calls.tsv").err
    headers = [facts((tmp_path / f"calls.{kind}").read_text()) for kind in ("gff3", "bed", "tsv")]
    text = headers[0]["expected false calls"]
    assert all(header["expected false calls"] == text for header in headers)
    per_mb, low, high = float(text.split()[0]), float(text.split()[6]), float(text.split()[8].rstrip("),"))
    assert 0 < low < per_mb < high
    assert f"expected false calls {per_mb:.4g} per Mb" in err
    # Ten copies of 4,500 letters would fit; five are made, less a window's end for each of two contigs.
    assert f"in {5 * (4500 - 38) / 1e6:.4g} Mb of the input shuffled" in text


def test_an_fdr_out_of_reach_gives_a_valid_empty_output(scan, tmp_path):
    err = scan("genome.fa --fdr 0.001 --null-mb 0.02 -o calls.gff3").err
    assert "no threshold keeps expected false calls at 0.001" in err
    assert (tmp_path / "calls.gff3").read_text().startswith("##gff-version 3\n")
    assert read_called(tmp_path / "calls.gff3").calls == []


# --- nothing to scan ----------------------------------------------------------------------------------------


def test_short_sequences_are_listed(scan, tmp_path):
    write(tmp_path / "mixed.fa", fasta({"tiny": "ACGT", "nothing": "", "long": letters(200)}))
    assert "1 sequence, 2 skipped" in scan("mixed.fa --skipped skipped.tsv").err
    skipped = table((tmp_path / "skipped.tsv").read_text())
    assert [row["id"] for row in skipped] == ["tiny", "nothing"]
    assert "4 bases" in skipped[0]["reason"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "--null-mb 0.1 --track x.bw"),
        (fasta({"a": "ACG", "b": "ACGT"}), "--track x.bw"),
        (fasta({"a": letters(200)}), "--bed none.bed --null-mb 0.01 --track x.bw"),
    ],
    ids=["no records", "too short", "no parts"],
)
def test_nothing_to_scan_gives_an_empty_output_on_request(scan, tmp_path, content, words):
    write(tmp_path / "x.fa", content)
    write(tmp_path / "none.bed", "")
    out = scan("x.fa --allow-empty", words).out
    assert [line[:3] for line in body(out)] == ["id\t"]
    assert facts(out)["expected false calls"] == "not estimated"
    assert (tmp_path / "x.plus.bw").exists()
