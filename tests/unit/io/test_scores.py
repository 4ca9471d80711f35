"""Tracks of scores, and positions of features."""

import gzip
import struct

import numpy as np
import pyBigWig
import pysam
import pytest

from seqray.core.errors import InputError
from seqray.io.features import read_annotated, read_features, read_sites, select_features
from seqray.io.lines import Feature, Part
from seqray.io.scores import TrackWriter, track_paths
from tables import write


def write_track(path, name="tiny"):
    """One contig scored on both strands, with a gap and values beyond its ends; a bare one; a full one."""
    with TrackWriter(path, ["seqray x"], name) as track:
        track.begin("chr1", 100)
        track.add("chr1", "+", -5, [0.1, np.nan, 0.25], span=10)
        track.add("chr1", "-", 3, [1e-7], span=1)
        track.add("chr1", "+", 85, [0.5, 0.75, 1.0], span=10)
        track.begin("chr2", 30)
        track.begin("chr3", 30)
        track.add("chr3", "+", 0, np.array([1.0, 0.0], dtype=np.float32), span=15)


PLUS = {
    "chr1": [(0, 5, 0.1), (15, 25, 0.25), (85, 95, 0.5), (95, 100, 0.75)],
    "chr3": [(0, 15, 1.0), (15, 30, 0.0)],
}


@pytest.mark.parametrize("end", [".bedgraph", ".bg", ".bedGraph.gz"])
def test_bedgraph(tmp_path, end):
    write_track(tmp_path / f"x{end}")
    texts = {}
    for strand in ("plus", "minus"):
        data = (tmp_path / f"x.{strand}{end}").read_bytes()
        texts[strand] = (gzip.decompress(data) if end.endswith("gz") else data).decode().splitlines()
    expected = [f"{c}\t{s}\t{e}\t{v:g}" for c, steps in PLUS.items() for s, e, v in steps]
    for strand, lines in (("plus", expected), ("minus", ["chr1\t3\t4\t1e-07"])):
        sign = {"plus": "+", "minus": "-"}[strand]
        track = [] if end.endswith("gz") else [f'track type=bedGraph name="tiny ({sign})"']  # not for tabix
        assert texts[strand] == ["# seqray x", *track, *lines]


def test_a_contig_that_would_be_a_comment_is_refused(tmp_path):
    with TrackWriter(tmp_path / "x.bg") as track:
        track.begin("#1", 100)
        with pytest.raises(InputError, match="'#1' would make comments"):
            track.add("#1", "+", 0, [0.5])


@pytest.mark.parametrize("end", [".bw", ".bigWig"])
def test_bigwig(tmp_path, end):
    write_track(tmp_path / f"x{end}")
    with pyBigWig.open(str(tmp_path / f"x.plus{end}")) as track:
        assert track.chroms() == {"chr1": 100, "chr2": 30, "chr3": 30}
        assert track.intervals("chr2") is None
        for contig, steps in PLUS.items():
            assert [(s, e, pytest.approx(v)) for s, e, v in track.intervals(contig)] == steps
    with pyBigWig.open(str(tmp_path / f"x.minus{end}")) as track:
        assert track.intervals("chr1") == ((3, 4, pytest.approx(1e-7)),)
    assert len(list(tmp_path.iterdir())) == 2


def test_many_steps_cross_the_blocks_of_a_bigwig(tmp_path, monkeypatch):
    monkeypatch.setattr("seqray.io.scores.BLOCK", 7)
    values = np.random.default_rng(1).random(50).astype(np.float32)
    with TrackWriter(tmp_path / "x.bw") as track:
        for contig in "ab":
            track.begin(contig, 150)
            track.add(contig, "-", 0, values, span=3)
    with pyBigWig.open(str(tmp_path / "x.minus.bw")) as track:
        for contig in "ab":
            assert np.array_equal(track.values(contig, 0, 150), np.repeat(values, 3))


def test_nothing_scored_gives_valid_empty_tracks(tmp_path):
    for end in (".bw", ".bg"):
        with TrackWriter(tmp_path / f"none{end}"):
            pass
        with TrackWriter(tmp_path / f"bare{end}") as track:
            track.begin("chr1", 100)
    assert (tmp_path / "none.plus.bg").read_text() == 'track type=bedGraph name="seqray (+)"\n'
    with pyBigWig.open(str(tmp_path / "bare.minus.bw")) as track:
        assert (track.chroms(), track.intervals("chr1")) == ({"chr1": 100}, None)
    with pyBigWig.open(str(tmp_path / "none.minus.bw")) as track:
        assert track.chroms() == {"none": 1}


def test_a_strand_without_values_has_an_index_of_no_items(tmp_path):
    with TrackWriter(tmp_path / "x.bw") as track:
        track.begin("chr1", 100)
    content = (tmp_path / "x.minus.bw").read_bytes()
    _, _, _, _, data, index = struct.unpack_from("<IHHQQQ", content)
    assert struct.unpack_from("<Q", content, data) == (0,)  # blocks
    magic, _, items = struct.unpack_from("<IIQ", content, index)
    assert (magic, items) == (0x2468ACE0, 0)  # of an R-tree
    assert struct.unpack_from("<BBH", content, index + 48) == (1, 0, 0)  # a leaf without children
    assert content[-4:] == content[:4]  # the magic number that ends a bigWig


def test_compressed_tracks_can_be_indexed(tmp_path):
    write_track(tmp_path / "x.bedgraph.gz")
    for strand, contigs in (("plus", ["chr1", "chr3"]), ("minus", ["chr1"])):
        path = tmp_path / f"x.{strand}.bedgraph.gz"
        pysam.tabix_index(str(path), preset="bed")
        with pysam.TabixFile(str(path)) as indexed:
            assert indexed.contigs == contigs


def test_one_file_per_strand():
    paths = track_paths("a.b/x.y.bedGraph.gz")
    assert {strand: str(path) for strand, path in paths.items()} == {
        "+": "a.b/x.y.plus.bedGraph.gz",
        "-": "a.b/x.y.minus.bedGraph.gz",
    }


@pytest.mark.parametrize("name", ["x.wig", ".bw", "bw", "-"])
def test_another_name_is_refused(name):
    with pytest.raises(InputError, match=r"use \.bedgraph, \.bedgraph\.gz or \.bw"):
        track_paths(name)


# A contig of 100 letters: a gene on its first ten, one on its last ten on the minus strand.
FIRST = ("chr1", 0, 10, "+")
LAST = ("chr1", 90, 100, "-")

GFF3 = """\
##gff-version 3
##sequence-region chr1 1 100
chr1\tx\tgene\t1\t10\t.\t+\t.\tID=one
chr1\tx\tgene\t91\t100\t.\t-\t.\tID=two%2C;Note=a=b
chr1\tx\tregion\t1\t100\t.\t?\t.\t.
##FASTA
>chr1
ACGT
"""
BED = "track name=x\nchr1\t0\t10\tone\t0\t+\nchr1\t90\t100\ttwo\t0\t-\n"
SITES = "# from a scan\nid\tcontig\tstart\tend\tstrand\tsite\nx\tchr1\t0\t10\t+\t6\ny\tchr1\t90\t100\t-\t93\n"
GENBANK = """\
LOCUS       chr1                     100 bp    DNA     circular BCT 01-JAN-2000
DEFINITION  Made by hand.
ACCESSION   chr1
VERSION     chr1.1
FEATURES             Location/Qualifiers
     gene            1..10
                     /locus_tag="one"
     gene            complement(91..100)
                     /gene="two"
     CDS             join(95..100,1..4)
     regulatory      21..30
                     /regulatory_class="promoter"
ORIGIN
        1 acgtacgtac acgtacgtac acgtacgtac acgtacgtac acgtacgtac acgtacgtac
       61 acgtacgtac acgtacgtac acgtacgtac acgtacgtac
//
"""


def spans(features):
    return [(f.contig, f.start, f.end, f.strand) for f in features]


def test_gff3_counts_from_1_and_closes(tmp_path):
    features = read_features(write(tmp_path / "a.txt", GFF3)).features
    assert spans(features) == [FIRST, LAST, ("chr1", 0, 100, "?")]
    assert [f.kind for f in features] == ["gene", "gene", "region"]
    assert features[1].name == "two,"


def test_genbank_with_parts_and_regulatory_classes(tmp_path):
    features = read_features(write(tmp_path / "a.gb", GENBANK)).features
    assert [(f.kind, *part, f.name) for f in features for part in f.parts] == [
        ("gene", 0, 10, "+", "one"),
        ("gene", 90, 100, "-", "two"),
        ("CDS", 94, 100, "+", ""),
        ("CDS", 0, 4, "+", ""),
        ("promoter", 20, 30, "+", ""),
    ]
    assert {f.contig for f in features} == {"chr1.1"}


def test_sites_of_a_scan_count_from_0(tmp_path):
    features = read_features(write(tmp_path / "calls.tsv", SITES)).features
    assert spans(features) == [("chr1", 6, 7, "+"), ("chr1", 93, 94, "-")]
    assert [(f.name, f.kind) for f in features] == [("x", "TSS"), ("y", "TSS")]
    plain = read_features(write(tmp_path / "p.tsv", "contig\tposition\nchr1\t0\n"))
    assert spans(plain.features) == [("chr1", 0, 1, ".")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">x\nACGT\n", "is FASTA, not an annotation; give GFF3, GenBank, BED or a table of positions"),
        ("site\tstrand\n1\t+\n", "line 1: needs one column 'contig', found site, strand"),
        ("contig\tsite\nchr1\t-1\n", "line 2: has '-1' instead of a position"),
        ("contig\tsite\tstrand\nchr1\t1\tplus\n", "line 2: has the strand 'plus'; use +, - or ."),
        ("a\tb\tc\t5\t2\t.\t+\t.\t.\n", "line 1: has the interval 5-2, whose end lies before the start"),
        ("a\tb\tc\t0\t2\t.\t+\t.\t.\n", "line 1: has the interval 0-2"),
        ("a\tb\tc\t1\t2\t.\t-1\t.\t.\n", "line 1: has the strand '-1'; use +, -, . or ?"),
        ("##gff-version 3\na\tb\tc\t1\t2\t.\t+\t.\t.\na\tb\n", "line 3: has 2 columns; GFF3 needs nine"),
        (
            "LOCUS       x   5 bp\nFEATURES   Location\n     gene   x..\n",
            "record 'x': the GenBank record is cut off",
        ),
        ("contig\tposition\tnote\na\t1\tErg\xe4nzung\n".encode("latin-1"), "is not text in UTF-8"),
        ("a\t1\t2\tErg\xe4nzung\n".encode("latin-1"), "line 1: is not text in UTF-8"),
    ],
)
def test_what_cannot_be_read(tmp_path, text, message):
    path = write(tmp_path / "a.txt", text)
    with pytest.raises(InputError) as error:
        read_features(path)
    assert message in str(error.value)
    assert str(error.value).startswith(str(path))


def test_features_are_chosen_by_kind(tmp_path):
    features = read_features(write(tmp_path / "a.gff", GFF3)).features
    assert len(select_features(features, ("gene", "promoter"), "a.gff")) == 2
    line = Feature("a", "", (Part(0, 1, "."),))
    assert select_features([line], ("gene",), "a.bed") == [line]
    with pytest.raises(InputError) as error:
        select_features(features, ("TSS",), "a.gff")
    assert str(error.value) == "a.gff: contains no feature of type TSS; it has gene (2), region (1)"
    with pytest.raises(InputError, match="it has no feature"):
        select_features([], ("TSS",), "a.gff")


def test_any_number_of_comment_lines_may_stand_first(tmp_path):
    preamble = "".join(f"##sequence-region scaffold_{i} 1 100\n" for i in range(60_000))  # 2 MB
    text = GFF3.replace("##sequence-region chr1 1 100\n", preamble)
    assert spans(read_features(write(tmp_path / "a.gff3", text)).features)[:2] == [FIRST, LAST]


def test_pseudogenes_are_known(tmp_path):
    attributes = ("ID=a", "ID=b;pseudo=true", "ID=c;pseudogene=unknown", "ID=d;pseudo=false")
    lines = [f"chr1\tx\tCDS\t{i + 1}\t{i + 9}\t.\t+\t0\t{text}\n" for i, text in enumerate(attributes)]
    features = read_features(write(tmp_path / "a.gff", "##gff-version 3\n" + "".join(lines))).features
    assert [feature.pseudo for feature in features] == [False, True, True, False]
    cds = "     CDS             1..9\n"
    text = GENBANK.replace("ORIGIN", f"{cds}                     /pseudo\n{cds}ORIGIN")
    found = read_features(write(tmp_path / "a.gb", text)).features
    assert [f.pseudo for f in found if f.kind == "CDS"] == [False, True, False]


def read(tmp_path, text, kinds=("CDS",)):
    path = tmp_path / "x"
    path.write_text(text)
    return read_annotated(path, kinds.__contains__)


@pytest.mark.parametrize(
    ("location", "parts", "open_ends"),
    [
        ("1..10", [(0, 10, "+")], (False, False)),
        ("<1..10", [(0, 10, "+")], (True, False)),
        ("1..>10", [(0, 10, "+")], (False, True)),
        ("complement(<1..10)", [(0, 10, "-")], (False, True)),
        ("complement(1..>10)", [(0, 10, "-")], (True, False)),
        ("join(1..10,21..>30)", [(0, 10, "+"), (20, 30, "+")], (False, True)),
        ("complement(join(<1..10,21..30))", [(20, 30, "-"), (0, 10, "-")], (False, True)),
        ("join(complement(21..30),complement(1..10))", [(20, 30, "-"), (0, 10, "-")], (False, False)),
        ("join(91..100,1..10)", [(90, 100, "+"), (0, 10, "+")], (False, False)),
    ],
)
def test_genbank_locations(tmp_path, location, parts, open_ends):
    before, _, after = GENBANK.partition("     gene")
    cds = f'     CDS             {location}\n                     /product="a\n                     b"\n'
    file = read(tmp_path, before + cds + after[after.index("ORIGIN") :])
    (feature,) = file.features
    assert feature.parts == tuple(Part(*part) for part in parts)
    assert (feature.partial_start, feature.partial_end) == open_ends
    assert feature.attributes["product"] == "a b"
    assert (file.format, file.lengths, file.circular) == ("GenBank", {"chr1.1": 100}, {"chr1.1"})


def test_gff3_lines_of_one_id_are_one_feature(tmp_path):
    lines = [
        "##sequence-region a%7Cb 1 100",
        "##sequence-region c 11 50",  # a part of c: says nothing of its length
        "a%7Cb\tx\tCDS\t1\t10\t.\t-\t1\tID=p;end_range=10,.",
        "c\tx\tCDS\t1\t10\t.\t+\t.\tID=p",
        "a%7Cb\tx\tCDS\t21\t30\t.\t-\t2\tID=p;end_range=30,.;note=%3B%25",
    ]
    file = read(tmp_path, "\n".join(lines))
    first, second = file.features
    assert (first.contig, first.parts) == ("a|b", (Part(20, 30, "-"), Part(0, 10, "-")))
    assert (first.offset, first.partial_start, first.partial_end) == (2, True, False)
    assert first.attributes["note"] == ";%"
    assert (second.contig, second.parts, second.offset) == ("c", (Part(0, 10, "+"),), 0)
    assert second.where == f"{tmp_path / 'x'}: line 4"
    assert (file.format, file.lengths) == ("GFF3", {"a|b": 100})


@pytest.mark.parametrize("length", ["##sequence-region c 1 90\n", ""])
@pytest.mark.parametrize("kind", ["region", "chromosome", "contig"])
def test_the_line_of_a_whole_contig_is_no_site(tmp_path, kind, length):
    rows = f"c\tx\t{kind}\t1\t90\t.\t.\t.\tID=c\nc\tx\tCDS\t11\t40\t.\t-\t0\tID = g \n"
    path = write(tmp_path / "x.gff3", f"track name=x\n##gff-version 3\n{length}browser hide all\n{rows}")
    assert [(site.position, site.strand) for site in read_sites(path)] == [(39, "-")]
    assert [feature.name for feature in read_features(path).features] == ["c", "g"]
