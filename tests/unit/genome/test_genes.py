"""Genes: coordinates, questions about positions, and whether they fit the sequences."""

from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, strategies as st

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.genome.genes import (
    Gene,
    GeneIndex,
    Genome,
    check_contig,
    check_genes,
    count_starts,
    cut_genes,
    gene_tracks,
)


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
    return Genome({contig: genes, "empty": ()}, "GFF3 a.gff", file="in/a.gff", **more)


def check(known, lengths):
    check_genes(known, ((name, DNA.encode("C" * length)) for name, length in lengths.items()))


def test_genes_that_fit_pass():
    check(annotation(Gene(0, 90, "+", "a")), {"c1": 90, "c2": 5})
    check(annotation(Gene(80, 110, "+", "a"), circular={"c1"}), {"c1": 90})


@pytest.mark.parametrize(
    ("known", "contigs", "message"),
    [
        (annotation(), {"c1": 9}, "in/a.gff: contains no genes; give another file, genes='predict' or"),
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
    return Genome(genes, "GFF3 a.gff", file="in/a.gff", lengths=LENGTHS, **more)


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
    ("lengths", "names"),
    [
        ({"I": 90, "MT": 61}, STATED),  # another length
        ({"I": 90}, STATED),  # fewer contigs
        ({"I": 90, "MT": 60, "II": 9}, STATED),  # more contigs
        ({"II": 90, "MT": 60}, STATED),  # a name that the file does not know
        ({"I": 90, "MT": 60}, {}),  # it states no other names
        ({"I": 90, "MT": 60}, {"NC_001133.9": ("I", "MT"), "NC_001224.1": ("MT",)}),  # of two contigs
        ({"NC_001133.8": 90, "MT": 60}, STATED),  # another version
        ({"synchrI": 90, "MT": 60}, STATED),
    ],
)
def test_contigs_are_not_matched_on_less(lengths, names):
    with pytest.raises(InputError, match="has genes of"):
        check(chromosomes(names=names), lengths)


def test_a_contig_without_genes_may_have_any_length():
    check_contig(annotation(lengths={"empty": 80}), "empty", 90)


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
