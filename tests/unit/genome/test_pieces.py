"""Parts of a gene become intervals: numbers counted on paper, and what holds for every gene."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given, strategies as st

from seqray.genome.read import MAX_GAP, Piece, pieces_of
from seqray.io.lines import Part


def test_parts_join_up_to_the_gap():
    assert pieces_of([Part(0, 30, "+"), Part(80, 110, "+")], None, 0) == [Piece(0, 110, "+", False, False)]
    apart = pieces_of([Part(0, 30, "+"), Part(81, 111, "+")], None, 0)
    assert apart == [Piece(0, 30, "+", False, True), Piece(81, 111, "+", True, False)]
    backwards = pieces_of([Part(29, 60, "-"), Part(0, 30, "-")], None, 0)  # a frameshift by -1
    assert backwards == [Piece(0, 60, "-", False, False)]


def test_what_is_not_translated_keeps_every_letter():
    assert pieces_of([Part(0, 31, "+"), Part(500, 540, "+")], None, None)[1].start == 500
    assert pieces_of([Part(0, 31, "+"), Part(500, 540, "+")], None, 0)[1].start == 502


def test_the_rest_of_a_codon_is_no_piece():
    assert pieces_of([Part(0, 31, "+"), Part(500, 502, "+")], None, 0) == [Piece(0, 31, "+", False, True)]


@given(
    st.lists(st.tuples(st.integers(4, 90), st.integers(0, 3 * MAX_GAP)), min_size=1, max_size=5),
    st.sampled_from("+-"),
    st.integers(0, 2),
    st.integers(0, 999),
)
def test_pieces_start_with_whole_codons_and_turn_with_the_circle(sizes, strand, offset, turn):
    length, parts, at = 1000, [], 0
    for size, gap in sizes:
        parts.append(Part(at, at + size, "+"))
        at += size + gap
    if strand == "-":
        parts = [Part(length - part.end, length - part.start, "-") for part in parts]
    pieces = pieces_of(parts, None, offset)
    inside = [
        sum(p.start <= x < p.end for p in pieces) for part in parts for x in range(part.start, part.end)
    ]
    assert max(inside) == 1
    assert inside.count(0) <= 2 * len(parts)
    # Letters read before the first of each piece, less the offset, are whole codons.
    read = dict(zip(parts, accumulate((p.end - p.start for p in parts), initial=-offset), strict=False))
    for piece in pieces:
        first = piece.start if strand == "+" else piece.end - 1
        part = next(part for part in parts if part.start <= first < part.end)
        skipped = first - part.start if strand == "+" else part.end - 1 - first
        assert (read[part] + skipped) % 3 == 0
    turned = [
        Part((p.start + turn) % length, (p.start + turn) % length + p.end - p.start, strand) for p in parts
    ]
    assert {(p.start, p.end - p.start) for p in pieces_of(turned, length, offset)} == {
        ((p.start + turn) % length, p.end - p.start) for p in pieces
    }
