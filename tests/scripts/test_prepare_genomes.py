"""Placing mapped starts on genomes, their classes, quality, splits and masks: small invented genomes."""

import csv
import gzip
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import genome_sources
import genome_splits
import prepare_genomes
import start_quality
from genome_sources import Genome
from invented import Letters, opposite, write_gzip, write_rows
from loci import Finder, words
from seqray.genome.genes import Gene, GeneIndex
from start_classes import StartClass, classify
from starts import Start, place_contexts, read_bed, read_contexts, read_windows

letters = Letters(19)


@settings(max_examples=30, deadline=None)
@given(st.text("ACGTN", min_size=40, max_size=150), st.integers(0, 2**32))
def test_words_are_equal_where_the_letters_of_either_strand_are(text: str, seed: int):
    rng = random.Random(seed)
    start = rng.randrange(len(text) - 39)
    whole = text + "".join(rng.choice("ACGT") for _ in range(60)) + opposite(text[start : start + 40])
    hashes, clean = words(whole)
    kmers = [whole[i : i + 40] for i in range(len(whole) - 39)]
    assert clean.tolist() == ["N" not in kmer for kmer in kmers]
    one_strand = [min(kmer, opposite(kmer)) for kmer, known in zip(kmers, clean, strict=True) if known]
    numbers = hashes[clean].tolist()
    assert len(set(numbers)) == len(set(one_strand)) == len(set(zip(numbers, one_strand, strict=True)))


def kuo_row(strand: str, tss: int, gene: tuple[int, int], end10: int, parts: list[str]) -> str:
    return "\t".join(["CDS", str(tss), strand, *map(str, gene), "", "", "", str(end10), *parts]) + "\n"


HEADER = "Type\tTSS_coordinate\tDirection\tGene_start\tGene_end\tGene_name\tLocus_tag\tLocus_tag (old)\t"
HEADER += "Minus10_3end_coordinate\tUP\tMinus35\tSpacer\tMinus10\tDis\tStart\tITR\n"


def kuo_parts(upstream: str, tss: int, end10: int) -> list[str]:
    """Cut the parts out of the strand of the start; positions are 0-based there."""
    low = end10 - 5
    ends = (low - 123, low - 23, low - 17, low, end10 + 1, tss - 1, tss + 2, tss + 102)
    return [upstream[first:last] or "*" for first, last in pairwise(ends)]


def test_contexts_are_joined_and_placed_on_both_strands(tmp_path: Path):
    genome = letters(1000)
    back = opposite(genome)
    rows = [
        # A start at 0-based 400, its box ending at 392; the gene begins at 1-based 451.
        kuo_row("+", 401, (451, 700), 393, kuo_parts(genome, 400, 392)),
        # The box ends right before the start: the table repeats a letter and prints an asterisk.
        kuo_row("+", 501, (501, 700), 500, kuo_parts(genome, 500, 499)),
        # On the minus strand 0-based 300 there is 699 here, 1-based 700; the gene ends at 650.
        kuo_row("-", 700, (400, 650), 707, kuo_parts(back, 300, 293)),
    ]
    path = write_gzip(tmp_path / "Some_species_1.tsv.gz", HEADER + "".join(rows))
    contexts = read_contexts(path)
    assert [c.distance for c in contexts] == [50, 0, 50]
    assert [c.letters for c in contexts] == [genome[264:502], genome[371:602], back[165:402]]
    assert {c.species for c in contexts} == {"Some species 1"}
    placed = list(place_contexts(contexts, Finder({"c": genome})))
    assert [start.place for start in placed] == [("c", 400, "+"), ("c", 500, "+"), ("c", 699, "-")]


def test_a_table_known_to_be_zero_based_is_read_one_letter_later(tmp_path: Path):
    genome = letters(600)
    row = kuo_row("+", 400, (450, 550), 392, kuo_parts(genome, 399, 391))
    late = kuo_row("-", 200, (50, 150), 208, kuo_parts(opposite(genome), 400, 392))
    path = write_gzip(tmp_path / "Neisseria_gonorrhoeae_MS11.tsv.gz", HEADER + row + late)
    placed = place_contexts(read_contexts(path), Finder({"c": genome}))
    assert [start.place for start in placed] == [("c", 400, "+"), ("c", 200, "-")]


def test_bed_is_zero_based_one_set_is_late_on_plus_and_of_windows_only_promoters_are_read(tmp_path: Path):
    text = "c\t10\t11\t.\t0\t+\nc\t20\t21\t.\t0\t-\t\n\n"
    for name, expected in (("HPYLORI", [10, 20]), ("RHODOBACTER_1", [11, 20])):
        starts = read_bed(write_gzip(tmp_path / f"{name}.bed.gz", text), "promotech")
        assert [start.position for start in starts] == expected
        assert [start.strand for start in starts] == ["+", "-"]
    text = ">Genus species--1\nacgt\n>Genus species CDS--1\nCCCC\n>Genus species Convergent--1\nGGGG\n"
    assert read_windows(write_gzip(tmp_path / "01_train.txt.gz", text)) == ["ACGT"]


def test_classes_follow_the_genes_of_either_strand():
    genes = [Gene(1000, 2000, "+", "a"), Gene(2300, 2600, "+", "b"), Gene(3000, 4200, "-", "c")]
    index = {"c": GeneIndex(genes, 6000)}
    expected = {
        ("promoter", ""): {
            (900, "+"): 100,
            (500, "+"): 500,
            (499, "+"): None,
            (4299, "-"): 100,
            (2250, "-"): None,
        },
        ("promoter", "same"): {(1000, "+"): 0, (1900, "+"): 400, (4199, "-"): 0},
        ("internal", "same"): {(1200, "+"): None, (4100, "-"): None},
        ("antisense", "opposite"): {(1500, "-"): None, (3500, "+"): None},
    }
    for (site, inside), places in expected.items():
        for place, distance in places.items():
            assert classify(index, ("c", *place)) == StartClass(site, distance, inside), place


def start_windows(n: int, shift: int = 0) -> list[str]:
    """Make windows with TATAAT at -12 to -7 and CA at the start, all moved by ``shift``."""
    windows = []
    for _ in range(n):
        text = list(letters(start_quality.BEFORE + 1 + start_quality.AFTER))
        start = start_quality.BEFORE + shift
        text[start - 12 : start - 6] = "TATAAT"
        text[start - 1 : start + 1] = "CA"
        windows.append("".join(text))
    return windows


def test_a_box_at_a_fixed_distance_is_measured():
    quality = start_quality.measure(start_windows(400))
    # Six columns of one letter each against a background of about a quarter: nearly twelve bits.
    assert quality.bits10 == pytest.approx(12, abs=0.6)
    assert abs(quality.bits35) < 0.2
    assert quality.purine == 1.0
    # A pyrimidine before a purine: here always, elsewhere in one of four, but beside A or C never or half.
    assert quality.initiator == pytest.approx(1 - np.mean([0.25, 0.25, 0, 0, 0.25, 0.25]), abs=0.1)
    assert quality.offset == 0
    assert quality.sharp == pytest.approx(7, abs=0.1)  # 21 places in all, three of them near
    assert quality.weight == 1.0


@pytest.mark.parametrize("shift", [-2, -1, 1, 3])
def test_starts_that_are_off_show_by_how_much(shift: int):
    assert start_quality.measure(start_windows(300, shift)).offset == shift


def test_random_letters_have_no_weight_and_few_starts_no_measure():
    quality = start_quality.measure([letters(111) for _ in range(600)])
    assert abs(quality.bits10) < 0.1
    assert quality.sharp < 1.5
    assert quality.weight == 0.0
    assert start_quality.measure(start_windows(start_quality.MIN_WINDOWS - 1)) is None
    assert start_quality.measure(["N" * 111, "ACGT"] * 100) is None


def test_a_stretch_runs_over_contigs_laid_end_to_end():
    lengths = {"a": 500, "b": 300, "c": 200}
    assert genome_splits.stretch(lengths, 0.40, 0.55) == [("a", 400, 500), ("b", 0, 50)]
    assert genome_splits.stretch(lengths, 0.55, 0.70) == [("b", 50, 200)]


def genome(name: str, text: str) -> Genome:
    return Genome({"name": name}, {"c": text})


def test_what_shares_a_locus_with_a_held_out_part_is_masked_across_genomes():
    locus = letters(50)
    # The test part of a genome of 1000 letters is 550 to 700, its development part 400 to 550.
    first = letters(600) + "G" + locus + "G" + letters(348)
    second = letters(100) + "A" + opposite(locus) + "A" + letters(848)
    genomes = [genome("first", first), genome("second", second)]
    found = genome_splits.held_out_words(genomes)
    assert list(genome_splits.masked_rows(genomes[1], found)) == [("c", 101, 151, "test")]
    assert list(genome_splits.masked_rows(genomes[0], found)) == []


def test_sites_of_a_small_genome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One genome, three tables: a start seen by two of them is one row, and positions are 1-based."""
    text = letters(3000)
    data, out = tmp_path / "data", tmp_path / "out"
    write_gzip(data / "g.fna.gz", f">c one\n{text}\n")
    gff = "c\tx\tgene\t1001\t2000\t.\t+\t.\tName=a;locus_tag=a\n"
    write_gzip(data / "g.gff.gz", gff)
    forward, back = text[840:921], opposite(text[1480:1561])
    # The start of a window is its letter 60: 900 on plus, and 1560 - 60 = 1500 on minus.
    write_gzip(data / "ipromp/99_train.txt.gz", f">A b--1\n{forward}\n>A b CDS--1\n{letters(81)}\n")
    write_gzip(data / "ipromp/99_test.txt.gz", f">A b--1\n{back}\n>A b--2\n{letters(81)}\n")
    row = kuo_row("+", 901, (1001, 2000), 893, kuo_parts(text, 900, 892))
    write_gzip(data / "tss/kuo/Genus_species.tsv.gz", HEADER + row)
    write_gzip(data / "tss/set/bed.bed.gz", "c\t1199\t1200\t.\t0\t+\n")
    sheet = {"name": "g", "species": "Genus species", "genus": "Genus", "domain": "bacteria"}
    sheet |= {"genome": "g.fna.gz", "genes": "g.gff.gz", "note": ""}
    sheet |= {"ipromp": "99", "kuo": "Genus_species", "tables": "set/bed"}
    table = write_rows(tmp_path / "genomes.tsv", sheet, sheet.values())
    monkeypatch.setattr(genome_sources, "LIST", table)
    monkeypatch.setattr("sys.argv", ["prepare_genomes.py", "--data", str(data), "--out", str(out)])
    prepare_genomes.main()

    with (out / "g.sites.tsv").open() as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    kept = ("position", "strand", "site", "source", "part", "distance", "inside")
    assert [tuple(row[key] for key in kept) for row in rows] == [
        ("901", "+", "promoter", "ipromp;kuo", "train", "100", ""),
        ("1200", "+", "internal", "set/bed", "", "", "same"),
        ("1501", "-", "antisense", "ipromp", "test", "", "opposite"),
    ]
    assert (out / "g.split.bed").read_text() == "c\t1200\t1650\tdev\nc\t1650\t2100\ttest\n"
    with gzip.open(out / "contexts.tsv.gz", "rt") as handle:
        (context,) = csv.DictReader(handle, delimiter="\t")
    assert context["sequence"][int(context["index"])] == text[900]
    assert (context["genus"], context["distance"], context["shares"]) == ("Genus", "100", "")
    with (out / "genomes.tsv").open() as handle:
        (written,) = csv.DictReader(handle, delimiter="\t")
    assert [written[key] for key in ("species", "sites", "weight")] == ["Genus species", "g.sites.tsv", "0.0"]


def test_genes_and_starts_of_a_fungus_are_as_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The genes get the names of the chromosomes; starts have full weight, and positions are 1-based."""
    data, out = tmp_path / "data", tmp_path / "out"
    out.mkdir()
    write_gzip(data / "g.fna.gz", f">II\n{letters(3000)}\n")
    region = (
        "##sequence-region NC_2.1 1 3000\nNC_2.1\tx\tregion\t1\t3000\t.\t+\t.\tID=r;chromosome=II;strain=s\n"
    )
    write_gzip(data / "g.gff.gz", region + "NC_2.1\tx\tCDS\t1001\t2000\t.\t+\t0\tID=a\n")
    write_gzip(data / "eukaryotes/g.starts.tsv.gz", "contig\tposition\tstrand\nII\t901\t+\n")
    row = {"name": "g", "species": "G s", "domain": "fungi", "genome": "g.fna.gz", "genes": "g.gff.gz"}
    row |= {"ipromp": "", "kuo": "", "tables": "eukaryotes/g.starts"}
    found = genome_sources.load(data, row, out)
    assert [(start.place, start.source) for start in found.starts] == [(("II", 900, "+"), row["tables"])]
    assert (out / "g.gff3").read_text().splitlines()[0] == "##sequence-region II 1 3000"
    (site,) = prepare_genomes.site_rows(found, prepare_genomes.measure_sources(found))
    assert [site[name] for name in ("position", "site", "weight", "distance")] == [
        901,
        "promoter",
        "1.00",
        100,
    ]
    monkeypatch.setitem(genome_splits.REGIONS, "g", {"dev": ("II",), "test": (("II", 5, 9),)})
    assert genome_splits.split_regions(found) == {"dev": [("II", 0, 3000)], "test": [("II", 5, 9)]}


def test_the_best_source_gives_the_weight():
    quality = start_quality.measure(start_windows(200))
    measured = {("good", "promoter"): quality, (prepare_genomes.PREDICTED, "all"): quality}
    weigh = prepare_genomes.weight_of
    assert weigh("good", "promoter", measured) == 1.0
    assert weigh(prepare_genomes.PREDICTED, "internal", measured) == 0.5
    assert weigh("unknown", "promoter", measured) == 0.0
    starts = [Start("c", 5, "+", "good"), Start("c", 5, "+", "unknown")]
    one = Genome({"name": "g"}, {"c": "A" * 10}, {"c": GeneIndex([], 10)}, starts)
    rows = prepare_genomes.site_rows(one, measured)
    assert [(row["position"], row["weight"]) for row in rows] == [(6, "1.00")]
