"""Genes are the same whether they are predicted at once or when a contig is reached."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest

from seqray.core.records import SequenceRecord
from seqray.genome.predict import GenePredictor
from seqray.scanning.genes import predicted_genes
from seqray.scanning.options import ScanOptions

CODONS = ("GCT", "AAA", "GAA", "CTG", "GAT", "ACC", "CGT", "GTT", "TTC", "AAC")


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(5)

    def contig(name: str) -> SequenceRecord:
        genes = ["ATG" + "".join(rng.choice(CODONS, 200)) + "TAA" for _ in range(4)]
        gaps = ["".join(rng.choice(list("ACGT"), 60)) for _ in genes]
        return SequenceRecord(name, "AGGAGG".join(gap + gene for gap, gene in zip(gaps, genes, strict=True)))

    return [contig("a"), contig("b")]


@pytest.mark.parametrize(
    ("options", "circular"), [(ScanOptions(), False), (ScanOptions(circular_ids=("a",)), True)]
)
def test_genes_predicted_at_once_are_those_of_a_contig_in_turn(records, options, circular):
    later, predict = predicted_genes(records), GenePredictor.genes_of
    with patch.object(GenePredictor, "genes_of", autospec=True, side_effect=predict) as called:
        source = predicted_genes(iter(records), is_circular=options.is_circular)
        assert called.call_count == 1
        found = [source.find(record, options.is_circular(record)) for record in records]
        assert called.call_count == 2
        assert source.find(records[0], not circular) == later.find(records[0], not circular)
    assert source.source == later.source
    assert found == [later.find(records[0], circular), later.find(records[1], False)]
    assert all(found)
