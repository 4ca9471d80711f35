"""``seqray evaluate``: predictions and labels in, metrics out, compared with a floor."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.evaluate_options import EvaluateRequest
from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.labeled import describe_learned, drop_unknown_labels
from seqray.cli.messages import Progress
from seqray.cli.model import AUTO, NO_CONTEXT, ModelOptions, open_model
from seqray.cli.options import Outcome, given
from seqray.core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from seqray.cli.evaluate_data import EvaluationInput
    from seqray.core.card import Card
    from seqray.core.records import Example, LabeledSequence
    from seqray.core.results import Answers, Evaluation
    from seqray.modelfile.model import TrainedModel

NO_FLOOR = "these figures have no floor, so they do not show what a simple rule would reach"
TABLE_ENDINGS = (".tsv", ".csv", ".txt", ".parquet", ".gz")
OF_THE_MODEL = ("--prior", "--backbone", "--alignment-labels", "--query-only")
OF_ANY_MODEL = ("--context", "--truncate", "--dtype")
"""Options that say how records are scored; a model named by ``--against`` uses them, too."""
MAX_KNOWN_SHARE = 0.1
"""Of records of the training data: up to it, figures are nearly those of new records."""


def run(request: EvaluateRequest) -> Outcome:
    """Read, score, measure, write."""
    _check(request)
    _refuse_without_effect(request)
    from seqray.cli.evaluate_data import from_predictions

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
    _write(request, material, _evaluate(request, material))
    return Outcome(records=material.read)


def _check(request: EvaluateRequest) -> None:
    """Check the files before anything heavy is loaded."""
    from seqray.io.summaries import check_multiqc_path

    outputs, tables = request.outputs, request.given
    if outputs.out and not outputs.out.lower().endswith((".tsv", ".tsv.gz")) and outputs.out != "-":
        remedy = "use .tsv, .tsv.gz or '-'; --json, --html and --multiqc write the other forms"
        raise InputError("does not end in the suffix of a TSV", where=outputs.out, remedy=remedy)
    check_suffix(outputs.json, ".json")
    check_suffix(outputs.html, ".html", ".htm")
    if outputs.multiqc:
        check_multiqc_path(outputs.multiqc)
    sources = [path for path in (tables.predictions, tables.labels, *request.data.files()) if path]
    check_files(sources, outputs.files(), beside=(request.model, request.how.against))


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
    words, other_model = given(request), how.against is not None and not _is_table(how.against)
    if "--sample" in words and not request.outputs.multiqc:
        raise ConfigError("--sample names a row of a MultiQC table", remedy="add --multiqc")
    if not model:
        for option in words:
            if option in OF_THE_MODEL or (option in OF_ANY_MODEL and not other_model):
                raise ConfigError(f"{option} needs --model", remedy="give it to 'seqray predict'")
        return
    for option in ("--score-column", "--positive"):
        if option in words:
            raise ConfigError(f"{option} is for --predictions", remedy="the card of a model contains it")
    if "--id-column" in words and not _is_table(how.against):
        raise ConfigError("--id-column is for tables of predictions", remedy="leave it out")
    if how.threshold is not None and not 0 <= how.threshold <= 1:
        raise ConfigError(
            f"--threshold is {how.threshold:g}", remedy="a model's threshold is between 0 and 1"
        )


def _is_table(against: str | None) -> bool:
    """Whether ``--against`` names a table of predictions, not a model."""
    return against is not None and (against == "-" or against.lower().endswith(TABLE_ENDINGS))


# --- A model as what is measured


def _from_model(request: EvaluateRequest) -> EvaluationInput:
    from seqray.cli.evaluate_data import EvaluationInput, check_labels, choose_split, read_with_notes, renamed
    from seqray.core.alphabet import ALPHABETS
    from seqray.kinds.kinds import kind_of

    model, how = _open(request, str(request.model), request.backbone), request.how
    alphabet, card = request.given.alphabet, model.card
    if alphabet and alphabet != model.alphabet.name:
        raise ConfigError(f"--alphabet is {alphabet}, but the model reads {model.alphabet.name}")
    files = request.data.located(request, request.labels)
    if not (files.tables or files.fastas):
        remedy = "give --test TABLE, or --test-class LABEL=FASTA for each class"
        raise InputError("no labeled data", remedy=remedy)
    notes: list[str] = []
    data = read_with_notes(kind_of(card).read_labeled, files, ALPHABETS[card.model.alphabet], notes)
    data = renamed(data, how.map)
    if how.unknown_labels == "drop":
        data, dropped = drop_unknown_labels(data, card.classes)
        notes += dropped
    examples, train, split = choose_split(data, how.split)
    check_labels([*examples, *train], card.classes)
    notes += _seen_in_training(card, data, split, examples)
    answers, more = _model_answers(request, model, examples, "model")
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
        card={
            "name": card.name,
            "sha256": model.sha256,
            "summary": card.summary,
            "classes": list(card.classes),
            "positive": card.positive,
            "threshold": card.threshold,
            "prevalence": card.prevalence,
            "ece": card.ece,
            "headline": card.metrics.get("headline"),
        },
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


def _read_in_contexts(
    context: str, model: TrainedModel, examples: Sequence[LabeledSequence]
) -> tuple[list[LabeledSequence], list[str]]:
    """Give each record the context in which the model reads it, and say so in notes.

    A model without contexts takes the records as they are. ConfigError is raised for a context that the model
    doesn't know.
    """
    from seqray.core.records import SequenceRecord
    from seqray.inference.labeled import known_context, recognize_context

    if context not in (AUTO, NO_CONTEXT):
        name = model.with_context(context).context
        note = f"all records are read as {name} (--context)"
    elif not model.card.model.contexts:
        return list(examples), []
    elif context == NO_CONTEXT:
        name, note = None, "the model knows contexts, but gets none (--context none)"
    else:
        unknown = sum(known_context(model, example.context) is None for example in examples)
        if unknown < len(examples):
            note = f"{unknown} records are of no context that the model knows"
            return list(examples), [note] if unknown else []
        records = (SequenceRecord(example.id, example.sequence) for example in examples)
        name = recognize_context(model, records)[0].context
        if name is None:
            return list(examples), ["the records are of no context that the model knows"]
        note = f"all records are read as {name}, which they are like (--context auto)"
    return [replace(example, context=name) for example in examples], [note]


def _model_answers(
    request: EvaluateRequest, model: TrainedModel, examples: Sequence[LabeledSequence], source: str
) -> tuple[Answers, list[str]]:
    """Answers of a model, and notes about contexts and where the records are not like its training data."""
    from seqray.calibration.conformal import COVERAGE, HeldOutScores
    from seqray.core.records import LabeledSequence
    from seqray.evaluation.floor import answers_from_probabilities
    from seqray.evaluation.run import label_indices
    from seqray.inference.labeled import model_probabilities
    from seqray.inference.origin import FileCheck
    from seqray.inference.predictions import TRUNCATED, reweight
    from seqray.kinds.kinds import kind_of

    card, how = model.card, request.how
    named = source == "model" or bool(card.model.contexts)  # another model may know none
    read, contexts = _read_in_contexts(how.context if named else AUTO, model, examples)
    own = how.threshold is None or source != "model"
    records = [  # sequences lose the flanks of its training data
        replace(one, sequence=card.trim_flanks(one.sequence)) if isinstance(one, LabeledSequence) else one
        for one in kind_of(card).adapt(read, card.window)
    ]
    check = FileCheck(model, prior=how.prior, recognized=True, labeled=True)
    check.see(records)
    with Progress("evaluate", "records", len(examples), quiet=request.quiet) as progress:
        scores = model_probabilities(
            model,
            records,
            on_batch=lambda predictions: check.see(predictions=progress.watch(predictions)),
            prior=how.prior,
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
    import numpy as np

    from seqray.cli.evaluate_data import table_answers
    from seqray.io.predictions import read_prediction_table, rows_by_id

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
    answers, more = _model_answers(request, model, material.examples, "against")
    order = [model.card.classes.index(name) for name in material.classes]
    calls = np.array([order.index(call) for call in answers.calls.tolist()], dtype=np.int64)
    return replace(answers, scores=answers.scores[:, order], calls=calls), [*notes, *more]


# --- Measuring and writing


def _evaluate(request: EvaluateRequest, material: EvaluationInput) -> Evaluation:
    from seqray.cli.evaluate_data import group_keys
    from seqray.core.labels import label_faults
    from seqray.evaluation.run import (
        Records,
        by_context,
        by_similarity,
        by_subclass,
        evaluate_answers,
        label_indices,
    )

    examples = material.examples
    labels = label_indices([example.label for example in examples], material.classes)
    groups, grouping = group_keys(examples, material.alphabet, request.how.groups)
    lettered = all(example.sequence for example in examples)
    beside, notes = _floor(request, material, groups, grouping, lettered)
    subsets = by_context(examples) | by_subclass(examples)
    if material.train and lettered:
        subsets |= by_similarity(examples, material.train, material.alphabet)
    return evaluate_answers(
        Records(tuple(material.classes), material.positive, labels, groups),
        [*material.answers, *beside],
        subsets=subsets,
        draws=request.how.bootstrap,
        seed=request.how.seed,
        split=material.split,
        grouping=grouping,
        notes=[
            *material.notes,
            *notes,
            *(f"caution: {fault}" for fault in label_faults([replace(one, split=None) for one in examples])),
            *_shared_with_training(material),
        ],
    )


def _shared_with_training(material: EvaluationInput) -> Iterator[str]:
    """Notes that count evaluated records that the floor learns from, or whose group it knows."""
    from seqray.core.alphabet import canonical_strand

    examples, train, alphabet = material.examples, material.train, material.alphabet
    learned = {canonical_strand(one.sequence, alphabet) for one in train} - {""}
    shared = sum(canonical_strand(one.sequence, alphabet) in learned for one in examples)
    if shared:
        yield (
            f"{shared} of {len(examples)} records are also in the training data that the floor learns from "
            "(--train): it remembers them, and its figures are too good; leave them out (seqray split)"
        )
    groups = {example.group for example in train} - {None, ""}
    if shared := sum(example.group in groups for example in examples):
        yield (
            f"{shared} of {len(examples)} records have a group (column 'group') that training records have, "
            "too: the figures may be too high for new groups; split by whole groups (seqray split)"
        )


def _floor(
    request: EvaluateRequest,
    material: EvaluationInput,
    groups: list[object] | None,
    grouping: str,
    lettered: bool,
) -> tuple[list[Answers], list[str]]:
    """The floor and the rules, or a note that they are missing."""
    if request.how.no_floor:
        return [], [f"--no-floor: {NO_FLOOR}"]
    if not lettered:
        return [], [f"the labels come without sequences: {NO_FLOOR}"]
    from seqray.evaluation.floor import floor_answers, fold_count

    examples, train = material.examples, material.train
    keys = list(range(len(examples))) if groups is None else groups
    folds = fold_count([example.label for example in examples], keys)
    if not train and folds < 2:
        return [], [f"records of one group, or one of each class: nothing can be held out, {NO_FLOOR}"]
    note = (
        "without training data the floor and the rules are cross-validated on the evaluated records "
        f"in {folds} folds ({grouping}; other relatives may be on both sides, which raises the floor): "
        "give the model's training data with --train for a fair comparison"
    )
    found = floor_answers(
        examples, train, material.classes, material.positive, material.alphabet, keys, seed=request.how.seed
    )
    return found, [] if train else [note]


def _write(request: EvaluateRequest, material: EvaluationInput, evaluation: Evaluation) -> None:
    from seqray.io.files import Staging
    from seqray.io.summaries import evaluation_mapping, multiqc_mapping, write_figures, write_json
    from seqray.io.tables import describe_alphabet, provenance_lines

    policy = describe_alphabet(material.alphabet)
    lines = provenance_lines(request.command, material.name, material.sha256, policy)
    sample = request.outputs.sample or Path(material.name).name.split(".")[0]
    with Staging() as staging:
        if request.outputs.out:
            write_figures(staging.path(request.outputs.out), evaluation, lines)
        if request.outputs.json:
            write_json(
                staging.path(request.outputs.json), evaluation_mapping(evaluation, lines, material.card)
            )
        if request.outputs.multiqc:
            write_json(staging.path(request.outputs.multiqc), multiqc_mapping(evaluation, sample))
        if request.outputs.html:
            from seqray.io.files import write_file
            from seqray.report.pages.evaluation import render_evaluation

            page = render_evaluation(evaluation, material.name, lines, material.card)
            write_file(staging.path(request.outputs.html), page)
        if not request.quiet:  # before the files appear: all is written, or nothing
            from seqray.evaluation.run import summary

            piped = "-" in request.outputs.files()
            print("\n".join(summary(evaluation, material.name)), file=sys.stderr if piped else sys.stdout)
