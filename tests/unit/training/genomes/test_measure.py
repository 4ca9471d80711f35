"""Which contigs are measured: with genes, only those whose genes are known."""

from __future__ import annotations

import pytest

from seqray.genome.genes import Gene
from seqray.training.genomes.evaluation import measure
from seqray.training.genomes.sheet import DEV

SITES = {"known": [(500, "+", 0, 1.0), (900, "-", 0, 1.0)], "unknown": [(700, "+", 0, 1.0)]}
REGIONS = {"known": [(0, 1500, DEV)], "unknown": [(200, 1200, DEV)]}
GENES = {"known": [Gene(600, 840, "+", "a")]}


@pytest.fixture
def genome(make_genome, random_letters):
    """Two contigs, of which an annotation names the first."""

    def make(genes, **row):
        contigs = {"known": random_letters(1500, 0), "unknown": random_letters(1500, 1)}
        return make_genome(contigs, SITES, REGIONS, genes, **row)

    return make


def test_contigs_whose_genes_are_not_known_are_measured_without_genes_only(locator, genome):
    given = [(genome(GENES), "region")]
    [with_genes], [without] = (measure(locator, given, genes=genes) for genes in (True, False))
    assert (with_genes.kilobases, len(with_genes.site_block)) == (1.5, 2)
    assert (without.kilobases, len(without.site_block)) == (2.5, 3)
    assert (with_genes.genes, without.genes) == (True, False)
    assert (with_genes.species, with_genes.held_out) == ("Toy", "region")


def test_a_contig_that_is_known_to_have_no_gene_is_measured_with_genes(locator, genome):
    [found] = measure(locator, [(genome(GENES | {"unknown": []}), "region")], genes=True)
    assert (found.kilobases, len(found.site_block)) == (2.5, 3)


def test_a_species_without_known_genes_is_left_out_of_the_figures_with_genes(locator, genome):
    other = genome(None, species="Other")
    found = measure(locator, [(genome(GENES), "region"), (other, "species")], genes=True)
    assert [one.species for one in found] == ["Toy"]
    found = measure(locator, [(genome(GENES), "region"), (other, "species")], genes=False)
    assert [(one.species, one.held_out) for one in found] == [("Toy", "region"), ("Other", "species")]
