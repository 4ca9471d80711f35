"""Readers of alignments, with labels or without."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqray.core.alphabet import Alphabet
from seqray.core.errors import InputError, NoRecordsError
from seqray.core.records import Alignment
from seqray.core.results import SkippedRecord
from seqray.io import alignment_formats
from seqray.io.alignment_formats import AlignedText
from seqray.io.files import display_name, encode_text, is_frame, open_input
from seqray.io.records import (
    BYTE_ORDER_MARK,
    FASTA,
    Duplicates,
    OnSkip,
    UniqueIds,
    detect_format,
    skip_or_raise,
)
from seqray.io.sequences import OnUnread, check_label, report_unread
from seqray.io.tables import Columns, read_rows

_COMPRESSED = {".gz", ".bgz", ".bz2", ".xz"}
_STOCKHOLM, _CLUSTAL, _PHYLIP = "a Stockholm alignment", "a Clustal alignment", "PHYLIP"


def read_alignments(
    path: str | Path,
    alphabet: Alphabet,
    *,
    duplicates: Duplicates = "error",
    on_skip: OnSkip | None = None,
    skip_unusable: bool | None = None,
) -> Iterator[Alignment]:
    """Read the alignments of a file in order: many of a Stockholm or Clustal file, one of any other.

    ``on_skip`` gets those without rows or letters, with ``skip_unusable`` also damaged ones.
    """
    where = display_name(path)
    with open_input(path) as handle:
        form = _form_of(handle.peek(1), where)
        if form == FASTA:
            endings = [one.lower() for one in Path(path).suffixes if one.lower() not in _COMPRESSED]
            is_a3m = endings[-1:] in ([".a3m"], [".a2m"])
            texts = alignment_formats.parse_fasta_alignment(handle, where, is_a3m)
        elif form == _PHYLIP:
            texts = alignment_formats.parse_phylip(handle, where, alphabet)
        else:  # any number of alignments in a file
            texts = (
                alignment_formats.parse_stockholm if form == _STOCKHOLM else alignment_formats.parse_clustal
            )(handle, where)
        ids, count = UniqueIds(duplicates, where), 0
        for count, text in enumerate(texts, start=1):
            name = _identifier(text, path, 0 if form in (FASTA, _PHYLIP) else count)
            identifier = ids.resolve(name, source=Alignment.ID_SOURCE)
            problem = alignment_formats.reason_empty(text)
            if problem and on_skip is not None:
                on_skip(SkippedRecord(identifier, problem))
                continue
            try:
                alignment = alignment_formats.to_alignment(text, identifier, alphabet, where)
            except InputError as error:
                skip_or_raise(error, identifier, on_skip, skip_unusable)
                continue
            yield alignment
        if count == 0:
            raise NoRecordsError("contains no alignments", where=where)


def from_biopython(thing: Any, name: str, alphabet: Alphabet) -> Alignment:
    """Turn Biopython's `MultipleSeqAlignment` or `Alignment` into an alignment of seqray."""
    if not type(thing).__module__.startswith("Bio.Align"):
        remedy = "give alignments of seqray or Biopython"
        raise InputError(f"got {type(thing).__name__}, not an alignment", where=name, remedy=remedy)
    facts = (getattr(thing, "annotations", None) or {}) if name.startswith("alignment_") else {}
    name = str(facts.get("accession") or facts.get("identifier") or name)  # before one made from its place
    rows = enumerate(getattr(thing, "sequences", thing), start=1)  # the other is a sequence of records
    names = [str(getattr(record, "id", f"row_{row}")) for row, record in rows]
    texts = [str(getattr(thing[row], "seq", thing[row])).encode() for row in range(len(names))]
    return alignment_formats.to_alignment(AlignedText(names, texts), name, alphabet, "alignments")


def _form_of(head: bytes, where: str) -> str:
    head = head.removeprefix(BYTE_ORDER_MARK).lstrip()
    if not head:
        raise NoRecordsError("contains no alignments", where=where)
    form = detect_format(head) or (_PHYLIP if alignment_formats.FIRST_LINE.match(head) else "")
    if form in (_STOCKHOLM, FASTA, _CLUSTAL, _PHYLIP):
        return form
    remedy = "give Stockholm, A3M, aligned FASTA, Clustal or PHYLIP"
    raise InputError(f"is {form or 'of unknown format'}, not an alignment", where=where, remedy=remedy)


def _identifier(text: alignment_formats.AlignedText, path: str | Path, number: int) -> str:
    words = (text.metadata.get("AC") or text.metadata.get("ID") or "").split()
    if words:
        return words[0]
    name = encode_text(Path(path).name).decode() if str(path) != "-" else "alignment"
    if Path(name).suffix.lower() in _COMPRESSED:
        name = Path(name).stem
    name = Path(name).stem  # one ending: 1abc.A.fa and 1abc.B.fa stay apart
    return f"{name}_{number}" if number > 1 else name


# --------------- with labels: a table of files, or files of many alignments with a table of their labels

_FILE_COLUMNS = ("file", "label", "id", "group", "split")
_LABEL_COLUMNS = ("id", "label", "group", "split")


def read_labeled_alignments(
    path: Any, alphabet: Alphabet, on_unread: OnUnread | None = None, columns: Columns | None = None
) -> list[Alignment]:
    """Read the alignments of a table with the columns ``file``, ``label``[, ``id``, ``group``, ``split``].

    A file's name is relative to the folder of the table, of a frame to the current one; of several alignments
    in it, the ``id`` selects one.
    """
    remedy = "name the columns file,label[,id,group,split]"
    held: dict[Path, dict[str, Alignment]] = {}
    named: set[tuple[Path, str]] = set()
    examples, folder = [], Path() if is_frame(path) else Path(path).parent
    for where, row in read_rows(path, ("file", "label"), remedy, columns or {}):
        if not examples:
            report_unread(row, _FILE_COLUMNS, path, on_unread, columns)
        if not row["file"]:
            raise InputError("names no file", where=where, remedy="give one, or leave the row out")
        source = folder / row["file"]
        if source not in held:
            held[source] = {a.id: a for a in read_alignments(source, alphabet)}
        alignment = _select(held[source], row, where)
        if (source, alignment.id) in named:
            what = f"names the alignment '{alignment.id}' of {row['file']} a second time"
            raise InputError(what, where=where)
        named.add((source, alignment.id))
        examples.append(_example(alignment, row.get("id") or alignment.id, row, where))
    if not examples:
        raise InputError("contains a header but no alignments", where=display_name(path))
    return examples


def _select(alignments: Mapping[str, Alignment], row: Mapping[str, str], where: str) -> Alignment:
    """The alignment of a table row; the row may rename the only alignment of a file."""
    if len(alignments) == 1:
        return next(iter(alignments.values()))
    identifier = row.get("id", "")
    if identifier in alignments:
        return alignments[identifier]
    raise InputError(
        f"{row['file']} contains {len(alignments)} alignments"
        + (f", none with the id '{identifier}'" if identifier else ""),
        where=where,
        remedy="name one of them in the column 'id'",
    )


def read_labeled_stockholm(
    paths: Sequence[str | Path],
    labels: str | Path,
    alphabet: Alphabet,
    on_unread: OnUnread | None = None,
    columns: Columns | None = None,
) -> tuple[list[list[Alignment]], int]:
    """Read alignments and a table of their labels: the examples of each file, and how many have no label."""
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    remedy = "name the columns id,label[,group,split]"
    for where, row in read_rows(labels, ("id", "label"), remedy, columns or {}):
        if not rows:
            report_unread(row, _LABEL_COLUMNS, labels, on_unread, columns)
        if row["id"] in rows:
            raise InputError(f"names '{row['id']}' a second time", where=where, remedy="leave one out")
        rows[row["id"]] = (where, row)
    examples: list[list[Alignment]] = [[] for _ in paths]
    held_by: dict[str, str | Path] = {}
    unlabeled = 0
    for path, found in zip(paths, examples, strict=True):
        for alignment in read_alignments(path, alphabet):
            if alignment.id not in rows:
                unlabeled += 1
                continue
            if alignment.id in held_by:
                what = f"contains '{alignment.id}', and so does {held_by[alignment.id]}"
                raise InputError(what, where=str(path))
            held_by[alignment.id] = path
            where, row = rows[alignment.id]
            found.append(_example(alignment, alignment.id, row, where))
    for name, (where, _) in rows.items():
        if name not in held_by:
            files = " or ".join(str(path) for path in paths)
            raise InputError(f"names '{name}', which is not in {files}", where=where, remedy="leave it out")
    if not held_by:
        raise InputError("labels no alignment", where=str(labels))
    return examples, unlabeled


def _example(alignment: Alignment, name: str, row: Mapping[str, str], where: str) -> Alignment:
    split, group = check_label(row, where), row.get("group") or alignment.group
    return replace(alignment, id=name, label=row["label"], group=group, split=split)
