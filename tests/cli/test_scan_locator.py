"""seqray scan with a locator."""

import csv
import gzip
import random
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from Bio import SeqIO

import seqray
from seqray.cli.inputs import GenomeInput
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.card_parts import LocatorFacts
from seqray.core.serialization import from_mapping, to_mapping
from seqray.explanations.targets import LocatorTarget
from seqray.genome import find
from seqray.genome.find import read_genes
from seqray.genome.genes import gene_tracks
from seqray.io.gff3 import read_called
from seqray.modelfile.file import save_model
from seqray.report.svg import genome as drawn
from tables import body, facts, fasta, genbank, gff3, letters, table, write

GENES = [("one", 301, 900, "+"), ("one", 1001, 1900, "-"), ("two", 100, 399, "+")]
SEQUENCES = {"one": letters(3000), "two": letters(700, 1), "tiny": letters(40, 2)}
TURNED = str.maketrans("ACGT", "TGCA")


@pytest.fixture
def scan(run, locator_file, tmp_path):
    """Run the verb where genome.fa and genes.gff3 are."""
    write(tmp_path / "genome.fa", fasta(SEQUENCES))
    write(tmp_path / "genes.gff3", gff3(GENES))
    return run.to("scan --threads 1 --model", locator_file)


# --- calls --------------------------------------------------------------------------------------------------


def test_the_model_of_the_kingdom_is_chosen(run, tmp_path):
    text = letters(3000, 4) + "GTGCTCCCCCGCCAATTCCT" + letters(999, 5)
    path = write(tmp_path / "genome.fa", fasta({"c": text}))
    ended = run("scan genome.fa --model auto --genes none")
    assert ended.facts["model"].startswith("archaea-genome")
    assert "ribosomal RNA of archaea, so archaea-genome is taken" in ended.err
    calls = seqray.scan("auto", path, genes=None)
    assert [str(call.site + 1) for call in calls.itertuples()] == [row["site"] for row in ended.rows]
    assert any("archaea-genome is taken" in line for line in calls.attrs["findings"])


def test_calls_state_their_surroundings(scan, tmp_path):
    scan("genome.fa --genes genes.gff3 --out c.gff3 --out c.bed --out c.tsv")
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
    read = read_called(tmp_path / "c.gff3").calls  # by their first box
    read.sort(key=lambda call: int(call.id.rpartition("_")[2]))
    assert [call.context.gene or "." for call in read] == [row["gene"] for row in rows]
    spacers = ["." if call.context.spacer is None else str(call.context.spacer) for call in read]
    assert spacers == [row["spacer"] for row in rows]
    lines = [line.split("\t") for line in body((tmp_path / "c.bed").read_text())]
    assert [line[8:] for line in lines] == [list(row.values())[8:] for row in rows]
    without = scan("genome.fa --genes none").rows
    assert {(row["gene"], row["distance"], row["within"]) for row in without} == {(".", ".", ".")}


FIGURES = {
    "tolerance": 25,
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


def test_the_precision_to_expect(scan, run, locator, tmp_path):
    facts = from_mapping(LocatorFacts, to_mapping(locator.card.locator) | FIGURES)
    card = replace(locator.card, locator=facts)
    save_model(tmp_path / "figured.safetensors", list(locator.locators), card)
    figured = run.to("scan genome.fa --genes genes.gff3 --model figured.safetensors --threads 1")
    ended = figured("--threshold 0.5")
    # Halfway between .1 and .9: .3 and .6, and of both the median .45.
    assert "0.45 (0.30 to 0.60, median, lowest and highest of 2 species" in ended.err
    assert ended.facts["expected precision"].startswith("0.45 (0.30 to 0.60, median")
    assert ended.facts["calls"].startswith(f"{len(ended.rows)}, ")
    assert ended.facts["calls"].endswith(f"{len(ended.rows) / 3:.3g} per gene")
    for row in ended.rows:
        if row["contig"] == "tiny":  # its genes are not known
            assert row["precision"] == "."
            continue
        # .4 and .8 at .9, in the mean .6; of the 29 calls more down to .1, around .5, 14/29 of that
        part = (min(max(float(row["score"]), 0.5), 0.9) - 0.5) / 0.4
        precision = 0.6 * (part + (1 - part) * 14 / 29)
        assert float(row["precision"]) == pytest.approx(precision, abs=1e-5)
        assert row["trust"] == ("medium" if precision >= 1 / 3 else "doubtful")
    ended = figured("--threshold 0.05")
    assert "not measured below a score of 0.1" in ended.facts["expected precision"]
    assert "not measured below a score of 0.1" in ended.err
    figured("--out calls.tsv")
    whole = (tmp_path / "calls.tsv").read_text()
    for number in (1, 2):
        figured(f"--shard {number}/2 --out {number}.shard")
    run("gather 1.shard 2.shard --out calls.tsv")
    assert (tmp_path / "calls.tsv").read_text() == whole


def test_evidence_from_letters(scan):
    plain = scan("genome.fa --genes genes.gff3 --threshold 0.4")
    compared = scan("genome.fa --genes genes.gff3 --threshold 0.4 --null-mb 0.01")
    assert "evidence from letters" not in plain.facts
    assert "shuffled" in compared.facts["evidence from letters"]
    assert compared.rows == plain.rows
    assert "false" not in compared.err


# --- genes --------------------------------------------------------------------------------------------------


def test_genes_of_a_file_and_none_and_predicted_ones(scan):
    known, unknown, predicted = (
        scan("genome.fa", more) for more in ("--genes genes.gff3", "--genes none", "")
    )
    assert "without genes" not in known.err
    assert known.facts["genes known"] == "3, GFF3 genes.gff3"
    assert known.facts["threshold"].startswith("0.6,")
    assert unknown.facts["genes"] == "not known"
    assert unknown.facts["threshold"].startswith("0.55,")
    assert unknown.rows != known.rows
    assert predicted.facts["genes"].startswith("predicted by pyrodigal")
    assert ["predicted by pyrodigal" in found.err for found in (known, unknown, predicted)] == [0, 0, 1]
    count = predicted.facts["genes known"].partition(",")[0]
    assert f"\nseqray: {count} genes predicted by pyrodigal" in "\n" + predicted.err  # of all contigs
    assert scan("genome.fa --genes predict --codon-table 11").rows == predicted.rows


def test_sequences_that_a_file_of_genes_does_not_name_are_counted(scan, tmp_path):
    whole = scan("genome.fa --genes genes.gff3")
    assert "not named" not in whole.err  # the third has 40 letters
    write(tmp_path / "genes.gff3", gff3(GENES[2:]))
    some = scan("genome.fa --genes genes.gff3")
    cautions = [text for name, text in some.facts.items() if name.startswith("caution ")]
    assert all(f"caution: {text}" in some.err for text in cautions)
    assert cautions[1].startswith("2 of 3 sequences are not named in GFF3 genes.gff3")
    assert "per gene" in whole.facts["calls"]
    assert "per gene" not in some.facts["calls"]
    first, second = ([row["site"] for row in one.rows if row["contig"] == "two"] for one in (whole, some))
    assert first == second


def test_a_gene_of_two_lines_at_the_origin_is_one_where_the_scan_says_that_contigs_are_circular(
    scan, tmp_path
):
    """As if the file of genes said it, ``Is_circular``, or the GenBank file of the sequence."""
    write(tmp_path / "one.fa", fasta({"one": letters(900)}))
    write(tmp_path / "one.gb", genbank("one", letters(900)))
    rows = [f"one\tx\tCDS\t{a}\t{b}\t.\t-\t0\tID=a" for a, b in ((1, 90), (601, 900))]
    rows += ["one\tx\tCDS\t301\t420\t.\t+\t0\tID=b", ""]
    region = "one\tx\tregion\t1\t900\t.\t+\t.\tID=one;Is_circular=true"
    write(tmp_path / "plain.gff3", "\n".join(["##gff-version 3", *rows]))
    write(tmp_path / "stated.gff3", "\n".join(["##gff-version 3", region, *rows]))
    found = []
    for words in (
        "one.fa --genes stated.gff3",
        "one.fa --genes plain.gff3 --circular",
        "one.fa --genes plain.gff3 --circular-id one",
        "one.gb --genes plain.gff3",
    ):
        ended = scan(words, "--threshold 0.3")
        assert ended.facts["genes known"].startswith("2, GFF3")
        found.append(ended.rows)
    assert found[1:] == found[:1] * 3
    assert {row["gene"] for row in found[0]} >= {"a", "b"}


def test_calls_per_gene_count_a_gene_in_pieces_once_and_need_both_strands(scan, tmp_path):
    write(tmp_path / "x.gb", genbank("r.1", letters(900), ["join(100..159,300..359,500..559)", "700..760"]))
    scan("x.gb --threshold 0.3 --out x.tsv --html x.html")
    text = (tmp_path / "x.tsv").read_text()
    assert facts(text)["genes known"].startswith("2, GenBank")
    assert facts(text)["calls"].endswith(f"{len(table(text)) / 2:.3g} per gene")
    assert "2 genes: GenBank x.gb" in (tmp_path / "x.html").read_text()
    said = scan("x.gb --threshold 0.3 --strand plus --out y.tsv --html x.html").err
    assert "per gene" not in said + facts((tmp_path / "y.tsv").read_text())["calls"]
    assert "Calls per gene" not in (tmp_path / "x.html").read_text()


def test_genes_of_a_genbank_input_are_its_own(scan, tmp_path):
    path = write(tmp_path / "x.gb", genbank("r.1", letters(900), ["200..499", "join(801..900,1..80)"]))
    own = scan("x.gb --threshold 0.3")
    assert own.facts["genes known"] == "2, GenBank x.gb"
    assert scan("x.gb --threshold 0.3 --genes x.gb").rows == own.rows
    assert [(g.start, g.end) for g in read_genes(path).of("r.1")] == [(199, 499), (800, 980)]
    write(path, genbank("r.1", letters(900)))
    assert scan("x.gb").facts["genes"].startswith("predicted")
    text = genbank("r.1", letters(900), ["200..499"])
    write(path, text[: text.index("ORIGIN")] + "CONTIG      join(U1.1:1..900)\n//\n")
    assert "'r.1': no sequence in the file" in scan("x.gb", status=2).err


def test_genbank_records_of_one_name_keep_their_genes_under_new_names(scan, tmp_path):
    records = [
        genbank("p", letters(3000, 0), ["301..900"]),
        genbank("p", letters(3000, 1), ["complement(1001..1900)"]),
    ]
    alone = []
    for text in records:
        write(tmp_path / "x.gb", text)
        alone.append([row | {"id": ""} for row in scan("x.gb --threshold 0.3").rows])
    write(tmp_path / "both.gb", "".join(records))
    found = [row | {"id": ""} for row in scan("both.gb --threshold 0.3 --duplicates rename").rows]
    assert found == alone[0] + [row | {"contig": "p_2"} for row in alone[1]]
    assert all(alone)


@pytest.mark.parametrize("more", ["", " --genes predict"])
def test_a_genbank_input_that_is_cut_among_its_genes_has_to_be_fetched_again(scan, tmp_path, more):
    text = genbank("r.1", letters(900), ["200..499", "600..899"], topology="linear")
    write(tmp_path / "x.gb", text[: text.index("600..") - 1])
    scan.refused(f"x.gb{more}", names=("x.gb", "cut off", "fetch it again"))


@pytest.mark.parametrize("place", ["complement(200..499", "850..980"])
def test_damaged_genes_of_a_genbank_input_are_refused_unless_others_are_asked_for(scan, tmp_path, place):
    write(tmp_path / "x.gb", genbank("r.1", letters(900), [place], topology="linear"))
    scan.refused("x.gb", names=("x.gb", "--genes predict"))
    assert scan("x.gb --genes predict").facts["genes"].startswith("predicted")


def test_where_genes_can_t_be_predicted_letters_are_scanned_alone(scan, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(find, "MAX_CONTIG_LETTERS", 2000)
        ended = scan("genome.fa")
        assert ended.facts["genes"] == "not known"
        assert "can't be predicted in a contig of 3000 bases" in ended.err
        scan.refused("genome.fa --genes predict", names="'one'")
    monkeypatch.setattr(find, "find_spec", lambda name: None)
    ended = scan("genome.fa")
    assert ended.facts["genes"] == "not known"
    assert "pip install pyrodigal" in ended.err


@pytest.mark.parametrize("genes", ["none", "genes.gff3", "predict"])
def test_a_long_input_is_streamed_beyond_what_genes_are_learned_from(scan, tmp_path, monkeypatch, genes):
    held, names = [], ("c.tsv", "s.html", "x.gb")
    hold = GenomeInput.hold
    monkeypatch.setattr(GenomeInput, "hold", lambda own, most: held.append(hold(own, most)) or held[-1])
    words = ("genome.fa --circular-id two --out c.tsv --html s.html --out x.gb --genes", genes)
    scan(*words)
    whole = [(tmp_path / name).read_bytes() for name in names]
    monkeypatch.setattr(find, "MAX_TRAINING_LETTERS", 3000)
    scan(*words)
    assert [(tmp_path / name).read_bytes() for name in names] == whole
    assert list(map(len, held)) == ([] if genes == "none" else [3, 1])


def test_a_contig_too_long_for_a_bacterium_is_refused_when_it_is_reached(scan, tmp_path, monkeypatch):
    write(tmp_path / "long.fa", fasta({"one": letters(3000), "two": letters(4000, 1)}))
    monkeypatch.setattr(find, "MAX_TRAINING_LETTERS", 3000)
    monkeypatch.setattr(find, "MAX_CONTIG_LETTERS", 3500)
    scan.refused("long.fa --genes predict", names="'two'")


def test_calls_of_a_trust_or_more(scan, run, locator, tmp_path):
    figures = from_mapping(LocatorFacts, to_mapping(locator.card.locator) | FIGURES)
    save_model(tmp_path / "f.safetensors", list(locator.locators), replace(locator.card, locator=figures))
    figured = run.to("scan genome.fa --genes genes.gff3 --model f.safetensors --threads 1")
    # .6 (p + (1 - p) 14/29) is 1/3 for p = 19/135, of the way from .5 to .9; of Toy two alone it is
    # .8 (p + (1 - p) 14/29), so 2/3 for p = 61/90
    for words, wanted, part in (
        (["--trust", "medium"], {"high", "medium"}, 19 / 135),
        (["--trust", "high", "--species", "Toy two"], {"high"}, 61 / 90),
    ):
        ended, rows = figured(words), figured("--threshold 0.001", words[2:]).rows
        trusted = [row for row in rows if row["trust"] in wanted]
        assert len(trusted) > 1
        assert [list(row.values())[1:] for row in ended.rows] == [list(row.values())[1:] for row in trusted]
        threshold, _, why = ended.facts["threshold"].partition(", ")
        assert float(threshold) == pytest.approx(0.5 + 0.4 * part)
        assert why == f"so that each call has {words[1]} trust{' or more' * ('medium' in words)}"
        assert f"threshold {0.5 + 0.4 * part:.4g}" in ended.err
    ended = figured("--trust high")  # .6 is the highest
    assert "caution: no score has high trust for such sequences: the output is empty" in ended.err
    assert (ended.rows, ended.facts["threshold"]) == ([], "none has high trust")
    figured.refused("--trust high --per-kb 1", names="--trust and --per-kb can't both be given")


# --- outputs ------------------------------------------------------------------------------------------------

NAMES = ("calls.gff3", "calls.tsv", "x.plus.bedgraph", "x.minus.bedgraph", "x.plus.bw", "x.minus.bw")
NAMES += ("genes.csv", "g.gff3")


@pytest.mark.parametrize("more", ["", "--circular", "--region one:500-1200 --per-kb 2"])
def test_gathered_shards_are_the_whole_scan(scan, run, tmp_path, more):
    outputs = "--out calls.gff3 --out calls.tsv --track x.bedgraph --track x.bw"
    outputs += " --genes-out genes.csv --genes-out g.gff3"
    words = ("genome.fa --genes genes.gff3 --min-distance 9", more)
    scan(*words, outputs)
    whole = [(tmp_path / name).read_bytes() for name in NAMES]
    for number in (1, 2, 3):
        scan(*words, f"--shard {number}/3 --out {number}.shard")
    run("gather 1.shard 2.shard 3.shard", outputs)
    assert [(tmp_path / name).read_bytes() for name in NAMES] == whole
    assert whole[1].count(b"\n") > 14


@pytest.mark.parametrize("genes", ["predict", "none"])
def test_an_empty_file_gives_every_output(scan, tmp_path, genes):
    write(tmp_path / "empty.fa", "")
    outputs = "--out x.gb --out x.fa --out x.gff3 --out x.bed --out x.tsv --html x.html"
    assert "0 sequences" in scan("empty.fa --allow-empty", outputs, "--genes", genes).err
    assert (tmp_path / "x.gb").read_text() == ""
    assert all((tmp_path / f"x.{end}").read_text().startswith("#") for end in ("gff3", "bed", "tsv"))
    assert "There are no calls." in (tmp_path / "x.html").read_text()


def test_genes_with_their_starts_and_the_bases_around_calls(scan, tmp_path):
    """Predicted genes are read back from their GFF3, and calls from the tables that others open."""
    more = "--out c.fa --out c.tsv --out c.csv --upstream 5 --downstream 2"
    scan(
        "genome.fa --circular-id two --threshold 0.3 --genes-out g.tsv --genes-out g.gff3 --genes-out g.faa",
        more,
    )
    calls, genes = (table((tmp_path / name).read_text()) for name in ("c.tsv", "g.tsv"))
    assert {row["gene"] for row in genes} >= {row["gene"] for row in calls} - {"."}
    named = [line.split()[0] for line in (tmp_path / "g.faa").read_text().splitlines() if ">" in line]
    assert named == [f">{row['gene']}" for row in genes]
    cds = [line for line in (tmp_path / "g.gff3").read_text().splitlines() if "\tCDS\t" in line]
    assert all(f"ID=cds-{row['gene']};" in line for row, line in zip(genes, cds, strict=True))
    for row in genes:
        own = [call for call in calls if call["gene"] == row["gene"]]
        assert (row["call"] == ".") == (row["reason"] != ".") == (not own)
        assert float(row["score"] if own else 0) == max((float(c["score"]) for c in own), default=0)
    again = scan("genome.fa --circular-id two --threshold 0.3 --genes g.gff3").rows
    assert again == calls
    with (tmp_path / "c.csv").open(newline="") as handle:
        assert list(csv.DictReader(handle)) == calls
    records = list(SeqIO.parse(tmp_path / "c.fa", "fasta"))
    assert [record.id for record in records] == [call["id"] for call in calls]
    for record, call in zip(records, calls, strict=True):
        circle = SEQUENCES[call["contig"]] * 2
        site, length = int(call["site"]), len(SEQUENCES[call["contig"]])
        if call["strand"] == "-":
            circle, site = circle.translate(TURNED)[::-1], length - 1 - site
        if 5 <= site < length - 2:
            assert str(record.seq) == circle[site - 5 : site + 3]
        assert ("cut=" in record.description) == (len(record) < 8)


def test_two_scans_are_compared_by_their_letters(scan, run, tmp_path):
    """The second set has more calls on the same genome; starts with fewer than 30 letters match none."""
    for least in (0.5, 0.3):
        scan("genome.fa --genes genes.gff3 --threshold", least, f"--out {least}.tsv")
    genomes = "--genome-a genome.fa --genome-b genome.fa"
    ended = run(f"compare 0.5.tsv 0.3.tsv {genomes} --out c.tsv")
    rows = table((tmp_path / "c.tsv").read_text())
    same = sum(row["change"] == "same" and row["shift"] == "0" for row in rows)
    assert same
    assert f"{same} same, 0 moved, 0 replaced" in ended.err
    assert "; 0 weaker, 0 stronger" in ended.err
    run.refused("compare 0.5.tsv 0.3.tsv --genome-a genome.fa", names="--genome-b")
    run.refused(f"compare 0.5.tsv 0.3.tsv {genomes} --out c.fa", names="use .tsv or .csv")


def test_one_gene_with_its_neighbors(scan, tmp_path):
    """Gene 2 of three lies at 1001 to 1900 on the minus strand, so its best call comes behind 1900."""
    write(tmp_path / "three.gff3", gff3([*GENES[:2], ("one", 2100, 2700, "+")]))
    whole = scan("genome.fa --genes three.gff3 --threshold 0.3")
    some = scan("genome.fa --genes three.gff3 --threshold 0.3 --gene cds-1001")
    assert [row["site"] for row in some.rows] == [
        row["site"] for row in whole.rows if row["contig"] == "one" and int(row["site"]) < 2900
    ]
    best = max((row for row in whole.rows if row["gene"] == "cds-1001"), key=lambda row: float(row["score"]))
    lines = some.err.splitlines()
    assert any(
        f"cds-1001, one:1,001-1,900 (-): best start {int(best['site']) + 1:,} (" in line for line in lines
    )
    sides = [line.split()[1:5] for line in lines if " of it: " in line]
    assert sides == [["left", "of", "it:", "cds-301,"], ["right", "of", "it:", "cds-2100,"]]
    empty = scan("genome.fa --genes three.gff3 --threshold 0.999 --gene cds-1001 --html g.html")
    page = (tmp_path / "g.html").read_text()
    assert empty.rows == []
    assert "no site around cds-1001 reaches the threshold; --per-kb 2" in page
    assert "around cds-1001 in " in page
    told, below = "cds-1001, one:1,001-1,900 (-): no start above", "The sequence at a glance"
    assert page.index(told) < page.rindex(below)
    assert "cds-1001, one:1,001-1,900 (-): no start above the threshold" in empty.err
    assert (
        len(scan("genome.fa --genes three.gff3 --per-kb 2 --gene cds-1001").rows) == 6
    )  # of 2,900 positions


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--genes genes.gff3 --gene cds-302", "no gene 'cds-302'; did you mean"),
        ("--genes none --gene cds-301", "--genes FILE"),
        ("--genes predict --gene ompC", "names such as one_1"),
        ("--genes genes.gff3 --gene cds-301 --region one", "--gene and other parts"),
        ("--out c.xlsx", ".csv, which spreadsheets open"),
        ("--out c.tsv --upstream 9", "--out FILE.fa"),
        ("--genes none --genes-out g.tsv", "--genes FILE"),
        ("--genes-out g.bed.csv.html", "use .tsv or .csv"),
        *((f"--genes-out g.{end}", "or .faa") for end in ("xlsx", "fa", "gb.gz", "txt")),
        ("--skipped s.xlsx", "use .tsv"),
        ("--html s.xlsx", "use .html"),
    ],
)
def test_outputs_that_can_t_be_written_are_refused(scan, words, named):
    scan.refused("genome.fa", words, names=named)


def test_genbank_out_of_fasta(scan, tmp_path):
    scan("genome.fa --genes genes.gff3 --circular-id two --out x.gb --out c.tsv")
    text = (tmp_path / "c.tsv").read_text()
    assert facts(text)["circular"] == "1 of 3 sequences"
    records = list(SeqIO.parse(tmp_path / "x.gb", "genbank"))
    assert {r.id: str(r.seq) for r in records} == SEQUENCES
    assert [r.annotations["topology"] for r in records] == ["linear", "circular", "linear"]
    assert [sum(f.type == "CDS" for f in r.features) for r in records] == [2, 1, 0]
    sites = [f for r in records for f in r.features if f.qualifiers.get("regulatory_class") == ["promoter"]]
    rows = table(text)
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
    write(tmp_path / "plain.fa", fasta({"one": letters(900)}))
    write(tmp_path / "marked.fa", fasta({"one [topology=circular]": letters(900)}))
    words = "--genes none --threshold 0.3"
    linear, circular = scan("plain.fa", words).rows, scan("plain.fa --circular", words).rows
    assert scan("marked.fa", words).rows == circular != linear
    scan("marked.fa --genes none --threshold 1 --out x.gb")
    assert SeqIO.read(tmp_path / "x.gb", "genbank").annotations["topology"] == "circular"


def test_genbank_out_of_genbank_keeps_its_genes(scan, tmp_path):
    write(tmp_path / "in.gb", genbank("r.1", letters(900), ["200..499", "join(801..900,1..80)"]))
    scan("in.gb --threshold 0.3 --genes none --out x.gbk.gz")
    with gzip.open(tmp_path / "x.gbk.gz", "rt") as handle:
        record = SeqIO.read(handle, "genbank")
    assert (record.id, str(record.seq), record.annotations["topology"]) == ("r.1", letters(900), "circular")
    assert [f.qualifiers["gene"] for f in record.features if f.type == "CDS"] == [["g0"], ["g1"]]
    assert any(f.type == "regulatory" for f in record.features)


# --- the page -----------------------------------------------------------------------------------------------


def test_the_page_shows_genes_letters_and_scores_around_each_call(scan, reports):
    scan("genome.fa --genes genes.gff3 --threshold 0.5 --out calls.tsv --html page.html")
    (report,) = reports
    assert [gene.start for gene in report.genes["one"]] == [300, 1000]
    assert report.gene_source == "GFF3 genes.gff3"
    for i, text in report.letters.items():
        call = report.calls[i]
        padded = "N" * 60 + SEQUENCES[call.contig] + "N" * 60
        around = padded[call.site + 14 : call.site + 66]
        if call.strand == "-":
            around = padded[call.site + 55 : call.site + 107].translate(TURNED)[::-1]
        assert text == around  # from 46 letters before the site to 5 behind it
    for i, (plus, minus) in report.profiles.items():
        own = plus if report.calls[i].strand == "+" else minus
        assert own[400] == pytest.approx(report.calls[i].score, abs=1e-3)
    assert len(report.letters) == len(report.profiles) == min(48, len(report.calls)) > 5


def test_letters_on_the_page_have_the_bars_that_explain_gives(scan, locator, tmp_path, reports, monkeypatch):
    monkeypatch.setattr(drawn, "STRIP_START", -20)  # the tiny model does not read 46 letters
    scan("genome.fa --genes genes.gff3 --threshold 0.5 --out calls.tsv --html page.html")
    (report,) = reports
    assert set(report.shares) == set(report.profiles)
    radius = locator.locators[0].radius
    index, shares = next((i, s) for i, s in report.shares.items() if 500 < report.calls[i].site < 2500)
    call = report.calls[index]
    codes, genes = DNA.encode(SEQUENCES["one"]), read_genes(tmp_path / "genes.gff3").of("one")
    tracks = gene_tracks(genes, 3000, call.strand)
    if call.strand == "-":
        codes = reverse_complement_codes(codes)
    site = call.site if call.strand == "+" else 2999 - call.site
    first = site - radius
    window = slice(first, site + radius + 1)
    effects = []
    for network in locator.locators:
        target = LocatorTarget(locator, network, 0, tracks[:, window], first % network.stem.stride)
        effects.append(target.input_effects(codes[window])[0])
    assert shares == pytest.approx(np.mean(effects, axis=0)[radius - 20 : radius + 6], abs=1e-6)


@pytest.fixture
def distant(run, tmp_path):
    """Scan a genome that is like none of the species."""
    sequence = "".join(random.Random(0).choices("ACGT", (4, 1, 1, 4), k=40_000))
    write(tmp_path / "x.fa", fasta({"a": sequence}))
    return run.to("scan x.fa --model ecoli-genome --genes none --threads 1")


def test_input_unlike_the_only_species_that_was_measured_has_no_precision(distant, run, tmp_path):
    ended = distant("--threshold 0.01 --out calls.tsv")
    assert "it was measured in Escherichia coli K-12 MG1655, and this file shares less than 25%" in ended.err
    assert "precision to expect" not in ended.err
    whole = (tmp_path / "calls.tsv").read_text()
    assert "# expected precision: not known" in whole.splitlines()
    assert {row[name] for row in table(whole) for name in ("trust", "precision")} == {"."}
    for number in (1, 2):
        distant(f"--threshold 0.01 --shard {number}/2 --out {number}.shard")
    run("gather 1.shard 2.shard --out calls.tsv")
    assert (tmp_path / "calls.tsv").read_text() == whole


GYRA_OMPC3 = ("-", 29456), ("-", 2886)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The stretch of the examples as FASTA and as GenBank, and GFF3 of its genes of proteins."""
    folder, source = tmp_path_factory.mktemp("demo"), Path(__file__).parents[2] / "data/example/stretch.gb"
    record = SeqIO.read(source, "genbank")
    SeqIO.write(record, folder / "stretch.fa", "fasta")
    shutil.copy(source, folder)
    coding = [gene for gene in read_genes(source).of(record.id) if gene.coding]
    rows = [(record.id, gene.start + 1, gene.end, gene.strand) for gene in coding]
    write(folder / "coding.gff3", gff3(rows))
    return folder


@pytest.mark.parametrize(
    ("words", "known"),
    # Known promoters of ompC lie 81, 115 and 138 bases before it. Without micF, a gene of RNA that begins 255
    # bases behind P1 on the other strand, the model prefers the last; without the short ypaB it loses nrdA.
    [
        ("stretch.gb", (*GYRA_OMPC3, ("-", 2829), ("+", 34754))),
        ("stretch.fa --genes coding.gff3", (*GYRA_OMPC3, ("+", 34754))),
        ("stretch.fa", GYRA_OMPC3),
    ],
)
def test_known_starts_of_the_example_with_genes_of_any_source(run, demo, monkeypatch, words, known):
    monkeypatch.chdir(demo)
    rows = run("scan", words, "--model bacteria-genome --threads 1").rows
    calls = [(row["strand"], int(row["site"])) for row in rows]
    for strand, site in known:
        assert any(abs(call - site) <= 25 for sign, call in calls if sign == strand), (strand, site)


def test_a_species_that_is_named_gives_its_precision_and_must_be_measured(distant):
    unlike = distant("--precision 0.3").facts["threshold"]
    assert unlike.endswith("measured on genomes that may be unlike this one")
    named = distant('--species "Escherichia coli K-12 MG1655"')
    assert "Escherichia coli K-12 MG1655)" in named.facts["expected precision"]
    distant.refused("--species Bacillus", names=("'Bacillus'",))


@pytest.mark.parametrize(
    ("model", "basis"),
    [
        ("ecoli-genome", "measured on genomes that may be unlike this one"),
        ("bacteria-genome", "the median of species left out"),
    ],
)
def test_the_threshold_says_whose_precision_chose_it(run, tmp_path, model, basis):
    write(tmp_path / "x.fa", fasta({"a": "ACGTTGCA" * 100}))
    stated = run("scan x.fa --genes none --precision 0.3 --threads 1 --model", model).facts["threshold"]
    assert "0.3" in stated
    assert stated.endswith(basis)
