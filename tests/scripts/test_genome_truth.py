"""Mapped starts of genomes as a benchmark's truth: contigs end to end, merging, published windows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from genome_truth import KnownGenome, KnownStart, end_to_end, outside, place_calls, read_genome
from invented import SHEET, SITES, Letters, opposite, write_fasta, write_rows
from matching import rank_calls

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
