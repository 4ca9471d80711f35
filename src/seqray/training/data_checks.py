"""Checks of classes and lengths before a training."""

from __future__ import annotations

import difflib
import math
from collections import Counter
from collections.abc import Sequence

from seqray.core import (
    ALPHABETS,
    ConfigError,
    DataConfig,
    Example,
    InputError,
    LabeledSequence,
    RunConfig,
    class_name_fault,
    fits_label_sets,
    parse_float,
    truncate,
)
from seqray.io.tables import probability_column
from seqray.modelfile import build_tokenizer

MAX_SHOWN_LABELS = 5


def check_classes(counts: Counter[str], config: RunConfig, classes: Sequence[str] | None) -> tuple[str, ...]:
    """Order the class names; raise an error for data that cannot be used for training.

    With ``classes``, the names have to be in that order; None puts the positive class last.
    """
    for name in counts:
        if fault := class_name_fault(name):
            raise InputError(f"the label {name!r} {fault}", remedy="rename it")
    positive = config.data.positive
    if positive not in counts:
        near = difflib.get_close_matches(positive, counts, n=1) or sorted(counts)
        raise InputError(
            f"no example has the positive class '{positive}'",
            remedy=f"set 'data.positive' to a label of the data, such as '{near[0]}'",
        )
    names = tuple(classes) if classes is not None else (*sorted(set(counts) - {positive}), positive)
    if set(names) != set(counts) or len(set(names)) != len(names):
        raise InputError(f"the classes {', '.join(names)} are not the labels {', '.join(sorted(counts))}")
    if len(names) < 2:
        raise InputError(f"all examples have the label '{positive}'", remedy="a classifier needs two classes")
    if len(names) != config.model.classes:
        labels = f"{len(names)} labels: {', '.join(names)}"
        raise ConfigError(
            f"'model.classes' is {config.model.classes}, but the data have {labels}",
            remedy=f"give --set model.classes={len(names)}, or leave 'model.classes' out of the settings",
        )
    if rare := [name for name in names if counts[name] < 2]:
        raise _rare_labels(rare)
    _check_names(names)
    return names


def _rare_labels(rare: Sequence[str]) -> InputError:
    shown = ", ".join(f"'{name}'" for name in rare[:MAX_SHOWN_LABELS])
    shown += f" and {len(rare) - MAX_SHOWN_LABELS} more" if len(rare) > MAX_SHOWN_LABELS else ""
    what = f"label {shown} has one example" if len(rare) == 1 else f"labels {shown} have one example each"
    remedy = "give two or more of each label"
    if all(math.isfinite(parse_float(name)) for name in rare):
        remedy = f"numbers are read as names of classes: divide them into classes, or {remedy}"
    return InputError(what, remedy=remedy)


def _check_names(names: Sequence[str]) -> None:
    """Refuse class names that would be ambiguous in tables of predictions or figures."""
    columns: dict[str, str] = {}
    for name in names:
        column = probability_column(name)
        if column in columns:
            raise InputError(
                f"labels '{columns[column]}' and '{name}' would share the column {column} of predictions",
                remedy="rename one of them",
            )
        columns[column] = name
        if not fits_label_sets(name):
            raise InputError(f"label '{name}' can't be named in a set (--coverage)", remedy="rename it")
        if len(names) > 2 and name in ("all", "macro"):
            raise InputError(
                f"label '{name}' is what 'seqray evaluate' calls the figures over all classes",
                remedy="rename it",
            )


def check_lengths(data: Sequence[Example], config: RunConfig) -> None:
    """Refuse sequences that don't fit the window, its flanks or the tokenizer, and those without a letter.

    Alignments fit always: `seqray.core.msa.crop_alignment` cuts them to the window.
    """
    sequences = [example for example in data if isinstance(example, LabeledSequence)]
    if not sequences:
        return
    window, flank, rule = config.data.window, config.data.flank, config.data.truncate
    plain = set(ALPHABETS[config.model.alphabet].letters)
    if all(plain.isdisjoint(example.sequence) for example in sequences):
        raise InputError("no training sequence holds an unambiguous letter")
    tokenizer = build_tokenizer(config.model)
    if not flank and rule == "none":
        _refuse_longer(sequences, config.data)
    for example in sequences:
        length, where = len(example.sequence), example.where
        if flank and length != window + 2 * flank:
            expected = f"'data.window' and 'data.flank' make {window} + 2 x {flank} = {window + 2 * flank}"
            raise InputError(f"holds {length} letters, but {expected}", where=where)
        try:
            tokenizer.check(truncate(example.sequence[flank : length - flank], window, rule))
        except InputError as error:
            raise InputError(error.what, where=where) from None
        if length == 0:
            raise InputError("holds no letters", where=where)


def _refuse_longer(sequences: Sequence[LabeledSequence], data: DataConfig) -> None:
    """Count the sequences that are longer than the window in one error."""
    longer = [example for example in sequences if len(example.sequence) > data.window]
    if longer:
        cut = "give truncate='ends' or truncate='start'" if data.site is None else "cut them around the site"
        others = f", and so do {len(longer) - 1} others" if len(longer) > 1 else ""
        raise InputError(
            f"holds {len(longer[0].sequence)} letters, more than 'data.window' ({data.window}){others}",
            where=longer[0].where,
            remedy=f"{cut}, or raise 'data.window'",
        )
