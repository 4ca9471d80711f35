"""The benchmarks that list the best calls beside mapped starts, and the cost of scans."""

from __future__ import annotations

import scan_genomes
from best_calls import COLUMNS, best, table_row
from ecoli_tables import Site, read_regulondb
from ecoli_truth import Placed, TablePlacement, Truth
from invented import write_gzip
from machine import Cost
from seqray.core.results import Box, Call, CallContext


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
        gene="abc", distance=7, minus10=Box(107, "TATAAT"), minus35=Box(130, "TTGACA"), spacer=17
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
