"""Inputs of an evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqray.cli.evaluate_data import (
    EvaluationInput,
    as_read_by,
    check_labels,
    choose_split,
    read_for,
    read_with_notes,
    renamed,
    set_contexts,
)
from seqray.cli.labeled import describe_learned, drop_unknown_labels, noting_unread
from seqray.cli.messages import Progress
from seqray.cli.model import AUTO, ModelOptions, open_model
from seqray.cli.options import given, name_options
from seqray.core.alphabet import ALPHABETS, ANY_LETTERS
from seqray.core.arrays import Floats
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Example, LabeledSequence
from seqray.core.results import Answers
from seqray.io.predictions import (
    Table,
    numeric_column,
    probability_column,
    read_labels,
    read_prediction_table,
    rows_by_id,
)
from seqray.kinds.kinds import in_inferred_alphabet, read_sequence_examples

if TYPE_CHECKING:
    from seqray.cli.evaluate_options import EvaluateRequest, PredictionOptions
    from seqray.core.card import Card
    from seqray.inference.origin import FileCheck
    from seqray.modelfile.model import TrainedModel


# --- Tables of predictions as what ``seqray evaluate`` measures, joined with labels by id


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
    from seqray.evaluation.floor import answers_from_probabilities
    from seqray.evaluation.run import check_probabilities

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


# --- What ``seqray evaluate`` measures: a model or a table of predictions, and what it is compared with

TABLE_ENDINGS = (".tsv", ".csv", ".txt", ".parquet", ".gz")
OF_THE_MODEL = ("--prior", "--backbone", "--alignment-labels", "--query-only")
OF_ANY_MODEL = ("--context", "--truncate", "--dtype")
"""Options that say how records are scored; a model named by ``--against`` uses them, too."""
MAX_KNOWN_SHARE = 0.1
"""Of records of the training data: up to it, figures are nearly those of new records."""


def gather(request: EvaluateRequest) -> EvaluationInput:
    """Read all inputs and score what has to be scored."""
    _check_ways(request)
    material = _from_model(request) if request.model else from_predictions(request)
    if request.how.threshold is not None and len(material.classes) > 2:
        raise ConfigError(
            f"--threshold is for two classes, these are {len(material.classes)}",
            remedy="the class of highest score is called",
        )
    if request.how.against:
        answers, notes = _against(request, material)
        material.answers.append(answers)
        material.notes += [f"against: {note}" for note in notes]
    return material


def _check_ways(request: EvaluateRequest) -> None:
    model, tables, how = request.model, request.given, request.how
    if bool(model) == bool(tables.predictions):
        wrong = "both --model and --predictions are given" if model else "nothing to evaluate"
        raise ConfigError(wrong, remedy="give --model with --test, or --predictions with --labels")
    if bool(tables.labels) != bool(tables.predictions):
        raise ConfigError(
            "--predictions and --labels go together", remedy="with --model, name labeled data by --test"
        )
    _refuse_without_effect(request)
    if model and how.threshold is not None and not 0 <= how.threshold <= 1:
        raise ConfigError(
            f"--threshold is {how.threshold:g}", remedy="a model's threshold is between 0 and 1"
        )


def _refuse_without_effect(request: EvaluateRequest) -> None:
    """Refuse options that would have no effect."""
    words, against = given(request), request.how.against
    if "--sample" in words and not request.outputs.multiqc:
        raise ConfigError("--sample names a row of a MultiQC table", remedy="add --multiqc")
    if request.model:
        for option in ("--score-column", "--positive"):
            if option in words:
                raise ConfigError(f"{option} is for --predictions", remedy="the card of a model contains it")
        if "--id-column" in words and not _is_table(against):
            raise ConfigError("--id-column is for tables of predictions", remedy="leave it out")
        return
    only = OF_THE_MODEL if against and not _is_table(against) else (*OF_THE_MODEL, *OF_ANY_MODEL)
    for option in words:
        if option in only:
            raise ConfigError(f"{option} needs --model", remedy="give it to 'seqray predict'")


def _is_table(against: str | None) -> bool:
    """Whether ``--against`` names a table of predictions, not a model."""
    return against is not None and (against == "-" or against.lower().endswith(TABLE_ENDINGS))


# ------------------------------------------------------------------------------------------------- model


def _from_model(request: EvaluateRequest) -> EvaluationInput:
    model, how = _open(request, str(request.model), request.backbone), request.how
    alphabet, card = request.given.alphabet, model.card
    if alphabet and alphabet != model.alphabet.name:
        raise ConfigError(f"--alphabet is {alphabet}, but the model reads {model.alphabet.name}")
    notes: list[str] = []
    data = renamed(read_for(request, card, notes), how.map)
    if how.unknown_labels == "drop":
        data, dropped = drop_unknown_labels(data, card.classes)
        notes += dropped
    examples, train, split = choose_split(data, how.split)
    check_labels([*examples, *train], card.classes)
    notes += _seen_in_training(card, data, split, examples)
    answers, more = _checked_answers(request, model, examples, "model")
    if how.prior is not None:
        notes.append(
            f"probabilities are re-weighted to a share of {how.prior:g} of {card.positive}; calibration and "
            "threshold are measured at the share of these records"
        )
    return EvaluationInput(
        name=card.name,
        sha256=model.sha256,
        alphabet=model.alphabet,
        examples=examples,
        train=train,
        split=split,
        classes=card.classes,
        positive=card.positive,
        answers=[answers],
        card=card_summary(model),
        notes=[*notes, *more],
        read=len(data),
    )


def _seen_in_training(
    card: Card, data: Sequence[Example], split: str, examples: Sequence[Example]
) -> Iterator[str]:
    """Notes where the model has learned from, or was calibrated on, all or some of the records evaluated.

    The checksum of a card is of all data given to training, of which the split ``test`` was left out.
    """
    from seqray.training.recalibration import count_calibration_data, count_training_data, is_training_data

    fitted = count_calibration_data(card, examples)
    if fitted and fitted.known:
        which = describe_learned(fitted.known, fitted.checked, len(examples))
        yield (
            f"the model was calibrated on {which}: brier, log_loss, ece and the figures at its threshold are "
            "too good; evaluate records that neither training nor calibration used"
        )
    learned = [example for example in data if example.split != "test"]
    remedy = "evaluate a part that training left out (seqray split)"
    evaluates_learned = split != "test" or not learned  # all were called test, but hardly for training
    count = count_training_data(card, examples)
    if evaluates_learned and (is_training_data(card, data) or is_training_data(card, learned)):
        which = "these data"
    elif count and count.known:
        which = describe_learned(count.known, count.checked, len(examples))
        if count.known <= MAX_KNOWN_SHARE * count.checked:
            yield f"the model's training used {which}: the figures may be slightly too good; {remedy}"
            return
    else:
        return
    yield (
        f"the model's training used {which}: the figures show what it remembers, not how well it "
        f"classifies new records; {remedy}"
    )


def _open(request: EvaluateRequest, name: str, backbone: str | None) -> TrainedModel:
    chosen = ModelOptions(model=name, backbone=backbone)
    model = open_model(chosen, request.computing, alignments=True, verbose=request.verbose)
    return model.with_truncation(request.how.truncate)


def card_summary(model: TrainedModel) -> dict[str, Any]:
    """Facts of the card for the JSON file."""
    card = model.card
    return {
        "name": card.name,
        "sha256": model.sha256,
        "summary": card.summary,
        "classes": list(card.classes),
        "positive": card.positive,
        "threshold": card.threshold,
        "prevalence": card.prevalence,
        "ece": card.ece,
        "headline": card.metrics.get("headline"),
    }


def _model_answers(
    request: EvaluateRequest,
    model: TrainedModel,
    examples: Sequence[LabeledSequence],
    source: str,
    check: FileCheck,
) -> tuple[Answers, list[str]]:
    """Answers of a model, which a check may watch, and notes about the contexts of the records."""
    from seqray.evaluation.floor import answers_from_probabilities
    from seqray.inference.labeled import model_probabilities

    card = model.card
    named = source == "model" or bool(card.model.contexts)  # another model may know none
    how = request.how if named else replace(request.how, context=AUTO)
    read, notes = set_contexts(how, model, examples)
    threshold = (
        card.threshold if request.how.threshold is None or source != "model" else request.how.threshold
    )
    records = list(as_read_by(card, read))
    check.see(records)
    with Progress("evaluate", "records", len(examples), quiet=request.quiet) as progress:
        scores = model_probabilities(
            model,
            records,
            on_batch=lambda predictions: check.see(predictions=progress.watch(predictions)),
            prior=request.how.prior,
            dtype=request.computing.dtype,
            batch_size=request.computing.batch_size,
        )
    note = f"model {card.name} sha256:{model.sha256}"
    answers = answers_from_probabilities(source, note, scores, card.classes, card.positive, threshold)
    return answers, notes


def _checked_answers(
    request: EvaluateRequest, model: TrainedModel, examples: Sequence[LabeledSequence], source: str
) -> tuple[Answers, list[str]]:
    """Answers of a model, and notes where the records are not like its training data."""
    from seqray.inference.origin import FileCheck
    from seqray.inference.predictions import TRUNCATED
    from seqray.kinds.kinds import kind_of

    card, prior = model.card, request.how.prior
    check = FileCheck(model, prior=prior, recognized=True, labeled=True)
    answers, contexts = _model_answers(request, model, examples, source, check)
    notes = [*map(name_options, check.cautions()), *_lost_coverage(model, examples, answers, prior)]
    if longer := check.flags[TRUNCATED]:
        notes.append(kind_of(card).describe_truncation(longer, len(examples), card))
    return answers, [*notes, *contexts]


def _lost_coverage(
    model: TrainedModel, examples: Sequence[LabeledSequence], answers: Answers, prior: float | None
) -> Iterator[str]:
    """A note where the label sets of `predict --coverage` hold the true class less often than promised."""
    from seqray.calibration.conformal import COVERAGE, HeldOutScores
    from seqray.evaluation.run import label_indices
    from seqray.inference.predictions import reweight

    card = model.card
    if not card.conformal:
        return
    labels = label_indices([example.label for example in examples], card.classes)
    scores = answers.scores
    if prior is not None:
        scores = reweight(scores, card.positive_index, prior, card.prevalence)
    held = HeldOutScores(card).lost_coverage(scores, labels)
    if held:
        shares = ", ".join(f"{share:.2f} of {name}" for name, share in held.items())
        yield f"label sets at a coverage of {COVERAGE:g} do not keep it here: they hold {shares}"


def _against(request: EvaluateRequest, material: EvaluationInput) -> tuple[Answers, list[str]]:
    """Answers of the other model or table on the same records, and notes about them."""
    tables, against = request.given, str(request.how.against)
    if _is_table(against):
        table = read_prediction_table(against)
        same_kind = tables.score_column in table.columns
        threshold = request.how.threshold if same_kind else None
        rows = rows_by_id(table, tables.id_column, [e.id for e in material.examples], "the data evaluated")
        named = material.classes, material.positive
        return table_answers(tables, table, rows, *named, "against", threshold), []
    if any(not example.sequence for example in material.examples):
        raise ConfigError(
            "--against a model needs sequences", remedy="give --labels a column 'sequence', or a table"
        )
    model = _open(request, against, None)
    if set(model.card.classes) != set(material.classes) or model.alphabet != material.alphabet:
        raise ConfigError(
            f"model '{model.card.name}' distinguishes {', '.join(model.card.classes)}, "
            f"not {', '.join(material.classes)}"
        )
    data = [*material.examples, *material.train]
    notes = list(_seen_in_training(model.card, data, material.split, material.examples))
    answers, more = _checked_answers(request, model, material.examples, "against")
    order = [model.card.classes.index(name) for name in material.classes]
    calls = np.array([order.index(call) for call in answers.calls.tolist()], dtype=np.int64)
    return replace(answers, scores=answers.scores[:, order], calls=calls), [*notes, *more]
