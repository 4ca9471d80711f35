"""Ways to calibrate models, beside each other: temperature, slope and shift, isotonic map, automatic.

    python benchmarks/calibrations.py --data runs/data --automatic runs/automatic

Shipped models on the published validation part of their sets, and those of ``benchmarks/automatic.py`` on
what their members held out. Figures are cross-fitted over groups of relatives, so no example is judged by a
calibration that it helped to fit. The threshold is chosen from the probabilities (decision 0008). Temperature
and shift are those of all examples.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import get_args

import numpy as np
import torch
from sklearn.metrics import matthews_corrcoef

import automatic
from accuracy import table_of
from machine import describe, script_parser, with_decimals
from seqray.calibration.fit import Calibration, choose_threshold, cross_fitted, log_loss
from seqray.core.alphabet import ALPHABETS
from seqray.core.records import LabeledSequence
from seqray.core.run_config import CalibrationMethod
from seqray.inference.sequences import score_codes
from seqray.io.sequences import read_labeled_table
from seqray.io.tables import write_table
from seqray.metrics.classification import calibration_error
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel
from seqray.training.partitions import related_groups

SETS = {
    "human-core-promoter": "human-core-all",
    "human-core-tata-promoter": "human-core-tata",
    "human-promoter-300": "human-300-tata",
}
CHOSEN = ("ecoli-cnnprom", "human-300-tata", "mouse-tata", "arabidopsis", "human-core-all", "amp")
"""Sets of two classes of `automatic`."""
COLUMNS = ("model", "method", "n", "temperature", "shift", "ece", "log_loss", "threshold", "mcc")

Rows = Iterator[tuple[object, ...]]


def uncalibrated(model: TrainedModel) -> TrainedModel:
    """The same networks, as they were trained."""
    return replace(model, card=replace(model.card, temperature=1.0, isotonic=None))


def measure_shipped(name: str, table: str) -> Rows:
    """Rows of a shipped model."""
    model = uncalibrated(load_model(name))
    examples = [e for e in table_of(table) if e.split == "validation"]
    scores = score_codes(model, np.stack([model.alphabet.encode(e.sequence) for e in examples]))
    return measure(name, model, scores, examples)


def measure_automatic(name: str, data: Path, models: Path) -> Rows:
    """Rows of a model whose settings were chosen from the data."""
    model = uncalibrated(load_model(models / f"{name}.safetensors"))
    examples = read_labeled_table(data / f"{name}.tsv.gz", ALPHABETS[model.card.model.alphabet])
    part = automatic.part_of(model, examples)
    scores = automatic.answers("model", model, examples, part).scores
    return measure(f"automatic, {name}", model, scores, [examples[i] for i in part.validation])


def measure(name: str, model: TrainedModel, scores: np.ndarray, examples: list[LabeledSequence]) -> Rows:
    """Rows of one model.

    Parameters
    ----------
    name, model
        As the table calls it, and without calibration.
    scores, examples
        (N, K) probabilities, and the N examples.
    """
    card, raw = model.card, np.log(scores)
    labels = np.array([card.classes.index(e.label or "") for e in examples])
    positive, groups = card.positive_index, related_groups(examples, model.alphabet)
    for method in get_args(CalibrationMethod):
        found = Calibration.fit(raw, labels, positive, method)
        p = cross_fitted(raw, labels, groups, positive, method)
        assert p is not None
        threshold = choose_threshold(p[:, positive])
        calls = p[:, positive] >= threshold
        yield (
            name,
            method,
            len(labels),
            found.temperature,
            found.isotonic.after[0] if found.isotonic and found.method == "platt" else "",
            calibration_error(p, labels, positive),
            log_loss(p, labels),
            threshold,
            matthews_corrcoef(labels == positive, calls),
        )


def main() -> None:
    parser = script_parser(__doc__, "calibrations.tsv")
    parser.add_argument("--data", type=Path, default=Path("runs/data"), help="folder of the tables")
    parser.add_argument(
        "--automatic", type=Path, default=Path("runs/automatic"), help="models of benchmarks/automatic.py"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    notes = describe(sys.argv)
    shipped = [measure_shipped(name, table) for name, table in SETS.items()]
    chosen = [measure_automatic(name, args.data, args.automatic) for name in CHOSEN]
    write_table(args.out, COLUMNS, list(map(with_decimals, chain(*shipped, *chosen))), notes)


if __name__ == "__main__":
    main()
