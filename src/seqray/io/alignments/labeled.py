"""Labeled alignments: a table of files, or files of many alignments with a table of their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seqray.core import Alignment, Alphabet, InputError
from seqray.io.alignments.read import read_alignments
from seqray.io.tables import OnUnread, check_label, read_rows, report_unread

FILE_COLUMNS = ("file", "label", "id", "group", "split")
LABEL_COLUMNS = ("id", "label", "group", "split")


def read_labeled_alignments(
    path: str | Path, alphabet: Alphabet, on_unread: OnUnread | None = None
) -> list[Alignment]:
    """Read the alignments that a table lists: columns ``file``, ``label``[, ``id``, ``group``, ``split``].

    Raises `InputError` with the line, for a file that can't be read, an id that it doesn't contain, an empty
    cell or an unknown split; and for a table without rows.

    Parameters
    ----------
    path
        TSV or CSV. A file's name is relative to the folder of the table. If a file contains several
        alignments, the row's ``id`` selects one.
    alphabet
        Of the alignments.
    on_unread
        Called once if there are other columns.
    """
    remedy = "name the columns file,label[,id,group,split]"
    held: dict[Path, dict[str, Alignment]] = {}
    named: set[tuple[Path, str]] = set()
    examples = []
    for where, row in read_rows(path, ("file", "label"), remedy):
        if not examples:
            report_unread(row, FILE_COLUMNS, path, on_unread)
        if not row["file"]:
            raise InputError("names no file", where=where)
        source = Path(path).parent / row["file"]
        if source not in held:
            held[source] = {a.id: a for a in read_alignments(source, alphabet)}
        alignment = _select(held[source], row, where)
        if (source, alignment.id) in named:
            raise InputError(
                f"names the alignment '{alignment.id}' of {row['file']} a second time", where=where
            )
        named.add((source, alignment.id))
        examples.append(_example(alignment, row.get("id") or alignment.id, row, where))
    if not examples:
        raise InputError("contains a header but no alignments", where=str(path))
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
) -> tuple[list[list[Alignment]], int]:
    """Read many alignments from files, and their labels from one table.

    Raises `InputError` if the table lists an id twice or one that is in no file, if an id is in two files,
    and as `read_labeled_alignments`.

    Parameters
    ----------
    paths
        Files of alignments.
    labels
        TSV or CSV with the columns ``id``, ``label``[, ``group``, ``split``].
    alphabet
        Of the alignments.
    on_unread
        Called once if the table has other columns.

    Returns
    -------
    examples
        Of each file, in its order.
    unlabeled
        Number of alignments that are not in the table, which are left out.
    """
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    for where, row in read_rows(labels, ("id", "label"), "name the columns id,label[,group,split]"):
        if not rows:
            report_unread(row, LABEL_COLUMNS, labels, on_unread)
        if row["id"] in rows:
            raise InputError(f"names '{row['id']}' a second time", where=where)
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
                raise InputError(
                    f"contains '{alignment.id}', and so does {held_by[alignment.id]}", where=str(path)
                )
            held_by[alignment.id] = path
            where, row = rows[alignment.id]
            found.append(_example(alignment, alignment.id, row, where))
    for name, (where, _) in rows.items():
        if name not in held_by:
            files = " or ".join(str(path) for path in paths)
            raise InputError(f"names '{name}', which is not in {files}", where=where)
    if not held_by:
        raise InputError("labels no alignment", where=str(labels))
    return examples, unlabeled


def _example(alignment: Alignment, name: str, row: Mapping[str, str], where: str) -> Alignment:
    split = check_label(row, where)
    return replace(
        alignment, id=name, label=row["label"], group=row.get("group") or alignment.group, split=split
    )
