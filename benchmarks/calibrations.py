"""Ways to calibrate shipped models, beside each other: temperature, slope and shift, isotonic map.

    python benchmarks/calibrations.py

On the published validation part of each set; figures are cross-fitted over groups of relatives, so no
example is judged by a calibration that it helped to fit. The threshold is chosen from the probabilities
(decision 0008).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import get_args

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef

from accuracy import table_of
from machine import describe
from seqray.calibration import (
    Calibration,
    calibration_error,
    choose_threshold,
    cross_fitted,
    log_loss,
)
from seqray.core import CalibrationMethod
from seqray.inference import score_codes
from seqray.io import open_output
from seqray.modelfile import TrainedModel, load_model
from seqray.training import related_groups

SETS = {
    "human-core-promoter": "human-core-all",
    "human-core-tata-promoter": "human-core-tata",
    "human-promoter-300": "human-300-tata",
}
COLUMNS = ("model", "method", "n", "temperature", "shift", "ece", "log_loss", "threshold", "mcc")


def measure(model: TrainedModel, table: str) -> Iterator[tuple[object, ...]]:
    """Rows of one model."""
    card = model.card
    examples = [e for e in table_of(table) if e.split == "validation"]
    plain = replace(model, card=replace(card, temperature=1.0, isotonic={}))
    raw = np.log(score_codes(plain, np.stack([model.alphabet.encode(e.sequence) for e in examples])))
    labels = np.array([card.classes.index(e.label) for e in examples])
    positive, groups = card.positive_index, related_groups(examples, model.alphabet)
    for method in get_args(CalibrationMethod):
        found = Calibration.fit(raw, labels, positive, method)
        p = cross_fitted(raw, labels, groups, positive, method)
        assert p is not None
        threshold = choose_threshold(p[:, positive])
        calls = p[:, positive] >= threshold
        yield (
            card.name,
            method,
            len(labels),
            found.temperature,
            found.isotonic.after[0] if method == "platt" and found.isotonic else "",
            calibration_error(p, labels, positive),
            log_loss(p, labels),
            threshold,
            matthews_corrcoef(labels == positive, calls),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", default="benchmarks/results/calibrations.tsv")
    args = parser.parse_args()
    torch.set_num_threads(1)
    lines = [*(f"# {line}" for line in describe(sys.argv)), "\t".join(COLUMNS)]
    for name, table in SETS.items():
        for row in measure(load_model(name), table):
            lines.append("\t".join(f"{c:.4f}" if isinstance(c, float) else str(c) for c in row))
    with open_output(args.out) as handle:
        handle.write(("\n".join(lines) + "\n").encode())


if __name__ == "__main__":
    main()
