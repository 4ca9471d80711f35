"""Names of classes, which become cells, columns, ids of calls and words on a terminal."""

from __future__ import annotations


def class_name_fault(name: str) -> str:
    """What is wrong with the name of a class; empty where nothing is."""
    if not name.strip():
        return "is empty"
    if not name.isprintable():
        return "holds a tab, a line break or another character that can't be printed"
    if name[0] in '#"':
        return f"begins with {name[0]}, which means something else in a table"
    return ""


def fits_label_sets(name: str) -> bool:
    """Whether a table can write it in a set, where ``|`` separates classes and ``-`` is the empty set."""
    return "|" not in name and name != "-"
