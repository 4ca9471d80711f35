"""What each lever of a configuration is worth: one setting is changed at a time.

    python benchmarks/levers.py mouse-tata

The first of five grouped folds is left alone. On the rest, members are trained as configured and
with each lever, and each is measured on the validation part that it held out, which also chose its epoch:
enough to compare settings, too kind for a figure of accuracy. The floor (logistic regression on k-mers and
positions) is fitted to the same training parts. Of more than two classes, the figures are those of everything
else against the background. All levers of ``mouse-tata`` take about 80 minutes of one core.

Columns: ``n`` validation sequences of all members; ``auroc`` and ``mcc``, means over the members; ``gain`` in
AUROC over the same members as configured, its mean, ``lowest`` and ``highest``; ``seconds`` of all members.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef, roc_auc_score

from accuracy import ROOT, table_of
from cross_validation import BACKGROUND
from machine import RESULTS, describe, script_parser
from seqray.core.run_config import load_run_config
from seqray.homology.split import grouped_folds
from seqray.inference.sequences import score_codes
from seqray.io.tables import write_table
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.modelfile.model import TrainedModel
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.partitions import partition
from seqray.training.plan import override

SETS = {
    "mouse-tata": "mouse-tata",
    "ecoli-sigma": "ecoli-sigma",
    "human-nontata": "human-nontata-promoter",
}
COLUMNS = ("set", "lever", "n", "auroc", "mcc", "gain", "lowest", "highest", "seconds")
AS_IS, FLOOR = "as configured", "floor"
PLACES = "model.position_gain={}", "model.position_matrix={}"
LEVERS: dict[str, tuple[str, ...]] = {
    "no stem": ("model.stem=null",),
    "stem: one kernel, 7": ("model.stem.kernels=[7]",),
    "stem: kernels 5, 9, 15, 21": ("model.stem.kernels=[5, 9, 15, 21]",),
    "stem: stride 3": ("model.stem.stride=3",),
    "stem: a residual layer": ("model.stem.depth=1",),
    "1 layer": ("model.layers=1",),
    "4 layers": ("model.layers=4",),
    "32 wide": ("model.d_model=32", "model.d_ff=64"),
    "128 wide": ("model.d_model=128", "model.d_ff=256"),
    "learned positions": ("model.positions=learned",),
    "rotary positions": ("model.positions=rotary",),
    "neither gain nor matrix": tuple(place.format("none") for place in PLACES),
    "gain alone": (PLACES[0].format("shared"), PLACES[1].format("none")),
    "matrix alone": (PLACES[0].format("none"), PLACES[1].format("shared")),
    "gain and matrix": tuple(place.format("shared") for place in PLACES),
    "words of 3": ("model.words=3",),
    "words of 5": ("model.words=5",),
    "shift 2": ("augment.shift=2",),
    "half from the other strand": ("augment.reverse_complement=0.5",),
    "no letters hidden": ("augment.mask=0",),
    "a quarter of the letters hidden": ("augment.mask=0.25",),
    "dropout .1": ("model.dropout=0.1",),
    "dropout .5": ("model.dropout=0.5",),
    "no label smoothing": ("optimizer.label_smoothing=0",),
    "weights not averaged": ("optimizer.ema=0",),
}


@dataclass(frozen=True)
class Outcome:
    """AUROC and Matthews correlation of each member, validation sequences of all, and seconds."""

    auroc: tuple[float, ...]
    mcc: tuple[float, ...]
    count: int
    seconds: float


def figures(p: np.ndarray, classes: Sequence[str], labels: Sequence[str | None]) -> tuple[float, float]:
    """AUROC and Matthews correlation of probabilities (N, K), for everything but the background."""
    truth = np.array([label != BACKGROUND for label in labels])
    calls = np.array(classes)[p.argmax(axis=1)] != BACKGROUND
    score = 1 - p[:, list(classes).index(BACKGROUND)]
    return float(roc_auc_score(truth, score)), float(matthews_corrcoef(truth, calls))


def measure(task: tuple[str, str, int]) -> Outcome:
    """Train the members of a set with a lever, or fit the floor, and measure each on what it held out."""
    name, lever, members = task
    torch.set_num_threads(1)
    began = time.monotonic()
    config = override(load_run_config(ROOT / "configs" / f"{SETS[name]}.yaml"), LEVERS.get(lever, ()))
    config = replace(config, members=members)
    data = table_of(name)
    folds = grouped_folds([e.label for e in data], [e.group for e in data], 5, seed=0)
    rest = [replace(e, split=None) for e, fold in zip(data, folds, strict=True) if fold]
    part = partition(rest, config)
    found = []
    if lever == FLOOR:
        floor = KmerPositionalBaseline()
        floor.fit([rest[i].sequence for i in part.train], [rest[i].label for i in part.train])
        p = floor.predict_proba([rest[i].sequence for i in part.validation])
        classes = [str(c) for c in floor.classes_]
        found.append(figures(p, classes, [rest[i].label for i in part.validation]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            result = train(config, rest, None, RunOptions(Path(folder) / "run"))
        for network in result.networks:
            member = TrainedModel(result.card, (network,))
            codes = np.stack([member.alphabet.encode(rest[i].sequence) for i in part.validation])
            p = score_codes(member, codes)
            found.append(figures(p, result.card.classes, [rest[i].label for i in part.validation]))
    auroc, mcc = zip(*found, strict=True)
    return Outcome(auroc, mcc, len(part.validation), time.monotonic() - began)


def row(name: str, lever: str, outcome: Outcome, base: Outcome) -> list[str]:
    """Row of the table."""
    gains = np.subtract(outcome.auroc, base.auroc)
    numbers = (np.mean(outcome.auroc), np.mean(outcome.mcc), gains.mean(), gains.min(), gains.max())
    return [name, lever, str(outcome.count), *(f"{x:.4f}" for x in numbers), f"{outcome.seconds:.0f}"]


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("set", choices=SETS, metavar="SET", help=", ".join(SETS))
    parser.add_argument(
        "--levers", nargs="+", default=list(LEVERS), choices=LEVERS, metavar="LEVER", help="all by default"
    )
    parser.add_argument("--members", type=int, default=2, help="networks a lever")
    parser.add_argument("--jobs", type=int, default=2, help="levers at a time, a thread each")
    parser.add_argument("--out", help="TSV; benchmarks/results/levers_<set>.tsv by default")
    args = parser.parse_args()
    levers = [AS_IS, FLOOR, *args.levers]
    table: list[list[str]] = []
    with ProcessPoolExecutor(args.jobs, mp_context=get_context("spawn")) as pool:
        base = None
        tasks = [(args.set, lever, args.members) for lever in levers]
        for lever, outcome in zip(levers, pool.map(measure, tasks), strict=True):
            base = base or outcome
            table.append(row(args.set, lever, outcome, base))
            print(*table[-1], sep="\t", file=sys.stderr, flush=True)
    out = args.out or RESULTS / f"levers_{args.set}.tsv"
    write_table(out, COLUMNS, table, describe(sys.argv))


if __name__ == "__main__":
    main()
