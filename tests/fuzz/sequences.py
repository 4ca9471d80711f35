"""Targets: FASTA and GenBank, plain and compressed."""

import bz2
import gzip
import lzma
from pathlib import Path

from fuzz.target import Target
from seqray.core.alphabet import DNA, PROTEIN, RNA
from seqray.core.errors import InputError
from seqray.genome.find import read_genes
from seqray.io.features import read_features, read_sites
from seqray.io.genbank import read_genbank
from seqray.io.records import read_fasta
from seqray.io.sequences import is_genbank, read_sequences

FASTA = b""">one first record
ACGTACGTNNacgtACGTRYKM
ACGT
>two
ACRGT
>three

>one
UUU
"""
CRLF = b"\xef\xbb\xbf# comment\r\n;more\r\n\r\n>a\r\nACGT\r\nac gt\r\n>b\tx\r\nNNNN\r"
PROTEINS = b">p1 a protein\nMKVLAAGGWYX*\n>p2\nMKVLBZJUO\n"
GENBANK = b"""LOCUS       TEST                      40 bp    DNA     circular BCT 01-JAN-2000
DEFINITION  A synthetic record.
ACCESSION   TEST
VERSION     TEST.1
KEYWORDS    .
SOURCE      none
  ORGANISM  none
            Unclassified.
REFERENCE   1  (bases 1 to 40)
  AUTHORS   Nobody,A.
  TITLE     Nothing
  JOURNAL   Unpublished
COMMENT     A comment
            of two lines.
FEATURES             Location/Qualifiers
     source          1..40
                     /organism="none"
     gene            complement(3..20)
                     /gene="abcD"
                     /locus_tag="T_1"
     CDS             complement(join(3..8,10..20))
                     /gene="abcD"
                     /codon_start=2
                     /product="a product in
                     two lines"
     CDS             join(35..40,1..5)
                     /locus_tag="T_2"
                     /pseudo
     regulatory      <21..>30
                     /regulatory_class="promoter"
     misc_feature    30^31
     misc_feature    order(J00194.1:100..202,1..5)
ORIGIN
        1 acgtacgtac gtacgtacgt acgtacgtac gtacgtacgt
//
"""
CONTIG = (
    GENBANK.partition(b"ORIGIN")[0].replace(b"circular", b"linear  ") + b"CONTIG      join(A.1:1..40)\n//\n"
)


def fasta_seeds() -> list[bytes]:
    return [FASTA, FASTA.replace(b"R", b";\n-"), CRLF, PROTEINS, b"", b">a\n" + b"ACGT" * 200, b">a\nACGT"]


def genbank_seeds() -> list[bytes]:
    return [GENBANK, CONTIG, GENBANK * 2, GENBANK.replace(b"\n", b"\r\n")]


def compressed_seeds() -> list[bytes]:
    from Bio.bgzf import _bgzf_eof, _bgzf_header  # a bgzip file is gzip blocks and an empty last one

    text = FASTA.partition(b">three")[0]
    packed = [gzip.compress(text, mtime=0), bz2.compress(text), lzma.compress(text)]
    return [*packed, packed[0] * 2, packed[0] + _bgzf_eof, _bgzf_header + packed[0], b"PK\x03\x04", text]


def read_all_fasta(path: Path) -> None:
    """As prediction, audit and training read it."""
    refused = 0
    for alphabet, reader in ((DNA, read_sequences), (RNA, read_fasta), (PROTEIN, read_fasta)):
        try:
            for record in reader(path, alphabet, duplicates="rename", soft_masks=True, on_skip=len_of):
                if not record.sequence or set(record.sequence) - {*alphabet.letters, *alphabet.ambiguous}:
                    raise RuntimeError("a record without letters, or with others than those of the alphabet")
        except InputError:
            refused += 1
    for _ in read_sequences(path, DNA):
        pass


def len_of(record: object) -> None:
    """A skipped record has a text."""
    str(record)


def read_all_genbank(path: Path) -> None:
    """Letters, features and genes."""
    for reader in (read_features, read_genes, read_sites):
        try:
            reader(path)
        except InputError:
            continue
    is_genbank(path)
    for _ in read_genbank(path, DNA, duplicates="rename", on_skip=len_of):
        pass


WORDS = (
    b"LOCUS ", b"DEFINITION ", b"ACCESSION ", b"VERSION ", b"REFERENCE ", b"  AUTHORS ",
    b"  JOURNAL ", b"FEATURES ", b"ORIGIN", b"CONTIG ", b"//\n", b"complement(", b"join(",
    b"order(", b"..", b"<", b">", b"^", b'/gene="', b"/codon_start=", b"/pseudo",
    b"     CDS             ", b"bp    DNA", b"circular", b"BASE COUNT", b"COMMENT ", b"DBLINK ",
    b"one-of(", b"PROJECT ", b"SEGMENT 1 of 2", b"KEYWORDS ", b'/translation="', b"WGS  ",
)  # fmt: skip
TARGETS = (
    Target("fasta", read_all_fasta, fasta_seeds, tokens=(b">", b"\r\n", b"\n>", b";", b"#", b"LOCUS   x")),
    Target("genbank", read_all_genbank, genbank_seeds, tokens=WORDS),
    Target("compressed", read_all_fasta, compressed_seeds, tokens=(b"\x1f\x8b", b"BZh9", b"\xfd7zXZ\0")),
)
