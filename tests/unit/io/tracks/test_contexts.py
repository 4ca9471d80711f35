"""Contexts of calls in files: lines by hand, and read back by code that knows only the formats."""

from __future__ import annotations

import csv

import pytest
from hypothesis import given, strategies as st

from seqray.core.errors import InputError
from seqray.core.results import Box, Call, CallContext
from seqray.io.bed import read_bed, write_bed
from seqray.io.calls import write_calls_tsv
from seqray.io.gff3 import read_gff3_calls, write_gff3

FULL = CallContext(
    probability=0.625,
    precision=0.5,
    gene="thrL",
    locus="b0001",
    distance=42,
    within="yaaX; 100%",
    within_strand="opposite",
    minus10=Box(135, "TATAAT"),
    minus35=Box(112, "TTGACA"),
    spacer=17,
    extended=True,
)
DRIVEN = Call("chr", 148, 149, "+", 148, 0.875, "promoter", FULL)
LONE = Call("chr", 300, 301, "-", 300, 0.25, "promoter", CallContext())
LEADERLESS = Call("chr", 400, 401, "+", 400, 0.5, "promoter", CallContext(gene="a", distance=0))
CALLS = [DRIVEN, LONE, LEADERLESS]


def test_tsv_by_hand(tmp_path):
    path = tmp_path / "c.tsv"
    assert write_calls_tsv(path, CALLS, described=True) == 3
    header, *rows = csv.reader(path.open(), delimiter="\t")
    assert header == [
        *("id", "contig", "start", "end", "strand", "site", "score", "label"),
        *("probability", "precision", "gene", "locus_tag", "distance", "within", "within_strand"),
        *("minus10", "minus10_start", "minus35", "minus35_start", "spacer", "extended"),
    ]
    assert rows[0][6:] == [
        *("0.875", "promoter", "0.625", "0.5", "thrL", "b0001", "42", "yaaX; 100%", "opposite"),
        *("TATAAT", "135", "TTGACA", "112", "17", "yes"),
    ]
    assert rows[1][8:] == ["."] * 13
    assert rows[2][10:13] == ["a", ".", "0"]


def test_a_tab_in_a_name_stays_in_its_cell(tmp_path):
    path = tmp_path / "c.tsv"
    write_calls_tsv(path, [Call("c", 0, 1, "+", 0, 0.5, "x", CallContext(gene="a\tb\nc"))], described=True)
    assert path.read_text().splitlines()[1].split("\t")[10] == "a b c"


def test_gff3_by_hand(tmp_path):
    path = tmp_path / "c.gff3"
    write_gff3(path, CALLS)
    assert path.read_text().splitlines()[1:] == [
        "chr\tseqray\tpromoter\t149\t149\t0.875\t+\t.\tID=promoter_1;tss=149;score=0.875;probability=0.625;"
        "precision=0.5;gene=thrL;locus_tag=b0001;distance=42;within=yaaX%3B 100%25;within_strand=opposite;"
        "minus10=TATAAT;minus10_start=136;minus35=TTGACA;minus35_start=113;spacer=17;extended=yes",
        "chr\tseqray\tpromoter\t301\t301\t0.25\t-\t.\tID=promoter_2;tss=301;score=0.25",
        "chr\tseqray\tpromoter\t401\t401\t0.5\t+\t.\tID=promoter_3;tss=401;score=0.5;gene=a;distance=0",
    ]
    assert read_gff3_calls(path) == CALLS


def test_bed_by_hand(tmp_path):
    path = tmp_path / "c.bed"
    assert write_bed(path, CALLS, contigs={"chr": 1000}, described=True) == 3
    header, *lines = (line.split("\t") for line in path.read_text().splitlines())
    assert header[:8] == ["#chrom", "chromStart", "chromEnd", "name", "score", "strand", "call_score", "site"]
    assert header[8:] == [
        *("probability", "precision", "gene", "locus_tag", "distance", "within", "within_strand"),
        *("minus10", "minus10_start", "minus35", "minus35_start", "spacer", "extended"),
    ]
    assert lines[0][:8] == ["chr", "148", "149", "promoter_1", "875", "+", "0.875", "148"]
    assert lines[0][15:] == ["TATAAT", "135", "TTGACA", "112", "17", "yes"]
    assert {len(line) for line in lines} == {21}
    assert all(0 <= int(line[4]) <= 1000 for line in lines)
    assert [(f.start, f.end, f.strand) for f in read_bed(path)] == [
        *((148, 149, "+"), (300, 301, "-"), (400, 401, "+"))
    ]


names = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zs", "Zl", "Zp")), min_size=1)
boxes = st.builds(Box, st.integers(0, 10**6), st.text("ACGT", min_size=6, max_size=6))
shares = st.integers(0, 1000).map(lambda n: n / 1000)
contexts = st.builds(
    CallContext,
    probability=st.none() | shares,
    precision=st.none() | shares,
    gene=st.just("") | names,
    locus=st.just("") | names,
    distance=st.none() | st.integers(0, 500),
    within=st.just("") | names,
    within_strand=st.sampled_from(["", "same", "opposite"]),
)
with_boxes = st.builds(
    lambda context, ten, thirty_five, spacer, extended: CallContext(
        **{name: getattr(context, name) for name in context.__slots__}
        | {"minus10": ten, "minus35": thirty_five, "spacer": spacer, "extended": extended}
    ),
    contexts,
    boxes,
    st.none() | boxes,
    st.none() | st.integers(15, 19),
    st.booleans(),
)


@given(st.lists(contexts | with_boxes, max_size=4))
def test_what_is_written_is_read(tmp_path_factory, found):
    path = tmp_path_factory.mktemp("round") / "c.gff3"
    calls = [Call("c", 5, 6, "+", 5, 0.5, "promoter", context) for context in found]
    write_gff3(path, calls)
    assert read_gff3_calls(path) == calls


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ("score=high", "has the score 'high'; give a number"),
        ("score=nan", "has the score 'nan'; give a number"),
        ("score=0.5;precision=0_1", "has the precision '0_1'; give a number"),
        ("score=0.5;distance=-3", "has '-3' instead of a position"),
        ("score=0.5;minus10_start=x", "has 'x' instead of a position"),
    ],
)
def test_a_damaged_context_names_its_line(tmp_path, attributes, message):
    path = tmp_path / "c.gff3"
    path.write_text(f"##gff-version 3\nc\tseqray\tpromoter\t1\t9\t.\t+\t.\ttss=4;{attributes}\n")
    with pytest.raises(InputError) as caught:
        read_gff3_calls(path)
    assert str(caught.value).endswith(f"line 2: {message}")
