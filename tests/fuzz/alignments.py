"""Targets: alignments, and tables of labeled ones."""

from pathlib import Path

from fuzz.target import Target, write_beside
from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.errors import InputError
from seqray.io.alignments import read_alignments, read_labeled_alignments, read_labeled_stockholm

STOCKHOLM = b"""# STOCKHOLM 1.0
#=GF ID   toy
#=GF AC   RF1.1
#=GF DE   A synthetic family
#=GS a/1-8 DE a row
a/1-8         ACGU-ACG
b             AC.UAACG
#=GR a/1-8 SS <<....>>
#=GC SS_cons  <<....>>

a/1-8         UU
b             U~
#=GC SS_cons  ..
//
# STOCKHOLM 1.0
x  ACGU
y  acgu
//
"""
A3M = b">query\nACGUACGU\n>a with insertions\nAC-UuuACGU\n>b\nACGU.ACGaU\n>ss_pred\nCCHH\n"
FASTA = b">a\nACGU-\n>b\nAC\nGUU\n"
CLUSTAL = b"""CLUSTAL W (1.83) multiple sequence alignment

a      ACGUACGU 8
b      ACGU--GU 6
       ****  **

a      AC 10
b      AG 8
       *.
"""
PHYLIP = b" 2 12\na         ACGUAC\nb         ACGU--\n\nACGUAC\nACGUUU\n"
STRICT = b"2 8\nlong name1ACGUACGU\nlong name2ACGU--GU\n"
TABLE = (
    b"file\tlabel\tid\tgroup\tsplit\ntoy.sto\tyes\tRF1.1\tg\ttrain\ntoy.sto\tno\ttoy_2\t\ttest\nrow.fa\tno\n"
)
LABELS = b"id\tlabel\tgroup\tsplit\nRF1.1\tyes\tg\ttrain\nlabeled_2\tno\t\t\n"


def read_all(path: Path) -> None:
    """As letters of either kind; A3M as its name says."""
    for alphabet in (RNA, PROTEIN):
        try:
            for alignment in read_alignments(path, alphabet, duplicates="rename", on_skip=str):
                if alignment.codes.shape[0] != len(alignment.names) or not alignment.codes.size:
                    raise RuntimeError("an alignment of another shape than its names")
                alignment.query()
        except InputError:
            continue
    for _ in read_alignments(path, RNA):
        pass


def read_table(path: Path) -> None:
    """A table of files, beside which they lie."""
    for name, content in (("toy.sto", STOCKHOLM), ("row.fa", FASTA)):
        write_beside(path.with_name(name), content)
    read_labeled_alignments(path, RNA)


def read_labels(path: Path) -> None:
    """Labels of the alignments of a file."""
    place = write_beside(path.with_name("labeled.sto"), STOCKHOLM)
    read_labeled_stockholm([place], path, RNA)


TABLE_TOKENS = (b"\t", b'"', b"#", b"\nRF1.1\t", b"label", b"split", b"validation")
TARGETS = (
    Target(
        "stockholm",
        read_all,
        lambda: [STOCKHOLM, STOCKHOLM.replace(b"\n", b"\r\n"), STOCKHOLM.replace(b"RF1.1", b"a\xe9")],
        tokens=(b"# STOCKHOLM 1.0\n", b"#=GF AC ", b"#=GC SS_cons ", b"#=GR ", b"\n//\n", b"\n\n"),
    ),
    Target("a3m", read_all, lambda: [A3M], suffix=".a3m", tokens=(b"\n>", b".", b"-", b"~")),
    Target("aligned-fasta", read_all, lambda: [FASTA, A3M], tokens=(b"\n>", b".", b"~")),
    Target(
        "clustal",
        read_all,
        lambda: [CLUSTAL, CLUSTAL * 2],
        tokens=(b"CLUSTAL", b"MUSCLE", b"PROBCONS", b"\n\n", b"*:. "),
    ),
    Target("phylip", read_all, lambda: [PHYLIP, STRICT], tokens=(b" 2 ", b"999999999")),
    Target("labeled-alignments", read_table, lambda: [TABLE[: TABLE.rindex(b"row")]], tokens=TABLE_TOKENS),
    Target("alignment-labels", read_labels, lambda: [LABELS], tokens=TABLE_TOKENS),
)
