"""Labels of data: which of two classes is the positive one, and labels that look like a mistake."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple, TypeVar

from seqray.core.errors import ConfigError, InputError, setting
from seqray.core.records import MISSING_TEXTS, Example
from seqray.core.text import counted, first_and_more, format_number, parse_float

# --- Which of two classes is the positive one

_PAIRS = (  # the positive label first
    *(("yes", "no"), ("y", "n"), ("true", "false"), ("t", "f"), ("p", "n"), ("pos", "neg"), ("+", "-")),
    *(("positive", "negative"), ("1", "0"), ("1", "-1"), ("case", "control"), ("cases", "controls")),
    *(("present", "absent"), ("on", "off")),
)
_POSITIVE = {"positive", "pos", "promoter", "site", "yes", "true", "+"}
_NEGATIVE = {"negative", "neg", "background", "other", "none", "random", "shuffled", "control", "controls"}
_NEGATIVE |= {"no", "false", "-", "0", "-1"}
_NOT = re.compile(r"(?:non|not|no)[-_ ]")
_NOT_THE_OTHER = ("non", "not", "no", "un", "in")


def known_positive(names: Collection[str]) -> str | None:
    """The positive class of two, where their names tell, whatever their case and spaces; else None."""
    by_form = {_form(name): name for name in names}
    if len(names) != 2 or len(by_form) != 2:
        return None
    for positive, negative in _PAIRS:
        if by_form.keys() == {positive, negative}:
            return by_form[positive]
    one, other = sorted(by_form, key=len)
    if other in {f"{prefix}{space}{one}" for prefix in _NOT_THE_OTHER for space in ("", " ")}:
        return by_form[one]
    positive = [name for form, name in by_form.items() if form in _POSITIVE]
    others = [name for name in names if not is_negative(name)]
    decided = positive if len(positive) == 1 else others
    return decided[0] if len(decided) == 1 else None


def choose_positive(counts: Mapping[str, int]) -> str | None:
    """The positive class by counts: of two by their names, None if unclear; else the rarest not negative."""
    if len(counts) == 2:
        return known_positive(counts)
    return min(counts, key=lambda name: (is_negative(name), counts[name], name), default=None)


def unknown_positive(names: Iterable[str], option: str) -> ConfigError:
    """The error where names do not tell which class is positive; ``option`` is how CLASS is set."""
    remedy = option.replace("CLASS", first_and_more(names, 5, separator=" or "))
    return ConfigError("the positive class is not known", remedy=f"give {remedy}")


def is_negative(name: str) -> bool:
    """Whether a class is named as the negative one, such as background, no or not-a-site."""
    form = _form(name)
    return form in _NEGATIVE or bool(_NOT.match(form))


def _form(name: str) -> str:
    """What is compared of a name."""
    folded = unicodedata.normalize("NFKC", name).casefold().strip().replace("\N{MINUS SIGN}", "-")
    number = parse_float(folded)
    if number == number:
        return format_number(number)
    return " ".join(re.split(r"[-_\s]+", folded)) if len(folded) > 1 else folded


# --- Labels that look like a mistake: one check for every verb that reads labels


class LabelFault(NamedTuple):
    """What looks like a mistake, and what to do."""

    what: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.what}; {self.remedy}"


def label_faults(data: Sequence[Example]) -> Iterator[LabelFault]:
    """Yield labels that look like a mistake: alike, missing, several in one, or only in the test part."""
    counts = Counter(one.label or "" for one in data)
    learned = {one.label for one in data if one.split != "test"}
    names = sorted(counts)
    for name in names if learned else ():
        if name not in learned:
            yield LabelFault(
                f"only the test part has the label '{name}' ({counted(counts[name], 'example')}); the model "
                "can't predict it",
                "correct the label, or leave these examples out",
            )
    for name in names:
        if name.lower() in _MISSING:
            yield LabelFault(
                f"the label '{name}' is a class like the others",
                "if it stands for a missing value, drop its rows",
            )
    for one, other in combinations(names, 2) if len(names) <= _MOST_COMPARED else ():
        if how := small_difference(one, other):
            yield LabelFault(
                f"the labels '{one}' and '{other}' differ only {how}, and are two classes",
                "if they mean one class, write them alike",
            )
    if joined := joined_labels(names):
        yield LabelFault(_several(joined), ONE_LABEL)


_MISSING = MISSING_TEXTS - {"none"} | {"n/a", "null", "?", "."}
_MOST_COMPARED = 2000  # names, which are compared pair by pair
ONE_LABEL = (
    "seqray learns one label a sequence: train one model a label (that label or not), or keep one label; to "
    "make it a class of its own, write it with another sign, such as a_b"
)


def joined_labels(names: Collection[str]) -> list[str]:
    """Labels that name several classes, in their order: by ``;`` or ``|``.

    What ``,``, ``/``, ``&`` and ``+`` divide is several labels only where all parts are labels, too.
    """
    found = []
    for name in names:
        parts = [part.strip() for part in re.split(r"[;|]", name)]
        others = [part.strip() for part in re.split(r"[,/&+]", name)]
        if len([part for part in parts if part]) > 1 or (len(others) > 1 and set(others) <= {*names}):
            found.append(name)
    return found


def refuse_joined_labels(names: Collection[str]) -> None:
    """Raise `InputError` for a label that names several classes."""
    if joined := joined_labels(names):
        raise InputError(_several(joined), remedy=ONE_LABEL)


def _several(joined: Sequence[str]) -> str:
    shown = first_and_more((f"'{name}'" for name in joined), 3)
    verb = "names" if len(joined) == 1 else "name"
    return f"the label{'s' * (len(joined) > 1)} {shown} {verb} several classes"


def small_difference(one: str, other: str) -> str:
    """In what two labels differ, if it is hard to see."""
    if unicodedata.normalize("NFKC", one) == unicodedata.normalize("NFKC", other):
        return "in how their letters are encoded"
    folded = [name.casefold().strip() for name in (one, other)]
    if folded[0] == folded[1]:
        return "in case" if one.strip() != other.strip() else "in spaces"
    if folded[0].removesuffix(".0") == folded[1].removesuffix(".0"):
        return "by '.0'"
    same = [re.sub(r"[-_\s;,|]+", "", name) for name in folded]
    return "in spaces or signs" if same[0] == same[1] and len(same[0]) > 1 else ""


# --- Which part of the data is measured

AnyExample = TypeVar("AnyExample", bound=Example)


def choose_split(
    data: Sequence[AnyExample], wanted: str | None
) -> tuple[list[AnyExample], list[AnyExample], str]:
    """Evaluated examples and those to learn a baseline from, both in order of id, and the part's name."""

    def order(e: Example) -> tuple[str, ...]:
        return e.id, getattr(e, "sequence", ""), e.label or "", e.context or "", e.group or ""

    names = {example.split for example in data}
    split = wanted or ("test" if "test" in names else "all")
    if split == "all":
        return sorted(data, key=order), [], split
    chosen = [example for example in data if example.split == split]
    if not chosen:
        known = ", ".join(sorted(name for name in names if name)) or "none"
        remedy = f"splits: {known}; or {setting('split', 'all')}"
        raise InputError(f"no example of split '{split}'", remedy=remedy)
    rest = [example for example in data if example.split in (None, "train") and split != "train"]
    return sorted(chosen, key=order), sorted(rest, key=order), split
