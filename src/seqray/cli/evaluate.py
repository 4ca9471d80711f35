"""``seqray evaluate``: predictions and labels in, metrics out, compared with a floor."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from seqray.cli import options
from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.labeled import (
    UNKNOWN_LABELS,
    AlignmentLabelOptions,
    DataOptions,
    UnknownLabels,
    drop_unknown_labels,
    noting_unread,
)
from seqray.cli.messages import Progress
from seqray.cli.model import AUTO, BACKBONE, MODEL_HELP, TRUNCATE, DtypeOptions, ModelOptions, open_model
from seqray.cli.options import Options, Outcome, Request, option, refuse_unused
from seqray.core.errors import ConfigError, InputError
from seqray.core.labels import choose_split
from seqray.core.text import INTERVAL_DRAWS, Truncation

if TYPE_CHECKING:
    from seqray.cli.evaluate_data import EvaluationInput
    from seqray.core.records import LabeledSequence
    from seqray.core.results import Answers, Evaluation
    from seqray.modelfile.model import TrainedModel

_FACTS = ("name", "summary", "positive", "threshold", "prevalence", "ece")  # of a model, in a JSON
TABLE_ENDINGS = (".tsv", ".csv", ".txt", ".parquet", ".gz")


# --- Options of ``seqray evaluate``


class PredictionOptions(Options, heading="predictions instead of a model"):
    """A table of predictions, and the labels to compare it with."""

    predictions: str | None = option(
        "--predictions FILE", "of 'seqray predict' or another tool; '-' is standard input"
    )
    labels: str | None = option(
        "--labels TABLE",
        "id, label[, sequence, group, split, context, subclass]; or two columns without a header",
    )
    id_column: str = option("--id-column NAME", "column of ids in the predictions", "id", only_for="tables")
    score_column: str | None = option(
        "--score-column NAME",
        "column with the score of the positive class, on any scale",
        only_for="predictions",
    )
    positive: str | None = option(
        "--positive LABEL", "the positive class, if the table does not name it", only_for="predictions"
    )
    alphabet: Literal["dna", "rna", "protein"] | None = option(
        "--alphabet", "alphabet of sequences in tables (default: what they look like)"
    )


class MeasureOptions(Options, heading="measuring"):
    """What is measured, and how."""

    split: Literal["train", "validation", "test", "all"] | None = option(
        "--split", "part to evaluate (default: test if there is one, else all)"
    )
    map: tuple[str, ...] = option("--map LABEL=CLASS", "rename a label")
    unknown_labels: UnknownLabels = UNKNOWN_LABELS
    threshold: options.Number | None = option(
        "--threshold X", "call the positive class at or above this score (default: the model's)"
    )
    prior: options.Probability | None = option(
        "--prior P", "re-weight the model's probabilities to this share of positives", only_for="model"
    )
    context: str = option(
        "--context NAME|auto|none",
        "read all records as of this context; auto: as of those in the data, or if the model knows none of "
        "these, of the one that the records are like; none: of none",
        AUTO,
        only_for="any model",
    )
    truncate: Truncation | None = TRUNCATE
    against: str | None = option("--against MODEL|TABLE", "compare with another model or its predictions")
    no_floor: bool = option("--no-floor", "do not fit the baseline (simple rules), and say so")

    bootstrap: options.Draws = option(
        "--bootstrap N", "bootstrap samples for the intervals; 0 for none", INTERVAL_DRAWS
    )
    seed: options.WholeNumber = option("--seed N", "seed of samples and folds", 0)


class FigureOutputs(Options, heading="output"):
    """What is written."""

    out: str | None = option("--out -o FILE", "figures as .tsv or .tsv.gz; '-' is standard output")
    json: str | None = option("--json FILE", "the same as JSON, with facts of the model")
    html: str | None = option("--html FILE", "a page with curves and tables")
    multiqc: str | None = option("--multiqc FILE", "a table for MultiQC; ends in _mqc.json")
    sample: options.Printable | None = option(
        "--sample NAME", "row of the MultiQC table (default: name of the model)", only_for="multiqc"
    )


class EvaluateRequest(Request):
    """All options of ``seqray evaluate``; those for ``any model`` are for one named by ``--against``, too."""

    model: str | None = option("--model -m NAME|FILE", MODEL_HELP)
    backbone: str | None = BACKBONE
    data: DataOptions
    labels: AlignmentLabelOptions
    given: PredictionOptions
    how: MeasureOptions
    outputs: FigureOutputs
    computing: DtypeOptions


# --- Check, read and score, measure, write


def run(request: EvaluateRequest) -> Outcome:
    """Read, score, measure, write."""
    from seqray.io.files import Staging, write_file
    from seqray.io.summaries import (
        check_multiqc_path,
        evaluation_mapping,
        multiqc_mapping,
        write_figures,
        write_json,
    )
    from seqray.io.tables import describe_alphabet, provenance_lines

    outputs, tables = request.outputs, request.given
    written = (outputs.out, outputs.json, outputs.html, outputs.multiqc)
    check_suffix(outputs.out, ".tsv")
    check_suffix(outputs.json, ".json")
    check_suffix(outputs.html, ".html", ".htm")
    if outputs.multiqc:
        check_multiqc_path(outputs.multiqc)
    sources = [path for path in (tables.predictions, tables.labels, *request.data.files()) if path]
    check_files(sources, written, beside=(request.model, request.how.against))
    _refuse_without_effect(request)
    material = _from_model(request) if request.model else _from_predictions(request)
    if request.how.threshold is not None and len(material.classes) > 2:
        what = f"--threshold is for two classes, these are {len(material.classes)}"
        raise ConfigError(what, remedy="the class of highest score is called")
    if request.how.against:
        answers, notes = _against(request, material)
        material.answers.append(answers)
        material.notes += [f"against: {note}" for note in notes]
    evaluation = _evaluate(request, material)
    lines = provenance_lines(
        request.command, material.name, material.sha256, describe_alphabet(material.alphabet)
    )
    sample = outputs.sample or Path(material.name).name.split(".")[0]
    with Staging() as staging:
        if outputs.out:
            write_figures(staging.path(outputs.out), evaluation, lines)
        if outputs.json:
            facts = evaluation_mapping(evaluation, lines, material.card)
            write_json(staging.path(outputs.json), facts)
        if outputs.multiqc:
            write_json(staging.path(outputs.multiqc), multiqc_mapping(evaluation, sample, material.name))
        if outputs.html:
            from seqray.report.pages.evaluation import render_evaluation

            page = render_evaluation(evaluation, material.name, lines, material.card)
            write_file(staging.path(outputs.html), page)
        if not request.quiet:  # before the files appear: all is written, or nothing
            from seqray.evaluation.run import summary

            stream = sys.stderr if "-" in written else sys.stdout
            print("\n".join(summary(evaluation, material.name)), file=stream)
    return Outcome(records=material.read)


def _refuse_without_effect(request: EvaluateRequest) -> None:
    """Refuse options that don't go together, or would have no effect."""
    model, tables, how = request.model, request.given, request.how
    if bool(model) == bool(tables.predictions):
        wrong = "both --model and --predictions are given" if model else "nothing to evaluate"
        raise ConfigError(wrong, remedy="give --model with --test, or --predictions with --labels")
    if bool(tables.labels) != bool(tables.predictions):
        raise ConfigError(
            "--predictions and --labels go together", remedy="with --model, name labeled data by --test"
        )
    is_table = _is_table(how.against)
    absent = {}
    if not request.outputs.multiqc:
        absent["multiqc"] = "names a row of a MultiQC table", "add --multiqc"
    if model:
        absent["predictions"] = "is for --predictions", "the model has it"
    else:
        absent["model"] = "needs --model", "give it to 'seqray predict'"
    if not model and (is_table or how.against is None):
        absent |= dict.fromkeys(("any model", "sequences"), absent["model"])
    if model and not is_table:
        absent["tables"] = "is for tables of predictions", "leave it out"
    refuse_unused(request, absent)
    if model and how.threshold is not None and not 0 <= how.threshold <= 1:
        raise ConfigError(
            f"--threshold is {how.threshold:g}", remedy="a model's threshold is between 0 and 1"
        )


def _is_table(against: str | None) -> bool:
    """Whether ``--against`` names a table of predictions, not a model."""
    return against is not None and (against == "-" or against.lower().endswith(TABLE_ENDINGS))


# --- A model as what is measured


def _from_model(request: EvaluateRequest) -> EvaluationInput:
    from seqray.cli import evaluate_data
    from seqray.core.alphabet import ALPHABETS
    from seqray.kinds.kinds import kind_of
    from seqray.training.recalibration import seen_in_training

    model, how = _open(request, str(request.model), request.backbone), request.how
    alphabet, card = request.given.alphabet, model.card
    if alphabet and alphabet != model.alphabet.name:
        raise ConfigError(f"--alphabet is {alphabet}, but the model reads {model.alphabet.name}")
    files = request.data.located(request, request.labels)
    if not (files.tables or files.fastas):
        remedy = "give --test TABLE, or --class LABEL=FASTA for each class"
        raise InputError("no labeled data", remedy=remedy)
    notes: list[str] = []
    data = evaluate_data.read_with_notes(
        kind_of(card).read_labeled, files, ALPHABETS[card.model.alphabet], notes
    )
    data = evaluate_data.renamed(data, how.map)
    if how.unknown_labels == "drop":
        data = drop_unknown_labels(data, card.classes, notes)
    examples, train, split = choose_split(data, how.split)
    evaluate_data.check_labels([*examples, *train], card.classes)
    notes += seen_in_training(card, data, split, examples)
    answers, more = _model_answers(request, model, examples, "model")
    if how.prior is not None:
        notes.append(
            f"probabilities are re-weighted to a share of {how.prior:g} of {card.positive}; calibration and "
            "threshold are measured at the share of these records"
        )
    return evaluate_data.EvaluationInput(
        name=card.name,
        sha256=model.sha256,
        alphabet=model.alphabet,
        examples=examples,
        train=train,
        split=split,
        classes=card.classes,
        positive=card.positive,
        answers=[answers],
        card={name: getattr(card, name) for name in _FACTS}
        | {"sha256": model.sha256, "classes": [*card.classes], "headline": card.metrics.get("headline")},
        notes=[*notes, *more],
        read=len(data),
    )


def _open(request: EvaluateRequest, name: str, backbone: str | None) -> TrainedModel:
    chosen = ModelOptions(model=name, backbone=backbone)
    model = open_model(chosen, request.computing, alignments=True, verbose=request.verbose)
    return model.with_truncation(request.how.truncate)


def _from_predictions(request: EvaluateRequest) -> EvaluationInput:
    """A table of predictions as what is measured, joined with labels by id."""
    from seqray.cli import evaluate_data
    from seqray.core.alphabet import ALPHABETS, ANY_LETTERS
    from seqray.io.predictions import name_classes, read_labels, read_prediction_table, rows_by_id
    from seqray.kinds.kinds import KINDS, in_inferred_alphabet

    options, data, how = request.given, request.data, request.how
    notes: list[str] = []
    if data.validation or data.test:
        remedy = "leave out --validation and --test"
        raise ConfigError("--predictions takes its test data from --labels", remedy=remedy)
    letters = ALPHABETS[options.alphabet] if options.alphabet else ANY_LETTERS
    truth = read_labels(str(options.labels), letters, noting_unread(request), data.columns)
    more = []
    if data.train or data.class_files:
        more = evaluate_data.read_with_notes(
            KINDS["sequence"].read_labeled, data.located(request), letters, notes
        )
    known, alphabet = [*truth, *more], letters
    if letters is ANY_LETTERS:
        known, alphabet = in_inferred_alphabet(known)
    known = evaluate_data.renamed(known, how.map)
    examples, train, split = choose_split(known[: len(truth)], how.split)
    train += [example for example in known[len(truth) :] if example.split in (None, "train")]
    train = [example for example in train if example.sequence]
    table = read_prediction_table(str(options.predictions))
    if how.unknown_labels != "drop":  # what is dropped needs no prediction
        rows_by_id(table, options.id_column, [e.id for e in examples], str(options.labels))
    labels = sorted({example.label for example in examples})
    classes, positive = name_classes(
        table, labels, str(options.labels), score=options.score_column, positive=options.positive
    )
    if how.unknown_labels == "drop":
        examples = drop_unknown_labels(examples, classes, notes)
        train = [example for example in train if example.label in classes]
    evaluate_data.check_labels([*examples, *train], classes)
    rows = rows_by_id(table, options.id_column, [e.id for e in examples], str(options.labels))
    columns = options.id_column, options.score_column
    answers = evaluate_data.table_answers(table, rows, classes, positive, "model", how.threshold, columns)
    if len(table) > len(rows):
        notes.append(f"{len(table) - len(rows)} predictions have no label in use and are left out")
    return evaluate_data.EvaluationInput(
        name="standard input" if options.predictions == "-" else Path(table.where).name,
        sha256=table.sha256,
        alphabet=alphabet,
        examples=examples,
        train=train,
        split=split,
        classes=classes,
        positive=positive,
        answers=[answers],
        notes=notes,
        read=len(more) or None,
    )


def _model_answers(
    request: EvaluateRequest, model: TrainedModel, examples: Sequence[LabeledSequence], source: str
) -> tuple[Answers, list[str]]:
    """Answers of a model, and notes about contexts and where the records are not like its training data."""
    from seqray.calibration.conformal import COVERAGE, HeldOutScores
    from seqray.evaluation.floor import answers_from_probabilities
    from seqray.evaluation.run import label_indices
    from seqray.inference.sequences import TRUNCATED, reweight
    from seqray.kinds.kinds import judge_examples, kind_of

    card, how = model.card, request.how
    named = source == "model" or bool(card.model.contexts)  # another model may know none
    own = how.threshold is None or source != "model"
    with Progress("evaluate", "records", len(examples), quiet=request.quiet) as progress:
        scores, check, contexts = judge_examples(
            model,
            examples,
            how.context if named else AUTO,
            prior=how.prior,
            watch=progress.watch,
            dtype=request.computing.dtype,
            batch_size=request.computing.batch_size,
        )
    note = f"model {card.name} sha256:{model.sha256}"
    limit = card.threshold if own else how.threshold
    answers = answers_from_probabilities(source, note, scores, card.classes, card.positive, limit)
    notes = check.cautions()
    if card.conformal:  # label sets of `predict --coverage` may hold the true class less often than promised
        plain = scores
        if how.prior is not None:
            plain = reweight(scores, card.positive_index, how.prior, card.prevalence)
        labels = label_indices([example.label for example in examples], card.classes)
        if held := HeldOutScores(card).lost_coverage(plain, labels):
            shares = ", ".join(f"{share:.2f} of {name}" for name, share in held.items())
            notes.append(f"label sets at a coverage of {COVERAGE:g} do not keep it here: they hold {shares}")
    if longer := check.flags[TRUNCATED]:
        notes.append(kind_of(card).describe_truncation(longer, len(examples), card))
    return answers, [*notes, *contexts]


def _against(request: EvaluateRequest, material: EvaluationInput) -> tuple[Answers, list[str]]:
    """Answers of the other model or table on the same records, and notes about them."""
    from seqray.cli.evaluate_data import table_answers
    from seqray.io.predictions import read_prediction_table, rows_by_id
    from seqray.training.recalibration import seen_in_training

    tables, against = request.given, str(request.how.against)
    if _is_table(against):
        table = read_prediction_table(against)
        # It may be of another kind than the table evaluated.
        threshold = request.how.threshold if tables.score_column in table.columns else None
        rows = rows_by_id(table, tables.id_column, [e.id for e in material.examples], "the data evaluated")
        columns, classes = (tables.id_column, tables.score_column), material.classes
        return table_answers(table, rows, classes, material.positive, "against", threshold, columns), []
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
    notes = list(seen_in_training(model.card, data, material.split, material.examples))
    answers, more = _model_answers(request, model, material.examples, "against")
    return answers.reordered(model.card.classes, material.classes), [*notes, *more]


# --- Measuring and writing


def _evaluate(request: EvaluateRequest, material: EvaluationInput) -> Evaluation:
    from seqray.cli.evaluate_data import NO_FLOOR, floor_of
    from seqray.evaluation.run import Records, evaluate_examples, group_keys, label_indices

    examples = material.examples
    groups, grouping = group_keys(examples, material.alphabet)
    labels = label_indices([example.label for example in examples], material.classes)
    beside, notes = [], [f"--no-floor: {NO_FLOOR}"]
    if not request.how.no_floor:
        beside, notes = floor_of(material, groups, grouping, request.how.seed)
    return evaluate_examples(
        examples,
        material.train,
        Records(material.classes, material.positive, labels, groups),
        [*material.answers, *beside],
        material.alphabet,
        draws=request.how.bootstrap,
        seed=request.how.seed,
        split=material.split,
        grouping=grouping,
        notes=[*material.notes, *notes],
    )
