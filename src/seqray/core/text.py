"""Numbers and names of classes as text, and where long sequences are cut."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from seqray.core.errors import InputError, reading_card, setting

# --- Numbers as text, and rounded as they are stored: six significant digits unless stated otherwise


def parse_float(text: str) -> float:
    """A number; nan for other text, also for underscores and digits of other scripts, which Python takes."""
    try:
        return float(text) if text.isascii() and "_" not in text else math.nan
    except ValueError:
        return math.nan


def format_number(value: float, digits: int = 6) -> str:
    """Write a number with so many significant digits."""
    return f"{value:.{digits}g}"


def round_number(value: float, digits: int = 6) -> float:
    """The number that `format_number` writes."""
    return float(f"{value:.{digits}g}")


def counted(items: int, one: str) -> str:
    """Write ``1 record``, ``2 records``."""
    return f"{items} {one if items == 1 else one + 's'}"


def class_counts(counts: Mapping[str, int]) -> str:
    """Count each class in words; 'class' stands before a name that begins with a digit."""
    of = " of class" if any(name[:1].isdigit() for name in counts) else ""
    return ", ".join(f"{count}{of} {name}" for name, count in counts.items())


def first_and_more(names: Iterable[Any], most: int, *, of: str = "", separator: str = ", ") -> str:
    """Write at most so many names, and how many more (``of`` what) there are: ``a, b and 3 more``."""
    every = [str(name) for name in names]
    more = f" and {len(every) - most} more{of and ' ' + of}" if len(every) > most else ""
    return separator.join(every[:most]) + more


def describe_labels(counts: Counter[str]) -> str:
    """Labels with their counts, the most frequent first, as ``25 'background', 1 'odd'``."""
    words = (f"{count} '{label}'" for label, count in counts.most_common())
    return first_and_more(words, 8, of="labels")


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """The known name that resembles one most, whatever the case; empty if none is near."""
    by_fold = {other.casefold(): other for other in known}
    near = difflib.get_close_matches(name.casefold(), by_fold, n=1, cutoff=cutoff)
    return by_fold[near[0]] if near else ""


def did_you_mean(
    name: str, known: Iterable[str], *, prefix: str = "", cutoff: float = 0.6, otherwise: str | None = None
) -> str:
    """The remedy for an unknown name: the nearest known one, else all of them (or ``otherwise``)."""
    names = list(known)
    if near := nearest(name, names, cutoff):
        return f"did you mean '{prefix}{near}'?"
    return f"known are {', '.join(names)}" if otherwise is None else otherwise


INTERVAL_DRAWS = 1000  # of the bootstrap behind intervals, where nobody asks for another number


def format_interval(low: float, high: float, style: str = ".3f") -> str:
    """Format an interval to follow its value: `` (0.100 to 0.200)``; empty if it is undefined."""
    return f" ({low:{style}} to {high:{style}})" if math.isfinite(low) else ""


def headline_metric(metrics: Mapping[str, Any], training: Mapping[str, Any] | None = None) -> str:
    """Write the figure of a card that lists show, else one of its ``training``; ``-`` without any."""
    figure = metrics.get("headline")
    if not isinstance(figure, Mapping) or "value" not in figure:
        validation, floor = ((training or {}).get(name) or {} for name in ("validation", "floor"))
        name = next((name for name in ("auroc", "macro_f1", "mcc") if validation.get(name)), None)
        if name is None:
            return "-"
        beside = floor.get("linear", {}).get(name)
        of_linear = "" if beside is None else f" (its linear baseline alone: {beside:.2f})"
        return f"{name.upper()} {validation[name]:.2f}{of_linear}, validation part of its training"
    with reading_card("metrics"):
        metric = str(figure.get("metric", "score")).upper()
        metric += " of all sites" * (metric == "AUPRC")  # which models for genomes state, before genes or not
        text = f"{metric} {figure['value']:.2f}"
        if "low" in figure and "high" in figure:
            text += format_interval(figure["low"], figure["high"], ".2f")
        return f"{text}, {figure['split']}" if "split" in figure else text


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align columns with two spaces between, without trailing spaces."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


class Brief:
    """A dataclass that shows itself in a line: of arrays, long texts and lists the beginning."""

    __slots__ = ()

    def __repr__(self) -> str:
        this: Any = self
        names = [one.name for one in fields(this) if one.repr]
        text = ", ".join(f"{name}={reprlib.repr(getattr(self, name))}" for name in names)
        return f"{type(self).__name__}({' '.join(text.split())})"


# --- Names of classes, which become cells, columns, ids of calls and words on a terminal


def class_name_fault(name: str) -> str:
    """What is wrong with the name of a class; empty where nothing is."""
    if not name.strip():
        return "is empty"
    if not name.isprintable():
        return "holds a tab, a line break or another character that can't be printed"
    if name[0] in '#"':
        return f"begins with {name[0]}, which means something else in a table"
    return ""


def label_set_cell(names: Iterable[str]) -> str:
    """Classes as a cell, ``|`` between them: ``-`` is the empty set, and a class of this name in quotes."""
    return "|".join("'-'" if name == "-" else name for name in names) or "-"


# --- Which letters of a sequence are read where it is longer than a model reads

Truncation = Literal["ends", "start", "none"]
"""``ends`` keeps the first and the last half of what is read, ``start`` the first letters; ``none`` refuses
longer sequences."""


def kept_parts(length: int, window: int, rule: Truncation) -> tuple[slice, slice]:
    """The two parts of a sequence of this length that are read; the second is empty if one part is all."""
    if length <= window:
        return slice(0, length), slice(length, length)
    if rule == "none":
        what = f"has {length} letters, more than {window}"
        raise InputError(what, remedy=f"give {setting('truncate', 'ends')}")
    behind = window // 2 if rule == "ends" else 0
    return slice(0, window - behind), slice(length - behind, length)


def truncate(sequence: str, window: int, rule: Truncation) -> str:
    """The letters that are read of a sequence, see `kept_parts`."""
    return "".join(sequence[part] for part in kept_parts(len(sequence), window, rule))


def describe_truncation(count: int, total: int, window: int, rule: Truncation) -> str:
    """State how many sequences are cut to a window, and how."""
    kept = f"first {window}" if rule == "start" else f"first {-(-window // 2)} and last {window // 2}"
    return f"{count} of {total} sequences are longer than {window} letters: their {kept} are read"


def describe_learned(known: int, checked: int, count: int) -> str:
    """Which records are training data, as ``all 40 of these records``, or about which share of them."""
    if checked == count:
        return f"all {count} of these records" if known == count else f"{known} of these {count} records"
    return f"about {known / checked:.0%} of these records ({known} of the {checked} that it can check)"
