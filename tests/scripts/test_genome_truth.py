"""Truth for benchmarks of genomes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import gene_context
import scan_genomes
from best_calls import COLUMNS, best, table_row
from ecoli_tables import Site, read_regulondb
from ecoli_truth import Placed, TablePlacement, Truth
from gene_context import DISTANCES, GAPS, ContextPrior, GeneContext, gap_lengths, no_letters, upstream_gaps
from genome_truth import KnownGenome, KnownStart, end_to_end, outside, place_calls, read_genome
from invented import SHEET, SITES, Letters, opposite, write_fasta, write_gzip, write_rows
from machine import Cost
from matching import make_starts, rank_calls
from seqray.core.results import Box, Call, CallContext
from seqray.genome.genes import Gene

FIRST, SECOND = map(Letters(23), (300, 200))


def known(position: int, strand: str = "+", distance: int | None = 10) -> KnownStart:
    return KnownStart(position, strand, "promoter", distance, frozenset({"a"}), False)


def make(*starts: KnownStart) -> KnownGenome:
    return KnownGenome("g", "G s", "G", "bacteria", {"c1": FIRST, "c2": SECOND}, starts)


def test_starts_within_five_letters_are_one():
    genome = make(known(10), known(14), known(19), known(25), known(12, "-"), known(90, distance=None))
    # 10, 14 and 19 are linked, and their middle is 14; 25 is six letters from 19.
    assert genome.select().position.tolist() == [14, 25, 90, 12]
    assert genome.select().plus.tolist() == [True, True, True, False]


def test_calls_and_starts_of_measured_regions_are_placed_end_to_end():
    # 20 letters of the first contig, and 100 of the second, which begins at 300.
    regions = ((10, 30), (350, 450))
    genome = replace(make(known(3), known(10), known(29), known(36), known(360, "-")), regions=regions)
    assert genome.select().position.tolist() == [0, 19, 30]
    calls = genome.cut(rank_calls([449, 450, 12, 5], "+-+-", [3.0, 4.0, 1.0, 2.0]))
    assert (calls.position.tolist(), calls.score.tolist()) == ([119, 2], [3.0, 1.0])
    assert genome.measured_contigs() == ["c1", "c2"]
    assert replace(genome, regions=regions[1:]).measured_contigs() == ["c2"]
    assert outside([(350, 450), (0, 10)], 500) == [(10, 350), (450, 500)]
    assert outside([], 500) == [(0, 500)]


def test_windows_are_calls_at_their_last_letter():
    assert end_to_end(make().contigs) == {"c1": 0, "c2": 300}
    calls = place_calls([(FIRST[20:60], 0.7), (opposite(SECOND[50:90]), 0.9), ("A" * 40, 0.8)], make())
    assert calls.position.tolist() == [350, 59]
    assert calls.plus.tolist() == [False, True]
    assert calls.score.tolist() == [0.9, 0.7]


def test_a_genome_of_a_sheet_is_read_with_the_starts_that_have_weight(tmp_path: Path):
    write_fasta(tmp_path / "g.fa", c1=FIRST, c2=SECOND)
    row = ("G s", "G", "g.fa", "", "g.tsv", "1.0", "bacteria", "g", "")
    write_rows(
        tmp_path / "g.tsv",
        SITES,
        ("c1", "11", "+", "promoter", "1.00", "a;b", "", "1", "0", ""),
        ("c2", "11", "-", "internal", "0.50", "a", "", "0", "", "same"),
        ("c2", "99", "-", "internal", "0.00", "b", "", "0", "", "same"),
    )
    genome = read_genome(tmp_path, dict(zip(SHEET, row, strict=True)))
    assert (genome.name, genome.species, genome.genus) == ("g", "G s", "G")
    assert genome.starts == (
        KnownStart(10, "+", "promoter", 0, frozenset({"a", "b"}), True),
        KnownStart(310, "-", "internal", None, frozenset({"a"}), False, 0.5),
    )


LENGTH = 2000
GENES = (
    Gene(100, 400, "+", "a"),
    Gene(390, 700, "+", "b"),  # overlaps a by ten letters
    Gene(760, 1000, "-", "c"),
    Gene(1250, 1500, "+", "d"),  # 250 after c, which reads away from it
    Gene(1900, 2000, "-", "e", partial_start=True),
)


LONG = (Gene(0, 900, "-", "long"), Gene(100, 200, "+", "inside"), Gene(950, 990, "+", "after"))


@pytest.mark.parametrize(
    ("genes", "length", "gaps"),
    [
        (GENES, LENGTH, {"a": 100, "b": -10, "c": 250, "d": 250}),
        (LONG, 1000, {"long": 50, "inside": -800, "after": 50}),  # the long gene ends the gap
    ],
)
def test_the_gap_is_counted_to_the_nearest_gene_upstream_on_either_strand(genes, length, gaps):
    assert {gene.name: gap for gene, gap in upstream_gaps(genes, length)} == gaps


def test_the_rule_without_letters_calls_45_letters_before_each_start_codon():
    calls = no_letters(GENES, LENGTH)
    # c is read from 999 backwards: 999 + 45. Equal gaps go by position.
    assert calls.position.tolist() == [1044, 1205, 55, 345]
    assert calls.plus.tolist() == [False, True, True, True]
    assert calls.score.tolist() == [250, 250, 100, -10]
    # No call lies beyond the contig.
    assert len(no_letters([Gene(44, 200, "+", "a"), Gene(300, 500, "-", "b")], 540)) == 0
    assert no_letters([Gene(45, 200, "+", "a")], 540).position.tolist() == [0]
    assert len(no_letters([], 540)) == 0


def test_gaps_between_genes_have_one_length():
    covered = np.array([0, 0, 1, 0, 1, 1, 0, 0, 0], dtype=bool)
    assert gap_lengths(covered).tolist() == [2, 2, 0, 1, 0, 0, 3, 3, 3]
    assert gap_lengths(np.ones(3, dtype=bool)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("position", "strand", "place", "distance", "gap"),
    [
        (60, "+", 0, 40, 100),  # before a
        (50, "-", 0, None, 100),  # no start codon ahead on minus
        (380, "+", 1, 10, None),  # in a, ten letters before b
        (800, "+", 2, 450, None),  # in c, which is read backwards; d is 450 on
        (1044, "-", 0, 45, 250),  # before c
        (999, "-", 1, 0, None),  # the first letter of c
    ],
)
def test_places_among_genes(position, strand, place, distance, gap):
    row = GeneContext(GENES, LENGTH).classes(np.array([position]), np.array([strand == "+"]))[0]
    step = len(DISTANCES) + 1
    number = step - 1 if distance is None else sum(distance >= limit for limit in DISTANCES)
    length = 0 if gap is None else 1 + sum(gap >= limit for limit in GAPS)
    assert np.flatnonzero(row).tolist() == [place * step + number, 3 * step + length]


def test_the_prior_favors_places_where_starts_were_seen():
    context = GeneContext(GENES, LENGTH)
    starts = make_starts({"+": [55, 60, 1205, 1210], "-": [1040, 1044]})
    prior = ContextPrior(context, starts, [(0, LENGTH)], drawn=5000)
    before, inside, far = prior.log_odds(np.array([58, 1300, 1500]), np.array([True, True, True]))
    assert before > 0 > max(inside, far) or before - max(inside, far) > 1
    assert prior.log_odds(np.array([1043]), np.array([False]))[0] > inside


def test_calls_are_ranked_by_weighted_log_odds_and_prior(monkeypatch):
    class Prior:
        def log_odds(self, position, plus):
            return np.where(position == 10, 3.0, 0.0) + np.where(plus, 0.0, 0.25)

    monkeypatch.setattr(gene_context, "WINDOW_WEIGHT", 0.5)
    calls = rank_calls([10, 20, 30], ["+", "+", "-"], [0.5, 0.9, 0.9])
    ranked = gene_context.with_prior(calls, Prior())
    assert ranked.position.tolist() == [10, 30, 20]
    # Half of log(.9 / .1) = log 9 is log 3.
    assert ranked.score == pytest.approx([3.0, np.log(3) + 0.25, np.log(3)])


def call(site, strand="+", score=0.5, context=None):
    return Call("c", site, site + 1, strand, site, score, "promoter", context)


def placed(position, strand, name, **known):
    return Placed(position, strand, Site(position + 1, strand, name, **known))


def truth(**tables):
    lifted = {name: TablePlacement(tuple(tables.get(name, ())), (), 0, 0) for name in ("RegulonDB", "EcoCyc")}
    lifted["dRNA-seq"] = TablePlacement(tuple(tables.get("drnaseq", ())), (), 0, 0)
    return Truth("", (), None, lifted, {}, {})


def test_the_best_calls_of_a_region_are_ranked():
    calls = [call(5, score=0.9), call(20, score=0.4), call(11, score=0.8), call(12, score=0.8), call(30)]
    assert [one.site for one in best(calls, (10, 30), 3)] == [11, 12, 20]


def test_a_row_names_the_nearest_start_on_the_strand_and_all_its_sources():
    known = truth(
        RegulonDB=[placed(101, "-", "abcp", sigma="sigma70", confidence="S", evidence="RACE")],
        EcoCyc=[placed(102, "-", "abcp"), placed(99, "+", "other strand")],
        drnaseq=[placed(130, "-", "far")],
    )
    context = CallContext(
        gene="abc", distance=7, boxes=(Box("-10", 107, "TATAAT"), Box("-35", 130, "TTGACA")), spacer=17
    )
    cells = dict(zip(COLUMNS, table_row(1, call(100, "-", 0.75, context), known), strict=True))
    assert cells == {
        **{"rank": 1, "site": 101, "strand": "-", "score": 0.75, "gene": "abc", "to_start_codon": 7},
        **{"minus35": "TTGACA", "spacer": 17, "minus10": "TATAAT"},
        **{"mapped": 102, "offset": 1, "name": "abcp", "sources": "RegulonDB, EcoCyc"},  # 1 downstream
        **{"sigma": "sigma70", "grade": "S", "evidence": "RACE"},
    }


def test_the_experiments_of_regulondb_are_named(tmp_path):
    fields = ["id", "abcp", "forward", "7", "sigma70", "acgtAc", "abc", "-9"]
    fields += ["[COMP-AINF:W][EXP-IDA-RACE:S][EXP-IMP:S][EXP-IMP:W]", "", "S", "1"]
    [site] = read_regulondb(write_gzip(tmp_path / "p.tsv.gz", "\t".join(fields) + "\n"))
    assert (site.evidence, site.experimental) == ("IDA-RACE, IMP", True)


def test_the_cost_of_a_scan_stands_beside_what_its_header_states(tmp_path):
    header = (
        "# scanned: 1 sequence, 4361 letters, 4361 positions per strand\n"
        "# calls: 5, 1.147 per kb, 0.833 per gene\n# genes known: 6, predicted\n"
        "# expected precision: 0.55 (0.02 to 0.81 over 18 species): share of calls\n"
    )
    case = scan_genomes.Case("small", "predicted", tmp_path / "small.fa")
    row = scan_genomes.table_row(case, Cost(3.04, 2.46, 251.6), header)
    expected = ("small", "predicted", "4361", "2.5", "252", "5", "1.147", "6", "0.833")
    assert row == (*expected, "0.55 (0.02 to 0.81 over 18 species)")


def test_small_plasmids_are_taken_from_whole_genomes(tmp_path):
    text = f">chromosome\nACGT\n>p1 a plasmid\nAC\nGT\n>p2 plasmid\n{'A' * 50_000}\n"
    assert list(scan_genomes.plasmids(write_gzip(tmp_path / "g.fna.gz", text))) == [("p1", "AC\nGT\n")]


def test_many_genomes_cost_what_their_bases_cost():
    rows = [("a", 1, "1000", 0.5, 300.0, 2.0, 3), ("b", 1, "3000", 1.5, 400.0, 4.0, 3)]
    name, *cells = scan_genomes.many_genomes(rows)
    assert (name, cells) == ("10000 such genomes", [10_000, 20_000_000, 10_000.0, 400.0, 30_000.0, 30_000])
