"""``seqray scan`` from the command line, with a tiny random model on sequences made here."""

import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pyBigWig
import pytest

from seqray.cli.main import main
from seqray.core.alphabet import DNA, reverse_complement
from seqray.inference.sequences import score_codes
from seqray.io.gff3 import read_gff3_calls
from tables import facts, letters, table

WINDOW, SITE = 20, 12  # of the tiny model


@pytest.fixture
def genome(tmp_path):
    path = tmp_path / "genome.fa"
    path.write_text(f">one first\n{letters(3000)}\n>two\n{letters(1500, seed=1).lower()}\n")
    return path


@pytest.fixture
def scan(tiny_model_file, capfd):
    """Run the verb: exit status, standard output and standard error."""

    def run(*words, model=tiny_model_file):
        settings = [] if "--null-mb" in words or "--fdr" in words else ["--null-mb", "0"]
        status = main(["scan", "--model", str(model), "--threads", "1", *settings, *map(str, words)])
        out, err = capfd.readouterr()
        return status, out, err

    return run


def places(text):
    return [(row["contig"], int(row["start"]), row["strand"]) for row in table(text)]


# --- formats agree ------------------------------------------------------------------------------------------


def test_every_format_tells_the_same_calls(scan, genome, tmp_path):
    paths = {kind: tmp_path / f"calls.{kind}" for kind in ("gff3", "bed", "tsv", "tsv.gz")}
    status, out, err = scan(genome, "--threshold", "0.55", *[w for p in paths.values() for w in ("-o", p)])
    assert (status, out) == (0, "")
    rows = table(paths["tsv"].read_text())
    assert len(rows) > 10
    assert {row["strand"] for row in rows} == {"+", "-"}
    assert {row["contig"] for row in rows} == {"one", "two"}
    assert f"{len(rows)} calls" in err
    with gzip.open(paths["tsv.gz"], "rt") as handle:
        assert handle.read() == paths["tsv"].read_text()
    assert [
        (c.contig, str(c.start), str(c.end), c.strand, str(c.site), f"{c.score:.6g}", c.label)
        for c in read_gff3_calls(paths["gff3"])
    ] == [tuple(row.values())[1:] for row in rows]
    bed = [line.split("\t") for line in paths["bed"].read_text().splitlines() if not line.startswith("#")]
    assert [[b[3], b[0], b[1], b[2], b[5], b[7], b[6]] for b in bed] == [
        list(row.values())[:-1] for row in rows
    ]


def test_calls_are_windows_that_the_model_scores_so(scan, genome, tiny_model):
    _, out, _ = scan(genome, "--threshold", "0.55")
    sequences = {"one": letters(3000), "two": letters(1500, seed=1)}
    for row in table(out):
        start, end, site = int(row["start"]), int(row["end"]), int(row["site"])
        window = sequences[row["contig"]][start:end]
        read = window if row["strand"] == "+" else reverse_complement(window)
        assert site == (start + SITE if row["strand"] == "+" else end - 1 - SITE)
        [score] = score_codes(tiny_model, DNA.encode(read)[None])[:, 0]
        assert float(row["score"]) == pytest.approx(score, abs=1e-5)
        assert score >= 0.55


def test_tracks_hold_the_score_of_every_window(scan, genome, tmp_path, tiny_model):
    tracks = [w for end in ("bw", "bedgraph") for w in ("--track", tmp_path / f"x.{end}")]
    assert scan(genome, "--stride", "7", "-o", tmp_path / "c.tsv", *tracks)[0] == 0
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


# --- the same input gives the same output -------------------------------------------------------------------


def test_the_page_shows_the_calls_of_the_table(scan, genome, tmp_path):
    page, calls, track = tmp_path / "page.html", tmp_path / "calls.tsv", tmp_path / "score.bw"
    outputs = ["--out", calls, "--html", page, "--track", track]
    assert scan(genome, "--threshold", "0.6", *outputs)[0] == 0
    text = page.read_text(encoding="utf-8")
    data = json.loads(re.search(r"<script type=application/json id=data>(.*?)</script>", text)[1])
    shown = [
        (data["names"][contig], int(site) - 1, "+-"[int(minus)])
        for contig, site, minus in zip(data["contig"], np.cumsum(data["site"]), data["minus"], strict=True)
    ]
    rows = table(calls.read_text())
    assert shown == [(row["contig"], int(row["site"]), row["strand"]) for row in rows]
    assert data["score"] == pytest.approx([float(row["score"]) for row in rows], abs=6e-4)
    assert len(shown) > 5
    assert f"<dt>Calls<dd><b>{len(rows)}</b>" in text
    assert text.count("<article") == min(48, len(rows))


def test_scores_on_the_page_are_those_of_the_tracks(scan, genome, tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr("seqray.cli.scan_page.render_scan", lambda report: kept.append(report) or "")
    track = tmp_path / "score.bw"
    assert scan(genome, "--threshold", "0.6", "--html", tmp_path / "page.html", "--track", track)[0] == 0
    (report,) = kept
    lengths = {contig.name: contig.length for contig in report.contigs}
    assert lengths == {"one": 3000, "two": 1500}
    with (
        pyBigWig.open(str(tmp_path / "score.plus.bw")) as plus,
        pyBigWig.open(str(tmp_path / "score.minus.bw")) as minus,
    ):
        for i, profiles in report.profiles.items():
            call = report.calls[i]
            for strand, values in zip((plus, minus), profiles, strict=True):
                first, last = max(0, call.site - 400), min(lengths[call.contig], call.site + 401)
                expected = strand.values(call.contig, first, last)
                at = first - (call.site - 400)
                assert values[at : at + last - first] == pytest.approx(expected, abs=1e-3, nan_ok=True)
                assert np.isnan(values[:at]).all()
                assert np.isnan(values[at + last - first :]).all()


def test_two_runs_give_the_same_bytes(scan, genome, tmp_path):
    def run(folder):
        folder.mkdir()
        names = ["a.gff3", "a.bed", "a.tsv"]
        outs = [w for name in names for w in ("-o", folder / name)]
        tracks = ["--track", folder / "a.bw", "--track", folder / "a.bedgraph.gz"]
        assert scan(genome, "--fdr", "0.5", "--null-mb", "0.05", *outs, *tracks)[0] == 0
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first = run(tmp_path / "first")
    assert len(first) == 7
    assert first == run(tmp_path / "second")


def test_compressed_input_standard_input_and_batch_size_change_nothing(scan, genome, tmp_path, monkeypatch):
    _, plain, _ = scan(genome)
    packed = tmp_path / "genome.fa.gz"
    packed.write_bytes(gzip.compress(genome.read_bytes()))
    assert table(scan(packed)[1]) == table(plain)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(genome.read_bytes())))
    assert table(scan("-")[1]) == table(plain)
    assert places(scan(genome, "--batch-size", "3")[1]) == places(plain)


def test_a_pipe_works_as_input_and_output(seqray_forks, genome, tiny_model_file):
    words = [seqray_forks.folder / "seqray", "scan", "-", "--model", str(tiny_model_file), "--null-mb", "0"]
    words += ["--threshold", "0.55", "--format", "gff3", "-q"]
    done = subprocess.run(words, input=genome.read_bytes(), capture_output=True, check=True)
    assert done.stderr == b""
    assert done.stdout.startswith(b"##gff-version 3\n")


# --- circles, parts, masks ----------------------------------------------------------------------------------


def test_a_circle_by_option_and_by_genbank_topology(scan, genome, tmp_path):
    sequence = letters(1500, seed=1)
    genbank = tmp_path / "two.gb"
    numbered = "".join(f"{i + 1:>9} {sequence[i : i + 60]}\n" for i in range(0, 1500, 60))
    genbank.write_text(
        "LOCUS       two                     1500 bp    DNA     circular BCT 01-JAN-2000\n"
        f"ACCESSION   two\nVERSION     two\nFEATURES             Location/Qualifiers\nORIGIN\n{numbered}//\n"
    )
    settings = ("--threshold", "0.3", "--min-distance", "5")
    whole = scan(genome, "--circular", *settings)[1]
    named = scan(genome, "--circular-id", "two", *settings)[1]
    topology = scan(genbank, *settings)[1]
    ring = [place for place in places(whole) if place[0] == "two"]
    assert any(start > 1500 - WINDOW for _, start, _ in ring)
    assert [place for place in places(named) if place[0] == "two"] == ring
    assert places(topology) == ring
    assert not any(start > 3000 - WINDOW for contig, start, _ in places(named) if contig == "one")


def test_regions_and_bed_give_the_calls_of_the_whole_scan_within(scan, genome, tmp_path):
    bed = tmp_path / "parts.bed"
    bed.write_text("two\t200\t900\n")
    whole = table(scan(genome)[1])
    _, out, told = scan(genome, "--region", "one:501-1,000", "--bed", bed)
    part = table(out)
    assert "2 sequences, 1200 letters of 4500 letters searched in 2 parts, " in told  # 500 + 700
    assert f"{len(part) / 0.0012:.4g} per Mb searched" in told
    assert "# parts: sites within one:501-1000, two:201-900 only\n" in out
    assert "# scanned: 2 sequences, 4500 letters, 1200 positions per strand in 2 parts\n" in out
    inside = [
        row
        for row in whole
        if (row["contig"] == "one" and 500 <= int(row["site"]) < 1000)
        or (row["contig"] == "two" and 200 <= int(row["site"]) < 900)
    ]
    assert [(row["contig"], row["site"], row["strand"]) for row in part] == [
        (row["contig"], row["site"], row["strand"]) for row in inside
    ]
    assert len(part) > 3


def test_an_empty_bed_file_gives_an_empty_output(scan, genome, tmp_path):
    bed = tmp_path / "none.bed"
    bed.write_text("")
    status, out, _ = scan(genome, "--bed", bed, "--allow-empty", "--null-mb", "0.01")
    assert (status, table(out)) == (0, [])
    assert facts(out)["expected false calls"] == "not estimated"


def test_soft_masked_sites_are_left_out(scan, genome):
    assert {row["contig"] for row in table(scan(genome, "--skip-soft-masked")[1])} == {"one"}


# --- expected false calls -----------------------------------------------------------------------------------


def test_expected_false_calls_stand_in_every_header(scan, genome, tmp_path):
    outs = [tmp_path / f"calls.{kind}" for kind in ("gff3", "bed", "tsv")]
    _, _, err = scan(genome, "--null-mb", "0.05", *[w for p in outs for w in ("-o", p)])
    headers = [facts(path.read_text()) for path in outs]
    text = headers[0]["expected false calls"]
    assert all(header["expected false calls"] == text for header in headers)
    per_mb, low, high = float(text.split()[0]), float(text.split()[6]), float(text.split()[8].rstrip("),"))
    assert 0 < low < per_mb < high
    assert f"expected false calls {per_mb:.4g} per Mb" in err
    # Ten copies of 4,500 letters would fit; five are made, less a window's end for each of two contigs.
    assert f"in {5 * (4500 - 38) / 1e6:.4g} Mb of the input shuffled" in text


def test_an_fdr_out_of_reach_gives_a_valid_empty_output(scan, genome, tmp_path):
    gff = tmp_path / "calls.gff3"
    status, _, err = scan(genome, "--fdr", "0.001", "--null-mb", "0.02", "-o", gff)
    assert status == 0
    assert "no threshold keeps expected false calls at 0.001 of all calls" in err
    assert gff.read_text().startswith("##gff-version 3\n")
    assert read_gff3_calls(gff) == []


# --- records that can't be scanned --------------------------------------------------------------------------


def test_short_sequences_are_listed_or_refused(scan, tmp_path):
    fasta, skipped = tmp_path / "mixed.fa", tmp_path / "skipped.tsv"
    fasta.write_text(f">tiny\nACGT\n>nothing\n>long\n{letters(200)}\n")
    status, _, err = scan(fasta, "--skipped", skipped)
    assert status == 0
    assert [list(row.values()) for row in table(skipped.read_text())] == [
        ["tiny", "4 letters, shorter than the window of 20"],
        ["nothing", "empty sequence"],
    ]
    assert "1 sequence, 2 skipped" in err
    status, out, err = scan(fasta, "--strict")
    assert (status, out) == (2, "")
    assert "mixed.fa: record 'tiny': 4 letters, shorter than the window of 20; remove it" in err
    status, _, err = scan(fasta, "--strict", "--shard", "1/2", "-o", tmp_path / "c.shard")
    assert (status, "mixed.fa: record 'tiny': 4 letters" in err) == (2, True)


def test_an_empty_file(scan, tmp_path):
    empty, bigwig = tmp_path / "empty.fa", tmp_path / "x.bw"
    empty.write_text("")
    assert scan(empty)[0] == 2
    status, out, _ = scan(empty, "--allow-empty", "--null-mb", "0.1", "--track", bigwig)
    assert (status, table(out)) == (0, [])
    assert (tmp_path / "x.plus.bw").exists()


def test_a_format_that_no_output_has_is_refused(scan, genome, tmp_path):
    status, _, err = scan(genome, "--format", "tsv", "-o", tmp_path / "x.bed")
    assert status == 2
    assert "--format tsv and" in err
    assert "are different formats; leave out --format" in err
    status, out, _ = scan(genome, "--format", "gff3", "-o", tmp_path / "x.bed", "-o", "-", "--null-mb", "0")
    assert (status, out[:13]) == (0, "##gff-version")


def test_a_file_of_records_too_short_to_scan_is_an_error(scan, tmp_path):
    fasta, out = tmp_path / "short.fa", tmp_path / "c.gff3"
    fasta.write_text(f">a\n{letters(3)}\n>b\n{letters(4)}\n")
    for output in (["-o", out], ["--shard", "1/2", "-o", tmp_path / "c.shard"]):
        status, _, err = scan(fasta, "--quiet", *output)
        assert (status, err.count("\n")) == (2, 1)
        assert "short.fa: all 2 records were skipped, such as 'a': 3 letters, shorter than" in err
    assert [path.name for path in tmp_path.iterdir()] == ["short.fa"]
    status, _, err = scan(fasta, "--allow-empty", "-o", tmp_path / "c.tsv")
    assert (status, table((tmp_path / "c.tsv").read_text())) == (0, [])


def test_a_fault_in_the_middle_leaves_no_output(scan, tmp_path):
    fasta = tmp_path / "broken.fa"
    fasta.write_text(f">good\n{letters(500)}\n>bad\n{letters(100)}!\n")
    status, out, err = scan(
        fasta, "-o", tmp_path / "c.gff3", "-o", tmp_path / "c.tsv", "--track", tmp_path / "c.bw"
    )
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "record 'bad'" in err
    assert [path.name for path in tmp_path.iterdir()] == ["broken.fa"]


def test_ctrl_c_in_mid_run_leaves_no_output(seqray_forks, tiny_model_file, tmp_path):
    words = [seqray_forks.folder / "seqray", "scan", "-", "--model", str(tiny_model_file)]
    words += ["-o", str(tmp_path / "c.gff3"), "--track", str(tmp_path / "c.bw")]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(f">a\n{letters(500)}\n>b\n".encode())
        process.stdin.flush()  # and left open: the scan waits for more
        while not list(tmp_path.glob(".seqray-*/.seqray-*")) and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate()
    assert process.returncode in (130, -signal.SIGINT)  # the same to a shell; see test_bad_input.py
    assert err.decode().strip() == "seqray: interrupted"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--fdr", "0.1", "--null-mb", "0"], "null-mb"),
        (["--fdr", "0.1", "--threshold", "0.5"], "can't both be given"),
        (["--region", "on:1-5"], "did you mean 'one'"),
        (["--region", "one:1-5000"], "which has 3000 letters"),
        (["--region", "one:9-5"], "--region one:9-5"),
        (
            ["--circular-id", "tow"],
            "--circular-id: the input has no sequence named 'tow'; did you mean 'two'",
        ),
        (["-o", "calls.txt"], "calls.txt: does not end in the suffix of a known format"),
        (["-o", "no/such/folder.bed"], "directory doesn't exist"),
        (["-o", "-", "-o", "-"], "named twice"),
        (["--bed", os.devnull], "/dev/null: contains no parts to scan; leave it out to scan all"),
        (["--track", "x.wig"], "x.wig: does not end in the suffix of a known track"),
        (["--duplicates", "keep"], "--duplicates: invalid choice: 'keep'"),
        (["--stride", "0"], "--stride"),
        (["--stirde", "5"], "did you mean '--stride'"),
    ],
)
def test_what_can_t_be_done_is_one_line(scan, genome, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, out, err = scan(genome, *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert [path.name for path in tmp_path.iterdir()] == ["genome.fa"]


def test_a_bed_file_without_parts_scans_nothing_where_that_is_allowed(scan, genome):
    status, out, err = scan(genome, "--bed", os.devnull, "--allow-empty")
    assert status == 0, err
    assert [line[:3] for line in out.splitlines() if line[0] != "#"] == ["id\t"]


def test_a_format_for_names_that_do_not_tell(scan, genome, tmp_path):
    assert scan(genome, "-o", tmp_path / "calls.txt", "--format", "bed")[0] == 0
    assert "#chrom\tchromStart" in (tmp_path / "calls.txt").read_text()
