"""Score the rows of a labeled table that training never saw, beside the baseline floor.

    python benchmarks/held_out.py --model runs/ecoli-promoter.safetensors --train runs/data/ecoli.tsv.gz

The rows are those with ``split`` test. The floor is fitted on the rows with ``split`` train. Intervals: 95 %,
bootstrap over the table's groups (blocks of 10 kb of the genome). ``--card`` writes the figures for
``seqray train --metrics``, which puts them into the model's card.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cross_validation import (
    FLOOR,
    MODEL,
    Answer,
    card_figures,
    headline,
    summarize,
    write_card_figures,
    write_folds,
)
from machine import RESULTS, describe, script_parser
from seqray.core.records import LabeledSequence
from seqray.inference.sequences import score_codes
from seqray.io.sequences import read_labeled_table
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel


def central(example: LabeledSequence, window: int) -> str:
    """Cut the flanks off."""
    flank = (len(example.sequence) - window) // 2
    return example.sequence[flank : flank + window]


def answer(model: TrainedModel, data: Sequence[LabeledSequence]) -> Answer:
    """Score the test rows with the model and with the floor."""
    card = model.card
    rows = {split: [e for e in data if e.split == split] for split in ("train", "test")}
    text = {split: [central(e, card.window) for e in chosen] for split, chosen in rows.items()}
    codes = np.stack([model.alphabet.encode(s) for s in text["test"]])
    p = score_codes(model, codes)[:, card.positive_index]
    floor = KmerPositionalBaseline().fit(text["train"], [e.label for e in rows["train"]])
    q = floor.predict_proba(text["test"])[:, list(floor.classes_).index(card.positive)]
    scores = {MODEL: p, FLOOR: q}
    calls = {MODEL: p >= card.threshold, FLOOR: q >= 0.5}
    return Answer("held-out region", 0, np.arange(len(p)), scores, calls, 0.0)


def main() -> None:
    parser = script_parser(__doc__)
    parser.add_argument("--model", required=True, help="file or name")
    parser.add_argument("--train", type=Path, required=True, help="labeled table with a split column")
    parser.add_argument("--out", help="TSV; benchmarks/results/held_out_<table>.tsv by default")
    parser.add_argument("--card", help="JSON for seqray train --metrics; figures are added to it")
    args = parser.parse_args()
    name = args.train.name.split(".")[0]
    model = load_model(args.model)
    began = time.monotonic()
    data = read_labeled_table(args.train, model.alphabet)
    given = replace(answer(model, data), seconds=time.monotonic() - began)
    test = [e for e in data if e.split == "test"]
    labels = np.array([e.label == model.card.positive for e in test])
    groups = np.array([e.group or e.id for e in test])
    rows: list[dict[str, Any]] = [
        {"set": name, "protocol": given.protocol, **row} for row in summarize([given], labels, groups, 1)
    ]
    out = args.out or RESULTS / f"held_out_{name}.tsv"
    write_folds(out, rows, [*describe(sys.argv), f"model: {model.card.name}"])
    if args.card:
        write_card_figures(args.card, {"headline": headline(rows, "auroc"), **card_figures(rows)})


if __name__ == "__main__":
    main()
