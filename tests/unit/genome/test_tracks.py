"""Tracks of genes, and their kinds in files."""

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from seqray.genome.genes import TRACKS, Gene, gene_tracks
from seqray.genome.read import MAX_GAP, Piece, pieces_of
from seqray.io.lines import Part

REACH = 512


def nearness(distance: int) -> int:
    return round(255 * (REACH - distance) / REACH) if 0 <= distance < REACH else 0


def by_letters(genes: list[Gene], length: int, circular: bool) -> np.ndarray:
    """Tracks of the plus strand, one letter and gene at a time."""
    table = {name: np.zeros(length, dtype=int) for name in TRACKS}
    table["known"][:] = 255
    turns = (-1, 0, 1) if circular else (0,)

    def put(name: str, place: int, value: int) -> None:
        if circular:
            place %= length
        if 0 <= place < length:
            table[name][place] = max(table[name][place], value)

    for gene in genes:
        same = gene.strand == "+"
        for offset in range(gene.end - gene.start):
            coding = f"frame-{offset % 3 + 1}" if same else "opposite"
            name = coding if gene.coding else "untranslated"
            put(name, gene.start + offset, 255)
        first, last = gene.start, gene.end - 1
        edges = [("start", first, gene.partial_start), ("stop", last, gene.partial_end)]
        if not same:
            edges = [("opposite-stop", first, gene.partial_end), ("opposite-start", last, gene.partial_start)]
        near = ("to-start", "from-end") if same else ("to-opposite-end", "from-opposite-start")
        for (name, place, partial), track, ahead in zip(edges, near, (True, False), strict=True):
            if partial:
                continue
            put(name, place, 255)
            for at in range(length):
                for turn in turns:
                    distance = (place + turn * length - at) * (1 if ahead else -1)
                    put(track, at, nearness(distance))
    return np.stack([table[name] for name in TRACKS])


genes_of = st.lists(
    st.builds(
        lambda start, size, strand, coding, left, right: Gene(
            start, start + size, strand, "", coding=coding, partial_start=left, partial_end=right
        ),
        st.integers(0, 699), st.integers(1, 90), st.sampled_from("+-"),
        st.booleans(), st.booleans(), st.booleans(),
    ),
    max_size=4,
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(genes=genes_of, circular=st.booleans())
def test_tracks_are_those_of_their_definition(genes, circular):
    length = 700
    if not circular:
        genes = [gene for gene in genes if gene.end <= length]
    got = gene_tracks(genes, length, "+", circular=circular)
    assert got.dtype == np.uint8
    np.testing.assert_array_equal(got, by_letters(genes, length, circular))


@settings(max_examples=15, deadline=None)
@given(genes=genes_of)
def test_the_minus_strand_is_the_plus_strand_of_the_reverse_complement(genes):
    length = 700
    genes = [gene for gene in genes if gene.end <= length]
    turned = [
        Gene(
            length - gene.end, length - gene.start, "-" if gene.strand == "+" else "+", "",
            coding=gene.coding, partial_start=gene.partial_start, partial_end=gene.partial_end,
        )
        for gene in genes
    ]  # fmt: skip
    np.testing.assert_array_equal(gene_tracks(genes, length, "-"), gene_tracks(turned, length, "+"))


@pytest.mark.parametrize("strand", ["+", "-"])
def test_unknown_genes_are_zeros_and_no_genes_are_not(strand):
    assert not gene_tracks(None, 50, strand).any()
    none = gene_tracks((), 50, strand)
    assert (none[0] == 255).all()
    assert not none[1:].any()
    assert gene_tracks((), 0, strand).shape == (len(TRACKS), 0)


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
