"""Lifting old positions, reading the public tables and placing their sites, on invented small ones."""

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import ecoli_tables as tables
import ecoli_truth
import lift_report
from coordinates import GenePair, OffsetMap
from ecoli_split import DEV, LENGTH, TEST, overlaps
from ecoli_tables import Gene, GeneRef, Site
from ecoli_truth import GeneIndex, Placed, in_region, letters_at, merge_starts, place, stands_at
from invented import Letters, write_gzip

OLD = Letters(11)(4000)
INSERTED = "TTTTTGGGGG"
NEW = OLD[:2000] + INSERTED + OLD[2000:]
"""The old genome with ten letters more after its position 2000."""


def pairs(*genes: tuple[int, int, int]) -> list[GenePair]:
    """Genes of 100 letters: (old start, shift of the start, shift of the end)."""
    return [GenePair((start, start + 99), (start + a, start + 99 + b), f"g{start}") for start, a, b in genes]


def test_offsets_hold_up_to_the_last_gene_and_from_the_first():
    found = OffsetMap(pairs(*((s, 0, 0) for s in (1, 200, 400)), *((s, 7, 7) for s in (900, 1100, 1300))))
    segments = [(part.first, part.last, part.offset, part.genes) for part in found.segments]
    assert segments == [(1, 499, 0, 3), (900, 1399, 7, 3)]
    assert [found.lift(position) for position in (1, 499, 900, 5000)] == [1, 499, 907, 5007]
    assert found.lift(500) is None
    assert found.candidates(700) == (700, 707)


def test_genes_whose_annotation_changed_or_that_moved_alone_are_not_believed():
    genes = [*((start, 5, 5) for start in (1, 200, 800, 1000)), (400, 5, 65), (600, 35, 5)]
    assert [part.offset for part in OffsetMap(pairs(*genes)).segments] == [5]
    genes = [*((start, 0, 0) for start in (1, 200, 400, 900, 1100, 1300)), (600, 30, 30)]
    assert [(part.offset, part.genes) for part in OffsetMap(pairs(*genes)).segments] == [(0, 6)]


@pytest.mark.parametrize(
    ("back", "words"), [((900, 1100, 1300), "fall back"), ((), "enough genes")], ids=["places", "few"]
)
def test_genes_that_change_places_and_too_few_are_refused(back, words):
    kept = [(start, 0, 0) for start in ((1, 200, 400) if back else (1, 200))]
    with pytest.raises(ValueError, match=words):
        OffsetMap(pairs(*kept, *((start, -850, -850) for start in back)))


@given(st.lists(st.tuples(st.integers(400, 900), st.integers(-40, 300)), min_size=1, max_size=5), st.data())
def test_every_position_among_genes_is_lifted_as_the_edits_say(stretches, data):
    """Stretches of (length, letters inserted or deleted after it), each full of genes of 50 letters."""
    genes, start, offset, truth = [], 1, 0, []
    for length, change in stretches:
        for first in range(start, start + length - 120, 60):
            genes.append(GenePair((first, first + 49), (first + offset, first + 49 + offset), f"g{first}"))
            truth += [(position, position + offset) for position in (first, first + 20, first + 49)]
        start, offset = start + length, offset + change
    found = OffsetMap(genes)
    old, new = data.draw(st.sampled_from(truth))
    assert found.lift(old) == new


def gene(name: str, tag: str, *synonyms: str, start: int = 1) -> Gene:
    return Gene(name, tag, synonyms, start, start + 99, "+")


def test_a_gene_is_found_by_tag_then_by_a_name_that_means_one_gene():
    new, twin = gene("newA", "b1", "oldA"), gene("insH", "b2", start=300)
    index = GeneIndex([new, twin, gene("insH", "b3", start=600)])
    asked = {("anything", "b2"): twin, ("oldA", ""): new, ("oldA", "b999"): new, ("insH", ""): None}
    for (name, tag), found in (asked | {("unheard", ""): None}).items():
        assert index.find(GeneRef(name, tag, 1, 2)) == found


def test_letters_are_read_on_their_own_strand():
    genome = "AACCCGGTTTACG"
    assert letters_at(genome, 5, "+", 2, 3) == "CCCGGT"
    assert letters_at(genome, 5, "-", 2, 3) == "CCGGGT"  # 3' to 5' of AACCCGG, complemented
    assert letters_at(genome, 1, "+", 0, 1) == "AA"


@given(st.integers(100, 3800), st.sampled_from("+-"), st.integers(0, 60), st.integers(0, 20))
def test_a_site_stands_where_its_letters_were_read(position, strand, before, after):
    letters = letters_at(OLD, position, strand, before, after)
    assert len(letters) == before + after + 1
    assert stands_at(OLD, position, Site(position, strand, "s", letters, before))


MAP = OffsetMap(pairs(*((s, 0, 0) for s in (1, 300, 600)), *((s, 10, 10) for s in (3000, 3300, 3600))))


def printed(position: int, strand: str, shift: int = 0) -> Site:
    """A site of the old genome with the letters around it, or around a place beside it."""
    letters = letters_at(OLD, position + shift, strand, 30, 10)
    return Site(position, strand, f"s{position}", letters, 30)


def test_letters_settle_what_the_map_leaves_open():
    sites = [printed(1500, "+"), printed(2500, "-"), Site(2500, "+", "bare"), Site(650, "-", "bare")]
    result = place(sites, NEW, MAP)
    assert [(row.position, row.strand) for row in result.placed] == [(1499, "+"), (2509, "-"), (649, "-")]
    assert [site.name for site in result.dropped] == ["bare"]
    assert (result.checked, result.confirmed) == (2, 2)


def test_letters_that_stand_elsewhere_drop_the_site_also_of_the_current_version():
    result = place([printed(650, "+", shift=1), printed(650, "-")], NEW, MAP)
    assert [row.site.strand for row in result.placed] == ["-"]
    assert (result.checked, result.confirmed, len(result.dropped)) == (2, 1, 1)
    letters = letters_at(NEW, 2500, "+", 30, 10)
    result = place([Site(2500, "+", "a", letters, 30), Site(2501, "+", "b", letters, 30)], NEW, None)
    assert [row.site.name for row in result.placed] == ["a"]


def placed(*positions: int, strand: str = "+") -> list[Placed]:
    return [Placed(position, strand, Site(position + 1, strand, "s")) for position in positions]


def test_starts_close_together_are_one_start_at_the_middle_member():
    rows = [*placed(100, 105, 110, 116, 300, 300), *placed(103, strand="-")]
    assert merge_starts(rows, distance=5) == {"+": [105, 116, 300], "-": [103]}
    assert merge_starts(rows, distance=6) == {"+": [105, 300], "-": [103]}
    assert merge_starts([]) == {"+": [], "-": []}


def test_regions_hold_their_first_position_and_not_their_end():
    assert 0 <= DEV[0] < DEV[1] <= TEST[0] < TEST[1] <= LENGTH
    assert [row.position for row in in_region(placed(9, 10, 19, 20), (10, 20))] == [10, 19]
    for start, inside in ((TEST[0] - 81, False), (TEST[0] - 80, True), (TEST[1] - 1, True), (TEST[1], False)):
        assert overlaps(start, start + 81, TEST) is inside


def capital(letters: str, index: int) -> str:
    return letters[:index].lower() + letters[index] + letters[index + 1 :].lower()


def write(path: Path, lines: list[str]) -> None:
    write_gzip(path, "\n".join(lines) + "\n")


def window(genome: str, position: int, strand: str) -> str:
    return capital(letters_at(genome, position, strand, 60, 20), 60)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The public tables in small: genes and sites at old positions that the insertion moved by ten."""
    starts = (100, 400, 700, 1000, 2500, 2800, 3100, 3400)
    shift = {start: 10 if start > 2000 else 0 for start in starts}
    write(tmp_path / tables.GENOME, [">NC_000913.3 invented", NEW])
    write(
        tmp_path / tables.GENES,
        ["##gff-version 3"]
        + [
            f"c\tx\tgene\t{s + shift[s]}\t{s + 199 + shift[s] + (6 if s == 3400 else 0)}\t.\t+\t.\t"
            f"ID=g;Name=gen{s};gene_synonym=syn{s},q;locus_tag=b{s}"
            for s in starts
        ],
    )
    strong, weak = window(NEW, 650, "+"), window(NEW, 2700, "-")
    write(
        tmp_path / tables.REGULONDB,
        [
            "# a licence",
            "1)pmId\t2)pmName",
            f"R1\tap\tforward\t650\tsigma70\t{strong}\tgen700\t-50\t[EXP-IDA:S]\t\tS\t1",
            f"R2\tbp\treverse\t2700\tsigma70\t{weak}\tgenX\t-50\t[COMP-AINF:W]\t\tW\t1",
            "R3\tcp\tforward\t\tsigma70\t\tgenX\t\t[EXP-IEP:W]\t\tW\t1",
        ],
    )
    write(
        tmp_path / tables.ECOCYC,
        ["Site\tLeft\tRight\tStrand\tUnits\tSequence", f"bp\t2700\t2700\t-\t\t{weak}", "cp\t\t\t+\t\t"],
    )
    drna = "{0},{0},{0},1,99,{1},gen{2},b{2},{2},{3},UpSense"
    found = ((2600, "reverse", 2500), (900, "forward", 1000), (1900, "forward", 3400))
    found += ((2790, "forward", 2800), (3090, "forward", 3100))
    rows = [drna.format(site, strand, start, start + 199) for site, strand, start in found]
    write(tmp_path / tables.DRNASEQ, ["#,,,,,,,,,,", *rows])
    mapped = "Subset I,gen2500,-30,{0},1,{1},id,Upstream,2500,2699,forward,b2500,{2},strong"
    late = letters_at(OLD, 3000, "+", 60, 20)
    for path in (tables.PYROSEQUENCING, tables.RACE):
        write(tmp_path / path, ["#,", mapped.format(3000, "forward", capital(late, 61))])
    predicted = "{0},{1},F,{2},p,Sigma70,,,,0,1,2,T,{3},3.5,good,0.002,p,weak,weak,{4}"
    rows = [
        predicted.format(start, start + 199, name, site, capital(letters_at(OLD, site, "+", 20, 5), 20))
        for start, name, site in ((700, "syn700", 1950), (100, "gen100", 80), (400, "gen400", 380))
    ]
    write(tmp_path / tables.PREDICTIONS, [";a comment,,", *rows])
    return tmp_path


def test_all_tables_are_brought_to_the_new_genome(data):
    truth = ecoli_truth.load_truth(data)
    places = {name: [(r.position, r.strand) for r in table.placed] for name, table in truth.lifted.items()}
    assert places == {
        # 1900 lies between the genes before the insertion and those after it, and prints no letters
        "dRNA-seq": [(2609, "-"), (899, "+"), (2799, "+"), (3099, "+")],
        "pyrosequencing": [(3009, "+")],
        "RACE": [(3009, "+")],
        "predictions": [(1949, "+"), (79, "+"), (379, "+")],  # 1950 as well, but its letters tell
        "RegulonDB": [(649, "+"), (2699, "-")],
        "EcoCyc": [(2699, "-")],
    }
    assert [row.site.name for row in truth.strong()] == ["ap"]
    assert [row.position for row in truth.experimental()] == [649, 2609, 899, 2799, 3099]
    assert len(truth.supported()) == 7
    assert truth.predictions()[0].site.p_value == 0.002


def test_the_report_counts_genes_letters_and_ends_that_agree(data, tmp_path):
    genes = pairs((1, 0, 0), (300, 0, 6), (3300, 4, 3))
    assert [lift_report.ends_kept(pair, MAP) for pair in genes] == [2, 1, 0]
    assert lift_report.main(["--data", str(data), "--out", str(tmp_path / "lift.tsv")]) == 0
    lines = (tmp_path / "lift.tsv").read_text().splitlines()
    assert lines[0] == "# command: python benchmarks/lift_report.py"
    assert lines[3:5] == [
        "# NC_000913.2 100-1199: offset +0 by 4 genes",
        "# NC_000913.2 2500-3299: offset +10 by 3 genes",
    ]
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in lines}
    assert rows["dRNA-seq"] == ["5", "4", "1", "0", "5", "4", "0", "0", "0"]
    assert rows["predictions"] == ["3", "3", "0", "0", "3", "3", "3", "3", "0"]
