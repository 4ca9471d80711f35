"""Genes: coordinates, questions about positions, kinds in files, tracks, and whether they fit sequences."""

from contextlib import nullcontext
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.genome.find import MAX_FAMILY_SIZE, MAX_GAP, Piece, families_of, pieces_of
from seqray.genome.genes import (
    TRACKS,
    Annotation,
    Gene,
    GeneIndex,
    check_contig,
    check_genes,
    count_starts,
    cut_genes,
    gene_tracks,
)
from seqray.io.lines import Feature, Part


@pytest.mark.parametrize("strand", ["+", "-"])
@pytest.mark.parametrize(
    ("start", "end"), [(0, 60), (12, 60), (13, 60), (14, 47), (20, 41), (45, 60), (0, 9)]
)
def test_what_is_left_of_a_gene_keeps_its_frame_and_loses_its_ends(strand, start, end):
    gene = Gene(10, 40, strand, "a")
    whole, cut = (
        gene_tracks(genes, length, strand)[1:4]  # the frames
        for genes, length in (((gene,), 60), (cut_genes((gene,), start, end), end - start))
    )
    if strand == "-":  # tracks are in reading direction
        whole, cut = whole[:, ::-1], cut[:, ::-1]
    seen = cut.any(axis=0)
    np.testing.assert_array_equal(cut[:, seen], whole[:, start:end][:, seen])
    assert seen.sum() >= whole[:, start:end].any(axis=0).sum() - 2  # of a codon that was cut


def test_ends_that_are_cut_off_are_partial():
    genes = (Gene(10, 40, "+", "a"), Gene(10, 40, "-", "b"), Gene(50, 60, "+", "c", coding=False))
    assert cut_genes(genes, 20, 45) == (
        Gene(2, 20, "+", "a", partial_start=True),
        Gene(0, 20, "-", "b", partial_end=True),
    )
    assert cut_genes(genes, 0, 30)[1] == Gene(10, 28, "-", "b", partial_start=True)
    assert cut_genes(genes, 55, 58) == (
        Gene(0, 3, "+", "c", coding=False, partial_start=True, partial_end=True),
    )


LENGTH = 60


@st.composite
def genes(draw, circular):
    start = draw(st.integers(0, LENGTH - 1))
    most = 40 if circular else LENGTH - start
    return Gene(
        start,
        start + draw(st.integers(1, most)),
        draw(st.sampled_from("+-")),
        draw(st.sampled_from("abc")),
        partial_start=draw(st.booleans()),
    )


@st.composite
def contigs(draw):
    circular = draw(st.booleans())
    return draw(st.lists(genes(circular), max_size=8)), circular


def distance(gene, site, circular):
    """Letters from the site to the start in reading direction; None where it lies behind."""
    ahead = (gene.start_codon - site) * (1 if gene.strand == "+" else -1)
    if circular:
        return ahead % LENGTH
    return ahead if ahead >= 0 else None


def covers(gene, site, circular):
    return any(gene.start <= place < gene.end for place in (site, site + LENGTH * circular))


@given(contigs(), st.integers(0, LENGTH - 1), st.sampled_from("+-"), st.integers(0, LENGTH))
def test_the_next_start_downstream(contig, site, strand, reach):
    known, circular = contig
    ahead = {
        distance(gene, site, circular) for gene in known if gene.strand == strand and not gene.partial_start
    } - {None}
    expected = min((value for value in ahead if value <= reach), default=None)
    found = GeneIndex(known, LENGTH, circular=circular).downstream(site, strand, reach)
    assert (found[1] if found else None) == expected
    if found:
        assert found[0] in known
        assert distance(found[0], site, circular) == found[1]


@given(contigs(), st.integers(0, LENGTH - 1))
def test_the_gene_around_a_site(contig, site):
    known, circular = contig
    index = GeneIndex(known, LENGTH, circular=circular)
    for strand in (None, "+", "-"):
        around = [g for g in known if strand in (None, g.strand) and covers(g, site, circular)]
        found = index.containing(site, strand)
        assert (found is None) == (not around)
        if found:
            assert found in around
            assert (site - found.start) % LENGTH == min((site - gene.start) % LENGTH for gene in around)
    assert index.antisense(site, "+") == index.containing(site, "-")
    assert index.antisense(site, "-") == index.containing(site, "+")


NINE = Gene(0, 9, "+", "a")


def annotation(*genes, contig="c1", **more):
    return Annotation({contig: genes, "empty": ()}, "GFF3 a.gff", file="in/a.gff", **more)


def check(known, lengths):
    check_genes(known, ((name, DNA.encode("C" * length)) for name, length in lengths.items()))


def test_genes_that_fit_pass():
    check(annotation(Gene(0, 90, "+", "a")), {"c1": 90, "c2": 5})
    check(annotation(Gene(80, 110, "+", "a"), circular={"c1"}), {"c1": 90})


@pytest.mark.parametrize(
    ("known", "contigs", "message"),
    [
        (annotation(), {"c1": 9}, "in/a.gff: contains no genes; give another file or genes='predict'"),
        (
            annotation(others=("exon",)),
            {"c1": 9},
            "contains no genes, only features 'exon'; give another file",
        ),
        (annotation(NINE), dict.fromkeys("abcd", 9), "the sequences are 'a', 'b', 'c' and 1 more"),
        (annotation(NINE, contig="NC_1"), {"NC_1.3": 9}, "the sequences are 'NC_1.3'; only the version"),
        (annotation(Gene(0, 91, "+", "a")), {"c1": 90}, "the gene 'a' (1-91) lies beyond"),
        (annotation(Gene(90, 91, "+", "a"), circular={"c1"}), {"c1": 90}, "the gene 'a' (91-91) lies beyond"),
        (annotation(Gene(1, 181, "+", "a"), circular={"c1"}), {"c1": 90}, "the gene 'a' (2-181) lies beyond"),
        (annotation(NINE, lengths={"c1": 80}), {"c1": 90}, "states 80 bases of 'c1', which has 90; give"),
    ],
)
def test_genes_of_another_genome_are_refused(known, contigs, message):
    with pytest.raises(InputError) as caught:
        check(known, contigs)
    assert message in str(caught.value)


LENGTHS = {"NC_001133.9": 90, "NC_001224.1": 60}
STATED = {"NC_001133.9": ("I",), "NC_001224.1": ("MT",)}


def chromosomes(**more):
    genes = {"NC_001133.9": (NINE,), "NC_001224.1": (Gene(3, 9, "-", "b"),)}
    return Annotation(genes, "GFF3 a.gff", file="in/a.gff", lengths=LENGTHS, **more)


@pytest.mark.parametrize(
    ("first", "second"),
    [("I", "MT"), ("chrI", "chrM"), ("chromosome_i", "chrMT"), ("NC_001133", "NC_001224"), ("CHRI", "mt")],
)
def test_contigs_whose_names_the_annotation_relates_are_matched_and_that_is_said(first, second):
    known = chromosomes(names=STATED, circular={"NC_001224.1"})
    codes = [(second, DNA.encode("C" * 60)), (first, DNA.encode("C" * 90))]
    matched = check_genes(known, codes)
    assert (matched.of(first), matched.of(second)) == (known.of("NC_001133.9"), known.of("NC_001224.1"))
    assert (matched.lengths, matched.circular) == ({first: 90, second: 60}, {second})
    [note] = matched.notes
    assert f"'NC_001133.9' is '{first}'" in note
    assert check_genes(known, [(name, DNA.encode("C" * n)) for name, n in LENGTHS.items()]) is known


@pytest.mark.parametrize(
    ("lengths", "left"),
    [({"I": 90}, ["NC_001224.1"]), ({"MT": 60, "plasmid": 9}, ["NC_001133.9"]), ({"I": 90, "chrM": 60}, [])],
)
def test_sequences_that_the_annotation_names_are_enough(lengths, left):
    known = chromosomes(names=STATED)
    matched = check_genes(known, [(name, DNA.encode("C" * n)) for name, n in lengths.items()])
    assert sum(map(len, matched.genes.values())) == 2 - len(left)
    assert matched.genes.keys() == matched.lengths.keys() == lengths.keys() - {"plasmid"}
    [note] = matched.notes
    assert all(f"genes of '{contig}' are left out" in note for contig in left)
    assert left or "left out" not in note


@pytest.mark.parametrize(
    ("lengths", "names"),
    [
        ({"I": 90, "MT": 61}, STATED),  # another length
        ({"II": 90, "III": 60}, STATED),  # names that the file does not know
        ({"I": 90, "chrI": 90}, STATED),  # two sequences have names of one contig
        ({"I": 90, "MT": 60}, {}),  # it states no other names
        ({"I": 90}, {"NC_001133.9": ("I",), "NC_001224.1": ("I",)}),  # of two contigs
        ({"NC_001133.8": 90, "MT": 60}, STATED),  # another version
        ({"synchrI": 90}, STATED),
        ({"x": 91}, STATED),  # to rename it would not help
    ],
)
@pytest.mark.parametrize(("introns", "instead"), [(False, "'predict'"), (True, "None")])
def test_contigs_are_not_matched_on_less(lengths, names, introns, instead):
    codes = [(name, DNA.encode("C" * n)) for name, n in lengths.items()]
    advice = rf"(rename them .* or give genes={instead}|only the version .*)"
    if 91 in lengths.values():
        advice = rf"their lengths differ, too: give the annotation of this assembly, or genes={instead}"
    with pytest.raises(InputError, match=rf"has genes of .*; {advice}\Z"):
        check_genes(chromosomes(names=names), codes, introns=introns)


def test_a_contig_without_genes_may_have_any_length():
    check_contig(annotation(lengths={"empty": 80}), "empty", 90, "")


def test_start_codons_are_counted_on_both_strands_and_across_the_origin():
    letters = "GCCATGCCCTAACCCTTATTTCATCCCA"  # 28 letters; the last and the first two read AGC
    genes = [
        Gene(3, 12, "+", "atg"),
        Gene(15, 24, "-", "atg of the other strand"),
        Gene(0, 9, "+", "gcc"),
        Gene(27, 33, "+", "agc, across the origin"),
        Gene(15, 29, "-", "ctg, read from the first letter down and across the origin"),
        Gene(0, 9, "+", "no codon", coding=False),
        Gene(0, 9, "+", "no start", partial_start=True),
        Gene(0, 9, "+", "no frame", pseudo=True),
    ]
    assert count_starts(genes, DNA.encode(letters)) == (3, 5)
    assert count_starts([], DNA.encode(letters)) == (0, 0)
    assert count_starts([], DNA.encode("")) == (0, 0)
    rotated = letters[5:] + letters[:5]
    moved = [
        Gene((g.start - 5) % 28, (g.start - 5) % 28 + g.end - g.start, g.strand, g.name) for g in genes[:5]
    ]
    assert count_starts(moved, DNA.encode(rotated)) == (3, 5)


def test_genes_at_random_places_are_refused():
    genes = [Gene(at, at + 30, "+", str(at)) for at in range(20)]
    with pytest.raises(InputError, match=r"a\.gff: the genes do not fit the sequence: 0 % of 20 begin with"):
        check(annotation(*genes), {"c1": 90})
    check(annotation(*genes[:19]), {"c1": 90})  # too few to tell
    for starts, fits in ((10, True), (9, False)):
        codes = DNA.encode("ATGCCC" * starts + "CCCCCC" * (20 - starts))
        known = annotation(*(Gene(at, at + 6, "+", str(at)) for at in range(0, 120, 6)))
        with nullcontext() if fits else pytest.raises(InputError, match="45 % of 20"):
            check_genes(known, [("c1", codes)])


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


def feature(kind: str, number: int = 0, **attributes: str) -> Feature:
    return Feature("one", kind, (Part(number, number + 9, "+"),), attributes, "x: line 1")


@pytest.mark.parametrize("last", ["", "f0"])
def test_a_chain_of_parents_is_followed_for_a_few_only(last):
    chain = [feature("ncRNA", ID=f"f{i}", Parent=f"f{i + 1}") for i in range(99)]
    families = list(families_of([*chain, feature("ncRNA", ID="f99", Parent=last)]))
    assert len(families) == 100
    assert families[0] == chain[:MAX_FAMILY_SIZE]
    assert max(map(len, families)) == MAX_FAMILY_SIZE


def test_a_parent_of_itself_is_there_once():
    [family] = families_of([feature("tRNA", ID="a", Parent="a")])
    assert len(family) == 1


def test_genes_alike_all_belong_to_their_product_and_a_few_describe_it():
    genes = [feature("gene", i, gene="abcD") for i in range(100)]
    product = feature("tRNA", 500, gene="abcD")
    families = list(families_of([*genes, product, product]))
    assert families == [[product, *genes[:MAX_FAMILY_SIZE]]] * 2  # no gene is left to be one of its own
