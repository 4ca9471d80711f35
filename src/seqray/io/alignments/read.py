"""Read alignments: Stockholm, A3M, aligned FASTA, Clustal and PHYLIP, compressed or not.

Rules for unusual input: an alignment of one row is like any other; a row that occurs twice is kept, because
row weights correct for it (`seqray.core.msa.row_weights`); rows may share a name, except in Stockholm, where
the name joins the blocks; letters are folded like those of sequences. Rows of different lengths, alignments
without rows or letters and letters outside the alphabet are errors.

Biopython's parsers are not used: they drop ``#=GF`` lines, have no A3M, and name neither line nor row of a
damaged file (a Clustal file that is cut off gives "string index out of range").
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

from seqray.core import Alignment, Alphabet, InputError, NoRecordsError
from seqray.core.results import SkippedRecord
from seqray.io.alignments.a3m import Insertions, is_a3m, parse_fasta_rows, with_insertions, without_insertions
from seqray.io.alignments.aligned_text import AlignedText, reason_empty, to_alignment
from seqray.io.alignments.clustal import HEADERS, parse_clustal
from seqray.io.alignments.phylip import FIRST_LINE, parse_phylip
from seqray.io.alignments.stockholm import parse_stockholm
from seqray.io.files import encode_text, open_input
from seqray.io.pipes import display_name
from seqray.io.sequences import BYTE_ORDER_MARK, Duplicates, OnSkip, UniqueIds, describe_record, detect_format

Form = Literal["auto", "stockholm", "a3m", "fasta", "clustal", "phylip"]

_COMPRESSED = {".gz", ".bgz", ".bz2", ".xz"}
_A3M_NAMES = {".a3m", ".a2m"}
_PARSERS: dict[str, Callable[[io.BufferedReader, str], Iterator[AlignedText]]] = {
    "stockholm": parse_stockholm,
    "clustal": parse_clustal,
    "phylip": parse_phylip,
}
_SEVERAL = ("stockholm", "clustal")  # formats with any number of alignments in a file


def read_alignments(
    path: str | Path,
    alphabet: Alphabet,
    *,
    form: Form = "auto",
    insertions: Insertions = "remove",
    duplicates: Duplicates = "error",
    on_skip: OnSkip | None = None,
) -> Iterator[Alignment]:
    """Read the alignments of a file in order: many of a Stockholm or Clustal file, one of any other.

    Raises `InputError` if the file can't be read, has none of these formats or contains no alignment
    (`NoRecordsError`); if rows differ in length, or contain letters outside the alphabet.

    Parameters
    ----------
    path
        The file; ``-`` is standard input.
    alphabet
        Validates and folds the letters.
    form
        ``auto`` decides by the content, and by the name if it ends in ``.a3m`` or ``.a2m``. A FASTA file
        whose first row has no small letters, and whose rows differ in length only by small letters and dots,
        is A3M.
    insertions
        Of A3M: ``remove`` keeps the columns of the query, ``keep`` gives inserted letters their own columns.
    duplicates
        What to do with the id of an alignment that occurs again: ``error``, ``rename`` or ``keep``.
    on_skip
        Called with each alignment without rows or letters; if None, such an alignment is an error.

    Yields
    ------
    Alignment
        Its id is the accession of a Stockholm file (``#=GF AC``), else its name (the first word of
        ``#=GF ID``), else the name of the file without its ending (and that of a compression), with a number
        if a file contains several.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from seqray.core import RNA
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "toy.fa")
    ...     _ = path.write_text(">a\\nAC-GU\\n>b\\nACAG-\\n")
    ...     for alignment in read_alignments(path, RNA):
    ...         print(alignment.id, alignment.codes.shape, alignment.query())
    toy (2, 5) ACGU
    """
    if form not in get_args(Form):
        raise InputError(f"form={form!r}", remedy=f"choose one of {', '.join(get_args(Form))}")
    where = display_name(path)
    with open_input(path) as handle:
        chosen = _form_of(handle.peek(1), path, where) if form == "auto" else form
        if chosen in ("a3m", "fasta"):
            texts = _fasta(handle, where, chosen == "a3m" or _is_a3m_name(path), insertions)
        else:
            texts = _PARSERS[chosen](handle, where)
        ids = UniqueIds(duplicates, where)
        count = 0
        for text in texts:
            count += 1
            name = _identifier(text, path, count if chosen in _SEVERAL else 0)
            identifier = ids.resolve(name, source=Alignment.ID_SOURCE)
            problem = reason_empty(text)
            if problem and on_skip is not None:
                on_skip(SkippedRecord(identifier, problem))
                continue
            yield to_alignment(text, identifier, alphabet, where)
        if count == 0:
            raise NoRecordsError("contains no alignments", where=where)


def _endings(path: str | Path) -> list[str]:
    return [ending.lower() for ending in Path(path).suffixes if ending.lower() not in _COMPRESSED]


def _is_a3m_name(path: str | Path) -> bool:
    return bool(_A3M_NAMES & set(_endings(path)[-1:]))


def _form_of(head: bytes, path: str | Path, where: str) -> Form:
    head = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not head:
        raise NoRecordsError("contains no alignments", where=where)
    name = detect_format(head)
    if name == "a Stockholm alignment":
        return "stockholm"
    if name == "FASTA":
        return "a3m" if _is_a3m_name(path) else "fasta"
    if name == "a Clustal alignment" or head.startswith(HEADERS):
        return "clustal"
    if FIRST_LINE.match(head):
        return "phylip"
    raise InputError(
        f"is {name or 'of unknown format'}, not an alignment",
        where=where,
        remedy="give Stockholm, A3M, aligned FASTA, Clustal or PHYLIP",
    )


def _identifier(text: AlignedText, path: str | Path, number: int) -> str:
    words = (text.metadata.get("AC") or text.metadata.get("ID") or "").split()
    if words:
        return words[0]
    name = encode_text(Path(path).name).decode() if str(path) != "-" else "alignment"
    if Path(name).suffix.lower() in _COMPRESSED:
        name = Path(name).stem
    name = Path(name).stem  # one ending: 1abc.A.fa and 1abc.B.fa stay apart
    return f"{name}_{number}" if number > 1 else name


def _fasta(handle: io.BufferedReader, where: str, a3m: bool, insertions: Insertions) -> Iterator[AlignedText]:
    text = parse_fasta_rows(handle, where)
    if text.rows:
        yield _fold_a3m(text, where, insertions) if a3m or is_a3m(text.rows) else text


def _fold_a3m(text: AlignedText, where: str, insertions: Insertions) -> AlignedText:
    if insertions == "keep":
        rows = with_insertions(text.rows, text.names, describe_record(where, text.names[0]))
    else:
        rows = without_insertions(text.rows)
    if not any(rows):
        raise InputError(
            "all letters are small, which are insertions in A3M, so there is no column",
            where=where,
            remedy="write columns in capitals, or end the name of an aligned FASTA file in .fa",
        )
    return AlignedText(text.names, rows)
