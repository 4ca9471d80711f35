"""The table of accuracy: each set under its official and an honest protocol, published figures beside.

    python benchmarks/accuracy.py                 # scores the models, reads the cross-validations
    python benchmarks/accuracy.py --floor --only amp          # the floor alone; the other columns stay

Needs the tables of ``data/prepare.py`` in ``runs/data``; those that are missing are made from
``SEQRAY_DATA``. Sets with a test part of their own are scored by the shipped model, or one in the folder
``--models``. Sets without are read from ``benchmarks/results/cv_<set>.tsv``, which
``benchmarks/cross_validation.py`` writes.

``official`` is the published test part, or random folds. ``honest`` leaves out test sequences that share a
40-mer (peptides: ten residues) with one of training or validation, and those with both labels; or it is
grouped folds. Intervals: 95 %, bootstrap over groups of related sequences. ``seed_low`` and ``seed_high`` are
the figures of the weakest and the strongest member alone. The floor is k-mer and position logistic
regression on the same training part, one for each species. ``species recognized`` is what ``seqray predict``
does by default with the windows of a species. Where the species is not given, one floor serves all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import precision_recall_curve

from accuracy_sets import FOLDS, TEST_SETS, Folds, TestSet
from machine import RESULTS, describe, keep_rows, read_table, script_parser, with_decimals
from seqray.core.alphabet import ALPHABETS
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.run_config import load_run_config
from seqray.inference.origin import recognize_context
from seqray.inference.sequences import predict_records
from seqray.io.sequences import read_labeled_table
from seqray.io.tables import write_table
from seqray.metrics.baselines import default_baseline
from seqray.metrics.classification import auprc, auroc, call_metrics
from seqray.modelfile.file import count_parameters, load_model
from seqray.modelfile.model import TrainedModel

ROOT = Path(__file__).resolve().parent.parent
RUNS = Path("runs")
COLUMNS = (
    *("set", "protocol", "condition", "n", "measure", "published", "floor", "seqray", "low", "high"),
    *("seed_low", "seed_high", "seeds", "model", "parameters", "train_seconds", "source"),
)
RESAMPLES = 100
RANKING = {"auroc": auroc, "auprc": auprc}
GIVEN, RECOGNIZED, NOT_GIVEN = "species given", "species recognized", "species not given"
Figures = Callable[[np.ndarray, np.ndarray], float]


@dataclass(frozen=True)
class Scored:
    """Scores of the positive class for some test sequences, by the ensemble, its members and the floor."""

    labels: np.ndarray
    groups: np.ndarray
    contexts: np.ndarray
    ensemble: np.ndarray
    members: tuple[np.ndarray, ...]
    floor: np.ndarray

    def take(self, rows: np.ndarray) -> Scored:
        """Return some of the sequences."""
        members = tuple(member[rows] for member in self.members)
        return Scored(
            self.labels[rows],
            self.groups[rows],
            self.contexts[rows],
            self.ensemble[rows],
            members,
            self.floor[rows],
        )


def table_of(name: str) -> list[LabeledSequence]:
    """Read a prepared set, making it first where it is missing."""
    path = RUNS / "data" / f"{name}.tsv.gz"
    if not path.exists():
        command = [sys.executable, str(ROOT / "data" / "prepare.py"), name, "--out", str(path)]
        subprocess.run(command, check=True)
    alphabet = ALPHABETS["protein" if name.startswith("amp") else "dna"]
    return read_labeled_table(path, alphabet)


def rows_by_context(examples: Sequence[LabeledSequence]) -> dict[str | None, list[int]]:
    """Numbers of the examples of each context."""
    rows: dict[str | None, list[int]] = defaultdict(list)
    for i, example in enumerate(examples):
        rows[example.context].append(i)
    return rows


def scores_of(model: TrainedModel, examples: Sequence[LabeledSequence], condition: str = "") -> np.ndarray:
    """Probability of the positive class (N,), in the context of each example unless it is not given."""
    scores = np.empty(len(examples))
    for context, rows in rows_by_context(examples).items():
        records = [SequenceRecord(examples[i].id, examples[i].sequence) for i in rows]
        named = model
        if condition == RECOGNIZED:
            named, _ = recognize_context(model, records)
        elif model.card.model.contexts:
            named = model.with_context(None if condition == NOT_GIVEN else context)
        answers = predict_records(named, records)
        scores[rows] = [p.probabilities[model.card.positive_index] for p in answers]
    return scores


def floor_of(
    train: Sequence[LabeledSequence], test: Sequence[LabeledSequence], positive: str, alphabet: str
) -> np.ndarray:
    """Score the test by the baseline, one for each context where there are any."""
    scores = np.empty(len(test))
    for context, rows in rows_by_context(test).items():
        known = [e for e in train if e.context == context]
        baseline = default_baseline(ALPHABETS[alphabet])
        baseline.fit([e.sequence for e in known], [e.label for e in known])
        answers = baseline.predict_proba([test[i].sequence for i in rows])
        scores[rows] = answers[:, list(baseline.classes_).index(positive)]
    return scores


def unrelated(data: Sequence[LabeledSequence], test: Sequence[LabeledSequence]) -> np.ndarray:
    """Say which test sequences share no group with training or validation and have one label: bool (N,)."""
    learned = {e.group for e in data if e.split != "test"}
    labels: dict[str, set[str]] = defaultdict(set)
    for example in data:
        labels[example.sequence].add(example.label)
    return np.array([e.group not in learned and len(labels[e.sequence]) == 1 for e in test])


def precision_at_recall(labels: np.ndarray, scores: np.ndarray, recall: float = 0.8) -> float:
    """Best precision at that recall or more."""
    precision, found, _ = precision_recall_curve(labels, scores)
    return float(precision[found >= recall].max())


def threshold_metrics(labels: np.ndarray, calls: np.ndarray) -> dict[str, float]:
    """`call_metrics` of records of equal weight."""
    measured = call_metrics(labels, calls, np.ones((1, len(labels))))
    return {name: float(values[0]) for name, values in measured.items()}


def figure(measure: str, threshold: float) -> Figures:
    """Look a measure of (labels, scores) up."""
    if measure == "precision_at_recall_80":
        return precision_at_recall
    if measure in RANKING:
        return RANKING[measure]
    return lambda labels, scores: threshold_metrics(labels, scores >= threshold)[measure]


def mean_over_contexts(one: Figures, contexts: np.ndarray) -> Figures:
    """Make the figure the mean of those of each context, whose numbers are given."""

    def mean(labels: np.ndarray, scores: np.ndarray) -> float:
        order = np.argsort(contexts, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(contexts[order])) + 1)
        return float(np.mean([one(labels[part], scores[part]) for part in parts]))

    return mean


def interval(one: Callable[[np.ndarray], float], groups: np.ndarray) -> tuple[float, float]:
    """Bootstrap over groups of a function of row indices."""
    _, inverse = np.unique(groups, return_inverse=True)
    order = np.argsort(inverse, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(inverse))[:-1])
    rng = np.random.default_rng(0)
    values = []
    for _ in range(RESAMPLES):
        drawn = rng.integers(0, len(members), len(members))
        values.append(one(np.concatenate([members[i] for i in drawn])))
    low, high = np.nanquantile(values, [0.025, 0.975])
    return float(low), float(high)


def rows_of(
    scored: Scored, task: TestSet, model: TrainedModel, protocol: str, condition: str, seconds: str
) -> Iterator[dict[str, Any]]:
    """Measure one protocol: a row per measure."""
    if len(np.unique(scored.labels)) < 2:
        return
    numbers = np.unique(scored.contexts, return_inverse=True)[1]
    for measure in task.measures:
        ours, floors = figure(measure, model.card.threshold), figure(measure, 0.5)

        def of(
            scores: np.ndarray,
            rows: np.ndarray | None = None,
            one: Figures = ours,
        ) -> float:
            part = np.arange(len(scores)) if rows is None else rows
            function = mean_over_contexts(one, numbers[part]) if task.by_context else one
            return function(scored.labels[part], scores[part])

        alone = [of(member) for member in scored.members]
        low, high = interval(lambda rows, of=of: of(scored.ensemble, rows), scored.groups)
        published, source = task.published.get(measure, ("", task.remark))
        yield {
            "set": task.shown,
            "protocol": protocol,
            "condition": condition,
            "n": len(scored.labels),
            "measure": f"mean {measure} of {len(np.unique(scored.contexts))} species"
            if task.by_context
            else measure,
            "published": published,
            "floor": of(scored.floor, one=floors),
            "seqray": of(scored.ensemble),
            "low": low,
            "high": high,
            "seed_low": min(alone),
            "seed_high": max(alone),
            "seeds": len(alone),
            "model": model.card.name,
            "parameters": count_parameters(model.networks[0]),
            "train_seconds": seconds,
            "source": source,
        }


def species_rows(
    scored: Scored, task: TestSet, protocol: str, model: TrainedModel
) -> Iterator[dict[str, Any]]:
    """Return AUROC of each context."""
    one = figure("auroc", 0.5)
    for context in np.unique(scored.contexts):
        rows = np.flatnonzero(scored.contexts == context)
        part = scored.take(rows)
        if len(np.unique(part.labels)) == 2:
            yield {
                "set": task.shown,
                "protocol": protocol,
                "condition": str(context),
                "n": len(rows),
                "measure": "auroc",
                "published": "",
                "floor": one(part.labels, part.floor),
                "seqray": one(part.labels, part.ensemble),
                "model": model.card.name,
                "seeds": len(part.members),
            }


def measure_test_set(
    task: TestSet, model: TrainedModel, *, floor_only: bool = False
) -> Iterator[dict[str, Any]]:
    """Score a set by its model: official and honest, with and without what the model may be told.

    With ``floor_only`` the floor takes the place of the model.
    """
    data = table_of(task.table)
    test = [e for e in data if e.split == "test"]
    train = [e for e in table_of(task.trained_on) if e.split != "test"]
    alone = [model.member(number) for number in range(len(model.networks))]
    related = unrelated([*train, *test], test)
    if task.table != task.trained_on:  # groups are named anew in each table
        related = unrelated(data, test) & ~np.isin([e.sequence for e in test], [e.sequence for e in train])
    conditions = [("", test)]
    if task.by_context:
        conditions = [(GIVEN, test), (RECOGNIZED, test), (NOT_GIVEN, test)]
    if task.without_first:
        cut = [
            replace(e, sequence=e.sequence[1:]) if e.sequence.startswith(task.without_first) else e
            for e in test
        ]
        conditions = [("as published", test), (f"initial {task.without_first} removed", cut)]
    alphabet, positive = model.card.model.alphabet, model.card.positive
    of_test = floor_of(train, test, positive, alphabet)
    for condition, examples in conditions:
        floor = of_test if examples is test else floor_of(train, examples, positive, alphabet)
        if condition == NOT_GIVEN:  # one floor for all
            pooled, asked = ([replace(e, context=None) for e in part] for part in (train, test))
            floor = floor_of(pooled, asked, positive, alphabet)
        ensemble = floor if floor_only else scores_of(model, examples, condition)
        several = alone[1:] and not floor_only
        scored = Scored(
            np.array([e.label == positive for e in examples]),
            np.array([e.group or e.id for e in examples]),
            np.array([e.context or "" for e in examples]),
            ensemble,
            tuple(scores_of(member, examples, condition) for member in alone) if several else (ensemble,),
            floor,
        )
        for protocol, part in (("official", scored), ("honest", scored.take(np.flatnonzero(related)))):
            yield from rows_of(part, task, model, protocol, condition, training_seconds(task.model))
            if condition == GIVEN:
                yield from species_rows(part, task, protocol, model)


def training_seconds(model: str) -> str:
    """Seconds that the members took together, where their work folder is here."""
    found = [json.loads(p.read_text()) for p in (RUNS / model).glob("member-*/finished.json")]
    seconds = [result["seconds"] for result in found if "seconds" in result]
    return str(sum(seconds)) if seconds and len(seconds) == len(found) else ""


def read_folds(task: Folds) -> Iterator[dict[str, Any]]:
    """Take the rows of a cross-validation that was run before."""
    path = RESULTS / f"cv_{task.table}.tsv"
    if not path.exists():
        print(f"accuracy: {path.name} is missing; run benchmarks/cross_validation.py", file=sys.stderr)
        return
    with open(path, encoding="utf-8") as handle:
        head = [line for line in handle if line.startswith("#")]
    rows = read_table(path)
    spent = [int(line.rsplit(":", 1)[1]) for line in head if "seconds for all folds" in line]
    seconds = str(sum(spent)) if spent else ""  # of all protocols, also of rows that a later run kept
    for name, protocol in (("random folds", "official"), ("grouped folds", "honest")):
        chosen = [row for row in rows if row["protocol"] == name]
        for measure in task.measures:
            if chosen and measure in chosen[0]:
                yield fold_row(task, chosen, protocol, name, measure, seconds)


def fold_row(
    task: Folds, rows: Sequence[dict[str, str]], protocol: str, name: str, measure: str, seconds: str
) -> dict[str, Any]:
    """Make a row of the mean over folds; the seeds are the folds' own."""
    ours = [row for row in rows if row["model"] == "seqray"]
    folds = [float(row[measure]) for row in ours if row["fold"].isdecimal()]
    [mean] = [row for row in ours if row["fold"] == "mean"]
    [pooled] = [row for row in ours if row["fold"] == "pooled"]
    floors = [row for row in rows if row["model"] != "seqray" and row["fold"] == "mean"]
    published, source = task.published.get(measure, ("", ""))
    config = load_run_config(ROOT / "configs" / f"{task.config}.yaml")
    from seqray.modelfile.file import build_network

    return {
        "set": task.table,
        "protocol": protocol,
        "condition": name,
        "n": pooled["n"],
        "measure": measure,
        "published": published,
        "floor": float(floors[0][measure]) if floors and floors[0][measure] else "",
        "seqray": float(mean[measure]),
        "low": float(pooled[f"{measure}_low"]) if pooled.get(f"{measure}_low") else "",
        "high": float(pooled[f"{measure}_high"]) if pooled.get(f"{measure}_high") else "",
        "seed_low": min(folds),
        "seed_high": max(folds),
        "seeds": len(folds),
        "model": task.config,
        "parameters": count_parameters(build_network(config.model)),
        "train_seconds": seconds,
        "source": source,
    }


def find_model(name: str, folder: Path | None) -> TrainedModel | None:
    """Load a model from the folder, or the shipped one; None where there is neither."""
    from seqray.core.errors import ModelFileError

    path = None if folder is None else folder / f"{name}.safetensors"
    try:
        return load_model(path if path is not None and path.exists() else name)
    except ModelFileError as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return None


def main() -> None:
    parser = script_parser(__doc__, "accuracy.tsv")
    parser.add_argument("--models", type=Path, help="folder of model files to prefer to the shipped ones")
    parser.add_argument("--only", nargs="+", help="sets to measure; the others keep their rows")
    parser.add_argument("--floor", action="store_true", help="measure the floors of sets with a test part")
    args = parser.parse_args()
    rows = measure_all(args)
    before: list[str] = []
    if args.floor:
        before, known = keep_rows(args.out, "set", ())
        rows = with_floors(known, rows)
    elif args.only:
        before, known = keep_rows(args.out, "set", args.only)
        rows = [*known, *rows]
    order = {task.shown: i for i, task in enumerate((*TEST_SETS, *FOLDS))}
    ordered = sorted(rows, key=lambda row: order[row["set"]])
    cells = (with_decimals(row.get(column, "") for column in COLUMNS) for row in ordered)
    write_table(args.out, COLUMNS, cells, [*describe(sys.argv), *before])
    for row in rows:
        print(
            row["set"],
            row["protocol"],
            row["condition"],
            row["measure"],
            row["published"],
            row["floor"],
            row["seqray"],
        )


def measure_all(args: argparse.Namespace) -> list[dict[str, Any]]:
    """Score every set, or those of ``--only``."""
    rows: list[dict[str, Any]] = []
    for task in (*TEST_SETS, *FOLDS):
        if args.only is None or task.shown in args.only:
            if isinstance(task, Folds):
                rows += read_folds(task)
            elif model := find_model(task.model, args.models):
                rows += measure_test_set(task, model, floor_only=args.floor)
    return rows


def with_floors(rows: Sequence[dict[str, Any]], measured: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of an earlier table with the floors that were measured anew."""
    key = itemgetter("set", "protocol", "condition", "n", "measure")
    floors = {tuple(map(str, key(row))): row["floor"] for row in measured}
    return [row | {"floor": floors.get(key(row), row["floor"])} for row in rows]


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
