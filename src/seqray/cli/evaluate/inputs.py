"""What ``seqray evaluate`` measures: a model or a table of predictions, and what it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from seqray.cli.common import ModelOptions, Progress, open_model
from seqray.cli.evaluate.data import Material, as_read_by, check_labels, choose_split, read_for, renamed
from seqray.cli.evaluate.tables import from_predictions, table_answers
from seqray.core import ConfigError, LabeledSequence
from seqray.core.results import Answers
from seqray.io.tables import read_prediction_table, rows_by_id

if TYPE_CHECKING:
    from seqray.cli.evaluate.arguments import EvaluateRequest
    from seqray.modelfile import TrainedModel

TABLE_ENDINGS = (".tsv", ".csv", ".txt", ".parquet", ".gz")


def gather(request: EvaluateRequest) -> Material:
    """Read all inputs and score what has to be scored."""
    _check_ways(request)
    material = _from_model(request) if request.model else from_predictions(request)
    if request.how.threshold is not None and len(material.classes) > 2:
        raise ConfigError(
            f"--threshold is for two classes, these are {len(material.classes)}",
            remedy="the class of highest score is called",
        )
    if request.how.against:
        material.answers.append(_against(request, material))
    return material


def _check_ways(request: EvaluateRequest) -> None:
    model, given, how = request.model, request.given, request.how
    if bool(model) == bool(given.predictions):
        wrong = "both --model and --predictions are given" if model else "nothing to evaluate"
        raise ConfigError(wrong, remedy="give --model with --test, or --predictions with --labels")
    if bool(given.labels) != bool(given.predictions):
        raise ConfigError(
            "--predictions and --labels go together", remedy="with --model, name labeled data by --test"
        )
    only = {"--score-column": given.score_column, "--positive": given.positive}
    for option, value in only.items():
        if model and value:
            raise ConfigError(f"{option} is for --predictions", remedy="the card of a model contains it")
    if model and how.threshold is not None and not 0 <= how.threshold <= 1:
        raise ConfigError(
            f"--threshold is {how.threshold:g}", remedy="a model's threshold is between 0 and 1"
        )
    if given.predictions and how.prior is not None:
        raise ConfigError("--prior needs --model", remedy="give it to 'seqray predict'")


# ------------------------------------------------------------------------------------------------- model


def _from_model(request: EvaluateRequest) -> Material:
    model, how = _open(request, str(request.model), request.backbone), request.how
    alphabet, card = request.given.alphabet, model.card
    if alphabet and alphabet != model.alphabet.name:
        raise ConfigError(f"--alphabet is {alphabet}, but the model reads {model.alphabet.name}")
    notes: list[str] = []
    data = renamed(read_for(request, card, notes), how.map)
    examples, train, split = choose_split(data, how.split)
    check_labels([*examples, *train], card.classes)
    answers = _model_answers(request, model, examples, "model")
    if how.prior is not None:
        notes.append(
            f"probabilities are re-weighted to a share of {how.prior:g} of {card.positive}; calibration and "
            "threshold are measured at the share of these records"
        )
    return Material(
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
        notes=[*notes, *_context_notes(request, model, examples)],
        read=len(data),
    )


def _open(request: EvaluateRequest, name: str, backbone: str | None) -> TrainedModel:
    chosen = ModelOptions(model=name, context=None, backbone=backbone)
    return open_model(chosen, request.computing, alignments=True, verbose=request.verbose)


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
    request: EvaluateRequest, model: TrainedModel, examples: Sequence[LabeledSequence], source: str
) -> Answers:
    from seqray.evaluation import answers_from_probabilities
    from seqray.inference import model_probabilities

    card = model.card
    threshold = (
        card.threshold if request.how.threshold is None or source != "model" else request.how.threshold
    )
    with Progress("evaluate", "records", len(examples), quiet=request.quiet) as progress:
        scores = model_probabilities(
            model,
            as_read_by(card, examples),
            use_context=not request.how.no_context,
            watch=progress.watch,
            prior=request.how.prior,
            precision=request.computing.precision,
            batch_size=request.computing.batch_size,
        )
    note = f"model {card.name} sha256:{model.sha256}"
    return answers_from_probabilities(source, note, scores, card.classes, card.positive, threshold)


def _context_notes(
    request: EvaluateRequest, model: TrainedModel, examples: Sequence[LabeledSequence]
) -> list[str]:
    from seqray.inference import known_context

    if not model.card.model.contexts:
        return []
    if request.how.no_context:
        return ["the model knows contexts and is not told those of the records (--no-context)"]
    unknown = sum(known_context(model, example.context) is None for example in examples)
    return [f"{unknown} records are of no context that the model knows"] if unknown else []


def _against(request: EvaluateRequest, material: Material) -> Answers:
    """Answers of the other model or table on the same records."""
    given, against = request.given, str(request.how.against)
    if against == "-" or against.lower().endswith(TABLE_ENDINGS):
        table = read_prediction_table(against)
        same_kind = given.score_column in table.columns
        threshold = request.how.threshold if same_kind else None
        rows = rows_by_id(table, given.id_column, [e.id for e in material.examples], "the data evaluated")
        return table_answers(given, table, rows, material.classes, material.positive, "against", threshold)
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
    answers = _model_answers(request, model, material.examples, "against")
    order = [model.card.classes.index(name) for name in material.classes]
    calls = np.array([order.index(call) for call in answers.calls.tolist()], dtype=np.int64)
    return replace(answers, scores=answers.scores[:, order], calls=calls)
