"""Predicted genes, and where genes come from."""

import sys
from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pyrodigal
import pytest

from seqray.core.errors import ConfigError, InputError
from seqray.core.records import SequenceRecord
from seqray.genome.find import (
    MAX_CONTIG_LETTERS,
    MIN_TRAINING_LETTERS,
    GenePredictor,
    choose_genes,
    predict_all,
    predicted_genes,
    proteins,
)
from seqray.genome.genes import Annotation, Gene


def spans(genes):
    return {(gene.start, gene.end, gene.strand) for gene in genes}


def share_found(genome, genes):
    return len(genome.genes & spans(genes)) / len(genome.genes)


def rotate(genome, by):
    return genome.sequence[by:] + genome.sequence[:by]


@pytest.fixture(scope="module")
def predictor(genome):
    return GenePredictor.train([genome.sequence])


def test_the_genes_of_a_genome_are_found(genome, predictor):
    assert len(genome.sequence) > MIN_TRAINING_LETTERS
    genes = predictor.genes_of(genome.sequence, name="chr")
    assert share_found(genome, genes) > 0.95
    assert predictor.table == 11
    assert [(gene.name, gene.locus) for gene in genes[:2]] == [("chr_1", "chr_1"), ("chr_2", "chr_2")]
    assert [gene.start for gene in genes] == sorted(gene.start for gene in genes)
    assert all(gene.coding and not gene.pseudo and (gene.end - gene.start) % 3 == 0 for gene in genes)


def test_the_codon_table_is_chosen(genome, recoded):
    predictor = GenePredictor.train([recoded.sequence])
    assert predictor.table == 4
    assert share_found(recoded, predictor.genes_of(recoded.sequence)) > 0.95
    forced = GenePredictor.train([recoded.sequence], table=11)
    assert forced.table == 11
    assert share_found(recoded, forced.genes_of(recoded.sequence)) < 0.3
    assert predictor.source.endswith(", codon table 4")


def test_the_codon_table_is_chosen_where_stops_inside_genes_are_rare(dense_recoded):
    """Genes cut once or twice by table 11 still cover more than .85 of dense letters."""
    letters = dense_recoded.sequence
    cut = GenePredictor.train([letters], table=11).genes_of(letters)
    assert sum(gene.end - gene.start for gene in cut) > 0.85 * len(letters)
    assert GenePredictor.train([letters]).table == 4


@pytest.mark.parametrize("by", [1, 700, 50_000, 101_234])
def test_rotating_a_circle_rotates_its_genes(genome, predictor, by):
    length = len(genome.sequence)
    there = predictor.genes_of(genome.sequence, circular=True)
    back = {
        ((start + by) % length, end - start, strand)
        for start, end, strand in spans(predictor.genes_of(rotate(genome, by), circular=True))
    }
    assert back == {(start, end - start, strand) for start, end, strand in spans(there)}


def test_a_gene_across_the_origin_ends_beyond_the_length(genome, predictor):
    length = len(genome.sequence)
    start, end, strand = min(one for one in genome.genes if one[0] > 1000)
    middle = (start + end) // 2
    crossing = (start - middle + length, end - middle + length, strand)
    circular = predictor.genes_of(rotate(genome, middle), circular=True)
    assert crossing in spans(circular)
    assert all(0 <= gene.start < length and gene.complete for gene in circular)
    linear = predictor.genes_of(rotate(genome, middle))
    assert crossing not in spans(linear)
    first, last = min(linear, key=lambda g: g.start), max(linear, key=lambda g: g.end)
    assert (first.start < 3, last.end > length - 3) == (True, True)
    ends = [(gene.partial_start, gene.partial_end) for gene in (first, last)]
    assert ends == ([(True, False), (False, True)] if strand == "+" else [(False, True), (True, False)])


def test_a_circle_of_one_gene_is_read_around_once(genome, predictor):
    start, end, _ = min(one for one in genome.genes if one[2] == "+")
    plasmid = genome.sequence[start - 50 : end + 50]
    middle = len(plasmid) // 2
    genes = predictor.genes_of(plasmid[middle:] + plasmid[:middle], circular=True)
    assert spans(genes) == {(50 - middle + len(plasmid), 50 - middle + len(plasmid) + end - start, "+")}


def test_contigs_of_a_draft_are_learned_from_together(genome):
    cuts = [0, 40_000, 90_000, len(genome.sequence)]
    records = [SequenceRecord(f"c{i}", genome.sequence[a:b]) for i, (a, b) in enumerate(pairwise(cuts))]
    one, two = predict_all(records), predict_all(records, threads=2)
    assert dict(one.genes) == dict(two.genes)
    assert one.lengths == {record.id: len(record) for record in records}
    assert "codon table 11" in one.source
    moved = {
        (start + cut, end + cut, strand)
        for record, cut in zip(records, cuts, strict=False)
        for start, end, strand in spans(one.of(record.id))
    }
    assert len(genome.genes & moved) / len(genome.genes) > 0.9


def test_few_letters_are_read_by_ready_made_models(genome):
    start, end, strand = min(genome.genes)
    predictor = GenePredictor.train([genome.sequence[: end + 5000]])
    assert predictor.table is None
    assert predictor.source.endswith(", metagenomic mode")
    stop = end if strand == "+" else start
    found = predictor.genes_of(genome.sequence[: end + 5000])
    assert stop in {gene.end if gene.strand == "+" else gene.start for gene in found}


def test_genes_state_the_codon_table_that_found_them(genome, recoded):
    rng = np.random.default_rng(3)
    usual = ["AAA", "GAA", "TTA", "ATT", "AAT", "GAT", "GTT", "TTT", "ACT", "GCT", "TCA", "CAA", "TGA"]
    genes = ["ATG" + "".join(rng.choice(usual, 300)) + "TAA" for _ in range(5)]  # as of Mycoplasma
    few = "".join("TTAATATTAGGAGGTATATAA" + gene for gene in genes)
    asked, chosen = GenePredictor.train([few], table=4), GenePredictor.train([few])
    assert asked.source.endswith(", metagenomic mode, codon table 4")
    assert {gene.table for gene in asked.genes_of(few)} == {4}
    assert {gene.table for gene in chosen.genes_of(few)} == {4}
    assert {gene.table for gene in chosen.genes_of(genome.sequence[:40_000])} == {11}
    trained = GenePredictor.train([recoded.sequence])
    assert {gene.table for gene in trained.genes_of(recoded.sequence, circular=True)} == {4}


def test_proteins_are_those_that_pyrodigal_translates(genome, recoded):
    for letters in (genome.sequence, recoded.sequence):
        records = [SequenceRecord("c", letters)]
        genes = predicted_genes(records).find(records[0], False) or ()
        annotation = Annotation({"c": tuple(genes)}, "")
        found = {name: residues for name, _, residues in proteins(annotation, records)}
        table = next(gene.table for gene in genes)
        own = pyrodigal.GeneFinder(mask=True)
        own.train(letters, translation_table=table)
        expected = {
            (one.begin - 1, one.end): one.translate(table).removesuffix("*")
            for one in own.find_genes(letters)
        }
        places = {(gene.start, gene.end): found[gene.name] for gene in genes}
        shared = places.keys() & expected.keys()
        assert len(shared) > 0.9 * len(places)
        assert all(places[place][1:] == expected[place][1:] for place in shared)
        assert {residues[0] for residues in found.values()} == {"M"}


@pytest.mark.parametrize(
    ("gene", "expected"),  # on a circle: GTG AAA TAA TGA, and the end of TTA TTT CAC in front
    [
        (Gene(3, 12, "+", "x y", "L1", "a protein"), [("x_y", "L1 c:4-12(+) a protein", "MK")]),
        (Gene(3, 15, "+", "x", table=4), [("x", "c:4-15(+)", "MK*W")]),
        (Gene(3, 9, "+", "x", partial_start=True), [("x", "c:4-9(+)", "VK")]),
        (Gene(15, 24, "-", "x", partial_end=True), [("x", "c:16-24(-)", "MK")]),
        (Gene(3, 12, "+", "x", coding=False), []),
        (Gene(3, 12, "+", "x", pseudo=True), []),
    ],
)
def test_the_protein_of_a_gene(gene, expected):
    circle = [SequenceRecord("c", "CACGTGAAATAATGATTATTT")]
    assert [*proteins(Annotation({"c": (gene,)}, ""), circle)] == expected
    pieces = Gene(3, 6, "+", "p", partial_end=True), Gene(6, 9, "+", "p", partial_start=True)
    assert not [*proteins(Annotation({"c": pieces}, ""), circle)]
    with pytest.raises(InputError, match="p has no codon table 99"):
        list(proteins(Annotation({"c": (Gene(3, 9, "+", "p", table=99),)}, ""), circle))


def test_short_contigs_are_read_by_ready_made_models(genome):
    half = len(genome.sequence) // 2
    short = [genome.sequence[at : at + 2000] for at in range(0, half, 2000)]
    assert GenePredictor.train([*short[:-2], genome.sequence[half:]]).table == 11
    assert GenePredictor.train([*short, genome.sequence[half + 10_000 :]]).table is None


@pytest.mark.parametrize("circular", [False, True])
@pytest.mark.parametrize("letters", ["", "ACG", "ACGT" * 14, "N" * 5000, "N" * 200_000])
def test_nothing_is_found_where_nothing_is(letters, circular):
    assert GenePredictor.train([letters]).genes_of(letters, circular=circular) == ()


def test_genes_do_not_run_through_a_gap(genome, predictor):
    start, end, _ = min(genome.genes)
    middle = (start + end) // 2
    letters = genome.sequence[:middle] + "N" * 600 + genome.sequence[middle:]
    assert not [gene for gene in predictor.genes_of(letters) if gene.start < middle < gene.end]


def test_a_contig_too_long_for_a_bacterium_is_refused(predictor):
    letters = "A" * (MAX_CONTIG_LETTERS + 1)
    with pytest.raises(InputError, match=r"record 'chr1': genes.* of 32000001 bases.*give genes in a file"):
        predictor.genes_of(letters, name="chr1")
    with pytest.raises(InputError, match=r"^genes can't be predicted in a contig of 32000001 bases"):
        GenePredictor.train([letters])


def test_unknown_codon_tables_are_refused():
    with pytest.raises(ConfigError, match="unknown codon table 7; choose one of 1, 2, 3, 4"):
        GenePredictor.train(["ACGT"], 7)
    with pytest.raises(InputError, match="too few to learn genes of codon table 25"):
        GenePredictor.train(["ACGT"], 25)
    rng = np.random.default_rng(0)
    letters = "".join(rng.choice(list("ACGT"), 300))
    assert GenePredictor.train([letters], 4).genes_of(letters) is not None


def test_the_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyrodigal", None)
    with pytest.raises(ConfigError, match=r"pip install pyrodigal, or seqray with its extra 'genes'"):
        GenePredictor.train(["ACGT"])


CODONS = ("GCT", "AAA", "GAA", "CTG", "GAT", "ACC", "CGT", "GTT", "TTC", "AAC")


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)

    def contig(name: str) -> SequenceRecord:
        genes = ["ATG" + "".join(rng.choice(CODONS, 200)) + "TAA" for _ in range(4)]
        gaps = ["".join(rng.choice(list("ACGT"), 60)) for _ in genes]
        return SequenceRecord(name, "AGGAGG".join(gap + gene for gap, gene in zip(gaps, genes, strict=True)))

    return [contig("a"), contig("b")]


@pytest.mark.parametrize("circular", [False, True])
def test_genes_predicted_at_once_are_those_of_a_contig_in_turn(records, circular):
    later, predict = predicted_genes(records), GenePredictor.genes_of
    with patch.object(GenePredictor, "genes_of", autospec=True, side_effect=predict) as called:
        genome = predicted_genes(records, is_circular=lambda record: circular and record.id == "a")
        assert called.call_count == 1
        found = [genome.find(records[0], circular), genome.find(records[1], False)]
        assert called.call_count == 2
    assert genome.source == later.source
    assert found == [later.find(records[0], circular), later.find(records[1], False)]
    assert all(found)


def test_a_genbank_input_that_names_no_genes_has_them_predicted(records):
    def choose(own, **more):
        return choose_genes("auto", records, lambda record: False, own=lambda circles: own, **more)[0]

    empty, named = (
        Annotation({}, "GenBank x.gb"),
        Annotation({"a": (Gene(60, 90, "+", "g"),)}, "GenBank x.gb"),
    )
    assert choose(empty).source.startswith("predicted by pyrodigal")
    assert choose(named) is named
    with pytest.raises(ConfigError, match="codon_table=4 is for predicted genes"):
        choose(named, table=4)


def test_genes_with_introns_are_read_and_never_predicted(records):
    def choose(genes, own=None):
        return choose_genes(genes, records, lambda record: False, own=own and (lambda _: own), introns=True)

    named = Annotation({"a": (Gene(60, 90, "+", "g"),)}, "GenBank x.gb")
    assert choose("auto", named) == (named, "")
    assert choose(named) == (named, "")
    genome, reason = choose("auto")
    assert genome is None
    assert "as GFF3 or GenBank" in reason
    with pytest.raises(ConfigError, match="genes have introns"):
        choose("predict")
    other = Annotation({"z": (Gene(60, 90, "+", "g"),)}, "GFF3 x.gff", file="x.gff")
    for genes in (other, "auto"):
        with pytest.raises(InputError, match=r"rename them .* or give genes=None\Z"):
            choose(genes, other)
