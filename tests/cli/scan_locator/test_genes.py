"""``seqray scan`` with a locator: where the genes of a scan are from, and what is said of them."""

from __future__ import annotations

import pytest

from cli.scan_locator.records import genbank
from seqray.cli.main import main
from seqray.genome.read import read_genes
from tables import facts, letters, table


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
        ([genome, "--genes", annotation], f"but --genes {annotation} was given; give one of them"),
        ([genome, "--genes", "none"], "but --genes none was given"),
        ([path], f"but {path} names genes; give --genes predict, too"),
    ]:
        status = main([str(word) for word in ["scan", *words, "--model", locator_file, "--codon-table", "4"]])
        said = capsys.readouterr().err
        assert (status, said.count("\n")) == (2, 1)
        assert said.startswith(f"seqray: error: --codon-table 4 is for predicted genes, {reason}")


def test_without_the_extra_letters_are_scanned_alone(scan, genome, monkeypatch):
    monkeypatch.setattr("seqray.genome.predict.find_spec", lambda name: None)
    out, err = scan(genome)
    assert facts(out)["genes"] == "not known"
    assert "caution: without genes" in err
    assert "seqray[genes]" in err


def test_contigs_too_long_for_a_bacterium(scan, genome, monkeypatch):
    monkeypatch.setattr("seqray.genome.predict.MAX_CONTIG_LETTERS", 2000)
    out, err = scan(genome)
    assert facts(out)["genes"] == "not known"
    assert "genes can't be predicted in a contig of 3000 letters" in err
    _, err = scan(genome, "--genes", "predict", status=2)
    assert "record 'one': genes can't be predicted" in err
