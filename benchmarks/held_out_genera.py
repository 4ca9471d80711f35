"""How well does a model of many species do on genera that it has never seen?

    python benchmarks/held_out_genera.py --parts 4 --set model.d_model=64 model.d_ff=128 \\
        model.layers=2 trainer.max_epochs=3 augment.shift=0

The genera of the set ``bacteria`` are dealt into parts (Escherichia and Shigella count as one); for each part
a model is trained on the training sequences of all the others and scores the test sequences of the part, no
species given. Writes a row per species: AUROC with a 95 % interval (bootstrap over groups of related
sequences), that of a k-mer and position logistic regression trained alike, and the share of the sequences
that are flagged as unlike the training data, beside that share on the test sequences of the known species.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from accuracy import ROOT, RUNS, figure, interval, table_of
from machine import describe, script_parser, with_decimals
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.results import Prediction
from seqray.core.run_config import load_run_config
from seqray.inference.sequences import predict_records
from seqray.io.tables import write_table
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.modelfile.model import TrainedModel
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.plan import override

COLUMNS = ("species", "part", "n", "auroc", "low", "high", "floor", "flagged", "flagged_known")
FLOOR_SAMPLE = 40_000
SAME_GENUS = {"Shigella": "Escherichia"}  # by their genomes one species; apart by tradition


def genus(example: LabeledSequence) -> str:
    """First word of the species, with those that are one genome counted as one."""
    word = (example.context or "").split()[0]
    return SAME_GENUS.get(word, word)


def deal(data: Sequence[LabeledSequence], parts: int) -> list[list[str]]:
    """Deal the genera into parts of about the same number of sequences, the largest first."""
    sizes: dict[str, int] = {}
    for example in data:
        sizes[genus(example)] = sizes.get(genus(example), 0) + 1
    dealt: list[list[str]] = [[] for _ in range(parts)]
    for name in sorted(sizes, key=lambda g: (-sizes[g], g)):
        min(dealt, key=lambda part: sum(sizes[g] for g in part)).append(name)
    return dealt


def predictions(model: TrainedModel, examples: Sequence[LabeledSequence]) -> list[Prediction]:
    """Predict without telling the species."""
    return list(predict_records(model, [SequenceRecord(e.id, e.sequence) for e in examples]))


def flagged(answers: Sequence[Prediction]) -> float:
    """Share of the answers with the flag ``out-of-domain``."""
    return float(np.mean(["out-of-domain" in a.flags for a in answers]))


def floor_scores(known: Sequence[LabeledSequence], test: Sequence[LabeledSequence]) -> np.ndarray:
    """Score by the baseline, fitted to a sample of the training sequences."""
    drawn = np.random.default_rng(0).permutation(len(known))[:FLOOR_SAMPLE]
    baseline = KmerPositionalBaseline()
    baseline.fit([known[i].sequence for i in drawn], [known[i].label for i in drawn])
    answers = baseline.predict_proba([e.sequence for e in test])
    return answers[:, list(baseline.classes_).index("promoter")]


def rows_of(
    part: int, genera: Sequence[str], data: Sequence[LabeledSequence], settings: Sequence[str]
) -> Iterator[dict[str, object]]:
    """Train without the genera of a part, and measure on each of their species."""
    config = override(load_run_config(ROOT / "configs" / "bacteria-promoter.yaml"), settings)
    known = [e for e in data if genus(e) not in genera]
    species = sorted({e.context for e in known if e.context})
    config = replace(config, model=replace(config.model, contexts=tuple(species)))
    learned = [e for e in known if e.split != "test"]
    began = time.monotonic()
    result = train(config, learned, None, RunOptions(RUNS / "held_out_genera" / f"part-{part}"))
    print(f"part {part}: {', '.join(genera)}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    model = TrainedModel(result.card, result.networks)
    seen = flagged(predictions(model, [e for e in known if e.split == "test"]))
    test = [e for e in data if genus(e) in genera and e.split == "test"]
    floor = floor_scores(learned, test)
    answers = predictions(model, test)
    scores = np.array([a.probabilities[model.card.positive_index] for a in answers])
    labels = np.array([e.label == "promoter" for e in test])
    groups = np.array([e.group for e in test])
    auroc = figure("auroc", 0.5)
    for name in sorted({e.context for e in test if e.context}):
        of = np.flatnonzero([e.context == name for e in test])
        low, high = interval(lambda rows, of=of: auroc(labels[of][rows], scores[of][rows]), groups[of])
        yield {
            "species": name,
            "part": part,
            "n": len(of),
            "auroc": auroc(labels[of], scores[of]),
            "low": low,
            "high": high,
            "floor": auroc(labels[of], floor[of]),
            "flagged": flagged([answers[i] for i in of]),
            "flagged_known": seen,
        }


def main() -> None:
    parser = script_parser(__doc__, "held_out_genera.tsv")
    parser.add_argument("--parts", type=int, default=4)
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings to change")
    args = parser.parse_args()
    data = table_of("bacteria")
    rows = []
    for number, genera in enumerate(deal(data, args.parts), start=1):
        rows += rows_of(number, genera, data, args.set)
    mean = {
        name: float(np.mean([float(str(row[name])) for row in rows]))
        for name in ("auroc", "floor", "flagged")
    }
    rows.append({"species": "mean", **mean})
    cells = [with_decimals(row.get(column, "") for column in COLUMNS) for row in rows]
    write_table(args.out, COLUMNS, cells, describe(sys.argv))


if __name__ == "__main__":
    main()
