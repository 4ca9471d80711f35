"""Sequences from FASTA, GenBank or a table, as the content of a file decides."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

from seqray.core.alphabet import Alphabet
from seqray.core.errors import InputError, NoRecordsError
from seqray.core.records import MISSING_TEXTS, LabeledSequence, SequenceRecord
from seqray.core.text import class_name_fault
from seqray.io.files import display_name, encode_text, is_frame, open_input, open_output
from seqray.io.records import (
    BYTE_ORDER_MARK,
    GENBANK,
    OnLetters,
    OnSkip,
    RawRecord,
    ReadOptions,
    detect_format,
    read_fasta,
    split_fasta,
    validate_records,
)
from seqray.io.tables import Columns, check_columns, comment_lines, parse_rows, read_rows

if TYPE_CHECKING:
    from Bio.SeqRecord import SeqRecord


def read_sequences(
    path: str | Path,
    alphabet: Alphabet,
    *,
    on_genbank: Callable[[SeqRecord], None] | None = None,
    columns: Columns | None = None,
    **options: Unpack[ReadOptions],
) -> Iterator[SequenceRecord]:
    """Read the records of FASTA or GenBank in order, by content; with ``columns`` also of a table."""
    where = display_name(path)
    with open_input(path) as handle:
        split, head = split_fasta, handle.peek(1)
        if columns is not None and _is_table(head, columns):
            split = partial(split_table, columns=columns)
        elif detect_format(head) == GENBANK:
            from seqray.io.genbank import split_genbank  # Biopython, which FASTA does without

            split = partial(split_genbank, on_record=on_genbank)
        yield from validate_records(split(handle, where), alphabet, where, **options)


def _is_table(head: bytes, columns: Columns) -> bool:
    """Whether the first line that is no comment is a header of several columns, or of sequences alone."""
    if detect_format(head):
        return False
    lines = head.removeprefix(BYTE_ORDER_MARK).splitlines()
    first = next((line for line in lines if line.strip() and not line.startswith((b"#", b";"))), b"").lower()
    check_columns(columns)
    alone = {name.lower().encode() for name in ("sequence", *columns.values())}
    return bool({*first} & {*b"\t,"}) or first.strip() in alone


def split_table(handle: BinaryIO, where: str, columns: Columns) -> Iterator[RawRecord]:
    """Records of a table."""
    remedy = "name the columns sequence[,id], or give FASTA"
    rows = parse_rows(handle, where, ("sequence",), remedy, columns=columns)
    for number, (_, row) in enumerate(rows, start=1):
        letters, reason = row["sequence"], "empty sequence"
        if letters.lower() in MISSING_TEXTS:
            letters, reason = "", f"the sequence is '{letters}', which is the text of a missing value"
        name = row.get("id") or f"row{number}"
        yield RawRecord(name, letters.encode(), row.get("description", ""), reason=reason)


def is_genbank(path: str | Path) -> bool:
    """Whether a file is GenBank, by its first block."""
    with open_input(path) as handle:
        return detect_format(handle.peek(1)) == GENBANK


# --------------------------------------------------------------------------------------- with labels


_REMEDY = "name the columns sequence,label[,id,group,split,context,subclass]"
_FILL = "give one, or leave the row out"
_COLUMNS = ("sequence", "label", "id", "group", "split")
KNOWN = (*_COLUMNS, "context", "subclass")
_SPLITS = ("train", "validation", "test")

OnUnread = Callable[[str, Sequence[str], Sequence[str]], None]
"""Receives the name of a table, the columns that are not read, and those that are known."""


def report_unread(
    header: Iterable[str],
    known: Sequence[str],
    path: Any,
    on_unread: OnUnread | None,
    columns: Columns | None,
) -> None:
    """Report columns of a table that are not ``known``, such as ``groups`` for ``group``."""
    own = {name.lower() for name in (columns or {}).values()}
    unread = [name for name in header if name and name not in known and name not in own]
    if on_unread is not None and unread:
        on_unread(display_name(path), unread, known)


def check_label(row: Mapping[str, str], where: str) -> str | None:
    """Return the split of a labeled row, or None."""
    if not row["label"]:
        raise InputError("has no label", where=where, remedy=_FILL)
    if fault := class_name_fault(row["label"]):
        raise InputError(f"has the label {row['label']!r}, which {fault}", where=where, remedy="rename it")
    split = row.get("split") or None
    if split not in (None, *_SPLITS):
        remedy = f"use {', '.join(_SPLITS)} or nothing"
        raise InputError(f"has the split '{split}'", where=where, remedy=remedy)
    return split


def labeled_sequence(
    row: Mapping[str, str], identifier: str, alphabet: Alphabet, *, where: str, file: str
) -> LabeledSequence:
    """Make an example from a row of a label and any of `KNOWN`; it has no letters if the row has none."""
    split = check_label(row, where)
    letters = row.get("sequence", "")
    if letters.lower() in MISSING_TEXTS:
        what = f"the sequence is '{letters}', which is the text of a missing value"
        remedy = "leave the row out; if these are its letters, give FASTA files"
        raise InputError(what, where=where, remedy=remedy)
    return LabeledSequence(
        sequence=alphabet.normalize(letters, where=where) if letters else "",
        label=row["label"],
        id=identifier,
        group=row.get("group") or None,
        split=split,
        context=row.get("context") or None,
        subclass=row.get("subclass") or None,
        file=file,
    )


def read_labeled_table(
    path: Any,
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_unread: OnUnread | None = None,
    keep: Mapping[str, list[str]] | None = None,
    columns: Columns | None = None,
) -> list[LabeledSequence]:
    """Read training examples from TSV or CSV, or a pandas frame; without ``id`` they are ``row<N>``, from 1.

    ``on_letters`` gets letters as in the file, ``on_unread`` unknown columns, ``keep`` more cells.
    """
    examples: list[LabeledSequence] = []
    file = display_name(path) if is_frame(path) else str(path)
    for where, row in read_rows(path, ("sequence", "label", *(keep or ())), _REMEDY, columns or {}):
        if not examples:
            report_unread(row, KNOWN, path, on_unread, columns)
        check_label(row, where)
        if not row["sequence"]:
            raise InputError("has no sequence", where=where, remedy=_FILL)
        identifier = row.get("id") or f"row{len(examples) + 1}"
        examples.append(labeled_sequence(row, identifier, alphabet, where=where, file=file))
        for name, cells in (keep or {}).items():
            cells.append(row[name])
        if on_letters is not None:
            on_letters(row["sequence"])
    if not examples:
        raise NoRecordsError("contains a header but no examples", where=display_name(path))
    return examples


def read_labeled_fastas(
    paths: Mapping[str, str | Path],
    alphabet: Alphabet,
    on_letters: OnLetters | None = None,
    on_skip: OnSkip | None = None,
) -> list[LabeledSequence]:
    """Read training examples from one FASTA file per class; ids may repeat. See `ReadOptions`."""
    return [
        LabeledSequence(record.sequence, label, record.id, file=str(path))
        for label, path in paths.items()
        for record in read_fasta(
            path, alphabet, duplicates="keep", soft_masks=False, on_letters=on_letters, on_skip=on_skip
        )
    ]


def write_labeled_table(
    path: str | Path,
    examples: Iterable[LabeledSequence],
    provenance: Sequence[str] = (),
    *,
    folds: Sequence[int | None] | None = None,
    subclasses: bool = False,
) -> int:
    """Write a row per example, with a column ``context`` or ``subclass`` if one has it or it is asked for."""
    rows = list(examples)
    columns = {name: [getattr(row, name) or "" for row in rows] for name in _COLUMNS}
    if folds is not None:
        columns["fold"] = ["" if fold is None else str(fold) for fold in folds]
    for name in ("context", "subclass"):
        values = [getattr(row, name) or "" for row in rows]
        if any(values) or (subclasses and name == "subclass"):
            columns[name] = values
    text = io.StringIO()
    delimiter = "," if str(path).lower().endswith((".csv", ".csv.gz")) else "\t"
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    with open_output(path) as handle:
        handle.write(comment_lines(provenance) + encode_text(text.getvalue()))
    return len(rows)
