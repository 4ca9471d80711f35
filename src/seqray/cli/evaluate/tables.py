"""Tables of predictions as what ``seqray evaluate`` measures, joined with labels by id."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from seqray.cli.evaluate.data import Material, check_labels, choose_split, read_with_notes, renamed
from seqray.core import ALPHABETS, ConfigError, InputError, LabelledSequence
from seqray.core.results import Answers
from seqray.io.tables import Table, column_of, numbers, read_prediction_table, read_truth, rows_by_id


def from_predictions(args: argparse.Namespace) -> Material:
    alphabet = ALPHABETS[args.alphabet or "dna"]
    notes: list[str] = []
    if args.validation or args.test or args.test_class_files:
        remedy = "leave out --validation, --test and --test-class"
        raise ConfigError("--predictions takes its test data from --labels", remedy=remedy)
    truth = read_truth(args.labels, alphabet)
    more = read_with_notes(args, alphabet, notes) if args.train or args.class_files else []
    known = renamed([*truth, *more], args.map)
    examples, train, split = choose_split(known[: len(truth)], args.split)
    train += [example for example in known[len(truth) :] if example.split in (None, "train")]
    train = [example for example in train if example.sequence]
    table = read_prediction_table(args.predictions)
    rows = rows_by_id(table, args.id_column, [e.id for e in examples], args.labels)
    if len(table) > len(rows):
        notes.append(f"{len(table) - len(rows)} predictions have no label in use and are left out")
    classes, positive = _classes_of(args, table, examples)
    check_labels([*examples, *train], classes)
    answers = table_answers(args, table, rows, classes, positive, "model", args.threshold)
    name = "standard input" if args.predictions == "-" else Path(args.predictions).name
    return Material(
        name, table.sha256, alphabet, examples, train, split, classes, positive, [answers], {}, notes
    )


def _classes_of(
    args: argparse.Namespace, table: Table, examples: Sequence[LabelledSequence]
) -> tuple[tuple[str, ...], str]:
    """Class names in the order of the table's columns, and the positive one."""
    labels = sorted({example.label for example in examples})
    columns = [name for name in table.columns if name.startswith("p_")]
    if args.score_column or len(columns) < 2:
        if not args.score_column and not columns:
            raise InputError(
                "has no column p_<class>", where=table.where, remedy="name the score: --score-column NAME"
            )
        classes = _two_classes(args, labels)
    else:
        by_column = {column_of(label): label for label in labels}
        classes = tuple(by_column.get(column, column[2:]) for column in columns)
    return classes, _positive(args, table, classes)


def _two_classes(args: argparse.Namespace, labels: Sequence[str]) -> tuple[str, ...]:
    if len(labels) == 1 and args.positive and args.positive not in labels:
        return (*labels, args.positive)
    if len(labels) != 2:
        raise InputError(
            f"one score a record, but {len(labels)} labels: {', '.join(labels[:5])}",
            where=args.labels,
            remedy="give a column p_<class> for each class",
        )
    return tuple(labels)


def _positive(args: argparse.Namespace, table: Table, classes: Sequence[str]) -> str:
    guess = args.positive or table.positive()
    if guess is None and set(classes) == {"0", "1"}:
        guess = "1"
    if guess is None and len(classes) > 2:
        return classes[0]
    if guess is None or guess not in classes:
        wrong = "the positive class is not known" if guess is None else f"'{guess}' is not a class"
        raise ConfigError(wrong, remedy=f"give --positive {' or '.join(classes[:5])}")
    return guess


def table_answers(
    args: argparse.Namespace,
    table: Table,
    rows: Sequence[int],
    classes: tuple[str, ...],
    positive: str,
    source: str,
    threshold: float | None,
) -> Answers:
    from seqray.evaluation import answers_from_probabilities, check_probabilities

    note = f"predictions of {Path(table.where).name} sha256:{table.sha256}"
    columns = [name for name in table.columns if name.startswith("p_")]
    wanted = [column_of(name) for name in classes]
    # A table to compare with may be of another kind than the one evaluated.
    named = args.score_column and (source == "model" or args.score_column in table.columns)
    if named or not set(wanted) <= set(columns):
        return _score_answers(args, table, rows, classes, positive, source, threshold, note)
    scores = np.stack([numbers(table, column, rows) for column in wanted], axis=1)
    try:
        check_probabilities(scores, len(rows), len(classes))
    except InputError as error:
        raise InputError(error.what, where=table.where) from None
    scores = scores / scores.sum(axis=1, keepdims=True)
    given = table.columns.get("label")
    if threshold is None and given is not None and {given[row] for row in rows} <= set(classes):
        index = {name: k for k, name in enumerate(classes)}
        calls = np.array([index[given[row]] for row in rows], dtype=np.int64)
        return Answers(source, f"{note}, calls of its column 'label'", scores, calls)
    return answers_from_probabilities(
        source, note, scores, classes, positive, 0.5 if threshold is None else threshold
    )


def _score_answers(
    args: argparse.Namespace,
    table: Table,
    rows: Sequence[int],
    classes: tuple[str, ...],
    positive: str,
    source: str,
    threshold: float | None,
    note: str,
) -> Answers:
    """One number a record: a probability if all lie within 0 to 1, else a score that ranks and calls."""
    if len(classes) != 2:
        raise InputError(
            f"needs the columns {', '.join(column_of(name) for name in classes)}", where=table.where
        )
    named = args.score_column and (source == "model" or args.score_column in table.columns)
    column = args.score_column if named else column_of(positive)
    values = numbers(table, column, rows)
    inside = bool(values.min() >= 0 and values.max() <= 1)
    if threshold is None and not inside:
        raise InputError(
            f"column '{column}' holds scores beyond 0 to 1",
            where=table.where,
            remedy="say from which one on it calls: --threshold",
        )
    limit = 0.5 if threshold is None else threshold
    other, k = 1 - values if inside else -values, classes.index(positive)
    scores = np.stack((values, other) if k == 0 else (other, values), axis=1)
    calls = np.where(values >= limit, k, 1 - k)
    return Answers(source, f"{note}, column '{column}'", scores, calls, inside, limit)
