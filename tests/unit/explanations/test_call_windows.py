"""Windows of calls: the letters that the model read, on both strands and across an origin."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA, reverse_complement
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from seqray.core.results import Call
from seqray.explanations.calls import extract_call_windows

GENOME = "".join(np.random.default_rng(0).choice(list("ACGT"), 100))


def call(start, strand="+", contig="chr", length=20):
    return Call(contig, start, start + length, strand, start + 12, 0.9, "promoter")


@given(st.integers(0, 99), st.sampled_from("+-"))
def test_each_letter_lies_where_its_position_says(start, strand):
    [record], [place] = extract_call_windows([SequenceRecord("chr", GENOME)], [call(start, strand)], DNA, 20)
    assert record.id == "promoter_1"
    letters = [GENOME[p] for p in place.positions()]
    if strand == "-":
        letters = [reverse_complement(x) for x in letters]
    assert "".join(letters) == record.sequence
    assert place.length == 100


def test_order_and_names_are_those_of_the_calls():
    contigs = [SequenceRecord("a", GENOME), SequenceRecord("b", GENOME[::-1])]
    calls = [call(5, contig="b"), call(3, contig="a"), call(1, "-", contig="b")]
    records, places = extract_call_windows(iter(contigs), calls, DNA, 20)
    assert [r.id for r in records] == ["promoter_1", "promoter_2", "promoter_3"]
    assert [(p.contig, p.start, p.strand) for p in places] == [("b", 5, "+"), ("a", 3, "+"), ("b", 1, "-")]
    assert records[1].sequence == GENOME[3:23]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (call(5, length=30), "call 'promoter_1' has 30 bases, but those of the model have 20"),
        (call(5, contig="plasmid"), "lies on 'plasmid', which is not among the sequences"),
        (call(100), "at 101-120 lies beyond the end of 'chr'"),
        (call(-1), "lies beyond the end of 'chr'"),
        (call(5, strand="."), "has the strand '.'; use + or -"),
    ],
)
def test_calls_that_do_not_fit_are_refused(wrong, message):
    with pytest.raises(InputError, match=r"x\.gff3") as error:
        extract_call_windows([SequenceRecord("chr", GENOME)], [wrong], DNA, 20, "x.gff3")
    assert message in str(error.value)
