"""Does ``predict --coverage 0.9`` keep its promise on sets of another source, and if not, does it say so?

    python benchmarks/coverage_shift.py

A row a file: the sets of ``benchmarks/transfer.py`` without a named context, in place and cut elsewhere, and
the test part that each shipped model has of its own (without one: the data that it was trained on). AUROC,
coverage of all records and of each class, empty sets, calls, and the causes that the cautions of ``predict``
name. ``parts`` is the number of 50 random parts of 100 to 300 records of an own test part with at least one
caution, in all and by cause: false alarms.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from accuracy import table_of
from machine import add_data, describe, keep_rows, script_parser, with_decimals
from seqray.calibration.conformal import COVERAGE, coverage_cutoffs
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.results import Prediction
from seqray.inference.origin import FileCheck, recognize_context
from seqray.inference.sequences import predict_records
from seqray.io.tables import write_table
from seqray.metrics.classification import auroc
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from transfer import OTHER_SOURCES, QUESTIONS, SHIFTS, cut_windows

SEED, MAX_EXAMPLES, PARTS, SIZES = 1, 1500, 50, (100, 301)
PROMISED = 0.85
"""Coverage of the sets asked for at .9 below which a file needs a caution."""
COLUMNS = (
    *("model", "set", "shift", "n", "auroc", "coverage", "by_class", "empty", "called"),
    *("cautions", "parts"),
)
CAUSES = {
    "sites seem to lie": "site",
    "label sets at": "empty",
    "nearer to the threshold": "unclear",
    "out-of-domain": "composition",
    "this file is": "origin",
    "whose context was known": "context",
}
OWN = (
    ("mouse-tata-promoter", "tata", ""),
    ("human-promoter-300", "human-300-tata", ""),
    ("human-core-tata-promoter", "human-core-tata", ""),
    ("human-core-promoter", "human-core-all", ""),
    ("human-nontata-promoter", "human-nontata", ""),
    ("antimicrobial-peptide", "amp", ""),
    ("arabidopsis-promoter", "arabidopsis", ""),
    ("ecoli-promoter", "ecoli", ""),
    ("ecoli-sigma", "ecoli-sigma", ""),
    ("bacteria-promoter", "bacteria", ""),
    ("bacteria-promoter", "bacteria", "Escherichia coli K-12 MG1655"),
    ("bacteria-promoter", "bacteria", "Bacillus subtilis 168"),
    ("bacteria-promoter-fast", "bacteria", ""),
)
"""Models, their sets, and the context of which the rows are; all without one."""
Examples = Sequence[LabeledSequence]


def causes(model: TrainedModel, examples: Examples, predictions: Sequence[Prediction]) -> list[str]:
    """What the cautions of ``predict`` name in a file of these records."""
    check = FileCheck(model, COVERAGE, recognized=True)
    check.see([SequenceRecord(e.id, e.sequence) for e in examples], predictions)
    return [next(cause for words, cause in CAUSES.items() if words in line) for line in check.cautions()]


def measure(model: TrainedModel, examples: Examples, parts: int) -> dict[str, Any]:
    """The figures of a file of up to ``MAX_EXAMPLES`` of these records, and of random parts of it."""
    card, rng = model.card, np.random.default_rng(SEED)
    fitting = [i for i, e in enumerate(examples) if 0 < len(e.sequence) <= card.window]
    kept = [examples[i] for i in np.sort(rng.permutation(fitting)[:MAX_EXAMPLES])]
    reader, records = recognize_context(model, (SequenceRecord(e.id, e.sequence) for e in kept))
    predictions = list(predict_records(reader, records))
    p = np.array([one.probabilities for one in predictions])
    labels = np.array([card.classes.index(e.label) for e in kept])
    inside = p >= coverage_cutoffs(card, COVERAGE)
    held = inside[np.arange(len(labels)), labels]
    by_class = [
        f"{held[labels == k].mean():.2f} {label}" for k, label in enumerate(card.classes) if k in labels
    ]
    alarms: Counter[str] = Counter()
    for _ in range(parts):
        rows = rng.permutation(len(kept))[: rng.integers(*SIZES)]
        found = causes(reader, [kept[i] for i in rows], [predictions[i] for i in rows])
        alarms.update(["all"] * bool(found) + found)
    by_cause = ", ".join(f"{n} {cause}" for cause, n in sorted(alarms.items()) if cause != "all")
    return {
        "n": len(kept),
        "auroc": auroc(labels == card.positive_index, p[:, card.positive_index]),
        "coverage": float(held.mean()),
        "by_class": ", ".join(by_class),
        "empty": float((~inside.any(axis=1)).mean()),
        "called": float(np.mean([one.label == card.positive for one in predictions])),
        "cautions": ", ".join(causes(reader, kept, predictions)) or "-",
        "parts": f"{alarms['all']}/{parts}{by_cause and f' ({by_cause})'}" if parts else "-",
    }


def own_rows(wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Rows of the own test part of each model."""
    for name, table, context in OWN:
        if not wanted or name in wanted:
            model = load_model(name)
            found = [e for e in table_of(table) if context in ("", e.context)]
            found = [e for e in found if e.split == "test"] or found
            kept = [
                LabeledSequence(model.card.trim_flanks(e.sequence), e.label, e.id, context=e.context)
                for e in found
            ]
            shown = f"{context or table}, own"
            yield {"model": name, "set": shown, "shift": 0} | measure(model, kept, PARTS)


def other_rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Rows of the sets of other sources."""
    for question in QUESTIONS:
        if question.without or question.context or (args.model and question.model not in args.model):
            continue
        model = load_model(question.model)
        for name in question.sets:
            source = OTHER_SOURCES[name]
            examples = source.load(args.data, args.genomes)
            for shift in SHIFTS:
                windows = cut_windows(examples, question.start_in(source, shift), model.card.window)
                kept = [
                    LabeledSequence(letters, _label(model, e.label), e.id)
                    for letters, e in zip(windows, examples, strict=False)
                ]
                if kept:
                    row = {"model": question.model, "set": name, "shift": shift}
                    yield row | measure(model, kept, 0)


def _label(model: TrainedModel, label: str) -> str:
    return model.card.positive if label == "promoter" else "background"


def main() -> None:
    parser = script_parser(__doc__, "coverage_shift.tsv")
    add_data(parser)
    parser.add_argument(
        "--genomes", type=Path, default=Path("runs/data/genomes"), help="of prepare_genomes.py"
    )
    parser.add_argument("--model", nargs="+", default=[], help="these models; the others keep their rows")
    args = parser.parse_args()
    torch.set_num_threads(1)
    notes, rows = describe(sys.argv), list[list[object]]()
    silent: list[str] = []
    for row in chain(own_rows(args.model), other_rows(args)):
        rows.append(with_decimals((row[column] for column in COLUMNS), 3))
        print(*rows[-1], sep="\t", flush=True)
        if row["coverage"] < PROMISED and row["cautions"] == "-":
            silent.append(f"{row['model']} on {row['set']}, {row['shift']}")
    print(f"coverage below {PROMISED:g} without a caution: {'; '.join(silent) or 'none'}")
    before, kept = keep_rows(args.out, "model", args.model) if args.model else ([], [])
    rows = [*([row[column] for column in COLUMNS] for row in kept), *rows]
    write_table(args.out, COLUMNS, rows, [*notes, *before])


if __name__ == "__main__":
    main()
