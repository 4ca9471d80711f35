"""Genes of another genome are one clear line."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.genome.genes import Gene, Genome, check_contig, check_genes, count_starts

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
        (annotation(NINE, lengths={"c1": 80}), {"c1": 90}, "states 80 letters of 'c1', which has 90; give"),
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
