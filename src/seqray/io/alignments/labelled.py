"""Labelled alignments: a table of files, or one file of many alignments with a table of their labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from seqray.core import Alignment, Alphabet, InputError
from seqray.io.alignments.read import read_alignments
from seqray.io.tables import check_label, read_rows


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
    named: set[tuple[Path, str]] = set()
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
        if (source, alignment.id) in named:
            raise InputError(
                f"names the alignment '{alignment.id}' of {row['file']} a second time", where=where
            )
        named.add((source, alignment.id))
        examples.append(_example(alignment, wanted or alignment.id, row, where))
    if not examples:
        raise InputError("contains a header but no alignments", where=str(path))
    return examples


def read_labelled_stockholm(
    paths: Sequence[str | Path], labels: str | Path, alphabet: Alphabet
) -> tuple[list[list[Alignment]], int]:
    """Read many alignments from files, labels from one table: ``id``, ``label``[, ``group``, ``split``].

    Returns
    -------
    examples
        Of each file, in its order.
    unlabelled
        Number of alignments that the table doesn't name, which are left out.

    Raises
    ------
    InputError
        For a table that names an id twice or one that no file holds, an id that two files hold, and as
        `read_labelled_alignments`.
    """
    rows: dict[str, tuple[str, dict[str, str]]] = {}
    for where, row in read_rows(labels, ("id", "label"), "name the columns id,label[,group,split]"):
        if row["id"] in rows:
            raise InputError(f"names '{row['id']}' a second time", where=where)
        rows[row["id"]] = (where, row)
    examples: list[list[Alignment]] = [[] for _ in paths]
    held_by: dict[str, str | Path] = {}
    unlabelled = 0
    for path, found in zip(paths, examples, strict=True):
        for alignment in read_alignments(path, alphabet):
            if alignment.id not in rows:
                unlabelled += 1
                continue
            if alignment.id in held_by:
                raise InputError(f"holds '{alignment.id}', as {held_by[alignment.id]} does", where=str(path))
            held_by[alignment.id] = path
            where, row = rows[alignment.id]
            found.append(_example(alignment, alignment.id, row, where))
    for name, (where, _) in rows.items():
        if name not in held_by:
            files = " or ".join(str(path) for path in paths)
            raise InputError(f"names '{name}', which {files} doesn't hold", where=where)
    if not held_by:
        raise InputError("labels no alignment", where=str(labels))
    return examples, unlabelled


def _example(alignment: Alignment, name: str, row: Mapping[str, str], where: str) -> Alignment:
    split = check_label(row, where)
    return replace(
        alignment, id=name, label=row["label"], group=row.get("group") or alignment.group, split=split
    )
