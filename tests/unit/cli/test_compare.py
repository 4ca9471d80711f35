"""Starts of two strains; every number here is worked out by hand."""

import random

import pytest
from hypothesis import given, strategies as st

from seqray.cli.compare import COLUMNS, Start, compare_starts, read_starts
from seqray.core.alphabet import reverse_complement
from seqray.core.errors import InputError
from seqray.core.records import SequenceRecord
from tables import tsv, write


def at(gene, distance, letters=""):
    return Start(f"{gene}{distance}", "c:1(+)", gene, distance, 0.5, "high", letters)


def changes(a, b, tolerance=5, genomes=()):
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in compare_starts(a, b, tolerance, 0, genomes)]
    return [(row["change"], row["call_a"], row["call_b"], row["shift"]) for row in rows]


def test_starts_of_one_gene_are_matched_the_nearest_first():
    a = [at("x", 30), at("x", 80), at("y", 40), at("z", 10), at(".", 7)]
    b = [at("x", 34), at("x", 120), at("y", 40), at("w", 20), at("x", 300), at(".", 9)]
    assert changes(a, b) == [
        ("same", "x30", "x34", 4),
        ("moved", "x80", "x120", 40),
        ("same", "y40", "y40", 0),
        ("lost", "z10", None, None),
        ("gained", None, "w20", None),
        ("gained", None, "x300", None),
    ]
    assert changes(a[:1], b[:1], tolerance=3) == [("moved", "x30", "x34", 4)]


def bases(count, seed):
    return "".join(random.Random(seed).choices("ACGT", k=count))


def test_starts_are_matched_by_the_letters_around_them_whatever_their_genes_are_called():
    genome, other = bases(200, 0), bases(81, 1)
    changed = genome[50:131][:40] + "ACGT" * 3 + genome[50:131][52:]  # at most 12 of 81 differ
    a = [at("p_1", 1, genome[50:131]), at("p_2", 2, other)]
    b = [at("q_7", 1, genome[38:119]), at("q_8", 2, bases(81, 2))]  # 12 letters farther upstream
    assert changes(a, b, genomes=([], [])) == [
        ("moved", "p_11", "q_71", 12),
        ("lost", "p_22", None, None),
        ("gained", None, "q_82", None),
    ]
    assert changes(a[:1], [at("r", 1, changed)], genomes=([], [])) == [("same", "p_11", "r1", 0)]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.integers(0, 500)), max_size=6, unique=True))
def test_calls_compared_with_themselves_are_the_same(calls):
    own = [at(*call) for call in calls]
    assert changes(own, own) == [("same", one.call, one.call, 0) for one in own]
    assert [change for change, *_ in changes(own, [])] == ["lost"] * len(own)
    assert [change for change, *_ in changes([], own)] == ["gained"] * len(own)


def reasons(rows):
    return [(row[0], row[-1]) for row in rows]


def test_a_start_that_one_strain_has_alone_tells_why_as_far_as_the_tables_do():
    low = at("y", 40)._replace(score=0.2)
    a, b = [at("x", 30), at("x", 80), at("y", 40), at("z", 10)], [at("x", 34), low]
    expected = [("same", None), ("lost", "another start of the gene"), ("same", None), ("lost", None)]
    assert reasons(compare_starts(a, b, 5)) == expected
    expected[2] = ("lost", "below the threshold")
    assert reasons(compare_starts(a, b, 5, 0.3)) == expected
    assert reasons(compare_starts([low], b, 5, 0.3)) == [("gained", None)]


@pytest.mark.parametrize("strand", "+-")
def test_genomes_tell_whether_the_bases_of_a_lost_start_are_there(tmp_path, strand):
    rest, own = bases(300, 3), bases(81, 4)
    other = own[:10] + ("A" if own[10] != "A" else "C") + own[11:]  # 1 of 81 differs
    b = rest + (other if strand == "+" else reverse_complement(other)) + rest
    genomes = [SequenceRecord("a", rest[:150] + own + bases(200, 5))], [SequenceRecord("b", b)]
    rows = [
        ("p", "a", "+", 150 + 60, 0.5, "high", "a_1", 9),
        ("q", "a", "+", 150 + 181, 0.5, "high", ".", "."),
    ]
    starts = read_starts(write(tmp_path / "a.tsv", tsv(HEADER, rows)), genomes[0])
    assert [start.letters for start in starts] == [own, genomes[0][0].sequence[271:352]]
    there = f"1 of 81 bases differ at b:301-381({strand})"
    assert reasons(compare_starts(starts, [], 5, 0, genomes)) == [("lost", there), ("lost", "no such bases")]
    genomes[1][0] = SequenceRecord(
        "b", b.replace(b[300:381], own if strand == "+" else reverse_complement(own))
    )
    there = f"the same 81 bases; other genes or bases farther away differ, at b:301-381({strand})"
    assert reasons(compare_starts(starts[:1], [], 5, 0, genomes)) == [("lost", there)]
    with pytest.raises(InputError, match="names the contig 'a', the genome has 'b'; rename one of them"):
        read_starts(tmp_path / "a.tsv", genomes[1])


HEADER = "id contig strand site score trust gene distance"


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("a", "c", "+", 9, 0.5, "high", "c_12", 3), "named after its contig"),
        (("a", "c", "+", "x", 0.5, "high", "g", 3), "has 'x' instead of a position"),
        (("a", "c", "+", 9, 0.5, "high", "g", "."), "has '.' instead of a position"),
    ],
)
def test_calls_that_can_t_be_compared_are_refused(tmp_path, row, message):
    path = write(tmp_path / "c.tsv", tsv(HEADER, [row]))
    with pytest.raises(InputError, match="line 2"):
        read_starts(path)
    with pytest.raises(InputError) as caught:
        read_starts(path)
    assert message in str(caught.value)


def test_places_count_from_1(tmp_path):
    rows = [("a", "c", "+", 9, 0.5, "high", "g", 3), ("b", "c", "-", 4, 0.25, "doubtful", ".", ".")]
    one, two = read_starts(write(tmp_path / "c.tsv", tsv(HEADER, rows)))
    assert (one.place, one.distance, two.place, two.distance) == ("c:10(+)", 3, "c:5(-)", None)
