"""Cross-validate a configuration on a labeled table, beside the baseline floor on the same folds.

    python data/prepare.py ecoli-cnnprom --out runs/data/ecoli-cnnprom.tsv.gz
    python benchmarks/cross_validation.py --config configs/ecoli-cnnprom.yaml \
        --train runs/data/ecoli-cnnprom.tsv.gz --protocol random grouped

Protocols: ``random`` folds are what most papers use; ``grouped`` folds keep the groups of the table (shared
40-mers, blocks of the genome) on one side, and are the honest figure. In each fold the epoch, temperature
and threshold are chosen on a part of the training folds; the test fold is scored once.

Of more than two classes, the figures are those of everything else against the class ``background``, and
``macro_f1`` is the mean over all classes of F1.

With ``--made`` the network also learns the negatives that ``data/prepare.py`` makes for the sets called
``-made``, from the promoters of the training folds. The floor does not, and the test folds have none.

With ``--init`` every network begins with the weights of ``seqray pretrain``; ``--share`` leaves out most of
the training folds, to see what that is worth where labels are few.

Writes a row per protocol, model and fold, the mean of the folds, and the pooled figure with a 95 % interval
(bootstrap over groups), and with ``--card`` the figures that a model card shows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from machine import RESULTS, describe, keep_rows, script_parser, with_decimals
from published_sets import with_made_negatives
from seqray.core.alphabet import ALPHABETS
from seqray.core.records import LabeledSequence
from seqray.core.run_config import RunConfig, load_run_config
from seqray.homology.split import grouped_folds, random_folds
from seqray.io.files import open_output
from seqray.io.sequences import read_labeled_table
from seqray.io.tables import write_table
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.metrics.classification import bootstrap_samples, class_metrics, percentile_interval
from seqray.training.members import RunOptions

MODEL, FLOOR = "seqray", "k-mer and position logistic regression"
BACKGROUND = "background"
MEASURES = ("mcc", "auroc", "auprc", "accuracy", "sensitivity", "specificity")


@dataclass(frozen=True)
class Task:
    """One test fold of one protocol."""

    config: RunConfig
    data: Sequence[LabeledSequence]
    protocol: str
    fold: int
    test: np.ndarray
    work_dir: Path
    init: str | None = None
    share: float = 1.0
    made: str | None = None


@dataclass(frozen=True)
class Answer:
    """For each test sequence, by model and floor: score of the positive side, call, and class named."""

    protocol: str
    fold: int
    test: np.ndarray
    scores: dict[str, np.ndarray]
    calls: dict[str, np.ndarray]
    seconds: float
    named: dict[str, np.ndarray] = field(default_factory=dict)


def run_fold(task: Task) -> Answer:
    """Train on the other folds, score this one."""
    import torch

    from seqray.inference.sequences import score_codes
    from seqray.modelfile.initial_weights import load_initial_weights
    from seqray.modelfile.model import TrainedModel
    from seqray.training.fit import train

    torch.set_num_threads(1)
    began = time.monotonic()
    held_out = set(task.test.tolist())
    rest = [replace(e, split=None) for i, e in enumerate(task.data) if i not in held_out]
    if task.protocol == "random":
        rest = [replace(e, group=None) for e in rest]
    if task.share < 1:
        order = np.random.default_rng(task.config.seed).permutation(len(rest))
        rest = [rest[i] for i in np.sort(order[: round(task.share * len(rest))])]
    start = load_initial_weights(task.init) if task.init else None
    learned = with_made_negatives(rest, Fraction(task.made)) if task.made else rest
    result = train(task.config, learned, None, RunOptions(task.work_dir), start=start)
    model = TrainedModel(result.card, result.networks)
    flank, window = task.config.data.flank, task.config.data.window
    sequences = [task.data[i].sequence[flank : flank + window] for i in task.test]
    codes = np.stack([model.alphabet.encode(s) for s in sequences])
    p = score_codes(model, codes)
    q, floor_classes = floor_scores(task, rest, sequences)
    if len(result.card.classes) > 2:
        return many_classes(task, p, result.card.classes, q, floor_classes, time.monotonic() - began)
    p = p[:, result.card.positive_index]
    floor = q[:, floor_classes.index(task.config.data.positive)]
    return Answer(
        task.protocol,
        task.fold,
        task.test,
        {MODEL: p, FLOOR: floor},
        {MODEL: p >= result.card.threshold, FLOOR: floor >= 0.5},
        time.monotonic() - began,
    )


def many_classes(
    task: Task,
    p: np.ndarray,
    classes: Sequence[str],
    q: np.ndarray,
    floor_classes: Sequence[str],
    seconds: float,
) -> Answer:
    """Answer for more than two classes, those other than the background taken together."""
    scores, calls, named = {}, {}, {}
    for who, values, names in ((MODEL, p, classes), (FLOOR, q, floor_classes)):
        scores[who] = 1 - values[:, list(names).index(BACKGROUND)]
        named[who] = np.array(names)[values.argmax(axis=1)]
        calls[who] = named[who] != BACKGROUND
    return Answer(task.protocol, task.fold, task.test, scores, calls, seconds, named)


def floor_scores(
    task: Task, rest: Sequence[LabeledSequence], test: Sequence[str]
) -> tuple[np.ndarray, list[str]]:
    """Score the test fold with the baseline: (N, K) probabilities and the names of the classes."""
    flank, window = task.config.data.flank, task.config.data.window
    baseline = KmerPositionalBaseline()
    baseline.fit([e.sequence[flank : flank + window] for e in rest], [e.label for e in rest])
    return baseline.predict_proba(test), [str(name) for name in baseline.classes_]


def make_tasks(config: RunConfig, data: list[LabeledSequence], args: argparse.Namespace) -> list[Task]:
    """Lay out the folds of each protocol and repetition."""
    labels = [e.label for e in data]
    tasks = []
    for protocol in args.protocol:
        for repeat in range(args.repeats):
            if protocol == "random":
                folds = random_folds(labels, args.folds, seed=repeat)
            else:
                folds = grouped_folds(labels, [e.group for e in data], args.folds, seed=repeat)
            for fold in range(args.folds):
                number = repeat * args.folds + fold
                work = args.work_dir / f"{protocol}-{number}"
                seeded = replace(config, seed=config.seed + 100 * number)
                tasks.append(
                    Task(
                        seeded,
                        data,
                        protocol,
                        number,
                        np.flatnonzero(folds == fold),
                        work,
                        args.init,
                        args.share,
                        args.made,
                    )
                )
    return tasks


def measure(
    labels: np.ndarray, scores: np.ndarray, calls: np.ndarray, weights: np.ndarray
) -> dict[str, np.ndarray]:
    """`MEASURES` with weights (W, N): (W,) each."""
    found = class_metrics(labels, scores, calls, weights, probabilities=False)
    return {name: found[name] for name in MEASURES}


def macro_f1(names: np.ndarray, named: np.ndarray) -> dict[str, float]:
    """Mean over the classes of F1."""
    from sklearn.metrics import f1_score

    return {"macro_f1": float(f1_score(names, named, average="macro"))}


def fold_figures(answer: Answer, who: str, labels: np.ndarray, names: np.ndarray | None) -> dict[str, float]:
    """Measure one test fold."""
    y = labels[answer.test]
    found = measure(y, answer.scores[who], answer.calls[who], np.ones((1, len(y))))
    figures = {name: float(row[0]) for name, row in found.items()}
    return figures if names is None else figures | macro_f1(names[answer.test], answer.named[who])


def pooled_figures(
    answers: Sequence[Answer], who: str, labels: np.ndarray, groups: np.ndarray, names: np.ndarray | None
) -> dict[str, float]:
    """Measure all test folds together, with intervals."""
    where = np.concatenate([a.test for a in answers])
    scores = np.concatenate([a.scores[who] for a in answers])
    calls = np.concatenate([a.calls[who] for a in answers])
    numbers = np.unique(groups[where], return_inverse=True)[1]
    found = bootstrap_samples(
        lambda weights: measure(labels[where], scores, calls, weights), numbers, 500, 0, one_by_one=True
    )
    pooled: dict[str, float] = {}
    for name, (value, samples) in found.items():
        low, high = percentile_interval(samples)
        pooled |= {name: value, f"{name}_low": low, f"{name}_high": high}
    if names is not None:
        pooled |= macro_f1(names[where], np.concatenate([a.named[who] for a in answers]))
    return pooled


def summarize(
    answers: Sequence[Answer],
    labels: np.ndarray,
    groups: np.ndarray,
    repeats: int,
    names: np.ndarray | None = None,
) -> list[dict[str, Any]]:
    """Make the rows of the table for one protocol: folds, their mean, and the pooled figures.

    ``names`` (N,) are the classes, where the answers name one of more than two.
    """
    rows: list[dict[str, Any]] = []
    for who in (MODEL, FLOOR):
        folds = [fold_figures(a, who, labels, names) for a in answers]
        for a, figures in zip(answers, folds, strict=True):
            rows.append({"model": who, "fold": str(a.fold + 1), "n": len(a.test), **figures})
        mean = {name: float(np.mean([f[name] for f in folds])) for name in folds[0]}
        rows.append({"model": who, "fold": "mean", "n": len(labels) * repeats, **mean})
        pooled = pooled_figures(answers, who, labels, groups, names)
        rows.append({"model": who, "fold": "pooled", "n": sum(len(a.test) for a in answers), **pooled})
    return rows


def write_folds(
    path: str | Path, rows: Sequence[dict[str, Any]], head: Sequence[str], kept: Sequence[dict[str, Any]] = ()
) -> None:
    """Write the rows as TSV under comment lines, and below them rows that stay."""
    columns = ["set", "protocol", "model", "fold", "n", *MEASURES]
    columns += ["macro_f1"] if any("macro_f1" in row for row in rows) else []
    columns += [f"{name}_{side}" for name in MEASURES for side in ("low", "high")]
    cells = [with_decimals(row.get(column, "") for column in columns) for row in (*rows, *kept)]
    write_table(path, columns, cells, head)


def card_figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Choose what a model card shows: pooled figures with intervals, of model and floor, by protocol."""
    figures: dict[str, Any] = {}
    for row in rows:
        if row["fold"] == "pooled":
            who = "model" if row["model"] == MODEL else "floor"
            figures[f"{row['set']}, {row['protocol']}, {who}"] = {
                name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                for name in MEASURES
            }
    return figures


def write_card_figures(path: str, figures: dict[str, Any]) -> None:
    """Add the figures, to four digits, to a JSON file for ``seqray train --metrics``."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: rounded(v) for key, v in value.items()}
        return round(value, 4) if isinstance(value, float) else value

    known = json.loads(Path(path).read_text()) if Path(path).exists() else {}
    with open_output(path) as handle:
        handle.write((json.dumps({**known, **rounded(figures)}, indent=1) + "\n").encode())


def headline(rows: Sequence[dict[str, Any]], measure: str) -> dict[str, Any]:
    """Choose the figure that ``seqray models`` lists: that of the last protocol."""
    row = [r for r in rows if r["model"] == MODEL and r["fold"] == "pooled"][-1]
    value, low, high = (row[key] for key in (measure, f"{measure}_low", f"{measure}_high"))
    split = f"{row['set']}, {row['protocol']}" + (", any class or none" if "macro_f1" in row else "")
    return {"metric": measure, "split": split, "value": value, "low": low, "high": high}


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--config", type=Path, required=True)
    parser.add_argument("--train", type=Path, required=True, help="labeled table")
    parser.add_argument("--protocol", nargs="+", choices=["random", "grouped"], default=["random", "grouped"])
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=1, help="times that the folds are drawn anew")
    parser.add_argument("--members", type=int, help="networks a fold; the configuration's by default")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="folds at a time, a thread each"
    )
    parser.add_argument("--init", help="weights to begin with, of seqray pretrain or a model")
    parser.add_argument("--share", type=float, default=1.0, help="share of the training folds to learn from")
    parser.add_argument("--made", metavar="RATIO", help="made negatives a promoter of the training folds")
    parser.add_argument("--work-dir", type=Path, help="checkpoints; runs/cv/<table> by default")
    parser.add_argument("--out", help="TSV; benchmarks/results/cv_<table>.tsv by default")
    parser.add_argument("--keep", action="store_true", help="keep the rows of other protocols in the table")
    parser.add_argument("--card", help="JSON for seqray train --metrics; figures are added to it")
    parser.add_argument("--headline", action="store_true", help="make this the figure that lists show")
    args = parser.parse_args()
    name = args.train.name.split(".")[0]
    args.work_dir = args.work_dir or Path("runs/cv") / name
    args.out = args.out or RESULTS / f"cv_{name}.tsv"
    config = load_run_config(args.config)
    config = replace(config, members=args.members or config.members)
    data = read_labeled_table(args.train, ALPHABETS[config.model.alphabet])
    names = np.array([e.label for e in data]) if config.model.classes > 2 else None
    labels = np.array([e.label == config.data.positive for e in data])
    if names is not None:
        labels = names != BACKGROUND
    groups = np.array([e.group or f"row{i}" for i, e in enumerate(data)])
    answers: list[Answer] = []
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        for answer in pool.map(run_fold, make_tasks(config, data, args)):
            answers.append(answer)
            mcc = fold_figures(answer, MODEL, labels, None)["mcc"]
            print(
                f"{name} {answer.protocol} fold {answer.fold + 1}: MCC {mcc:.4f}, {answer.seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    rows: list[dict[str, Any]] = []
    for protocol in args.protocol:
        chosen = [a for a in answers if a.protocol == protocol]
        for row in summarize(chosen, labels, groups, args.repeats, names):
            rows.append({"set": name, "protocol": f"{protocol} folds", **row})
    seconds = sum(a.seconds for a in answers)
    head = [*describe(sys.argv), f"config: {args.config.name}, members: {config.members}, threads a fold: 1"]
    head.append(f"seconds for all folds, one thread each: {seconds:.0f}")
    measured = [f"{protocol} folds" for protocol in args.protocol]
    before, kept = keep_rows(args.out, "protocol", measured) if args.keep else ([], [])
    write_folds(args.out, rows, [*head, *before], kept)
    if args.card:
        shown = {"headline": headline(rows, "mcc")} if args.headline else {}
        write_card_figures(args.card, shown | card_figures(rows))


if __name__ == "__main__":
    main()
