"""Tables of predictions as what ``seqray evaluate`` measures, joined with labels by id."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqray.cli.common import drop_unknown_labels, noting_unread
from seqray.cli.evaluate.data import EvaluationInput, check_labels, choose_split, read_with_notes, renamed
from seqray.core import (
    ALPHABETS,
    ANY_LETTERS,
    ConfigError,
    Floats,
    InputError,
    LabeledSequence,
)
from seqray.core.results import Answers
from seqray.io.tables import (
    Table,
    numeric_column,
    probability_column,
    read_labels,
    read_prediction_table,
    rows_by_id,
)
from seqray.kinds import in_inferred_alphabet, read_sequence_examples

if TYPE_CHECKING:
    from seqray.cli.evaluate.arguments import EvaluateRequest, PredictionOptions


def from_predictions(request: EvaluateRequest) -> EvaluationInput:
    given, data, how = request.given, request.data, request.how
    notes: list[str] = []
    if data.validation or data.test or data.test_class_files:
        remedy = "leave out --validation, --test and --test-class"
        raise ConfigError("--predictions takes its test data from --labels", remedy=remedy)
    letters = ALPHABETS[given.alphabet] if given.alphabet else ANY_LETTERS
    truth = read_labels(str(given.labels), letters, noting_unread(request))
    more = []
    if data.train or data.class_files:
        more = read_with_notes(read_sequence_examples, data.located(request), letters, notes)
    known, alphabet = [*truth, *more], letters
    if letters is ANY_LETTERS:
        known, alphabet = in_inferred_alphabet(known)
    known = renamed(known, how.map)
    examples, train, split = choose_split(known[: len(truth)], how.split)
    train += [example for example in known[len(truth) :] if example.split in (None, "train")]
    train = [example for example in train if example.sequence]
    table = read_prediction_table(str(given.predictions))
    if how.unknown_labels != "drop":  # what is dropped needs no prediction
        rows_by_id(table, given.id_column, [e.id for e in examples], str(given.labels))
    classes, positive = _classes_of(given, table, examples)
    if how.unknown_labels == "drop":
        examples, dropped = drop_unknown_labels(examples, classes)
        train = [example for example in train if example.label in classes]
        notes += dropped
    check_labels([*examples, *train], classes)
    rows = rows_by_id(table, given.id_column, [e.id for e in examples], str(given.labels))
    if len(table) > len(rows):
        notes.append(f"{len(table) - len(rows)} predictions have no label in use and are left out")
    return EvaluationInput(
        name="standard input" if given.predictions == "-" else Path(table.where).name,
        sha256=table.sha256,
        alphabet=alphabet,
        examples=examples,
        train=train,
        split=split,
        classes=classes,
        positive=positive,
        answers=[table_answers(given, table, rows, classes, positive, "model", how.threshold)],
        notes=notes,
        read=len(more) or None,
    )


def _classes_of(
    given: PredictionOptions, table: Table, examples: Sequence[LabeledSequence]
) -> tuple[tuple[str, ...], str]:
    """Class names in the order of the table's columns, and the positive one."""
    labels = sorted({example.label for example in examples})
    columns = [name for name in table.columns if name.startswith("p_")]
    if given.score_column or len(columns) < 2:
        if not given.score_column and not columns:
            raise InputError(
                "has no column p_<class>", where=table.where, remedy="name the score: --score-column NAME"
            )
        classes = _two_classes(given, labels)
    else:
        by_column = {probability_column(label): label for label in labels}
        classes = tuple(by_column.get(column, column[2:]) for column in columns)
    return classes, _positive(given, table, classes)


def _two_classes(given: PredictionOptions, labels: Sequence[str]) -> tuple[str, ...]:
    if len(labels) == 1 and given.positive:
        other = f"not-{given.positive}"  # no record has it, and one score does not name it
        return (labels[0] if given.positive not in labels else other, given.positive)
    if len(labels) == 1:
        raise InputError(
            f"all labels are '{labels[0]}'",
            where=str(given.labels),
            remedy="name the positive class, --positive CLASS, or give labels of both classes",
        )
    if len(labels) != 2:
        raise InputError(
            f"one score a record, but {len(labels)} labels: {', '.join(labels[:5])}",
            where=str(given.labels),
            remedy="give a column p_<class> for each class",
        )
    return tuple(labels)


def _positive(given: PredictionOptions, table: Table, classes: Sequence[str]) -> str:
    guess = given.positive or table.positive()
    if guess is None and set(classes) == {"0", "1"}:
        guess = "1"
    if guess is None and len(classes) > 2:
        return classes[0]
    if guess is None or guess not in classes:
        wrong = "the positive class is not known" if guess is None else f"'{guess}' is not a class"
        raise ConfigError(wrong, remedy=f"give --positive {' or '.join(classes[:5])}")
    return guess


def table_answers(
    given: PredictionOptions,
    table: Table,
    rows: Sequence[int],
    classes: tuple[str, ...],
    positive: str,
    source: str,
    threshold: float | None,
) -> Answers:
    """Read the probabilities, or the one score, of each record from a table of predictions.

    ``rows`` (N,) are those of the records in the table. ``threshold`` is the lowest score that is called
    positive; None for the calls of the table, or 0.5.
    """
    from seqray.evaluation import answers_from_probabilities, check_probabilities

    note = f"predictions of {Path(table.where).name} sha256:{table.sha256}"
    columns = [name for name in table.columns if name.startswith("p_")]
    wanted = [probability_column(name) for name in classes]
    # A table to compare with may be of another kind than the one evaluated.
    named = given.score_column if source == "model" or given.score_column in table.columns else None
    if named or not set(wanted) <= set(columns):
        column = named or probability_column(positive)
        if len(classes) != 2:
            raise InputError(f"needs the columns {', '.join(wanted)}", where=table.where)
        _refuse_other_class(column, classes, positive)
        values = numeric_column(table, column, rows)
        if threshold is None and not _within_0_to_1(values):
            raise InputError(
                f"column '{column}' has scores outside 0 to 1",
                where=table.where,
                remedy="give the lowest score that is called: --threshold",
            )
        note = f"{note}, column '{column}'"
        return _score_answers(source, note, values, classes.index(positive), threshold)
    scores = np.stack([numeric_column(table, column, rows) for column in wanted], axis=1)
    try:
        ids = [table.columns[given.id_column][row] for row in rows]
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


def _refuse_other_class(column: str, classes: tuple[str, ...], positive: str) -> None:
    for name in set(classes) - {positive}:
        if column == probability_column(name):
            raise ConfigError(
                f"column '{column}' holds the probabilities of '{name}', and '{positive}' is positive",
                remedy=f"give --score-column {probability_column(positive)}, or --positive {name}",
            )


def _within_0_to_1(values: Floats) -> bool:
    return bool(values.min() >= 0 and values.max() <= 1)


def _score_answers(source: str, note: str, values: Floats, k: int, threshold: float | None) -> Answers:
    """One number a record for class k of two: a probability if all lie within 0 to 1, else a score."""
    inside = _within_0_to_1(values)
    limit = 0.5 if threshold is None else threshold
    other = 1 - values if inside else -values
    scores = np.stack((values, other) if k == 0 else (other, values), axis=1)
    calls = np.where(values >= limit, k, 1 - k)
    return Answers(source, note, scores, calls, inside, limit)
