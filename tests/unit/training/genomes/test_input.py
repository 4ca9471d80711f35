"""Sheets, sites and regions: what is read, and what is refused in one line."""

from contextlib import nullcontext

import numpy as np
import pytest

from seqray.core.errors import ConfigError, InputError
from seqray.genome.genes import Annotation, Gene
from seqray.training.genomes.chunks import divide_genomes
from seqray.training.genomes.sheet import DEV, GenomeRow, read_genomes, read_sheet

HEADER = "contig\tposition\tstrand\tsite\tweight\n"


@pytest.fixture
def files(tmp_path):
    letters = np.random.default_rng(0).choice(list("ACGT"), 800)
    (tmp_path / "g.fa").write_text(">c\n" + "".join(letters) + "\n")
    (tmp_path / "s.tsv").write_text(HEADER + "c\t10\t+\tpromoter\t0.5\n")
    return tmp_path


def read(folder, classes=("promoter",), site_class=None, **row):
    settings = {
        "genome": str(folder / "g.fa"),
        "sites": str(folder / "s.tsv"),
        "species": "T",
        "genes": "none",
    }
    genomes = [GenomeRow(**(settings | row))]
    return read_genomes(genomes, classes, rename={"internal": "promoter"}, site_class=site_class, whole=64)


def sites_of(folder, rows, header=HEADER, **settings):
    """Sites and number of repeated rows of a table, or of a file of another format."""
    (folder / "s.tsv").write_text(header + rows)
    [genome] = read(folder, **settings)
    return genome.contigs[0].sites, genome.repeated


def test_a_sheet_names_files_beside_it(files):
    sheet = files / "genomes.tsv"
    sheet.write_text(
        "genome\tgenes\tsites\tspecies\tweight\tgroup\tinside\theld_out\n"
        "g.fa\tg.gff\ts.tsv\tA b\t0.5\tA\t.1\tr.bed\n"
        "/other/g.fa\tnone\ts.tsv\tB c\t\t\t\t\n"
        "h.fa\t\ts.tsv\tC d\t0\t\t\t\n"
    )
    first, second, third = read_sheet(sheet)
    assert (first.genome, first.genes, first.held_out) == tuple(
        str(files / name) for name in ("g.fa", "g.gff", "r.bed")
    )
    assert (first.weight, first.inside, first.group) == (0.5, 0.1, "A")
    assert (second.genome, second.genes, second.weight, second.held_out) == ("/other/g.fa", "none", 1.0, "")
    assert (third.genes, third.weight) == ("", 0.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("genome\tsites\tspecies\tweight\n", "needs one column 'genes'"),
        ("genome\tgenes\tsites\tspecies\tweight\ng.fa\t\t\tA\t1\n", "has no 'sites'"),
        ("genome\tgenes\tsites\tspecies\tweight\ng.fa\t\ts.tsv\tA\tmuch\n", "has 'much' as its weight"),
        (
            "genome\tgenes\tsites\tspecies\tweight\theldout\ng.fa\t\ts.tsv\tA\t1\tr.bed\n",
            "the column 'heldout' is unknown",
        ),
        (
            "genome\tgenes\tsites\tspecies\tweight\ng.fa\t\ts.tsv\tA\t1\ng.fa\t\tt.tsv\tA\t1\n",
            "line 3: names the genome and the species of line 2",
        ),
    ],
)
def test_sheets_that_are_refused(text, words, tmp_path):
    (tmp_path / "x.tsv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_sheet(tmp_path / "x.tsv")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("c\t801\t+\tpromoter\t1", "position 801 lies beyond the end of 'c', which has 800 bases"),
        ("d\t10\t+\tpromoter\t1", "names the contig 'd', the genome has"),
        ("c\t10\t.\tpromoter\t1", "has the strand '.'"),
        ("c\t10\t+\tpromoter\t-1", "has the weight '-1'"),
    ],
)
def test_sites_that_are_refused(row, words, files):
    (files / "s.tsv").write_text(HEADER + row + "\n")
    with pytest.raises(InputError) as error:
        read(files)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_a_site_that_is_named_again_counts_once_with_its_largest_weight(files):
    """Six rows: two name site 10, and two, of kinds that are one class, site 20; the other two differ."""
    rows = "c\t10\t+\tpromoter\t.5\nc\t10\t+\tpromoter\t1\nc\t20\t+\tpromoter\t1\n"
    rows += "c\t20\t+\tinternal\t0\nc\t10\t-\tpromoter\t1\nc\t11\t+\tpromoter\t1\n"
    expected = [(9, "+", 0, 1.0), (19, "+", 0, 1.0), (9, "-", 0, 1.0), (10, "+", 0, 1.0)]
    assert sites_of(files, rows) == (expected, 2)


def test_one_position_may_be_a_site_of_two_classes(files):
    rows = "c\t10\t+\tpromoter\t1\nc\t10\t+\tother\t1\n"
    found = sites_of(files, rows, classes=("promoter", "other"))
    assert found == ([(9, "+", 0, 1.0), (9, "+", 1, 1.0)], 0)


def test_a_class_for_all_sites_is_that_of_sites_without_one(files):
    both, rows = ("promoter", "other"), "c\t10\t+\tpromoter\t1\nc\t20\t+\t\t1\n"
    named = [(9, "+", 0, 1.0), (19, "+", 1, 1.0)]
    assert sites_of(files, rows, classes=both, site_class="other") == (named, 0)
    assert sites_of(files, rows) == ([(9, "+", 0, 1.0), (19, "+", 0, 1.0)], 0)  # the only class
    with pytest.raises(InputError, match=r"line 3: a site names none of the classes promoter, other; fill"):
        sites_of(files, rows, classes=both)
    with pytest.raises(InputError, match=r"x at 10: a site names none of .*or give --site-class NAME"):
        sites_of(files, "c\t9\t20\tx\t0\t+\n", header="", classes=both)
    with pytest.raises(
        ConfigError, match="--site-class is 'othr', which is none of promoter, other; give other"
    ):
        read(files, classes=both, site_class="othr")


def test_a_table_without_the_column_position_is_refused(files):
    """Such as calls of a scan, whose column 'site' holds positions that count from 0."""
    with pytest.raises(InputError, match=r"position.*; name the columns contig, position \(1-based"):
        sites_of(files, "c\t9\t+\n", header="contig\tsite\tstrand\n")


def test_a_class_without_sites_is_not_learned(files, make_config):
    (files / "s.tsv").write_text(HEADER + "c\t10\t+\tpromoter\t1\nc\t350\t+\tpromoter\t1\n")
    config, both = make_config(model={"classes": 2}), ("promoter", "other")
    with pytest.raises(InputError, match="no site of class 'other' is left to learn from"):
        divide_genomes(read(files, both), both, [], config)


def test_sites_of_a_table_bed_and_gff3_are_the_same(files):
    rows = ["c\t10\t+\tpromoter\t1", "c\t300\t-\tinternal\t1"]
    (files / "s.tsv").write_text(HEADER + "\n".join(rows) + "\n")
    (files / "s.bed").write_text("c\t9\t20\tx\t0\t+\nc\t280\t300\ty\t0\t-\n")
    (files / "s.gff").write_text(
        "##gff-version 3\nc\t.\tpromoter\t10\t10\t.\t+\t.\tID=x\nc\t.\tinternal\t290\t300\t.\t-\t.\tID=y\n"
    )
    [table] = read(files)
    for name, given in (("s.bed", "promoter"), ("s.gff", None)):
        [other] = read(files, site_class=given, sites=str(files / name))
        assert other.contigs[0].sites == table.contigs[0].sites == [(9, "+", 0, 1.0), (299, "-", 0, 1.0)]


def test_genes_of_another_assembly_of_the_same_length_are_refused(files):
    (files / "g.fa").write_text(">c\n" + "C" * 800 + "\n")
    lines = [f"c\tx\tCDS\t{at}\t{at + 29}\t.\t+\t0\tID={at}\n" for at in range(1, 701, 30)]
    (files / "g.gff").write_text("".join(lines))
    with pytest.raises(InputError, match="the genes do not fit the sequence: 0 % of 24 begin with"):
        read(files, genes=str(files / "g.gff"))


GENBANK = """LOCUS       c                       240 bp    DNA     circular BCT 01-JAN-2000
VERSION     c
FEATURES             Location/Qualifiers
{features}ORIGIN
{letters}//
"""


def genbank(features: str) -> str:
    rows = [f"{at + 1:9} " + "acgtactgca" * 6 + "\n" for at in range(0, 240, 60)]
    return GENBANK.format(features=features, letters="".join(rows))


@pytest.mark.parametrize("genes", ["", "g.gff"])
def test_a_genbank_genome_brings_its_genes_and_its_shape(files, genes):
    """The gene crosses the origin; GFF3 does not say that the contig is a circle."""
    gene = '     CDS             join(211..240,1..30)\n                     /locus_tag="one"\n'
    (files / "g.gb").write_text(genbank(gene))
    lines = [f"c\t.\tCDS\t{start}\t{end}\t.\t+\t0\tID=one\n" for start, end in ((211, 240), (1, 30))]
    (files / "g.gff").write_text("##gff-version 3\n##sequence-region c 1 240\n" + "".join(lines))
    (files / "s.tsv").write_text("contig\tposition\tstrand\nc\t180\t+\n")
    [genome] = read(files, genome=str(files / "g.gb"), genes=genes and str(files / genes))
    (contig,) = genome.contigs
    assert contig.circular
    assert [(gene.start, gene.end, gene.name) for gene in genome.genes_of(contig) or ()] == [
        (210, 270, "one")
    ]


def test_a_genbank_genome_without_genes_has_predicted_ones(files, monkeypatch):
    (files / "g.gb").write_text(genbank(""))
    (files / "s.tsv").write_text("contig\tposition\tstrand\nc\t180\t+\n")
    predicted = Annotation({"c": (Gene(30, 90, "-", "p"),)}, "predicted", {"c": 240})
    monkeypatch.setattr("seqray.training.genomes.sheet.predict_all", lambda records: predicted)
    [genome] = read(files, genome=str(files / "g.gb"), genes="")
    assert genome.genes is predicted


def test_regions_are_read_or_chosen(files):
    (files / "r.bed").write_text("c\t100\t200\tdev\nc\t300\t400\ttest\n")
    [genome] = read(files, held_out=str(files / "r.bed"))
    assert genome.contigs[0].regions == [(100, 200, "dev"), (300, 400, "test")]
    [genome] = read(files)
    assert genome.contigs[0].regions == [(320, 440, DEV)]  # 40 to 55 % of 800
    for text, words in (
        ("c\t1\t9\ttrain\n", "named 'train'"),
        ("c\t1\t900\tdev\n", "beyond the end"),
        ("c\t1\t90\tdev\nc\t89\t99\ttest\n", r"89-99 \(test\) of 'c' overlaps 1-90 \(dev\)"),
    ):
        (files / "r.bed").write_text(text)
        with pytest.raises(InputError, match=words):
            read(files, held_out=str(files / "r.bed"))


def test_nothing_to_learn_or_to_validate_on(files, make_config):
    config = make_config()
    (files / "s.tsv").write_text(HEADER + "c\t10\t+\tpromoter\t0\n")
    with pytest.raises(InputError, match="no site is left"):
        divide_genomes(read(files), ("promoter",), [], config)
    (files / "s.tsv").write_text(HEADER + "c\t10\t+\tpromoter\t1\n")
    with pytest.raises(InputError, match="did you mean 'T'"):
        divide_genomes(read(files), ("promoter",), ["X"], config)
    (files / "r.bed").write_text("c\t600\t700\ttest\n")
    with pytest.raises(InputError, match="named 'dev'"):
        divide_genomes(read(files, held_out=str(files / "r.bed")), ("promoter",), [], config)
    (files / "r.bed").write_text("c\t600\t700\tdev\n")
    regions = {"held_out": str(files / "r.bed")}
    cases = {"700\t+\tpromoter\t1": True, "701\t+\tpromoter\t1": False, "650\t+\tpromoter\t0": False}
    for other, fits in cases.items():
        (files / "s.tsv").write_text(HEADER + f"c\t10\t+\tpromoter\t1\nc\t{other}\n")
        with nullcontext() if fits else pytest.raises(InputError, match="no site of class promoter lies in"):
            divide_genomes(read(files, **regions), ("promoter",), [], config)
