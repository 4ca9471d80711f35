"""Do explanations point at the letters that matter? Planted words, then the boxes of real promoters.

    python benchmarks/explanations.py --out benchmarks/results/explanations.tsv

Planted: a small network learns each task of ``planted.py``, and each method scores the letters of test
records that it calls correctly. ``auprc`` and ``precision_at_k`` (k the number of true letters) are means
over records. In the task with a suppressor, ``suppressor_below_0`` is the share of its letters with a score
below 0 in records that hold activator and suppressor, and ``suppressor_auprc`` ranks by minus the score.

Real promoters, by the shipped models: share of the letters with the highest scores that lie in a box
(``promoter_boxes.py``), of promoters that the model calls. Promoters are aligned by their start, so a method
can do well by knowing the places alone: ``.._by_place`` judges each record by the scores of another one.

Methods that rank tokens come twice: spread over all letters that a token of the stem has read, and, with
``(span)``, evenly over its stride. ``random`` are random scores. Intervals: 95 %, bootstrap over records.
The planted networks are kept under ``--work-dir`` and not trained again.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch

from machine import add_data, describe, script_parser
from planted import LENGTH, POSITIVE, TASKS, Planted, generate, labeled
from pointing import (
    Floats,
    Mask,
    Measure,
    average_precision,
    by_chance,
    mean_with_interval,
    precision_at,
    share_below_zero,
)
from promoter_boxes import Promoters, plant_tata, sigma70
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.core.run_config import DataConfig, OptimizerConfig, RunConfig, StoppingConfig
from seqray.explanations.methods import GENERAL_METHODS, METHODS, member_scores
from seqray.explanations.options import MethodSettings
from seqray.explanations.targets import sequence_targets
from seqray.inference.sequences import score_codes
from seqray.io.tables import write_table
from seqray.metrics.classification import auroc
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.training.fit import train
from seqray.training.members import RunOptions

SHAPES = {
    "stem 9, stride 1": StemConfig(kernels=(9,)),
    "stem 7+15, stride 3": StemConfig(kernels=(7, 15), stride=3),  # as in ecoli-promoter
}
TRAIN, VALIDATION, TEST, MAX_RECORDS = 8000, 1000, 1000, 200
"""Planted records, and how many of a kind are explained."""
REAL = {
    "ecoli": ("ecoli-promoter", sigma70, 12),
    "arabidopsis": ("arabidopsis-promoter", plant_tata, 10),
}
MAX_REAL_RECORDS = 300
RANDOM = "random"
VARIANTS = [(method, method, MethodSettings()) for method in GENERAL_METHODS]
VARIANTS += [
    (f"{method} (span)", method, MethodSettings(spread="span"))
    for method in GENERAL_METHODS
    if "rollout" in method
]
NOTES = {
    "single": "single: a word of 8 letters against its letters in another order",
    "pair": "pair: two words 17 letters apart; negatives lack one of them or have another distance",
    "suppressor": "suppressor: activator without suppressor; negatives have both or neither",
    "ecoli": "ecoli: sigma70 promoters of RegulonDB, Strong or Confirmed, in the region that was held out;"
    " boxes at -37..-30 and -13..-6 (fixed) or best pair of hexamers by letters (found), +-1 letter",
    "arabidopsis": "arabidopsis: EPD TATA promoters, among the model's training data; TATA window -38..-23",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of the table."""

    task: str
    model: str
    method: str
    measure: str
    n: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What to explain, and by name how scores are judged and against which letters."""

    codes: np.ndarray
    measures: dict[str, tuple[Measure, Mask]]
    signed_only: bool = False


def settings(task: str, shape: str) -> RunConfig:
    """Settings of a small network that learns a planted task in a minute or two on one core."""
    return RunConfig(
        name=f"planted-{task}",
        model=ModelConfig(
            d_model=32,
            layers=2,
            heads=2,
            d_ff=64,
            dropout=0.0,  # with it some networks never learn the distance of a pair
            positions="rotary",
            max_length=LENGTH,
            stem=SHAPES[shape],
        ),
        data=DataConfig(window=LENGTH, positive=POSITIVE),
        optimizer=OptimizerConfig(learning_rate=2e-3, weight_decay=0.05, batch_size=32, ema=0.99),
        stopping=StoppingConfig(monitor="auprc", patience=7),
        trainer={"max_epochs": 7, "accelerator": "cpu"},
    )


def learn(task: str, shape: str, work_dir: Path) -> TrainedModel:
    """Train on one draw of a task, with another for validation."""
    data = labeled(generate(task, TRAIN, seed=1), "train")
    data += labeled(generate(task, VALIDATION, seed=2), "validation")
    folder = work_dir / task / shape.replace(", ", "-").replace(" ", "")
    result = train(settings(task, shape), data, None, RunOptions(folder, threads=1))
    return TrainedModel(result.card, result.networks)


def suppressor_auprc(scores: Floats, truth: Mask) -> Floats:
    """How well the lowest scores point at the suppressor."""
    return average_precision(-scores, truth)


def trials(records: Sequence[Planted], called: np.ndarray) -> list[Trial]:
    """Positives that are called, and negatives that hold both words and aren't."""
    codes = np.stack([r.codes for r in records])
    truth, against = (np.stack([getattr(r, name) for r in records]) for name in ("truth", "against"))
    positive = np.array([r.positive for r in records])
    found = np.flatnonzero(positive & called)[:MAX_RECORDS]
    chosen = np.flatnonzero(against.any(axis=1) & ~called)[:MAX_RECORDS]
    known, opposed = truth[found], against[chosen]
    result = [
        Trial(codes[found], {"auprc": (average_precision, known), "precision_at_k": (precision_at, known)})
    ]
    if len(chosen):
        measures = {
            "suppressor_below_0": (share_below_zero, opposed),
            "suppressor_auprc": (suppressor_auprc, opposed),
        }
        result.append(Trial(codes[chosen], measures, signed_only=True))
    return result


def judge(model: TrainedModel, trial: Trial, name: Callable[..., Row]) -> list[Row]:
    """Score the letters by every method, and by chance."""
    rows, targets = [], sequence_targets(model, model.card.positive_index)
    for label, method, knobs in VARIANTS:
        if METHODS[method].signed or not trial.signed_only:
            scores = member_scores(targets, trial.codes, method, knobs).mean(axis=0)
            for measure, (figure, truth) in trial.measures.items():
                found = figure(scores, truth)
                rows.append(name(label, measure, len(found), *mean_with_interval(found)))
    for measure, (figure, truth) in trial.measures.items():
        rows.append(name(RANDOM, measure, len(truth), *mean_with_interval(by_chance(figure, truth))))
    return rows


def planted_rows(task: str, shape: str, work_dir: Path) -> list[Row]:
    """Train, check that the task was learnt, and judge every method."""
    model = learn(task, shape, work_dir)
    name = partial(Row, task, shape)
    records = generate(task, TEST, seed=3)
    codes, positive = np.stack([r.codes for r in records]), np.array([r.positive for r in records])
    p = score_codes(model, codes)[:, model.card.positive_index]
    rows = [name("(classifier)", "auroc", len(p), auroc(positive, p), np.nan, np.nan)]
    for trial in trials(records, p >= model.card.threshold):
        rows += judge(model, trial, name)
    return rows


def called_promoters(model: TrainedModel, promoters: Promoters) -> tuple[Promoters, float]:
    """Those that the model calls, at most ``MAX_REAL_RECORDS`` drawn at random; and the share called."""
    p = score_codes(model, promoters.codes)[:, model.card.positive_index]
    called = np.flatnonzero(p >= model.card.threshold)
    drawn = np.random.default_rng(0).permutation(called)[:MAX_REAL_RECORDS]
    return promoters.take(np.sort(drawn)), len(called) / len(p)


def real_rows(task: str, model_name: str, data: Path) -> list[Row]:
    """Judge every method on the promoters that a shipped model calls."""
    _, read, k = REAL[task]
    model = load_model(model_name)
    everything = read(data, model)
    promoters, share = called_promoters(model, everything)
    name = partial(Row, task, model.card.name)
    top = partial(precision_at, k=k)
    measures: dict[str, tuple[Measure, Mask]] = {}
    for box, mark in promoters.marks.items():
        measures[f"top_{k}_in_{box}"] = (top, mark)
        if (mark != mark[0]).any():  # else it says the same
            measures[f"top_{k}_in_{box}_by_place"] = (top, np.roll(mark, 1, axis=0))
    read_row = name("(promoters read)", "called", len(everything.codes), share, np.nan, np.nan)
    return [read_row, *judge(model, Trial(promoters.codes, measures), name)]


def run_job(job: tuple[str, str], data: Path, work_dir: Path) -> list[Row]:
    """Run one task with one model, in a process of its own."""
    torch.set_num_threads(1)
    task, model = job
    rows = planted_rows(task, model, work_dir) if task in TASKS else real_rows(task, model, data)
    print(f"{task}, {model}: done", file=sys.stderr, flush=True)
    return rows


def jobs_of(tasks: Sequence[str]) -> list[tuple[str, str]]:
    """Pair each task with the models that it is run with."""
    return [(task, shape) for task in tasks for shape in (SHAPES if task in TASKS else [REAL[task][0]])]


def write_rows(path: str, rows: Sequence[Row], head: Sequence[str]) -> None:
    """Write the rows as TSV under comment lines; the last column compares with random scores."""
    chance = {(r.task, r.model, r.measure): r.value for r in rows if r.method == RANDOM}
    cells = []
    for row in rows:
        expected = chance.get((row.task, row.model, row.measure))
        values = [*astuple(row), row.value / expected if expected else np.nan]
        cells.append([_cell(value) for value in values])
    write_table(path, [*(field.name for field in fields(Row)), "times_random"], cells, head)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.3f}"
    return str(value)


def main() -> None:
    parser = script_parser(__doc__, "explanations.tsv")
    parser.add_argument("--tasks", nargs="+", choices=[*TASKS, *REAL], default=[*TASKS, *REAL])
    add_data(parser, required=False)
    parser.add_argument("--work-dir", type=Path, default=Path("runs/explanations"))
    parser.add_argument("--jobs", type=int, default=2, help="processes, of one thread each")
    args = parser.parse_args()
    if args.data is None and set(args.tasks) & set(REAL):
        parser.error(
            "name the folder of the public files with --data or SEQRAY_DATA, or leave out real promoters"
        )
    jobs = jobs_of(args.tasks)
    work = partial(run_job, data=args.data or Path(), work_dir=args.work_dir)
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(work, jobs[::-1]))[::-1]  # the longest jobs come last in the table
    rows = [row for part in found for row in part]
    write_rows(args.out, rows, [*describe(sys.argv), *(NOTES[task] for task in args.tasks)])


if __name__ == "__main__":
    main()
