"""``seqray train`` on genomes: from files to a locator, and options that don't go together."""

from __future__ import annotations

import numpy as np
import pytest

from seqray.cli.main import main
from seqray.modelfile.file import load_model_file


@pytest.fixture
def files(tmp_path, genome_settings):
    rng = np.random.default_rng(0)
    (tmp_path / "c.yaml").write_text(genome_settings)
    (tmp_path / "g.fa").write_text(">c\n" + "".join(rng.choice(list("ACGT"), 20_000)) + "\n")
    rows = "".join(f"c\t{at}\t{'+-'[at % 2]}\tpromoter\n" for at in range(101, 20_000, 333))
    (tmp_path / "s.tsv").write_text("contig\tposition\tstrand\tsite\n" + rows)
    (tmp_path / "g.gff").write_text("##gff-version 3\nc\t.\tCDS\t5000\t5600\t.\t+\t0\tID=a\n")
    (tmp_path / "sheet.tsv").write_text(
        "genome\tgenes\tsites\tspecies\tweight\tgroup\n"
        "g.fa\tg.gff\ts.tsv\tToy one\t1\t\ng.fa\tnone\ts.tsv\tToy two\t1\tOther\n"
    )
    return tmp_path


def train(folder, *words, config="c.yaml"):
    out = str(folder / "m.safetensors")
    return main(["train", "--config", str(folder / config), "--out", out, "--threads", "1", *words])


def test_a_genome_becomes_a_locator(files, capsys):
    given = ("--genome", files / "g.fa", "--sites", files / "s.tsv", "--genes", files / "g.gff")
    assert train(files, *map(str, given)) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("seqray:")]
    card = load_model_file(files / "m.safetensors").card
    assert card.classes == ("promoter",)
    assert {row["species"] for row in card.locator["expected"]} == {"g"}
    assert {row["genes"] for row in card.locator["expected"]} == {True, False}
    assert lines[0].startswith("learned from 0.03 Mb (all strands together) of 1 species, with ")
    assert lines[1].startswith("development regions, mean over species: auprc ")
    assert lines[2] == f"wrote {files / 'm.safetensors'}"


def test_rows_that_name_a_site_again_change_nothing_and_are_counted(files, capsys):
    """The table twice over: 60 sites, 120 rows; 9 of the 60 lie in the development region."""
    cards = []
    for copies in (1, 2):
        header, *rows = (files / "s.tsv").read_text().splitlines()
        (files / "r.tsv").write_text("\n".join([header, *rows * copies]) + "\n")
        given = ("--genome", files / "g.fa", "--sites", files / "r.tsv", "--genes", "none", "--species", "A")
        assert train(files, *map(str, given), "--no-resume") == 0
        cards.append(load_model_file(files / "m.safetensors").card)
        said = "(60 rows that name a site again are merged)" in capsys.readouterr().err
        assert said == (copies == 2)
    first, second = cards
    assert first.locator == second.locator
    assert [row["sites"] for row in second.locator["expected"]] == [9]
    assert second.training == first.training | {"repeated_sites": 60}


def test_a_locator_lends_its_settings(files, capsys):
    given = ("--genome", files / "g.fa", "--sites", files / "s.tsv", "--genes", "none")
    assert train(files, *map(str, given)) == 0
    like = ["--threads", "1", "--like", files / "m.safetensors", "--out", files / "n.safetensors"]
    assert main([*map(str, ["train", *like, *given])]) == 0
    first, second = (load_model_file(files / f"{name}.safetensors").card for name in "mn")
    assert (second.name, second.model, second.training) == ("n", first.model, first.training)
    capsys.readouterr()
    assert main([*map(str, ["train", "--like", "ecoli-promoter", "--out", files / "o.safetensors", *given])])
    error = capsys.readouterr().err
    assert "--genome is for locators, but 'model.kind' is sequence" in error
    assert "settings of a locator: --like bacteria-genome" in error


def test_species_of_a_sheet_are_held_out(files):
    # the other row is the same genome: all of it shares k-mers, so that nothing is left to learn from
    assert train(files, "--sheet", str(files / "sheet.tsv"), "--hold-out", "Other") == 2
    assert train(files, "--sheet", str(files / "sheet.tsv")) == 0
    expected = load_model_file(files / "m.safetensors").card.locator["expected"]
    assert {(row["species"], row["genes"]) for row in expected} == {
        ("Toy one", True), ("Toy one", False), ("Toy two", False),
    }  # fmt: skip


def test_a_species_left_out_chooses_no_threshold(files, capsys):
    """Of the one that is learned from no genes are known, of the other they are."""
    letters = "".join(np.random.default_rng(1).choice(list("ACGT"), 20_000))
    (files / "h.fa").write_text(f">c\n{letters}\n")
    rows = [
        "genome\tgenes\tsites\tspecies\tweight",
        "g.fa\tnone\ts.tsv\tKnown\t1",
        "h.fa\tg.gff\ts.tsv\tNew\t1",
    ]
    sheet = files / "two.tsv"
    for more, held_out in ((rows[:2], []), (rows, ["--hold-out", "New"])):
        sheet.write_text("\n".join(more) + "\n")
        assert train(files, "--sheet", str(sheet), *held_out, "--no-resume") == 0
        out = files / f"{len(more)}.safetensors"
        (files / "m.safetensors").rename(out)
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("seqray:")]
    alone, both = (load_model_file(files / f"{n}.safetensors").card for n in (2, 3))
    assert lines[:2] == lines[3:5]  # the same figures, threshold and count of species
    assert " of 1 species" in lines[0]
    assert (both.threshold, both.training["species"]) == (alone.threshold, ["Known"])
    assert both.locator["threshold_without_genes"] == alone.locator["threshold_without_genes"]
    assert both.locator["probability"]["letters"] == alone.locator["probability"]["letters"]
    figures = both.metrics["New, species left out, with genes"]
    assert lines[5].startswith(
        f"species left out, with genes, mean over 1 species: auprc {figures['auprc']['value']:.3f}"
    )
    assert lines[6].startswith("species left out, letters alone, mean over 1 species: auprc ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--genome", "g.fa", "--sites", "s.tsv", "--train", "s.tsv"], "--train is not for locators"),
        (["--genome", "g.fa", "--sites", "s.tsv", "--teacher", "ecoli-promoter"], "--teacher is not for"),
        (
            ["--genome", "g.fa", "--sites", "s.tsv", "--truncate", "none"],
            "--truncate is for models that read",
        ),
        (["--genome", "g.fa"], "no genome with sites is given"),
        (["--sheet", "sheet.tsv", "--genome", "g.fa"], "a sheet and a genome are given"),
        (["--genome", "g.fa", "--sites", "s.tsv", "--set", "model.alphabet=rna"], "'model.alphabet' is rna"),
        (["--genome", "g.fa", "--sites", "no.tsv"], "no.tsv"),
        (
            ["--genome", "g.fa", "--sites", "typo.tsv"],
            "the column 'weigth' is unknown; did you mean 'weight'?",
        ),
        (["--genome", "g.fa", "--sites", "empty.tsv"], "empty.tsv: contains no site"),
        (["--genome", "g.fa", "--sites", "s.bed"], "s.bed: one at 10: a site has the strand '.'; use + or -"),
        (["--sheet", "sheet.tsv", "--species", "A"], "--species is for one genome"),
        (["--sheet", "sheet.tsv", "--genes", "none"], "--genes is for one genome"),
    ],
)
def test_what_does_not_go_together_is_one_line(words, message, files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "typo.tsv").write_text("contig\tposition\tstrand\tweigth\tevidence\nc\t9\t+\t0\tweak\n")
    (files / "empty.tsv").write_text("contig\tposition\tstrand\n")
    (files / "s.bed").write_text("c\t9\t12\tone\t0\t.\n")
    assert train(files, *words) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error


def test_genomes_are_for_locators_alone(files, capsys):
    (files / "w.yaml").write_text("name: toy\n")
    assert train(files, "--genome", str(files / "g.fa"), config="w.yaml") == 2
    assert "--genome is for locators" in capsys.readouterr().err
