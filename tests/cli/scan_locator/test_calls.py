"""``seqray scan`` with a locator: what is stated of each call, and of all of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cli.scan_locator.records import GENES
from seqray.cli.main import main
from seqray.io.gff3 import read_gff3_calls
from seqray.modelfile.file import save_model
from tables import facts, letters, table

FIGURES = {
    "tolerance": 25,
    "probability": {"genes": {"scores": [0.0, 1.0], "values": [0.0, 0.5]}},
    "expected": [
        {
            "species": name,
            "held_out": "species",
            "genes": True,
            "rows": [[0.9, 1.0, 0.4, high, 0.0, 1.0], [0.1, 30.0, 0.8, high / 2, 0.0, 1.0]],
        }
        for name, high in (("Toy one", 0.4), ("Toy two", 0.8))
    ],
}


def test_one_call_is_no_plural(scan, genome, tmp_path):
    words = ("--genes", "none", "--out", tmp_path / "x.tsv")
    assert " 1 call (" in scan(genome, *words, "--per-kb", "0.27")[1]  # of 3.74 kb
    assert " 4 calls (" in scan(genome, *words, "--per-kb", "1.07")[1]


@pytest.mark.parametrize(("words", "distance"), [((), 25), (("--min-distance", "40"), 40)])
def test_calls_keep_their_distance(scan, genome, words, distance):
    out, _ = scan(genome, "--genes", "none", "--per-kb", "90", *words)
    assert facts(out)["peaks"] == f"sites on one strand lie at least {distance} apart"
    sites: dict[tuple[str, str], list[int]] = {}
    for row in table(out):
        sites.setdefault((row["contig"], row["strand"]), []).append(int(row["site"]))
    gaps = np.concatenate([np.diff(sorted(found)) for found in sites.values()])
    assert gaps.min() >= distance
    assert gaps.min() < distance + 5


def test_calls_state_their_surroundings(scan, genome, annotation, tmp_path):
    gff, bed = tmp_path / "c.gff3", tmp_path / "c.bed"
    scan(genome, "--genes", annotation, "--out", gff, "--out", bed, "--out", tmp_path / "c.tsv")
    rows = table((tmp_path / "c.tsv").read_text())
    starts = {"+": {"one": 300, "two": 99}, "-": {"one": 1899}}
    for row in rows:
        site, start = int(row["site"]), starts[row["strand"]].get(row["contig"])
        ahead = None if start is None else (start - site) * (1 if row["strand"] == "+" else -1)
        near = ahead is not None and 0 <= ahead <= 500
        assert row["distance"] == (str(ahead) if near else "."), row
        inside = [s for c, a, b, s in GENES if c == row["contig"] and a - 1 <= site < b]
        expected = {row["strand"]: "same"}.get(inside[0], "opposite") if inside else "."
        assert row["within_strand"] == expected
    assert {row["distance"] == "." for row in rows} == {True, False}
    assert {row["within_strand"] for row in rows} == {"same", "opposite", "."}
    read = read_gff3_calls(gff)
    assert [call.context.gene or "." for call in read] == [row["gene"] for row in rows]
    assert [call.context.spacer for call in read] == [
        None if row["spacer"] == "." else int(row["spacer"]) for row in rows
    ]
    lines = [line.split("\t") for line in bed.read_text().splitlines() if not line.startswith("#")]
    assert [line[8:] for line in lines] == [list(row.values())[8:] for row in rows]


def test_without_genes_calls_state_none(scan, genome):
    rows = table(scan(genome, "--genes", "none")[0])
    assert {(row["gene"], row["distance"], row["within"]) for row in rows} == {(".", ".", ".")}


def test_the_precision_to_expect(scan, genome, annotation, locator, locator_file, tmp_path, capfd):
    path = tmp_path / "figured.safetensors"
    card = replace(locator.card, locator=locator.card.locator | FIGURES)
    save_model(path, list(locator.locators), card)
    words = [str(genome), "--genes", str(annotation), "--model", str(path), "--threads", "1"]
    assert main(["scan", *words, "--threshold", "0.5"]) == 0
    out, err = capfd.readouterr()
    # Halfway between .1 and .9: .3 and .6, and of both the median .45.
    assert "to expect 0.45 (0.30 to 0.60, median, lowest and highest of 2 species that training did" in err
    assert facts(out)["expected precision"].startswith("0.45 (0.30 to 0.60, median")
    found = facts(out)["calls"]
    rows = table(out)
    assert found.startswith(f"{len(rows)}, ")
    assert found.endswith(f"{len(rows) / 3:.3g} per gene")
    assert all(row["precision"] == "." for row in rows if row["contig"] == "tiny")  # its genes are not known
    for row in (row for row in rows if row["contig"] != "tiny"):
        assert float(row["probability"]) == pytest.approx(float(row["score"]) / 2, abs=1e-5)
        part = (min(float(row["score"]), 0.9) - 0.1) / 0.8
        assert float(row["precision"]) == pytest.approx(0.3 + 0.3 * part, abs=1e-5)
    assert main(["scan", *words, "--threshold", "0.05"]) == 0
    out, err = capfd.readouterr()
    assert facts(out)["expected precision"] == "not measured below a score of 0.1"
    assert "precision to expect not measured below a score of 0.1, " in err
    assert main(["scan", *words, "--out", str(tmp_path / "whole.tsv")]) == 0
    for number in (1, 2):
        shard = str(tmp_path / f"{number}.shard")
        assert main(["scan", *words, "--shard", f"{number}/2", "--out", shard]) == 0
    shards = [str(tmp_path / f"{number}.shard") for number in (1, 2)]
    assert main(["gather", *shards, "--out", str(tmp_path / "gathered.tsv")]) == 0
    whole, gathered = ((tmp_path / f"{name}.tsv").read_text() for name in ("whole", "gathered"))
    assert gathered.replace("gathered.tsv", "whole.tsv") == whole


def test_short_contigs_are_cautioned_about_unless_they_are_circles(scan, tmp_path):
    path = tmp_path / "x.fa"
    path.write_text(f">a [topology=circular]\n{letters(900)}\n>b\n{letters(2500, 1)}\n")
    assert "letters on average" not in scan(path, "--genes", "none")[1]
    path.write_text(f">a\n{letters(900)}\n>b\n{letters(2500, 1)}\n")
    assert (
        "the linear contigs have 1700 letters on average: genes are cut" in scan(path, "--genes", "none")[1]
    )


def test_evidence_from_letters(scan, genome, annotation):
    words = [genome, "--genes", annotation, "--threshold", "0.4"]
    plain, _ = scan(*words)
    assert "evidence from letters" not in facts(plain)
    compared, err = scan(*words, "--null-mb", "0.01")
    assert table(compared) == table(plain)
    assert "with genes kept and the letters between them shuffled" in facts(compared)["evidence from letters"]
    assert "false" not in err
