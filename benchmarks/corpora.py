"""What seqray reads in the files of others, beside what Biopython reads.

    python benchmarks/corpora.py FOLDER [FOLDER ...]

Every file below the folders whose ending names a format (FASTA, GenBank, Stockholm, Clustal, PHYLIP;
compressed by gzip or not) is read by both. Letters are compared in order of the records, without case and
gaps; U counts as T, and what is no letter of DNA (or no residue) counts as unknown, as in seqray. A FASTA
file with gaps is read as an alignment. Files above ``--most`` MB are left out.

The table has a row for each format and outcome, with the number of files, and below it a row for each file
that does not have the outcome ``same``. ``reason`` is the error of the reader that refuses. Outcomes:

- ``same``: the same letters;
- ``other letters``: a difference that needs a look;
- ``refused by both``, ``refused by seqray``, ``refused by Biopython``.

GenBank records without letters (``CONTIG`` lines alone) are left out on both sides, as seqray skips them.

The table in results/ was measured on the sources of Biopython 1.88, gffutils 0.14 and pyfaidx 0.9.2.2 (``pip
download --no-deps --no-binary :all: NAME``), and on the public data of this project.
"""

from __future__ import annotations

import gzip
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from Bio import AlignIO, SeqIO
from Bio.Seq import UndefinedSequenceError

from machine import describe, script_parser
from seqray.core.alphabet import DNA, PROTEIN, Alphabet
from seqray.core.errors import SeqrayError
from seqray.io.alignments import read_alignments
from seqray.io.sequences import read_sequences
from seqray.io.tables import write_table

FORMATS = {
    "fasta": (".fa", ".fasta", ".fna", ".faa", ".ffn", ".fas"),
    "genbank": (".gb", ".gbk", ".gbff", ".genbank"),
    "stockholm": (".sto", ".stk", ".stockholm"),
    "clustal": (".aln", ".clustal", ".clw"),
    "phylip": (".phy", ".phylip"),
}
COLUMNS = ("format", "outcome", "files", "file", "reason")
Letters = list[str]


def format_of(path: Path) -> str:
    """The format that the ending of a file names, or an empty text."""
    endings = [ending.lower() for ending in path.suffixes if ending.lower() != ".gz"]
    return next((name for name, known in FORMATS.items() if endings[-1:] and endings[-1] in known), "")


def folded(letters: str, alphabet: Alphabet) -> str:
    """Letters as seqray holds them: no gaps, U as T, and one sign for all that is not certain."""
    text = letters.upper().replace("U", "T") if alphabet is DNA else letters.upper()
    return "".join(c if c in alphabet.letters else "?" for c in text if c not in "-.*~")


def by_seqray(path: Path, form: str, alphabet: Alphabet) -> Letters:
    """Letters of the records, or of the rows of all alignments."""
    if form in ("fasta", "genbank"):
        records = read_sequences(path, alphabet, duplicates="keep", on_skip=lambda record: None)
        return [folded(record.sequence, alphabet) for record in records]
    return [
        folded(alphabet.decode(row[row <= alphabet.unknown]), alphabet)
        for alignment in read_alignments(path, alphabet, duplicates="keep")
        for row in alignment.codes
    ]


def by_biopython(path: Path, form: str) -> Letters:
    """The letters that Biopython reads, without any change."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="surrogateescape") as handle, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if form in ("fasta", "genbank"):
            records: Iterator = SeqIO.parse(handle, form)
        else:
            records = (row for alignment in AlignIO.parse(handle, form) for row in alignment)
        letters = []
        for record in records:
            try:
                letters.append(str(record.seq))
            except UndefinedSequenceError:
                continue
    return [text for text in letters if text]


def readings(path: Path, form: str) -> tuple[list[Letters], str]:
    """All that Biopython reads of a file, PHYLIP in each of its layouts, or why it reads nothing."""
    layouts = ("phylip", "phylip-relaxed", "phylip-sequential") if form == "phylip" else (form,)
    read, refusal = [], ""
    for layout in layouts:
        try:
            read.append(by_biopython(path, layout))
        except Exception as error:  # whatever another reader raises is its answer
            refusal = f"{type(error).__name__}: {error}".splitlines()[0]
    return read, "" if read else refusal


def compare(path: Path, form: str) -> tuple[str, str]:
    """The outcome of a file, and the reason."""
    theirs, refusal = readings(path, form)
    refused = ""
    ways = [(form, DNA), (form, PROTEIN)]
    ways += (
        [("aligned", DNA), ("aligned", PROTEIN)]
        if any("-" in text for letters in theirs for text in letters)
        else []
    )
    for way, alphabet in ways:
        try:
            own = by_seqray(path, way, alphabet)
        except SeqrayError as error:
            refused = f"{refused}; as {alphabet.name}: {error.what}".removeprefix("; ")
            continue
        if refusal:
            return "refused by Biopython", refusal
        if own in [[folded(text, alphabet) for text in letters] for letters in theirs]:
            return "same", ""
        return "other letters", f"{len(own)} and {len(theirs[0])} records"
    return ("refused by both", f"{refused} | {refusal}") if refusal else ("refused by seqray", refused)


def main(argv: Sequence[str] | None = None) -> int:
    """Compare all files below the folders, and write the table."""
    parser = script_parser(__doc__, "corpora.tsv")
    parser.add_argument("folders", type=Path, nargs="+", help="folders with files of others")
    parser.add_argument("--most", type=float, default=20, help="MB of the largest file that is read")
    args = parser.parse_args(argv)
    counts, rows = Counter[tuple[str, str]](), []
    for folder in args.folders:
        for path in sorted(folder.rglob("*")):
            form = format_of(path)
            if not form or not path.is_file() or path.stat().st_size > args.most * 1e6:
                continue
            outcome, reason = compare(path, form)
            counts[form, outcome] += 1
            if outcome != "same":
                rows.append([form, outcome, 1, path.relative_to(folder.parent), reason[:300]])
    total = [[form, outcome, number, "all", ""] for (form, outcome), number in sorted(counts.items())]
    write_table(args.out, list(COLUMNS), [*total, *rows], describe(sys.argv))
    for row in total:
        print(*row[:3], sep="\t")
    return 0


if __name__ == "__main__":
    sys.exit(main())
