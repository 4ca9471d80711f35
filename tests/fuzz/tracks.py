"""Targets: GFF3, BED and tables of positions, as features, genes, sites and calls."""

from pathlib import Path

from fuzz.target import Target
from seqray.core.errors import InputError
from seqray.genome.find import read_genes
from seqray.io.features import read_features, read_sites, select_features
from seqray.io.gff3 import read_called
from seqray.io.lines import read_regions

GFF3 = b"""##gff-version 3
##sequence-region one 1 300
# a comment
one\tx\tregion\t1\t300\t.\t+\t.\tID=one;Is_circular=true
one\tx\tgene\t10\t90\t.\t+\t.\tID=g1;Name=abcD;gene_biotype=protein_coding
one\tx\tmRNA\t10\t90\t.\t+\t.\tID=t1;Parent=g1
one\tx\tCDS\t10\t30\t.\t+\t0\tID=c1;Parent=t1;locus_tag=T_1;product=a%3Bb
one\tx\tCDS\t50\t90\t.\t+\t2\tID=c1;Parent=t1;part=2/2
one\tx\tCDS\t100\t120\t0.5\t-\t0\tParent=g2;partial=10;start_range=.,100
one\tx\ttRNA\t130\t140\t.\t-\t.\tID=r1
one\tx\tpseudogene\t150\t160\t.\t?\t.\tID=p1;pseudo=true
two\tx\tCDS\t290\t310\t.\t-\t1\tID=c3;part=1
##FASTA
>one
ACGT
"""
CALLS = b"""##gff-version 3
one\tseqray\tpromoter\t2\t21\t0.8\t+\t.\tID=promoter_1;tss=14;probability=0.8
one\tseqray\tsequence_feature\t2\t21\t0.8\t-\t.\tID=x_1;label=x y;site=14;score=0.8;trust=medium;\
precision=0.5;gene=abcD;locus_tag=T_1;distance=30;within=abcE;within_strand=same;minus10=TATAAT;minus10_start=8;minus35=TTGACA;\
minus35_start=1;spacer=17;extended=yes
"""
BED = b"""track name=x
browser position chr1
# comment
one\t5\t10\ta\t0\t+
one\t7\t9
two 1 2 b 0 -
"""
POSITIONS = b"contig\tsite\tstrand\tid\none\t5\t+\ta\ntwo\t7\t-\tb\n"
SITES = b"contig\tposition\tstrand\tsite\tweight\none\t5\t+\tsigma70\t0.5\none\t9\t-\t\t\n"


def read_all(path: Path) -> None:
    """In every way in which an annotation is read."""
    for reader in (read_regions, read_sites, read_called, read_genes, _genes_of_circles):
        try:
            reader(path)
        except InputError:
            continue
    for feature in select_features(read_features(path).features, ["CDS", "promoter", "TSS"], path):
        if any(not 0 <= part.start < part.end for part in feature.parts):
            raise RuntimeError("a feature without letters")


def _genes_of_circles(path: Path) -> object:
    return read_genes(path, {"one": 300, "two": 310})


WORDS = (
    b"##gff-version 3\n", b"##sequence-region ", b"##FASTA\n", b"\tCDS\t", b"\tgene\t", b"ID=",
    b"Parent=", b"part=", b"1/2", b"partial=", b"Is_circular=true", b"start_range=", b"%", b";",
    b"\t.\t", b"\t+\t", b"\t-\t", b"tss=", b"site=", b"score=", b"999999999999999999", b"track ",
    b"browser ", b"_start=", b"\xc2\xb2",
)  # fmt: skip
TARGETS = (
    Target("gff3", read_all, lambda: [GFF3, CALLS, GFF3.replace(b"\n", b"\r\n")], tokens=WORDS),
    Target("bed", read_all, lambda: [BED, BED.replace(b"two 1 2 b 0 -\n", b"")], tokens=(b"\t", b" ", b"\n")),
    Target("sites", read_all, lambda: [SITES, POSITIONS], tokens=(b"\t", b"position", b"site", b"weight")),
)
