"""What a gain and a matrix of positions bring on sets of promoters that are cut around a known start.

    python benchmarks/position_matrix.py

For each set the first of five grouped folds is left alone. On the rest one network is trained with the gain,
the matrix, or both, everything else as configured, and measured on the validation part that chose its epoch:
enough to compare settings, too kind for a figure of accuracy. The floor is fitted to the same training part.
Calls are those of a probability of one half or more; of more than two classes, those other than background.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef, roc_auc_score

from accuracy import ROOT, table_of
from cross_validation import BACKGROUND
from machine import describe
from seqray.baseline import KmerPositionalBaseline
from seqray.config import RunConfig, load_run_config
from seqray.io.files import open_output
from seqray.modelfile import TrainedModel
from seqray.prediction import score_codes
from seqray.records import LabelledSequence
from seqray.splits import grouped_folds
from seqray.training.fit import train
from seqray.training.partition import partition

SETS = {
    "mouse-tata": "mouse-tata-promoter",
    "ecoli-sigma": "ecoli-sigma",
    "human-nontata": "human-nontata-promoter",
}
FLOOR = "floor"
SETTINGS = {
    FLOOR: None,
    "gain": ("shared", "none"),
    "matrix": ("none", "shared"),
    "both": ("shared", "shared"),
}


def probabilities(
    config: RunConfig, rest: Sequence[LabelledSequence], learned: np.ndarray, asked: np.ndarray, setting: str
) -> tuple[np.ndarray, list[str]]:
    """Probabilities (N, K) of the sequences asked, and the names of the classes."""
    texts = [rest[i].sequence for i in asked]
    if setting == FLOOR:
        floor = KmerPositionalBaseline()
        floor.fit([rest[i].sequence for i in learned], [rest[i].label for i in learned])
        return floor.predict_proba(texts), [str(name) for name in floor.classes_]
    with tempfile.TemporaryDirectory() as folder:
        result = train(config, rest, None, work_dir=Path(folder) / "run")
    model = TrainedModel(result.card, result.networks)
    codes = np.stack([model.alphabet.encode(text) for text in texts])
    return score_codes(model, codes), list(result.card.classes)


def measure(task: tuple[str, str]) -> tuple[str, str, int, float, float]:
    """Set, setting, number of sequences, AUROC and Matthews correlation."""
    name, setting = task
    torch.set_num_threads(1)
    config = replace(load_run_config(ROOT / "configs" / f"{SETS[name]}.yaml"), members=1)
    chosen = SETTINGS[setting]
    if chosen:
        model = replace(config.model, position_gain=chosen[0], position_matrix=chosen[1])
        config = replace(config, model=model)
    data = table_of(name)
    folds = grouped_folds([e.label for e in data], [e.group for e in data], 5, seed=0)
    rest = [replace(e, split=None) for e, fold in zip(data, folds, strict=True) if fold]
    parts = partition(rest, config)
    p, classes = probabilities(config, rest, parts.train, parts.validation, setting)
    truth = np.array([rest[i].label != BACKGROUND for i in parts.validation])
    scores = 1 - p[:, classes.index(BACKGROUND)]
    calls = np.array(classes)[p.argmax(axis=1)] != BACKGROUND
    return (
        name,
        setting,
        len(truth),
        float(roc_auc_score(truth, scores)),
        float(matthews_corrcoef(truth, calls)),
    )


def rows(jobs: int) -> Iterator[str]:
    """Lines of the table."""
    tasks = [(name, setting) for name in SETS for setting in SETTINGS]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for name, setting, count, auroc, mcc in pool.map(measure, tasks):
            print(f"{name} {setting}: AUROC {auroc:.3f}, MCC {mcc:.3f}", file=sys.stderr, flush=True)
            yield f"{name}\t{setting}\t{count}\t{auroc:.4f}\t{mcc:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=2, help="networks at a time, a thread each")
    parser.add_argument("--out", default="benchmarks/results/position_matrix.tsv")
    args = parser.parse_args()
    table = ["set\tsetting\tn\tauroc\tmcc", *rows(args.jobs)]
    with open_output(args.out) as handle:
        handle.write(("\n".join([*(f"# {line}" for line in describe(sys.argv)), *table]) + "\n").encode())


if __name__ == "__main__":
    main()
