"""``seqray predict``: one row per record with its label and the probability of each class."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from seqray.cli import inputs
from seqray.cli.messages import Progress
from seqray.cli.model import (
    AUTO,
    TRUNCATE,
    EngineOptions,
    ModelOptions,
    context_fact,
    open_model,
    provenance,
    recognize,
    refuse_for_others,
    truncation_fact,
)
from seqray.cli.options import ColumnNames, Outcome, Probability, Request, fill, option
from seqray.core.text import Truncation, counted

if TYPE_CHECKING:
    from seqray.core.card import Card
    from seqray.core.results import Prediction


class PredictRequest(Request):
    """Options of ``seqray predict``."""

    input: tuple[str, ...] = option("SEQUENCES+", inputs.SEQUENCES_OR_ALIGNMENTS)
    model: ModelOptions
    out: str = option("--out -o FILE", ".tsv, .tsv.gz or .parquet (default: TSV on stdout)", "-")
    threshold: Probability | None = option(
        "--threshold P", "call the positive class at or above this probability (default: the model's)"
    )
    prior: Probability | None = option(
        "--prior P", "share of the positive class among your records; re-weights the probabilities"
    )
    coverage: Probability | None = option(
        "--coverage C",
        "add the column 'set': the classes that can't be ruled out; of the records of each class, at least "
        "this share gets a set that contains it",
    )
    truncate: Truncation | None = TRUNCATE
    columns: ColumnNames | None = inputs.SEQUENCE_COLUMNS
    rows: inputs.RowOptions
    records: inputs.RecordOptions
    computing: EngineOptions


def run(request: PredictRequest) -> Outcome:
    """Read, classify, write."""
    from seqray.io.files import Staging
    from seqray.io.predictions import table_format, write_predictions

    table_format(request.out)
    reading = request.records
    inputs.check_files(request.input, (request.out, reading.skipped), beside=(request.model.model,))
    inputs.check_suffix(reading.skipped, ".tsv")
    from seqray.inference.origin import FileCheck
    from seqray.inference.sequences import TRUNCATED, PredictOptions, checked_records
    from seqray.kinds.kinds import kind_of

    model = open_model(request.model, request.computing, alignments=True, verbose=request.verbose)
    kind = kind_of(model.card)
    refuse_for_others(request, kind)
    model = model.with_truncation(request.truncate)
    options = fill(PredictOptions, request, request.computing, rows=request.rows.limit())
    lines = provenance(request.command, model, _facts(request, model.card))
    with Staging() as staging:
        out, skip_path = staging.path(request.out), reading.skipped and staging.path(reading.skipped)
        with (
            inputs.SkipLog(skip_path, lines, quiet=request.quiet) as skipped,
            Progress("predict", "records", quiet=request.quiet) as progress,
        ):
            read = inputs.open_records(
                kind.reader(request.columns), request.input, reading, model.alphabet, skipped
            )
            source = inputs.describe_input(request.input)
            usable = read
            if reading.skip_unusable and model.card.model.reads_sequences:
                usable = checked_records(read, model, source, skipped)
            model, records = recognize(request.model, model, usable)
            check = FileCheck(
                model, request.coverage, request.prior, recognized=request.model.context == AUTO
            )
            lines = provenance(
                request.command, model, context_fact(request.model, model) | _facts(request, model.card)
            )

            batches = kind.predict(model, records, options, source)
            first = [*islice(batches, 1)]  # an input that can't be read leaves no header on standard output
            if not first and not reading.allow_empty:
                skipped.check_some_left(0, source)

            def predictions() -> Iterator[Prediction]:
                for batch, answers in chain(first, batches):
                    check.see(batch, answers)
                    yield from progress.watch(answers)

            sets = request.coverage is not None
            count = write_predictions(out, predictions(), model.card.classes, lines, sets)
    if longer := check.flags[TRUNCATED]:
        request.say(kind.describe_truncation(longer, count, model.card))
    if not request.quiet:  # they take some computing
        request.note(*check.lines())
    # Of two classes only the positive one is counted.
    named = [model.card.positive] if len(model.card.classes) == 2 else model.card.classes
    called = ", ".join(f"{check.labels[name]} {name}" for name in named)
    last = f"{counted(count, 'record')}, {called}, {skipped.count} skipped"
    return Outcome(records=read.count, last=last)


def _facts(request: PredictRequest, card: Card) -> dict[str, str]:
    """What decided the labels and probabilities, for the header."""
    if len(card.classes) == 2:
        threshold = card.threshold if request.threshold is None else request.threshold
        origin = "the model's" if request.threshold is None else "as asked"
        rule = f"'{card.positive}' where its probability is at least {threshold:.6g} ({origin})"
    else:
        rule = "the class of highest probability"
    prior = f"{card.prevalence:.6g} (of the calibration data)"
    if request.prior is not None:
        prior = f"{request.prior:.6g} (as asked; {card.prevalence:.6g} in the calibration data)"
    facts = {
        "classes": ", ".join(
            f"{name} (positive)" if name == card.positive else name for name in card.classes
        ),
        "label": rule,
        "prior": prior,
        "columns": "p_<class> is a calibrated probability; flags are reasons for caution, '.' for none",
    }
    facts |= truncation_fact(card)
    if request.coverage is None:
        return facts
    sets = "set holds the classes that can't be ruled out, '-' for none; it does not depend on the prior"
    return facts | {"coverage": f"{request.coverage:.6g} of the records of each class; {sets}"}
