"""``seqray evaluate``: predictions and labels in, metrics out, compared with a floor."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seqray.cli.evaluate_options import EvaluateRequest
from seqray.cli.inputs import check_files, check_suffix
from seqray.cli.options import Outcome
from seqray.core.errors import InputError

if TYPE_CHECKING:
    from seqray.cli.evaluate_data import EvaluationInput
    from seqray.core.results import Answers, Evaluation

NO_FLOOR = "these figures have no floor, so they do not show what a simple rule would reach"


def run(request: EvaluateRequest) -> Outcome:
    """Read, score, measure, write."""
    _check(request)
    from seqray.cli.evaluate_inputs import gather

    material = gather(request)
    evaluation = _evaluate(request, material)
    _write(request, material, evaluation)
    return Outcome(records=material.read)


def _check(request: EvaluateRequest) -> None:
    """Check the files before anything heavy is loaded."""
    from seqray.io.summaries import check_multiqc_path

    outputs, given = request.outputs, request.given
    if outputs.out and not outputs.out.lower().endswith((".tsv", ".tsv.gz")) and outputs.out != "-":
        remedy = "use .tsv, .tsv.gz or '-'; --json, --html and --multiqc write the other forms"
        raise InputError("does not end in the suffix of a TSV", where=outputs.out, remedy=remedy)
    check_suffix(outputs.json, ".json")
    check_suffix(outputs.html, ".html", ".htm")
    if outputs.multiqc:
        check_multiqc_path(outputs.multiqc)
    sources = [path for path in (given.predictions, given.labels, *request.data.files()) if path]
    check_files(sources, outputs.files(), beside=(request.model, request.how.against))


def _evaluate(request: EvaluateRequest, material: EvaluationInput) -> Evaluation:
    from seqray.cli.evaluate_data import group_keys, shared_groups, shared_records
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
            *shared_records(examples, material.train, material.alphabet),
            *shared_groups(examples, material.train),
        ],
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
            _write_page(staging.path(request.outputs.html), evaluation, material, lines)
        if not request.quiet:  # before the files appear: all is written, or nothing
            from seqray.evaluation.run import summary

            piped = "-" in request.outputs.files()
            print("\n".join(summary(evaluation, material.name)), file=sys.stderr if piped else sys.stdout)


def _write_page(
    path: str | Path, evaluation: Evaluation, material: EvaluationInput, lines: list[str]
) -> None:
    from seqray.io.files import write_file
    from seqray.report.pages.evaluation import render_evaluation

    write_file(path, render_evaluation(evaluation, material.name, lines, material.card))
