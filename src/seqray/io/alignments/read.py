"""Read alignments: Stockholm, A3M, aligned FASTA, Clustal and PHYLIP, compressed or not.

Rules for what is unusual: an alignment of one row is one like others; a row that occurs twice stays, for
the weights of rows take care of it (`seqray.core.msa.row_weights`); rows may share a name, except in
Stockholm, where a name joins the blocks; letters are folded as those of sequences are. Rows of different
lengths, alignments without rows or letters and letters outside the alphabet are errors.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

from seqray.core import Alignment, Alphabet, InputError, NoRecordsError
from seqray.core.results import SkippedRecord
from seqray.io.alignments.a3m import Insertions, is_a3m, parse_fasta_rows, with_insertions, without_insertions
from seqray.io.alignments.aligned_text import AlignedText, to_alignment, what_is_missing
from seqray.io.alignments.clustal import HEADERS, parse_clustal
from seqray.io.alignments.phylip import FIRST_LINE, parse_phylip
from seqray.io.alignments.stockholm import parse_stockholm
from seqray.io.files import display_name, open_input
from seqray.io.sequences import BYTE_ORDER_MARK, Duplicates, OnSkip, UniqueIds, describe_record, name_format

Form = Literal["auto", "stockholm", "a3m", "fasta", "clustal", "phylip"]

_COMPRESSED = {".gz", ".bgz", ".bz2", ".xz"}
_A3M_NAMES = {".a3m", ".a2m"}
_SEVERAL = ("stockholm", "clustal")  # forms that may hold more than one


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

    Parameters
    ----------
    path
        The file; ``-`` is standard input.
    alphabet
        Validates and folds the letters.
    form
        ``auto`` goes by the content, and by the name where it ends in ``.a3m`` or ``.a2m``. A FASTA file
        whose first row has no small letters, and whose rows differ in length only by small letters and dots,
        is A3M.
    insertions
        Of A3M: ``remove`` leaves the columns of the query, ``keep`` gives inserted letters their own columns.
    duplicates
        What to do with the id of an alignment that occurs again: ``error``, ``rename`` or ``keep``.
    on_skip
        Is told of each alignment without rows or letters; where None, such an alignment is an error.

    Yields
    ------
    Alignment
        Its id is the accession of a Stockholm file (``#=GF AC``), else its name (``#=GF ID``), else the name
        of the file without endings, with a number where a file holds several.

    Raises
    ------
    InputError
        Where the file can't be read, is none of these formats or holds no alignment (`NoRecordsError`); where
        rows differ in length, or hold letters outside the alphabet.
    """
    if form not in get_args(Form):
        raise InputError(f"form={form!r}", remedy=f"choose one of {', '.join(get_args(Form))}")
    where = display_name(path)
    with open_input(path) as handle:
        chosen = _form_of(handle.peek(1), path, where) if form == "auto" else form
        texts = _PARSERS[chosen](handle, where, _is_a3m_name(path), insertions)
        ids = UniqueIds(duplicates, where)
        count = 0
        for text in texts:
            count += 1
            identifier = ids.resolve(_identifier(text, path, count if chosen in _SEVERAL else 0))
            problem = what_is_missing(text)
            if problem and on_skip is not None:
                on_skip(SkippedRecord(identifier, problem))
                continue
            yield to_alignment(text, identifier, alphabet, where)
        if count == 0:
            raise NoRecordsError("holds no alignments", where=where)


def _endings(path: str | Path) -> list[str]:
    return [ending.lower() for ending in Path(path).suffixes if ending.lower() not in _COMPRESSED]


def _is_a3m_name(path: str | Path) -> bool:
    return _endings(path)[-1:] != [] and _endings(path)[-1] in _A3M_NAMES


def _form_of(head: bytes, path: str | Path, where: str) -> Form:
    head = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not head:
        raise NoRecordsError("holds no alignments", where=where)
    name = name_format(head)
    if name == "a Stockholm alignment":
        return "stockholm"
    if name == "FASTA":
        return "a3m" if _is_a3m_name(path) else "fasta"
    if name == "a Clustal alignment" or head.startswith(HEADERS):
        return "clustal"
    if FIRST_LINE.match(head):
        return "phylip"
    raise InputError(
        f"is {name or 'no format that is known'}, not an alignment",
        where=where,
        remedy="give Stockholm, A3M, aligned FASTA, Clustal or PHYLIP",
    )


def _identifier(text: AlignedText, path: str | Path, number: int) -> str:
    words = (text.metadata.get("AC") or text.metadata.get("ID") or "").split()
    if words:
        return words[0]
    name = Path(path).name if str(path) != "-" else "alignment"
    while Path(name).suffix.lower() in {*_COMPRESSED, *_endings(name)} and Path(name).stem != name:
        name = Path(name).stem
    return f"{name}_{number}" if number > 1 else name


Texts = Iterator[AlignedText]


def _stockholm(handle: io.BufferedReader, where: str, _: bool, __: Insertions) -> Texts:
    yield from parse_stockholm(handle, where)


def _fasta(handle: io.BufferedReader, where: str, a3m: bool, insertions: Insertions) -> Texts:
    text = parse_fasta_rows(handle, where)
    if not text.rows:
        return
    if a3m or is_a3m(text.rows):
        yield _fold_a3m(text, where, insertions)
    else:
        yield text


def _a3m(handle: io.BufferedReader, where: str, _: bool, insertions: Insertions) -> Texts:
    yield from _fasta(handle, where, True, insertions)


def _fold_a3m(text: AlignedText, where: str, insertions: Insertions) -> AlignedText:
    if insertions == "keep":
        rows = with_insertions(text.rows, text.names, describe_record(where, text.names[0]))
    else:
        rows = without_insertions(text.rows)
    if not any(rows):
        raise InputError(
            "all letters are small, which A3M means as insertions, so there is no column",
            where=where,
            remedy="write columns in capitals, or end the name of an aligned FASTA file in .fa",
        )
    return AlignedText(text.names, rows)


def _clustal(handle: io.BufferedReader, where: str, _: bool, __: Insertions) -> Texts:
    yield from parse_clustal(handle, where)


def _phylip(handle: io.BufferedReader, where: str, _: bool, __: Insertions) -> Texts:
    yield parse_phylip(handle, where)


_PARSERS: dict[str, Callable[[io.BufferedReader, str, bool, Insertions], Texts]] = {
    "stockholm": _stockholm,
    "a3m": _a3m,
    "fasta": _fasta,
    "clustal": _clustal,
    "phylip": _phylip,
}
