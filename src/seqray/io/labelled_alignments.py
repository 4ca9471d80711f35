"""Labelled alignments: a table of files, or one file of many alignments with a table of their labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from seqray.alphabet import Alphabet
from seqray.errors import InputError
from seqray.io.alignments import read_alignments
from seqray.io.delimited import read_rows
from seqray.io.tables import SPLITS
from seqray.records import Alignment


def read_labelled_alignments(path: str | Path, alphabet: Alphabet) -> list[Alignment]:
    """Read the alignments that a table names: columns ``file``, ``label``[, ``id``, ``group``, ``split``].

    Parameters
    ----------
    path
        TSV or CSV. A file's name is relative to the folder of the table. Where a file holds several
        alignments, the row's ``id`` says which one.
    alphabet
        Of the alignments.

    Raises
    ------
    InputError
        Naming the line, for a file that can't be read, an id that it doesn't hold, an empty cell or an
        unknown split; and for a table without rows.
    """
    remedy = "name the columns file,label[,id,group,split]"
    held: dict[Path, dict[str, Alignment]] = {}
    examples = []
    for where, row in read_rows(path, ("file", "label"), remedy):
        if not row["file"]:
            raise InputError("names no file", where=where)
        source = Path(path).parent / row["file"]
        if source not in held:
            held[source] = {a.id: a for a in read_alignments(source, alphabet)}
        alignments = held[source]
        wanted = row.get("id") or (next(iter(alignments)) if len(alignments) == 1 else "")
        if wanted not in alignments and len(alignments) == 1:
            alignment = next(iter(alignments.values()))  # the table's own name for a file of one
        elif wanted in alignments:
            alignment = alignments[wanted]
        else:
            raise InputError(
                f"{row['file']} holds {len(alignments)} alignments"
                + (f", none with the id '{wanted}'" if wanted else ""),
                where=where,
                remedy="name one of them in the column 'id'",
            )
        examples.append(_example(alignment, wanted or alignment.id, row, where))
    if not examples:
        raise InputError("holds a header but no alignments", where=str(path))
    return examples


def read_labelled_stockholm(
    path: str | Path, labels: str | Path, alphabet: Alphabet
) -> tuple[list[Alignment], int]:
    """Read many alignments from one file, labels from a table: ``id``, ``label``[, ``group``, ``split``].

    Returns
    -------
    examples
        In the order of the file.
    unlabelled
        Number of alignments that the table doesn't name, which are left out.

    Raises
    ------
    InputError
        For a table that names an id twice or one that the file doesn't hold, and as
        `read_labelled_alignments`.
    """
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    for where, row in read_rows(labels, ("id", "label"), "name the columns id,label[,group,split]"):
        if row["id"] in rows:
            raise InputError(f"names '{row['id']}' a second time", where=where)
        rows[row["id"]] = (where, row)
    examples, unlabelled = [], 0
    for alignment in read_alignments(path, alphabet):
        found = rows.pop(alignment.id, None)
        if found is None:
            unlabelled += 1
        else:
            examples.append(_example(alignment, alignment.id, found[1], found[0]))
    if rows:
        first, (where, _) = next(iter(rows.items()))
        raise InputError(f"names '{first}', which {path} doesn't hold", where=where)
    if not examples:
        raise InputError("labels no alignment", where=str(labels))
    return examples, unlabelled


def _example(alignment: Alignment, name: str, row: Mapping[str, str], where: str) -> Alignment:
    if not row["label"]:
        raise InputError("has no label", where=where)
    split = row.get("split") or None
    if split not in (None, *SPLITS):
        raise InputError(
            f"has the split '{split}'", where=where, remedy=f"use {', '.join(SPLITS)} or nothing"
        )
    return replace(
        alignment, id=name, label=row["label"], group=row.get("group") or alignment.group, split=split
    )
