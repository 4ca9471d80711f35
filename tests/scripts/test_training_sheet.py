"""The sheet of training data for locators: which genomes and contexts are in it, and how they count."""

from __future__ import annotations

import gzip
from pathlib import Path

from seqray.genome.read import read_genes
from training_sheet import genome_rows, read_table, training_rows, write_table

GENOME = {"species": "A b", "genus": "A", "genome": "/g.fa", "genes": "", "note": ""}
SITE = {"contig": "c", "position": 5, "strand": "+", "weight": 1.0}
CONTEXT = {"species": "C d", "genus": "C", "weight": 0.2, "shares": "", "type": "CDS", "distance": ""}


def test_genomes_and_contexts_of_the_sheet(tmp_path: Path):
    rows = [
        {"name": "ecoli", "domain": "bacteria", "weight": 1.0},
        {"name": "upstream", "domain": "bacteria", "weight": 0.5},
        {"name": "unclear", "domain": "bacteria", "weight": 0.0},
        {"name": "archaeon", "domain": "archaea", "weight": 1.0},
    ]
    write_table(
        tmp_path / "genomes.tsv", [{**GENOME, **row, "sites": f"{row['name']}.sites.tsv"} for row in rows]
    )
    write_table(tmp_path / "ecoli.sites.tsv", [{**SITE, "site": s} for s in ("promoter", "internal")])
    write_table(tmp_path / "upstream.sites.tsv", [{**SITE, "site": "promoter"}] * 10)
    contexts = [
        {**CONTEXT, "sequence": "ACGTT", "index": 3},
        {**CONTEXT, "sequence": "ACGTT", "index": 3},
        {**CONTEXT, "sequence": "GGGTTATGCC", "index": 2, "distance": 3},
        {**CONTEXT, "sequence": "CCCTT", "index": 2, "shares": "test"},
        {**CONTEXT, "species": "E f", "sequence": "TTTTT", "index": 2, "weight": 0.0},
    ]
    write_table(tmp_path / "contexts.tsv.gz", contexts)

    write_table(tmp_path / "archaeon.sites.tsv", [{**SITE, "site": "promoter"}])
    assert [row["held_out"] for row in genome_rows(tmp_path, "archaea")] == ["archaeon.split.bed"]
    found = list(training_rows(tmp_path))
    kept = ("species", "group", "genes", "held_out", "weight", "inside")
    assert [tuple(row[key] for key in kept) for row in found] == [
        ("A b", "A", "predict", "ecoli.split.bed", 6.0, 1.0),
        ("A b", "A", "predict", "upstream.split.bed", 0.5, 0.1),
        ("C d (contexts)", "C", "contexts-c-d.gff3", "", 1.0, 1.0),
    ]
    with gzip.open(tmp_path / "contexts-c-d.fa.gz", "rt") as handle:
        assert handle.read() == ">contexts-c-d-1\nACGTT\n>contexts-c-d-2\nGGGTTATGCC\n"
    # The start is letter 3 of 10, counted from 1; the gene begins 3 letters on and ends beyond the context.
    assert (tmp_path / "contexts-c-d.gff3").read_text() == (
        "##gff-version 3\n##sequence-region contexts-c-d-1 1 5\n##sequence-region contexts-c-d-2 1 10\n"
        "contexts-c-d-2\t.\tCDS\t6\t10\t.\t+\t0\tID=contexts-c-d-2;end_range=10,.\n"
    )
    genes = read_genes(tmp_path / "contexts-c-d.gff3").genes
    assert {contig: len(found) for contig, found in genes.items()} == {
        "contexts-c-d-1": 0,  # known to have none
        "contexts-c-d-2": 1,
    }
    sites = read_table(tmp_path / "contexts-c-d.sites.tsv")
    assert [(s["contig"], s["position"], s["strand"]) for s in sites] == [
        ("contexts-c-d-1", "4", "+"),
        ("contexts-c-d-2", "3", "+"),
    ]
