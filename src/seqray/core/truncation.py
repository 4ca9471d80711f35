"""Which letters of a sequence are read where it is longer than a model reads."""

from __future__ import annotations

from typing import Literal

from seqray.core.errors import InputError

Truncation = Literal["ends", "start", "none"]
"""``ends`` keeps the first and the last half of what is read, ``start`` the first letters; ``none`` refuses
longer sequences."""


def kept_parts(length: int, window: int, rule: Truncation) -> tuple[slice, slice]:
    """The two parts of a sequence that are read; the second is empty if one part is all.

    Raises InputError for a sequence longer than the window where the rule is ``none``.

    Parameters
    ----------
    length, window
        Letters of the sequence, and most letters that are read.
    rule
        How it is cut.

    Examples
    --------
    >>> kept_parts(9, 5, "ends")
    (slice(0, 3, None), slice(7, 9, None))
    """
    if length <= window:
        return slice(0, length), slice(length, length)
    if rule == "none":
        raise InputError(f"has {length} letters, more than {window}", remedy="give truncate='ends'")
    behind = window // 2 if rule == "ends" else 0
    return slice(0, window - behind), slice(length - behind, length)


def truncate(sequence: str, window: int, rule: Truncation) -> str:
    """The letters that are read of a sequence, see `kept_parts`."""
    return "".join(sequence[part] for part in kept_parts(len(sequence), window, rule))


def describe_truncation(count: int, total: int, window: int, rule: Truncation) -> str:
    """State how many sequences are cut, and how.

    Parameters
    ----------
    count, total
        Sequences that are longer than the window, and all.
    window, rule
        Most letters that are read, and how longer ones are cut.
    """
    kept = f"first {window}" if rule == "start" else f"first {-(-window // 2)} and last {window // 2}"
    return f"{count} of {total} sequences are longer than {window} letters: their {kept} are read"


def describe_cropping(count: int, total: int, columns: int) -> str:
    """State how many alignments are cropped, and how.

    Parameters
    ----------
    count, total
        Alignments with letters in more columns than are read, and all.
    columns
        Most columns that are read.
    """
    which = f"{count} of {total} alignments have letters in more than {columns} columns"
    return f"{which}: the {columns} columns with the most letters are read"
