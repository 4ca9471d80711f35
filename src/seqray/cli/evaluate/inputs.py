"""What ``seqray evaluate`` measures: a model or a table of predictions, and what it is compared with."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seqray.cli.common import Progress, open_model
from seqray.cli.evaluate.data import Material, as_read_by, check_labels, choose_split, read_for, renamed
from seqray.cli.evaluate.tables import from_predictions, table_answers
from seqray.core import ConfigError, LabelledSequence
from seqray.core.results import Answers
from seqray.io.tables import read_prediction_table, rows_by_id

if TYPE_CHECKING:
    from seqray.modelfile import TrainedModel

TABLE_ENDINGS = (".tsv", ".csv", ".txt", ".parquet", ".gz")


def gather(args: argparse.Namespace) -> Material:
    """Read all inputs and score what has to be scored."""
    _check_ways(args)
    material = _from_model(args) if args.model else from_predictions(args)
    if args.threshold is not None and len(material.classes) > 2:
        raise ConfigError(
            f"--threshold is for two classes, these are {len(material.classes)}",
            remedy="the class of highest score is called",
        )
    if args.against:
        material.answers.append(_against(args, material))
    return material


def _check_ways(args: argparse.Namespace) -> None:
    if bool(args.model) == bool(args.predictions):
        wrong = "both --model and --predictions are given" if args.model else "nothing to evaluate"
        raise ConfigError(wrong, remedy="give --model with --test, or --predictions with --labels")
    if bool(args.labels) != bool(args.predictions):
        raise ConfigError(
            "--predictions and --labels go together", remedy="with --model, name labelled data by --test"
        )
    only = {"--score-column": args.score_column, "--positive": args.positive}
    for option, value in only.items():
        if args.model and value:
            raise ConfigError(f"{option} is for --predictions", remedy="a model's card has it")
    if args.model and args.threshold is not None and not 0 <= args.threshold <= 1:
        raise ConfigError(f"--threshold is {args.threshold:g}", remedy="a model's lies between 0 and 1")
    if args.predictions and args.prior is not None:
        raise ConfigError("--prior needs --model", remedy="give it to 'seqray predict'")


# ------------------------------------------------------------------------------------------------- model


def _from_model(args: argparse.Namespace) -> Material:
    model = open_model(args, alignments=True)
    if args.alphabet and args.alphabet != model.alphabet.name:
        raise ConfigError(f"--alphabet is {args.alphabet}, but the model reads {model.alphabet.name}")
    notes: list[str] = []
    data = renamed(read_for(args, model.card, notes), args.map)
    examples, train, split = choose_split(data, args.split)
    card = model.card
    check_labels([*examples, *train], card.classes)
    answers = _model_answers(args, model, examples, "model")
    if args.prior is not None:
        notes.append(
            f"probabilities are re-weighted to a share of {args.prior:g} of {card.positive}; calibration and "
            "threshold are measured at the share of these records"
        )
    notes += _context_notes(args, model, examples)
    return Material(
        card.name,
        model.sha256,
        model.alphabet,
        examples,
        train,
        split,
        card.classes,
        card.positive,
        [answers],
        card_summary(model),
        notes,
    )


def card_summary(model: TrainedModel) -> dict[str, Any]:
    """What a reader of figures wants of the card."""
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
    args: argparse.Namespace, model: TrainedModel, examples: Sequence[LabelledSequence], source: str
) -> Answers:
    from seqray.evaluation import answers_from_probabilities
    from seqray.inference import model_probabilities

    card = model.card
    threshold = card.threshold if args.threshold is None or source != "model" else args.threshold
    with Progress("records", quiet=args.quiet) as progress:
        scores = model_probabilities(
            model,
            as_read_by(card, examples),
            use_context=not args.no_context,
            watch=progress.watch,
            prior=args.prior,
            precision=args.precision,
            batch_size=args.batch_size,
        )
    note = f"model {card.name} sha256:{model.sha256}"
    return answers_from_probabilities(source, note, scores, card.classes, card.positive, threshold)


def _context_notes(
    args: argparse.Namespace, model: TrainedModel, examples: Sequence[LabelledSequence]
) -> list[str]:
    from seqray.inference import known_context

    if not model.card.model.contexts:
        return []
    if args.no_context:
        return ["the model knows contexts and is not told those of the records (--no-context)"]
    unknown = sum(known_context(model, example.context) is None for example in examples)
    return [f"{unknown} records are of no context that the model knows"] if unknown else []


def _against(args: argparse.Namespace, material: Material) -> Answers:
    """Answers of the other model or table on the same records."""
    if args.against == "-" or str(args.against).lower().endswith(TABLE_ENDINGS):
        table = read_prediction_table(args.against)
        same_kind = args.score_column in table.columns
        threshold = args.threshold if same_kind else None
        rows = rows_by_id(table, args.id_column, [e.id for e in material.examples], "the data evaluated")
        return table_answers(args, table, rows, material.classes, material.positive, "against", threshold)
    if any(not example.sequence for example in material.examples):
        raise ConfigError(
            "--against a model needs sequences", remedy="give --labels a column 'sequence', or a table"
        )
    other = argparse.Namespace(**{**vars(args), "model": args.against, "backbone": None})
    model = open_model(other, alignments=True)
    if set(model.card.classes) != set(material.classes) or model.alphabet != material.alphabet:
        raise ConfigError(
            f"model '{model.card.name}' tells {', '.join(model.card.classes)} apart, "
            f"not {', '.join(material.classes)}"
        )
    answers = _model_answers(args, model, material.examples, "against")
    order = [model.card.classes.index(name) for name in material.classes]
    calls = np.array([order.index(call) for call in answers.calls.tolist()], dtype=np.int64)
    return replace(answers, scores=answers.scores[:, order], calls=calls)
