"""Data and predictions of an evaluation: read, renamed, and divided into evaluation and training data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqray.cli.labeled import drop_unknown_labels, noting_unread
from seqray.cli.model import naming_other_models
from seqray.core.alphabet import ALPHABETS, ANY_LETTERS, Alphabet
from seqray.core.arrays import Floats
from seqray.core.errors import ConfigError, InputError
from seqray.core.labels import ONE_LABEL, joined_labels, known_positive, small_difference, unknown_positive
from seqray.core.records import LabeledSequence
from seqray.core.results import Answers
from seqray.homology.kmers import kmer_groups, kmer_length
from seqray.io.predictions import (
    Table,
    numeric_column,
    probability_column,
    read_labels,
    read_prediction_table,
    rows_by_id,
)
from seqray.kinds.kinds import LabeledFiles, in_inferred_alphabet, read_sequence_examples

if TYPE_CHECKING:
    from seqray.cli.evaluate_options import EvaluateRequest, PredictionOptions


@dataclass(slots=True)
class EvaluationInput:
    """Everything that is measured: ``examples`` in order of id, and the ``answers`` of the model first.

    The floor may learn from ``train``. ``name`` and ``sha256`` are those of the model or of the table of
    predictions, which has no ``card``, the facts for the JSON file. ``read`` is None where a table of
    labels is all.
    """

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


def read_with_notes(
    read: Callable[..., Sequence[Any]], files: LabeledFiles, alphabet: Alphabet, notes: list[str]
) -> list[Any]:
    """Labeled examples; those without letters are noted and left out."""
    skipped: list[str] = []
    with naming_other_models():
        data = read(files, alphabet, on_skip=lambda record: skipped.append(record.id))
    if skipped:
        notes.append(f"{len(skipped)} records without letters are left out, such as '{skipped[0]}'")
    return list(data)


def choose_split(
    data: Sequence[LabeledSequence], wanted: str | None
) -> tuple[list[LabeledSequence], list[LabeledSequence], str]:
    """Evaluated examples, examples for training the floor, and the name of the evaluated part.

    Without ``wanted`` the split ``test`` is evaluated if there is one, else everything. Examples of split
    ``train``, or of none beside a named split, are for learning. Both come in order of id, so that the order
    of the input decides nothing.
    """
    names = {example.split for example in data}
    split = wanted or ("test" if "test" in names else "all")
    if split == "all":
        return _ordered(data), [], split
    chosen = [example for example in data if example.split == split]
    if not chosen:
        known = ", ".join(sorted(name for name in names if name)) or "none"
        raise InputError(f"no example of split '{split}'", remedy=f"splits: {known}; or --split all")
    rest = [example for example in data if example.split in (None, "train") and split != "train"]
    return _ordered(chosen), _ordered(rest), split


def _ordered(examples: Sequence[LabeledSequence]) -> list[LabeledSequence]:
    return sorted(examples, key=lambda e: (e.id, e.sequence, e.label, e.context or "", e.group or ""))


def renamed(examples: list[LabeledSequence], items: Sequence[str]) -> list[LabeledSequence]:
    """Rename labels by ``--map OLD=NEW``.

    ConfigError is raised for a word of another form, a label that is renamed twice, and one that no example
    has.
    """
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


def group_keys(
    examples: Sequence[LabeledSequence], alphabet: Alphabet, how: str
) -> tuple[list[object] | None, str]:
    """Groups that the bootstrap draws as a whole: a key for each example or None, and a description.

    Examples without a group are groups of their own.

    ``how`` is ``column``, ``words``, ``none`` or ``auto``, as ``--groups``.
    """
    named = any(example.group for example in examples)
    lettered = all(example.sequence for example in examples)
    if how == "column" and not named:
        remedy = "name them in a column 'group', or use --groups words"
        raise ConfigError("no example has a group", remedy=remedy)
    if how == "words" and not lettered:
        raise ConfigError("--groups words needs sequences", remedy="use --groups none")
    if how == "column" or (how == "auto" and named):
        keys: list[object] = [example.group or ("", i) for i, example in enumerate(examples)]
        return keys, "groups of the column 'group' drawn whole"
    if how == "words" or (how == "auto" and lettered):
        k = kmer_length(alphabet)
        keys = kmer_groups([e.sequence for e in examples], k, alphabet=alphabet).tolist()
        return keys, f"sequences that share {k} letters drawn together"
    return None, "records drawn one by one"


# --- Tables of predictions, joined with labels by id


def from_predictions(request: EvaluateRequest) -> EvaluationInput:
    options, data, how = request.given, request.data, request.how
    notes: list[str] = []
    if data.validation or data.test or data.test_class_files:
        remedy = "leave out --validation, --test and --test-class"
        raise ConfigError("--predictions takes its test data from --labels", remedy=remedy)
    letters = ALPHABETS[options.alphabet] if options.alphabet else ANY_LETTERS
    truth = read_labels(str(options.labels), letters, noting_unread(request))
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
    table = read_prediction_table(str(options.predictions))
    if how.unknown_labels != "drop":  # what is dropped needs no prediction
        rows_by_id(table, options.id_column, [e.id for e in examples], str(options.labels))
    classes, positive = _classes_of(options, table, examples)
    if how.unknown_labels == "drop":
        examples, dropped = drop_unknown_labels(examples, classes)
        train = [example for example in train if example.label in classes]
        notes += dropped
    check_labels([*examples, *train], classes)
    rows = rows_by_id(table, options.id_column, [e.id for e in examples], str(options.labels))
    if len(table) > len(rows):
        notes.append(f"{len(table) - len(rows)} predictions have no label in use and are left out")
    return EvaluationInput(
        name="standard input" if options.predictions == "-" else Path(table.where).name,
        sha256=table.sha256,
        alphabet=alphabet,
        examples=examples,
        train=train,
        split=split,
        classes=classes,
        positive=positive,
        answers=[table_answers(options, table, rows, classes, positive, "model", how.threshold)],
        notes=notes,
        read=len(more) or None,
    )


def _classes_of(
    options: PredictionOptions, table: Table, examples: Sequence[LabeledSequence]
) -> tuple[tuple[str, ...], str]:
    """Class names in the order of the table's columns, and the positive one."""
    labels = sorted({example.label for example in examples})
    columns = [name for name in table.columns if name.startswith("p_")]
    if options.score_column or len(columns) < 2:
        if not options.score_column and not columns:
            raise InputError(
                "has no column p_<class>", where=table.where, remedy="name the score: --score-column NAME"
            )
        classes = _two_classes(options, labels)
    else:
        by_column = {probability_column(label): label for label in labels}
        classes = tuple(by_column.get(column, column[2:]) for column in columns)
    return classes, _positive(options, table, classes)


def _two_classes(options: PredictionOptions, labels: Sequence[str]) -> tuple[str, ...]:
    if len(labels) == 1 and options.positive:
        other = f"not-{options.positive}"  # no record has it, and one score does not name it
        return (labels[0] if options.positive not in labels else other, options.positive)
    if len(labels) == 1:
        raise InputError(
            f"all labels are '{labels[0]}'",
            where=str(options.labels),
            remedy="name the positive class, --positive CLASS, or give labels of both classes",
        )
    if len(labels) != 2:
        raise InputError(
            f"one score a record, but {len(labels)} labels: {', '.join(labels[:5])}",
            where=str(options.labels),
            remedy="give a column p_<class> for each class",
        )
    return tuple(labels)


def _positive(options: PredictionOptions, table: Table, classes: Sequence[str]) -> str:
    named = options.positive or table.positive()
    if named is not None and named not in classes:
        remedy = f"give --positive {' or '.join(classes[:5])}"
        raise ConfigError(f"'{named}' is not a class", remedy=remedy)
    positive = named or (known_positive(classes) if len(classes) == 2 else classes[0])
    if positive is None:
        raise unknown_positive(classes, "--positive ")
    return positive


def table_answers(
    options: PredictionOptions,
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
    from seqray.evaluation.floor import answers_from_probabilities
    from seqray.evaluation.run import check_probabilities

    note = f"predictions of {Path(table.where).name} sha256:{table.sha256}"
    wanted = [probability_column(name) for name in classes]
    # A table to compare with may be of another kind than the one evaluated.
    named = options.score_column if source == "model" or options.score_column in table.columns else None
    if named or not set(wanted) <= set(table.columns):
        column = named or probability_column(positive)
        if len(classes) != 2:
            raise InputError(f"needs the columns {', '.join(wanted)}", where=table.where)
        return _score_answers(source, note, table, column, rows, classes, positive, threshold)
    scores = np.stack([numeric_column(table, column, rows) for column in wanted], axis=1)
    try:
        ids = [table.columns[options.id_column][row] for row in rows]
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


def _score_answers(
    source: str,
    note: str,
    table: Table,
    column: str,
    rows: Sequence[int],
    classes: tuple[str, ...],
    positive: str,
    threshold: float | None,
) -> Answers:
    """One number a record for one of two classes: a probability if all lie within 0 to 1, else a score."""
    k = classes.index(positive)
    if column == probability_column(classes[1 - k]):
        raise ConfigError(
            f"column '{column}' holds the probabilities of '{classes[1 - k]}', and '{positive}' is positive",
            remedy=f"give --score-column {probability_column(positive)}, or --positive {classes[1 - k]}",
        )
    values: Floats = numeric_column(table, column, rows)
    inside = bool(values.min() >= 0 and values.max() <= 1)
    if threshold is None and not inside:
        raise InputError(
            f"column '{column}' has scores outside 0 to 1",
            where=table.where,
            remedy="give the lowest score that is called: --threshold",
        )
    limit, other = 0.5 if threshold is None else threshold, 1 - values if inside else -values
    scores = np.stack((values, other) if k == 0 else (other, values), axis=1)
    calls = np.where(values >= limit, k, 1 - k)
    return Answers(source, f"{note}, column '{column}'", scores, calls, inside, limit)
