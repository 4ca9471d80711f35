"""Genes are the same whether they are predicted at once or when a contig is reached."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from seqray.core.errors import ConfigError
from seqray.core.records import SequenceRecord
from seqray.genome.genes import Gene, Genome
from seqray.genome.predict import GenePredictor, choose_genes, predicted_genes

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

    empty, named = Genome({}, "GenBank x.gb"), Genome({"a": (Gene(60, 90, "+", "g"),)}, "GenBank x.gb")
    assert choose(empty).source.startswith("predicted by pyrodigal")
    assert choose(named) is named
    with pytest.raises(ConfigError, match="codon_table=4 is for predicted genes"):
        choose(named, table=4)


def test_genes_with_introns_are_read_and_never_predicted(records):
    def choose(genes, own=None):
        return choose_genes(genes, records, lambda record: False, own=own and (lambda _: own), introns=True)

    named = Genome({"a": (Gene(60, 90, "+", "g"),)}, "GenBank x.gb")
    assert choose("auto", named) == (named, "")
    assert choose(named) == (named, "")
    genome, reason = choose("auto")
    assert genome is None
    assert "as GFF3 or GenBank" in reason
    with pytest.raises(ConfigError, match="genes have introns"):
        choose("predict")
