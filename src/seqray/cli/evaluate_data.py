"""Data and predictions of an evaluation: read, renamed, and divided into evaluation and training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from seqray.cli.model import naming_other_models
from seqray.core.alphabet import Alphabet
from seqray.core.errors import ConfigError, InputError
from seqray.core.labels import ONE_LABEL, joined_labels, small_difference
from seqray.core.records import LabeledSequence
from seqray.core.results import Answers
from seqray.io.predictions import Table, numeric_column, probability_column, scores_and_calls
from seqray.kinds.kinds import LabeledFiles

NO_FLOOR = "these figures have no baseline, so they do not show what a simple rule would reach"


@dataclass(slots=True)
class EvaluationInput:
    """Everything that is measured: ``examples`` in order of id, and the ``answers`` of the model first."""

    name: str
    sha256: str
    alphabet: Alphabet
    examples: list[LabeledSequence]
    train: list[LabeledSequence]
    split: str
    classes: tuple[str, ...]
    positive: str
    answers: list[Answers]
    card: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    read: int | None = None

    @property
    def is_lettered(self) -> bool:
        """Whether all examples have their sequences."""
        return all(example.sequence for example in self.examples)


def read_with_notes(
    read: Callable[..., Sequence[Any]], files: LabeledFiles, alphabet: Alphabet, notes: list[str]
) -> list[Any]:
    """Labeled examples; those without letters are noted and left out."""
    skipped: list[str] = []
    with naming_other_models():
        data = read(files, alphabet, on_skip=lambda record: skipped.append(record.id))
    if skipped:
        notes.append(f"{len(skipped)} records without a sequence are left out, such as '{skipped[0]}'")
    return list(data)


def renamed(examples: list[LabeledSequence], items: Sequence[str]) -> list[LabeledSequence]:
    """Rename labels by ``--map OLD=NEW``."""
    names = dict[str, str]()
    for item in items:
        old, equals, new = item.rpartition("=")
        if not (old and equals and new):
            raise ConfigError(f"'--map {item}' renames nothing", remedy="write --map LABEL=CLASS")
        if old in names:
            what = f"--map renames the label '{old}' twice, to {names[old]} and to {new}"
            raise ConfigError(what, remedy="give one --map for each label")
        names[old] = new
    unused = set(names) - {example.label for example in examples}
    if examples and unused:
        raise ConfigError(f"no example has the label '{sorted(unused)[0]}' that --map renames")
    return [replace(example, label=names.get(example.label, example.label)) for example in examples]


def check_labels(examples: Sequence[LabeledSequence], classes: Sequence[str]) -> None:
    """Refuse an example whose label is none of the classes."""
    for example in examples:
        if (label := example.label) not in classes:
            meant = next((name for name in classes if small_difference(label, name)), "CLASS")
            raise InputError(
                f"has the label '{label}', which is none of {', '.join(classes)}",
                where=example.where,
                remedy=ONE_LABEL
                if joined_labels([label, *classes])
                else f"rename it by --map {label}={meant}, or give --unknown-labels drop",
            )


# --- Tables of predictions, joined with labels by id


def table_answers(
    table: Table,
    rows: Sequence[int],
    classes: tuple[str, ...],
    positive: str,
    source: str,
    threshold: float | None,
    columns: tuple[str, str | None],
) -> Answers:
    """Read the probabilities, or the one score, of each record from its row (N,) of a prediction table.

    ``columns`` are that of ids, and that of the score, if one is named.
    """
    from seqray.evaluation.floor import answers_from_probabilities
    from seqray.evaluation.run import check_probabilities

    id_column, score_column = columns
    note = f"predictions of {Path(table.where).name} sha256:{table.sha256}"
    wanted = [probability_column(name) for name in classes]
    # A table to compare with may be of another kind than the one evaluated.
    named = score_column if source == "model" or score_column in table.columns else None
    if named or not set(wanted) <= set(table.columns):
        column = named or probability_column(positive)
        if len(classes) != 2:
            raise InputError(f"needs the columns {', '.join(wanted)}", where=table.where)
        read = scores_and_calls(table, column, rows, classes, positive, threshold)
        return Answers(source, f"{note}, column '{column}'", *read)
    scores = np.stack([numeric_column(table, column, rows) for column in wanted], axis=1)
    try:
        ids = [table.columns[id_column][row] for row in rows]
        check_probabilities(scores, len(rows), len(classes), ids)
    except InputError as error:
        one = ", or name the score of the positive class: --score-column NAME" if len(classes) == 2 else ""
        remedy = f"divide each row by its sum{one}"
        raise InputError(error.what, where=table.where, remedy=remedy) from None
    scores = scores / scores.sum(axis=1, keepdims=True)
    labels = table.columns.get("label")
    if threshold is None and labels is not None and {labels[row] for row in rows} <= set(classes):
        index = {name: k for k, name in enumerate(classes)}
        calls = np.array([index[labels[row]] for row in rows], dtype=np.int64)
        return Answers(source, f"{note}, calls of its column 'label'", scores, calls)
    return answers_from_probabilities(
        source, note, scores, classes, positive, 0.5 if threshold is None else threshold
    )


# --- Contexts, data that the floor knows, and the floor


def floor_of(
    material: EvaluationInput, groups: list[object] | None, grouping: str, seed: int
) -> tuple[list[Answers], list[str]]:
    """The floor and the rules, or a note that they are missing."""
    if not material.is_lettered:
        return [], [f"the labels come without sequences: {NO_FLOOR}"]
    from seqray.evaluation.floor import floor_answers, fold_count

    examples, train = material.examples, material.train
    keys = list(range(len(examples))) if groups is None else groups
    folds = fold_count([example.label for example in examples], keys)
    if not train and folds < 2:
        return [], [f"records of one group, or one of each class: nothing can be held out, {NO_FLOOR}"]
    note = (
        "without training data the baseline and the rules are cross-validated on the evaluated records "
        f"in {folds} folds ({grouping}; other relatives may be on both sides, which raises the baseline): "
        "give the model's training data with --train for a fair comparison"
    )
    found = floor_answers(
        examples, train, material.classes, material.positive, material.alphabet, keys, seed=seed
    )
    return found, [] if train else [note]
