"""Genes that are cut."""

from __future__ import annotations

import numpy as np
import pytest

from seqray.genome.genes import Gene, cut_genes
from seqray.genome.tracks import gene_tracks


@pytest.mark.parametrize("strand", ["+", "-"])
@pytest.mark.parametrize(
    ("start", "end"), [(0, 60), (12, 60), (13, 60), (14, 47), (20, 41), (45, 60), (0, 9)]
)
def test_what_is_left_of_a_gene_keeps_its_frame_and_loses_its_ends(strand, start, end):
    gene = Gene(10, 40, strand, "a")
    whole, cut = (
        gene_tracks(genes, length, strand)[1:4]  # the frames
        for genes, length in (((gene,), 60), (cut_genes((gene,), start, end), end - start))
    )
    if strand == "-":  # tracks are in reading direction
        whole, cut = whole[:, ::-1], cut[:, ::-1]
    seen = cut.any(axis=0)
    np.testing.assert_array_equal(cut[:, seen], whole[:, start:end][:, seen])
    assert seen.sum() >= whole[:, start:end].any(axis=0).sum() - 2  # of a codon that was cut


def test_ends_that_are_cut_off_are_partial():
    genes = (Gene(10, 40, "+", "a"), Gene(10, 40, "-", "b"), Gene(50, 60, "+", "c", coding=False))
    assert cut_genes(genes, 20, 45) == (
        Gene(2, 20, "+", "a", partial_start=True),
        Gene(0, 20, "-", "b", partial_end=True),
    )
    assert cut_genes(genes, 0, 30)[1] == Gene(10, 28, "-", "b", partial_start=True)
    assert cut_genes(genes, 55, 58) == (
        Gene(0, 3, "+", "c", coding=False, partial_start=True, partial_end=True),
    )
