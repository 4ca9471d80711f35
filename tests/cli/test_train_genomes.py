"""``seqray train`` on genomes: from files to a locator."""

import pytest

from commands import Run
from seqray.modelfile.file import load_model
from tables import fasta, gff3, letters, tsv, write

SHEET = "genome genes sites species weight group"
SITES = [("c", at, "+-"[at % 2], "promoter") for at in range(101, 20_000, 333)]


@pytest.fixture
def train(run, tmp_path, genome_settings) -> Run:
    """Run the verb where genomes and sites are."""
    write(tmp_path / "c.yaml", genome_settings)
    for seed, name in enumerate(("g.fa", "h.fa")):
        write(tmp_path / name, fasta({"c": letters(20_000, seed)}))
    write(tmp_path / "s.tsv", tsv("contig position strand site", SITES))
    write(tmp_path / "g.gff", gff3([("c", 5000, 5600, "+")]))
    return run.to("train --config c.yaml --threads 1 --out m.safetensors")


def card_of(name="m.safetensors"):
    return load_model(name).card


def lines_of(ended):
    return [line for line in ended.err.splitlines() if not line.startswith("seqray:")]


def test_a_genome_becomes_a_locator_that_lends_its_settings(train, run):
    first, second, third = lines_of(train("--genome g.fa --sites s.tsv --genes g.gff"))
    card = card_of()
    assert card.classes == ("promoter",)
    expected = {(row.species, row.genes) for row in card.locator.expected}
    assert expected == {("g", True), ("g", False)}
    assert first.startswith("learned from 0.03 Mb (all strands together) of 1 species, with ")
    assert second.startswith("development regions, mean over species: auprc ")
    assert third == "wrote m.safetensors"
    words = "--genome g.fa --sites s.tsv --genes g.gff --threads 1"
    run("train --like m.safetensors --out n.safetensors", words)
    other = card_of("n.safetensors")
    assert (other.name, other.model, other.training) == ("n", card.model, card.training)
    run("train --like m.safetensors --init m.safetensors --teacher m.safetensors --out t.safetensors", words)
    assert card_of("t.safetensors").training["data_sha256"] == card.training["data_sha256"]
    run.refused(
        "train --like m.safetensors --teacher ecoli-promoter --out o.safetensors",
        words,
        names=("the teacher 'ecoli-promoter'", "'model.kind' locator"),
    )
    run.refused(
        "train --like ecoli-promoter --out o.safetensors", words, names=("--genome", "--like bacteria-genome")
    )


def test_rows_that_name_a_site_again_change_nothing_and_are_counted(train, tmp_path):
    """The table twice over: 60 sites, 120 rows; 9 of the 60 lie in the development region."""
    cards = []
    for copies in (1, 2):
        write(tmp_path / "r.tsv", tsv("contig position strand site", SITES * copies))
        said = train("--genome g.fa --sites r.tsv --genes none --species A --no-resume").err
        assert ("(60 rows that name a site again are merged)" in said) == (copies == 2)
        cards.append(card_of())
    first, second = cards
    assert first.locator == second.locator
    assert [row.sites for row in second.locator.expected] == [9]
    assert second.training == first.training | {"repeated_sites": 60}


def test_species_of_a_sheet_are_learned_from(train, tmp_path):
    rows = [("g.fa", "g.gff", "s.tsv", "Toy one", 1, ""), ("g.fa", "none", "s.tsv", "Toy two", 1, "Other")]
    write(tmp_path / "sheet.tsv", tsv(SHEET, rows))
    # The other row is the same genome: all of it shares k-mers, so that nothing is left to learn from.
    train("--sheet sheet.tsv --hold-out Other", status=2)
    train("--sheet sheet.tsv")
    expected = {(row.species, row.genes) for row in card_of().locator.expected}
    assert expected == {("Toy one", True), ("Toy one", False), ("Toy two", False)}


def test_a_species_left_out_chooses_no_threshold(train, tmp_path):
    """Of the one that is learned from no genes are known, of the other they are."""
    rows = [("g.fa", "none", "s.tsv", "Known", 1, ""), ("h.fa", "g.gff", "s.tsv", "New", 1, "")]
    made = []
    for more, held_out in ((rows[:1], ""), (rows, "--hold-out New")):
        write(tmp_path / "two.tsv", tsv(SHEET, more))
        made.append((lines_of(train("--sheet two.tsv --no-resume", held_out)), card_of()))
    (said, alone), (lines, both) = made
    assert lines[:2] == said[:2]  # the same figures, threshold and count of species
    assert " of 1 species" in lines[0]
    assert (both.threshold, both.training["species"]) == (alone.threshold, ["Known"])
    assert both.locator.threshold_without_genes == alone.locator.threshold_without_genes
    figures = both.metrics["New, species left out, with genes"]
    assert lines[2].startswith("species left out, with genes, ")
    assert f"auprc {figures['auprc']['value']:.3f}" in lines[2]
    assert lines[3].startswith("species left out, letters alone, ")
