"""Calls and intervals as files; expected lines are written by hand from the formats."""

import csv
from dataclasses import replace

import pandas as pd
import pysam
import pytest
from hypothesis import given, strategies as st

from seqray.core.boxes import BOXES
from seqray.core.errors import InputError
from seqray.core.results import TRUST, Box, Call, CallContext
from seqray.io.calls import context_columns, write_bed, write_calls_tsv
from seqray.io.features import read_features
from seqray.io.gff3 import read_called, write_gff3
from seqray.io.lines import read_regions

# The first and last window of 81 letters of a contig of 1,000, one on each strand; the transcription start
# is letter 60 (0-based) of the window: on the minus strand 80 - 60 = 20 letters from its left end.
FIRST = Call("chr1", 0, 81, "+", 60, 0.98765432, "promoter")
LAST = Call("chr1", 919, 1000, "-", 939, 0.5, "promoter")
# Across the origin of a circle of 1,000: letters 960 .. 999, then 0 .. 40; letter 60 is position 20.
ACROSS = Call("plasmid", 960, 1041, "+", 20, 1.0, "promoter")
CONTIGS = {"chr1": 1000, "plasmid": 1000}


def test_gff3_by_hand(tmp_path):
    path = tmp_path / "c.gff3"
    calls = [FIRST, LAST, ACROSS]
    assert write_gff3(path, iter(calls), ["seqray x"], contigs=CONTIGS, circular={"plasmid"}) == 3
    assert path.read_text().splitlines() == [
        "##gff-version 3",
        "##sequence-region chr1 1 1000",
        "##sequence-region plasmid 1 1000",
        "# seqray x",
        "chr1\tseqray\tpromoter\t1\t81\t0.987654\t+\t.\tID=promoter_1;Name=promoter_1;tss=61;probability=0.987654",
        "chr1\tseqray\tpromoter\t920\t1000\t0.5\t-\t.\tID=promoter_2;Name=promoter_2;tss=940;probability=0.5",
        "plasmid\tseqray\tregion\t1\t1000\t.\t.\t.\tID=plasmid;Name=plasmid;Is_circular=true",
        "plasmid\tseqray\tpromoter\t961\t1041\t1\t+\t.\tID=promoter_3;Name=promoter_3;tss=21;probability=1",
    ]


def test_bed_by_hand(tmp_path):
    path = tmp_path / "c.bed"
    assert write_bed(path, [FIRST, LAST, ACROSS], ["seqray x"], contigs=CONTIGS) == 3
    assert path.read_text().splitlines() == [
        "# seqray x",
        "#chrom\tchromStart\tchromEnd\tname\tscore\tstrand\tprobability\tsite",
        "chr1\t0\t81\tpromoter_1\t988\t+\t0.987654\t60",
        "chr1\t919\t1000\tpromoter_2\t500\t-\t0.5\t939",
        "plasmid\t0\t41\tpromoter_3\t1000\t+\t1\t20",
        "plasmid\t960\t1000\tpromoter_3\t1000\t+\t1\t20",
    ]


def test_a_contig_that_begins_with_a_quote_keeps_its_rows(tmp_path):
    calls = [replace(FIRST, contig="\"q'"), replace(LAST, contig='"q"')]
    write_calls_tsv(tmp_path / "c.tsv", calls)
    found = pd.read_csv(tmp_path / "c.tsv", sep="\t", comment="#")
    assert found["contig"].tolist() == ["\"q'", '"q"']
    write_bed(tmp_path / "c.bed", calls[:1])  # BED has no quotes
    assert "\n\"q'\t0\t81" in (tmp_path / "c.bed").read_text()


def test_a_class_unknown_to_the_sequence_ontology_and_odd_names_are_escaped(tmp_path):
    path = tmp_path / "c.gff3"
    call = Call("a;b%c=d", 4, 9, "-", 6, 0.25, "my site, 100%")
    write_gff3(path, [call], ["seqray x"], contigs={"a;b%c=d": 50})
    lines = path.read_text().splitlines()
    assert lines[1] == "##sequence-region a%3Bb%25c%3Dd 1 50"
    assert lines[3] == (
        "a%3Bb%25c%3Dd\tseqray\tsequence_feature\t5\t9\t0.25\t-\t.\t"
        "ID=my_site%2C_100%25_1;Name=my_site%2C_100%25_1;label=my site%2C 100%25;site=7;probability=0.25"
    )
    assert read_called(path).calls == [call]


def test_no_calls_give_files_that_are_read(tmp_path):
    for read, write in ((lambda path: read_called(path).calls, write_gff3), (read_regions, write_bed)):
        assert write(tmp_path / "none", [], ["seqray x"]) == 0
        assert read(tmp_path / "none") == []


def test_bed_lines_of_three_to_six_columns(tmp_path):
    path = tmp_path / "x.bed"
    path.write_bytes(
        b"browser position chr1\r\ntrack name=x\n# c\n\nchr1\t0\t5\nchr 1\t3\t4\tn\t0\t-\nchr2 7 9 m 0 +\r\n"
    )
    features = read_features(path).features
    assert [(f.contig, f.start, f.end, f.name, f.strand) for f in features] == [
        ("chr1", 0, 5, "", "."),
        ("chr 1", 3, 4, "n", "-"),
        ("chr2", 7, 9, "m", "+"),
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"chr1\t5\n", "x.bed: line 1: has 2 columns; BED needs contig, start and end"),
        (
            b"# c\nchr1\t5\tx\n",
            "x.bed: line 2: has 'x' instead of a position; give a whole number, 0 or more",
        ),
        (b"chr1\t-5\t9\n", "x.bed: line 1: has '-5' instead of a position; give a whole number, 0 or more"),
        (
            b"chr1\t5\t5\n",
            "x.bed: line 1: has the empty interval 5-5; write the smaller position first;"
            " the end is not part of it",
        ),
        (b"chr1\t5\t6\tn\t0\tplus\n", "x.bed: line 1: has the strand 'plus'; use +, - or ."),
        (b"chr1\t5\t6\xff\n", "x.bed: line 1: is not text in UTF-8; save the file as UTF-8"),
    ],
)
def test_a_bad_bed_line_is_named(tmp_path, content, message):
    path = tmp_path / "x.bed"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_features(path)
    assert str(caught.value).endswith(message)


def test_foreign_features_are_passed_over(tmp_path):
    path = tmp_path / "x.gff3"
    path.write_text(
        "##gff-version 3\n"
        "c\tRefSeq\tgene\t1\t9\t.\t+\t.\tID=g;probability=0.5\n"
        "c\tseqray\tpromoter\t1\t9\t0.5\t+\t.\tID=p; tss=4;probability=0.5\n"
        "##FASTA\n>c\nACGTACGTACGT\n"
    )
    assert read_called(path).calls == [Call("c", 0, 9, "+", 3, 0.5, "promoter")]


FULL = CallContext(
    trust="medium",
    precision=0.5,
    gene="thrL",
    locus="b0001",
    distance=42,
    within="yaaX; 100%",
    within_strand="opposite",
    boxes=(Box("-10", 135, "TATAAT"), Box("-35", 112, "TTGACA")),
    spacer=17,
    extended=True,
)
DRIVEN = Call("chr", 148, 149, "+", 148, 0.875, "promoter", FULL)
LONE = Call("chr", 300, 301, "-", 300, 0.25, "promoter", CallContext())
LEADERLESS = Call("chr", 400, 401, "+", 400, 0.5, "promoter", CallContext(gene="a", distance=0))
CALLS = [DRIVEN, LONE, LEADERLESS]


def test_described_tsv_by_hand(tmp_path):
    path = tmp_path / "c.tsv"
    assert write_calls_tsv(path, CALLS, context=context_columns(BOXES["bacteria"])) == 3
    header, *rows = csv.reader(path.open(), delimiter="\t")
    assert header == [
        *("id", "contig", "start", "end", "strand", "site", "score", "label"),
        *("trust", "precision", "gene", "locus_tag", "distance", "within", "within_strand"),
        *("minus10", "minus10_start", "minus35", "minus35_start", "spacer", "extended"),
    ]
    assert rows[0][6:] == [
        *("0.875", "promoter", "medium", "0.5", "thrL", "b0001", "42", "yaaX; 100%", "opposite"),
        *("TATAAT", "135", "TTGACA", "112", "17", "yes"),
    ]
    assert rows[1][8:] == ["."] * 13
    assert context_columns(BOXES["archaea"])[7:] == ("tata", "tata_start", "bre", "bre_start", "spacer")
    assert context_columns(BOXES["eukaryotes"])[7:] == ()
    assert rows[2][10:13] == ["a", ".", "0"]


def test_described_gff3_by_hand(tmp_path):
    path = tmp_path / "c.gff3"
    write_gff3(path, CALLS)
    assert path.read_text().splitlines()[1:] == [
        "chr\tseqray\tpromoter\t113\t149\t0.875\t+\t.\tID=promoter_1;Name=thrL;tss=149;score=0.875;trust=medium;"
        "precision=0.5;gene=thrL;locus_tag=b0001;distance=42;within=yaaX%3B 100%25;within_strand=opposite;"
        "minus10=TATAAT;minus10_start=136;minus35=TTGACA;minus35_start=113;spacer=17;extended=yes",
        "chr\tseqray\tpromoter\t301\t301\t0.25\t-\t.\tID=promoter_2;Name=promoter_2;tss=301;score=0.25",
        "chr\tseqray\tpromoter\t401\t401\t0.5\t+\t.\tID=promoter_3;Name=a;tss=401;score=0.5;gene=a;distance=0",
    ]
    assert read_called(path).calls == [replace(DRIVEN, start=112), LONE, LEADERLESS]  # with its boxes


@pytest.mark.parametrize(
    ("strand", "site", "box", "start", "end"),
    [("+", 9, 15, 16, 30), ("+", 15, 9, 10, 16), ("-", 9, 12, 10, 18), ("-", 18, 2, 19, 28)],
)
def test_a_box_across_the_origin_of_a_circle_of_20(tmp_path, strand, site, box, start, end):
    call = Call(
        "c", site, site + 1, strand, site, 0.5, "promoter", CallContext(boxes=(Box("-10", box, "TATAAT"),))
    )
    write_gff3(tmp_path / "c.gff3", [call], contigs={"c": 20}, circular={"c"})
    [line] = [one for one in (tmp_path / "c.gff3").read_text().splitlines() if "promoter" in one]
    assert line.split("\t")[3:5] == [str(start), str(end)]


names = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1)
place = st.integers(0, 10**6), st.text("ACGT", min_size=6, max_size=6)
boxes = st.sampled_from([("-10", "-35"), ("TATA", "BRE"), ("TATA",), ()]).flatmap(
    lambda names: st.tuples(*(st.builds(Box, st.just(name), *place) for name in names))
)
shares = st.integers(0, 1000).map(lambda n: n / 1000)
contexts = st.builds(
    CallContext,
    trust=st.sampled_from(["", *TRUST]),
    precision=st.none() | shares,
    gene=st.just("") | names,
    locus=st.just("") | names,
    distance=st.none() | st.integers(0, 500),
    within=st.just("") | names,
    within_strand=st.sampled_from(["", "same", "opposite"]),
    boxes=boxes,
    spacer=st.none() | st.integers(15, 19),
    extended=st.none() | st.booleans(),
)


@given(st.lists(contexts, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("round") / "c.gff3"
    calls = [Call("c", 5, 6, "+", 5, 0.5, "promoter", context) for context in found]
    write_gff3(path, calls)
    read = sorted(read_called(path).calls, key=lambda call: int(call.id.rpartition("_")[2]))
    assert [replace(call, start=5, end=6) for call in read] == calls  # they span their boxes


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("score=high", "has the score 'high'; give a number"),
        ("score=nan", "has the score 'nan'; give a number"),
        ("score=0.5;precision=0_1", "has the precision '0_1'; give a number"),
        ("score=0.5;distance=-3", "has '-3' instead of a position; give a whole number, 0 or more"),
        (
            "score=0.5;minus10=TATAAT;minus10_start=x",
            "has 'x' instead of a position; give a whole number, 0 or more",
        ),
    ],
)
def test_a_damaged_context_names_its_line(tmp_path, attributes, message):
    path = tmp_path / "c.gff3"
    path.write_text(f"##gff-version 3\nc\tseqray\tpromoter\t1\t9\t.\t+\t.\ttss=4;{attributes}\n")
    with pytest.raises(InputError) as caught:
        read_called(path)
    assert str(caught.value).endswith(f"line 2: {message}")


def test_an_attribute_of_another_program_is_no_box(tmp_path):
    path = tmp_path / "c.gff3"
    path.write_text("##gff-version 3\nc\tseqray\tpromoter\t1\t9\t.\t+\t.\ttss=4;score=0.5;codon_start=x\n")
    [call] = read_called(path).calls
    assert call.context is None or call.context.boxes == ()


def test_calls_of_circular_contigs_can_be_indexed(tmp_path):
    calls = [Call("b", start, start + 9, "+", start + 3, 0.5, "promoter") for start in (40, 5)]
    calls = [replace(calls[0], contig="a"), *calls]
    path = tmp_path / "x.gff3.gz"
    write_gff3(path, calls, contigs={"a": 99, "b": 99, "none": 9}, circular={"a", "b", "none"})
    pysam.tabix_index(str(path), preset="gff")
    with pysam.TabixFile(str(path)) as indexed:
        assert [line.split("\t")[3] for line in indexed.fetch("b")] == ["1", "6", "41"]
    assert read_called(path).circular == {"a", "b", "none"}


@pytest.mark.parametrize("name", ["track", "browser", "#1", "a b", "c;d=e", "%41", ">x"])
def test_odd_names_of_contigs_survive(tmp_path, name):
    call = Call(name, 5, 14, "-", 8, 0.5, "promoter")
    write_gff3(tmp_path / "x.gff3", [call], contigs={name: 99}, circular={name})
    called = read_called(tmp_path / "x.gff3")
    assert (called.calls, called.circular) == ([call], {name})
    if name[0] != "#":
        write_bed(tmp_path / "x.bed", [call], contigs={name: 99})
        assert [(r.contig, r.start, r.end) for r in read_regions(tmp_path / "x.bed")] == [(name, 5, 14)]


@pytest.mark.parametrize("form", ["tsv", "csv", "bed", "txt"])
def test_calls_of_another_format_are_refused_by_content_with_how_to_get_gff3(tmp_path, form):
    text = "id\tcontig\tstart\tend\tstrand\tsite\tscore\tlabel\n"
    path = tmp_path / f"x.{form}"
    path.write_text(text.replace("\t", "," if form == "csv" else "\t"))
    with pytest.raises(InputError, match=r"line 1: has . columns?; GFF3 needs nine, .* seqray scan --out"):
        read_called(path)
