"""``seqray scan`` with a locator from the command line: genes, pipes, shards, and what is refused."""

import gzip
import io
import sys
from dataclasses import replace

import numpy as np
import pytest
from Bio import SeqIO

from seqray.annotation.read import read_genes
from seqray.annotation.tracks import gene_tracks
from seqray.cli.dispatch import main
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.explanations.attribution.locator_scores import input_effects
from seqray.explanations.attribution.targets import LocatorTarget
from seqray.io.tracks.gff3 import read_gff3_calls
from seqray.modelfile import save_model
from tables import facts, letters, table

GENES = [("one", 301, 900, "+"), ("one", 1001, 1900, "-"), ("two", 100, 399, "+")]
NAMES = ("calls.gff3", "calls.tsv", "x.plus.bedgraph", "x.minus.bedgraph", "x.plus.bw", "x.minus.bw")


def genbank(name, text, genes=()):
    lines = [f"LOCUS       {name} {len(text)} bp    DNA     circular BCT 01-JAN-2024", f"VERSION     {name}"]
    lines.append("FEATURES             Location/Qualifiers")
    for number, place in enumerate(genes):
        lines += [f"     CDS             {place}", f'                     /gene="g{number}"']
    lines.append("ORIGIN")
    for i in range(0, len(text), 60):
        parts = [text[i : i + 60][j : j + 10] for j in range(0, 60, 10)]
        lines.append(f"{i + 1:>9} {' '.join(filter(None, parts)).lower()}")
    return "\n".join([*lines, "//", ""])


@pytest.fixture
def genome(tmp_path):
    path = tmp_path / "genome.fa"
    path.write_text(f">one first\n{letters(3000)}\n>two\n{letters(700, 1)}\n>tiny\n{letters(40, 2)}\n")
    return path


@pytest.fixture
def annotation(tmp_path):
    path = tmp_path / "genes.gff3"
    lines = [f"{c}\ttest\tCDS\t{a}\t{b}\t.\t{s}\t0\tID=cds-{a}" for c, a, b, s in GENES]
    path.write_text("\n".join(["##gff-version 3", *lines, ""]))
    return path


@pytest.fixture
def scan(locator_file, capfd):
    def run(*words, verb="scan", status=0):
        found = main([verb, *map(str, words), "--model", str(locator_file), "--threads", "1"])
        out, err = capfd.readouterr()
        assert found == status, err
        return out, err

    return run


def test_genes_of_a_file_and_none_and_predicted_ones(scan, genome, annotation):
    known, err = scan(genome, "--genes", annotation)
    assert "without genes" not in err
    assert facts(known)["genes known"] == f"3, GFF3 {annotation.name}"
    assert facts(known)["threshold"] == "0.6, the model's"
    unknown, _ = scan(genome, "--genes", "none")
    assert facts(unknown)["genes"] == "not known"
    assert facts(unknown)["threshold"] == "0.55, the model's"
    assert table(unknown) != table(known)
    predicted, _ = scan(genome)
    assert facts(predicted)["genes"].startswith("predicted by pyrodigal")
    again, _ = scan(genome, "--genes", "predict", "--codon-table", "11")
    assert table(again) == table(predicted)


def test_sequences_that_a_file_of_genes_does_not_name_are_counted(scan, genome, annotation):
    whole, err = scan(genome, "--genes", annotation)
    assert "not named" not in err  # the third has 40 letters
    lines = annotation.read_text().splitlines(keepends=True)
    annotation.write_text("".join(line for line in lines if not line.startswith("one\t")))
    some, err = scan(genome, "--genes", annotation)
    assert f"caution: 2 of 3 sequences are not named in GFF3 {annotation.name}: there the model" in err
    assert "their 'precision' is that without genes" in err
    assert "per gene" in facts(whole)["calls"]
    assert "per gene" not in facts(some)["calls"]
    first, second = ([row["site"] for row in table(out) if row["contig"] == "two"] for out in (whole, some))
    assert first == second


def test_a_gene_of_two_lines_at_the_origin_is_one_where_the_scan_says_that_contigs_are_circular(
    scan, tmp_path
):
    """As if the file of genes said it, ``Is_circular``, or the GenBank file of the sequence."""
    (tmp_path / "one.fa").write_text(f">one\n{letters(900)}\n")
    (tmp_path / "one.gb").write_text(genbank("one", letters(900)))
    rows = [f"one\tx\tCDS\t{a}\t{b}\t.\t-\t0\tID=a" for a, b in ((1, 90), (601, 900))]
    rows += ["one\tx\tCDS\t301\t420\t.\t+\t0\tID=b"]
    plain, stated = tmp_path / "plain.gff3", tmp_path / "stated.gff3"
    plain.write_text("\n".join(["##gff-version 3", *rows, ""]))
    region = "one\tx\tregion\t1\t900\t.\t+\t.\tID=one;Is_circular=true"
    stated.write_text("\n".join(["##gff-version 3", region, *rows, ""]))
    found = []
    for source, genes, *words in (
        ("one.fa", stated),
        ("one.fa", plain, "--circular"),
        ("one.fa", plain, "--circular-id", "one"),
        ("one.gb", plain),
    ):
        out, _ = scan(tmp_path / source, "--genes", genes, "--threshold", 0.3, *words)
        assert facts(out)["genes known"].startswith("2, GFF3")
        found.append(table(out))
    assert found[1:] == found[:1] * 3
    assert {row["gene"] for row in found[0]} >= {"a", "b"}


def test_calls_per_gene_count_a_gene_in_pieces_once(scan, tmp_path):
    path, page = tmp_path / "x.gb", tmp_path / "x.html"
    path.write_text(genbank("r.1", letters(900), ["join(100..159,300..359,500..559)", "700..760"]))
    scan(path, "--threshold", "0.3", "--out", tmp_path / "x.tsv", "--html", page)
    text = (tmp_path / "x.tsv").read_text()
    assert facts(text)["genes known"].startswith("2, GenBank")
    assert facts(text)["calls"].endswith(f"{len(table(text)) / 2:.3g} per gene")
    assert "2 genes: GenBank x.gb" in page.read_text()
    _, said = scan(
        path, "--threshold", "0.3", "--strand", "plus", "--out", tmp_path / "y.tsv", "--html", page
    )
    assert "900 letters, plus strand, " in said  # genes lie on both
    assert "per gene" not in said + facts((tmp_path / "y.tsv").read_text())["calls"]
    assert "1 sequence, plus strand only" in page.read_text()
    assert "Calls per gene" not in page.read_text()


def test_one_call_is_no_plural(scan, genome, tmp_path):
    words = ("--genes", "none", "--out", tmp_path / "x.tsv")
    assert " 1 call (" in scan(genome, *words, "--per-kb", "0.27")[1]  # of 3.74 kb
    assert " 4 calls (" in scan(genome, *words, "--per-kb", "1.07")[1]


def test_genbank_with_genes_and_without_letters_is_said_to_have_none(scan, tmp_path):
    path = tmp_path / "x.gb"
    text = genbank("r.1", letters(900), ["200..499"])
    path.write_text(text[: text.index("ORIGIN")] + "CONTIG      join(U1.1:1..900)\n//\n")
    _, err = scan(path, status=2)
    assert "the only record was skipped, 'r.1': no sequence in the file" in err


def test_genes_of_a_genbank_input_are_its_own(scan, tmp_path):
    path = tmp_path / "x.gb"
    path.write_text(genbank("r.1", letters(900), ["200..499", "join(801..900,1..80)"]))
    out, _ = scan(path, "--threshold", "0.3")
    assert facts(out)["genes known"] == f"2, GenBank {path.name}"
    named, _ = scan(path, "--threshold", "0.3", "--genes", path)
    assert table(named) == table(out)
    assert [(g.start, g.end) for g in read_genes(path).of("r.1")] == [(199, 499), (800, 980)]
    # A record without genes has them predicted.
    path.write_text(genbank("r.1", letters(900)))
    assert facts(scan(path)[0])["genes"].startswith("predicted")


def test_genbank_records_of_one_name_keep_their_genes_under_new_names(scan, tmp_path):
    def calls(*words):
        out, _ = scan(*words, "--threshold", "0.3")
        return [row | {"id": ""} for row in table(out)]

    alone = []
    for name, seed, place in (("one", 0, "301..900"), ("two", 1, "complement(1001..1900)")):
        path = tmp_path / f"{name}.gb"
        path.write_text(genbank("p", letters(3000, seed), [place]))
        alone.append(calls(path))
    both = tmp_path / "both.gb"
    both.write_text((tmp_path / "one.gb").read_text() + (tmp_path / "two.gb").read_text())
    found = calls(both, "--duplicates", "rename")
    assert found == alone[0] + [row | {"contig": "p_2"} for row in alone[1]]
    assert all(alone)


@pytest.mark.parametrize("place", ["complement(200..499", "850..980"])
def test_damaged_genes_of_a_genbank_input_are_refused_unless_others_are_asked_for(scan, tmp_path, place):
    path = tmp_path / "x.gb"
    path.write_text(genbank("r.1", letters(900), [place]).replace("circular", "linear  "))
    out, err = scan(path, status=2)
    assert (out, err.count("\n")) == ("", 1)
    assert path.name in err
    assert err.endswith("; correct the genes, or give --genes predict\n")
    assert facts(scan(path, "--genes", "predict")[0])["genes"].startswith("predicted")


def test_a_codon_table_is_for_predicted_genes(locator_file, genome, annotation, tmp_path, capsys):
    path = tmp_path / "x.gb"
    path.write_text(genbank("r.1", letters(900), ["200..499"]))
    for words, reason in [
        ([genome, "--genes", annotation], f"but --genes is {annotation}; give one of them"),
        ([genome, "--genes", "none"], "but --genes is none"),
        ([path], f"but {path} names genes; give --genes predict, too"),
    ]:
        status = main([str(word) for word in ["scan", *words, "--model", locator_file, "--codon-table", "4"]])
        said = capsys.readouterr().err
        assert (status, said.count("\n")) == (2, 1)
        assert said.startswith(f"seqray: error: --codon-table is for predicted genes, {reason}")


def test_without_the_extra_letters_are_scanned_alone(scan, genome, monkeypatch):
    monkeypatch.setattr("seqray.annotation.predict.find_spec", lambda name: None)
    out, err = scan(genome)
    assert facts(out)["genes"] == "not known"
    assert "caution: without genes" in err
    assert "seqray[genes]" in err


def test_contigs_too_long_for_a_bacterium(scan, genome, monkeypatch):
    monkeypatch.setattr("seqray.annotation.predict.MAX_CONTIG", 2000)
    out, err = scan(genome)
    assert facts(out)["genes"] == "not known"
    assert "genes can't be predicted in a contig of 3000 letters" in err
    _, err = scan(genome, "--genes", "predict", status=2)
    assert "record 'one': genes can't be predicted" in err


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


def test_the_page_shows_genes_letters_and_scores_around_each_call(
    scan, genome, annotation, tmp_path, monkeypatch
):
    kept = []
    monkeypatch.setattr("seqray.cli.scan.page.render_scan", lambda report: kept.append(report) or "")
    page = tmp_path / "page.html"
    scan(genome, "--genes", annotation, "--threshold", "0.5", "--out", tmp_path / "calls.tsv", "--html", page)
    (report,) = kept
    assert [gene.start for gene in report.genes["one"]] == [300, 1000]
    assert report.gene_source == "GFF3 genes.gff3"
    whole = {"one": letters(3000), "two": letters(700, 1), "tiny": letters(40, 2)}
    turned = str.maketrans("ACGT", "TGCA")
    for i, text in report.letters.items():
        call = report.calls[i]
        padded = "N" * 60 + whole[call.contig] + "N" * 60
        around = padded[call.site + 14 : call.site + 66]
        if call.strand == "-":
            around = padded[call.site + 55 : call.site + 107].translate(turned)[::-1]
        assert text == around  # from 46 letters before the site to 5 behind it
    for i, (plus, minus) in report.profiles.items():
        own = plus if report.calls[i].strand == "+" else minus
        assert own[400] == pytest.approx(report.calls[i].score, abs=1e-3)
    assert len(report.letters) == len(report.profiles) == min(48, len(report.calls)) > 5


def test_letters_on_the_page_have_the_bars_that_explain_gives(
    scan, genome, annotation, locator, tmp_path, monkeypatch
):
    kept = []
    monkeypatch.setattr("seqray.cli.scan.page.render_scan", lambda report: kept.append(report) or "")
    monkeypatch.setattr("seqray.cli.scan.letter_shares.STRIP_START", -20)
    page = tmp_path / "page.html"
    scan(genome, "--genes", annotation, "--threshold", "0.5", "--out", tmp_path / "calls.tsv", "--html", page)
    (report,) = kept
    assert set(report.shares) == set(report.profiles)
    radius = locator.locators[0].radius
    index, shares = next((i, s) for i, s in report.shares.items() if 500 < report.calls[i].site < 2500)
    call = report.calls[index]
    codes, genes = DNA.encode(letters(3000)), read_genes(annotation).of("one")
    tracks = gene_tracks(genes, 3000, call.strand)
    if call.strand == "-":
        codes = reverse_complement_codes(codes)
    site = call.site if call.strand == "+" else 2999 - call.site
    first = site - radius
    effects = [
        input_effects(
            LocatorTarget(
                locator,
                network,
                0,
                tracks[:, first : site + radius + 1],
                first % network.stem.stride,
            ),
            codes[first : site + radius + 1],
        )[0]
        for network in locator.locators
    ]
    assert shares == pytest.approx(np.mean(effects, axis=0)[radius - 20 : radius + 6], abs=1e-6)


# --- what each call says ------------------------------------------------------------------------------------


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


def test_short_contigs_are_cautioned_about_unless_they_are_circles(scan, tmp_path):
    path = tmp_path / "x.fa"
    path.write_text(f">a [topology=circular]\n{letters(900)}\n>b\n{letters(2500, 1)}\n")
    assert "letters on average" not in scan(path, "--genes", "none")[1]
    path.write_text(f">a\n{letters(900)}\n>b\n{letters(2500, 1)}\n")
    assert (
        "the linear contigs have 1700 letters on average: genes are cut" in scan(path, "--genes", "none")[1]
    )


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


def test_evidence_from_letters(scan, genome, annotation):
    words = [genome, "--genes", annotation, "--threshold", "0.4"]
    plain, _ = scan(*words)
    assert "evidence from letters" not in facts(plain)
    compared, err = scan(*words, "--null-mb", "0.01")
    assert table(compared) == table(plain)
    assert "with genes kept and the letters between them shuffled" in facts(compared)["evidence from letters"]
    assert "false" not in err
