"""Features with their parts: the order of transcription, open ends, and what the file says of its contigs."""

from __future__ import annotations

import pytest

from seqray.io.features import read_annotated
from seqray.io.lines import Part

GENBANK = """\
LOCUS       chr1                     100 bp    DNA     {topology} BCT 01-JAN-2000
DEFINITION  Made by hand.
ACCESSION   chr1
VERSION     chr1.1
FEATURES             Location/Qualifiers
     CDS             {location}
                     /product="a
                     b"
                     /pseudo
ORIGIN
        1 acgtacgtac acgtacgtac acgtacgtac acgtacgtac acgtacgtac acgtacgtac
       61 acgtacgtac acgtacgtac acgtacgtac acgtacgtac
//
"""


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
    file = read(tmp_path, GENBANK.format(location=location, topology="circular"))
    (feature,) = file.features
    assert feature.parts == tuple(Part(*part) for part in parts)
    assert (feature.partial_start, feature.partial_end) == open_ends
    assert feature.attributes["product"] == "a b"
    assert (file.format, file.lengths, file.circular) == ("GenBank", {"chr1.1": 100}, {"chr1.1"})


def test_a_linear_record_and_other_kinds(tmp_path):
    file = read(tmp_path, GENBANK.format(location="1..10", topology="linear  "), kinds=("gene",))
    assert (file.features, file.circular) == ([], frozenset())


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
