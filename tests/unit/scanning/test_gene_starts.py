"""The start of each gene, operons, and the letters around calls; every number here is worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.records import Contig, Intervals, SequenceRecord
from seqray.genome.find import gene_features, read_genes
from seqray.genome.genes import Annotation, Gene, flip_genes, shift_gene
from seqray.io.gff3 import write_features
from seqray.scanning.gene_starts import GENE_COLUMNS, gene_rows, gene_starts, genes_before
from seqray.scanning.options import ScanOptions
from seqray.scanning.results import CallTable, ScanCounts, ScanResult, call_records

LENGTH = 5000
GENES = (
    Gene(50, 200, "+", "near", "t0"),  # 50 bases from the end of the contig
    Gene(500, 800, "+", "first", "t1"),
    Gene(812, 1100, "+", "second", "t2"),  # 12 bases behind
    Gene(1096, 1300, "+", "third", "t3"),  # overlaps by 4
    Gene(1300, 1400, "-", "other", "t4"),
    Gene(1351, 1600, "+", "alone", "t5"),  # 51 bases behind the third
    Gene(2000, 2300, "-", "last", "t6"),
    Gene(2310, 2600, "-", "leader", "t7"),
    Gene(4800, 5000, "-", "cut", "t8", partial_start=True),
)


def result_of(*calls, genes=GENES, parts=None, circular=False, strand="both"):
    """A scan with these calls (site, strand, score)."""
    contig = Contig("c", LENGTH, circular, parts)
    table = CallTable("start", (0, 0))
    strands = []
    for sign in "+-":
        own = [call for call in calls if call[1] == sign]
        sites, scores = np.array([c[0] for c in own], int), np.array([c[2] for c in own], float)
        strands.append((sign, sites, scores, np.empty((len(own), 0), np.uint8)))
    if calls:
        table.add(contig, strands)
    genome = Annotation({"c": genes}, "test")
    table.describe(genome)
    return ScanResult(
        calls=table,
        threshold=0.5,
        counts=ScanCounts(),
        scanned=[contig],
        genes=genome,
        options=ScanOptions(strand=strand),
    )


def rows_of(result):
    rows = [dict(zip(GENE_COLUMNS, row, strict=True)) for row in gene_rows(gene_starts(result))]
    return {row["gene"]: row for row in rows}


def test_each_gene_has_its_best_start_or_a_reason():
    result = result_of((470, "+", 0.6), (440, "+", 0.9), (2650, "-", 0.7))
    rows = rows_of(result)
    assert list(rows) == [gene.name for gene in GENES]
    first = rows["first"]
    assert (first["call"], first["site"], first["distance"], first["score"]) == ("start_1", 440, 60, 0.9)
    assert first["alternatives"] == "start_2:30:unknown"
    assert (rows["leader"]["distance"], rows["leader"]["reason"]) == (51, None)
    reasons = {name: row["reason"] for name, row in rows.items() if row["call"] is None}
    assert reasons == {
        "near": "at the end of the contig: 50 bases before it",
        "second": "follows first by 12 bases on its strand: probably in one operon",
        "third": "overlaps second by 4 bases on its strand: probably in one operon",
        "other": "no start above the threshold",
        "alone": "no start above the threshold",
        "last": "follows leader by 10 bases on its strand: probably in one operon",
        "cut": "at the end of the contig: begins beyond it",
    }
    assert {rows[name]["operon"] for name in ("first", "second", "third")} == {"first"}
    assert (rows["last"]["operon"], rows["alone"]["operon"]) == ("leader", "alone")
    result.operons = False  # of a eukaryote
    assert {row["operon"] for row in rows_of(result).values()} == {None}
    assert not any("operon" in str(row["reason"]) for row in rows_of(result).values())


@pytest.mark.parametrize("strand", ["+", "-"])
@pytest.mark.parametrize(
    ("inside", "distance", "reason"),
    [
        (0, 0, None),
        (2, 0, None),
        (
            3,
            None,
            "a call (score 0.81, unknown) lies 3 bases inside: the start codon may lie further downstream",
        ),
        (
            100,
            None,
            "a call (score 0.81, unknown) lies 100 bases inside: the start codon may lie further downst",
        ),
        (101, None, "no start above the threshold"),
    ],
)
@pytest.mark.parametrize("first", [1000, LENGTH - 1])
def test_a_call_in_the_first_bases_is_the_start_and_one_farther_inside_a_reason(
    strand, inside, distance, reason, first
):
    """The gene of 300 bases begins at 1000, or at the last base before the origin of a circle."""
    genes = (Gene(first, first + 300, "+", "g"),)
    site = (first + inside) % LENGTH
    if strand == "-":
        site, genes = LENGTH - 1 - site, flip_genes(genes, LENGTH)
        genes = tuple(shift_gene(gene, LENGTH if gene.start < 0 else 0) for gene in genes)
    result = result_of((site, strand, 0.81), genes=genes, circular=True)
    row = rows_of(result)["g"]
    assert (row["distance"], row["site"]) == (distance, None if reason else site)
    assert (row["reason"] or "").startswith(reason or "")
    [call] = result.calls
    assert (call.context.gene, call.context.distance) == (("g", 0) if reason is None else ("", None))
    assert (call.context.within, call.context.within_strand) == ("g", "same")


def test_the_best_call_inside_is_told_before_an_operon_and_none_beyond_the_gene():
    rows = rows_of(result_of((820, "+", 0.6), (900, "+", 0.7), (1400, "-", 0.9), (2299, "-", 0.5)))
    assert "(score 0.70, unknown) lies 88 bases inside" in str(rows["second"]["reason"])
    assert (rows["other"]["site"], rows["other"]["distance"]) == (1400, 1)  # the gene ends at 1400
    assert rows["last"]["site"] == 2299
    assert rows["leader"]["reason"] == "no start above the threshold"


def test_genes_whose_upstream_bases_were_not_searched_have_no_row():
    assert list(rows_of(result_of(parts=Intervals.merge([(2600, 2800)])))) == ["leader"]
    assert set(rows_of(result_of(strand="minus"))) == {"other", "last", "leader", "cut"}


def test_an_operon_across_the_origin_of_a_circle():
    genes = (Gene(20, 300, "+", "b"), Gene(4700, 5010, "+", "a"), Gene(4000, 4690, "+", "z"))
    found = genes_before(genes, LENGTH, circular=True)
    assert {gene.name: (other.name, gap) for gene, (other, gap) in found.items()} == {
        "b": ("a", 10),
        "a": ("z", 10),
    }
    assert [gene.name for gene in genes_before(genes, LENGTH, circular=False)] == ["a"]
    assert rows_of(result_of(genes=genes, circular=True))["b"]["operon"] == "z"


GENE_LISTS = st.lists(
    st.builds(
        lambda start, size, strand, name: Gene(start, start + size, strand, str(name)),
        st.integers(0, 900),
        st.integers(3, 90),
        st.sampled_from("+-"),
        st.integers(0, 999),
    ),
    max_size=12,
    unique_by=(lambda gene: gene.place, lambda gene: gene.name),
)


@given(GENE_LISTS)
def test_operons_are_the_same_on_the_other_strand(genes):
    turned = flip_genes(genes, 1000)
    here, there = (genes_before(ones, 1000, circular=False) for ones in (genes, turned))
    names = [{g.name: gap for g, (_, gap) in found.items()} for found in (here, there)]
    assert names[0] == names[1]


def test_genes_are_read_back_from_their_gff3(tmp_path):
    path = tmp_path / "genes.gff3"
    write_features(path, gene_features(Annotation({"c": GENES}, "test")), (), [Contig("c", LENGTH, False)])
    read = read_genes(path).of("c")
    assert [(g.name, g.locus, *g.place, g.complete) for g in read] == [
        (g.name, g.locus, *g.place, g.complete) for g in GENES
    ]


@pytest.mark.parametrize(
    ("circular", "site", "strand", "letters", "cut"),
    [
        (False, 2, "+", "AACC", "cut=1 base beyond"),  # 3 before, the site, and 1 behind
        (True, 2, "+", "CAACC", ""),
        (False, 2, "-", "CCGGT", ""),  # of ACCGG
        (False, 8, "-", "GTA", "cut=2 bases beyond"),  # of TAC, and two behind the end
        (True, 8, "-", "TTGTA", ""),
    ],
)
def test_the_letters_around_a_call(circular, site, strand, letters, cut):
    table = CallTable("promoter", (0, 0))
    one = (strand, np.array([site]), np.array([0.5]), np.empty((1, 0), np.uint8))
    table.add(Contig("c", 10, circular), [one])
    [record] = call_records(table, [SequenceRecord("c", "AACCGGTTAC")], upstream=3, downstream=1)
    assert (record.id, record.sequence) == ("promoter_1", letters)
    assert f"site=c:{site + 1}({strand}) score=0.5" in record.description
    assert cut in record.description
    assert bool(cut) == ("cut=" in record.description)
