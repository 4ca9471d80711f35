"""What subclasses of negatives are worth, measured on sets of other sources.

    SEQRAY_DATA=... python benchmarks/subclasses.py

One network of each configuration learns its published set alone; with the negatives of the set called
``-made``, as one class; and with these as subclasses (`DataConfig.subclasses`). All are scored on the
published test part and on sets of other sources, see ``data/other_sources.py``. Networks of
``mouse-tata-promoter`` learn the set ``tata-no-gue``, whose negatives are of two sources, and are scored on
GUE, a source that they have not seen.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from accuracy import threshold_metrics
from machine import ROOT, add_data, describe, script_parser, with_decimals
from other_sources import OTHER_SOURCES
from published_sets import BACKGROUND, PUBLISHED, with_made_negatives
from seqray.core.records import LabeledSequence
from seqray.core.run_config import load_run_config
from seqray.io.tables import write_table
from seqray.metrics.classification import auroc
from seqray.modelfile.model import TrainedModel
from seqray.training.fit import train
from seqray.training.members import RunOptions
from transfer import answers, cut_windows

COLUMNS = ("configuration", "learned", "set", "n", "auroc", "mcc", "sensitivity", "specificity")
ONE, TOGETHER, APART = "one kind", "several kinds as one", "subclasses"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A configuration, its set, the index of the start in its windows, and sets of other sources."""

    config: str
    table: str
    site: int
    others: tuple[str, ...]
    sources: bool = False  # the subclasses are sources in the set itself

    def learned(self, folder: Path) -> Iterator[tuple[str, list[LabeledSequence]]]:
        """What networks learn, by name."""
        data = PUBLISHED[self.table](folder)
        if self.sources:
            named = [replace(e, subclass=e.id.split("-")[0]) if e.label == BACKGROUND else e for e in data]
            yield from ((TOGETHER, data), (APART, named))
        else:
            mixed = with_made_negatives(data)
            yield from ((ONE, data), (TOGETHER, mixed), (APART, mixed))


CASES = (
    Case(
        config="human-promoter-300",
        table="human-300-tata",
        site=249,
        others=("ipromoter-human", "ipromoter-mouse"),
    ),
    Case(
        config="human-core-tata-promoter",
        table="human-core-tata",
        site=33,
        others=("ipromoter-human", "ipromoter-mouse", "cnnprom-mouse"),
    ),
    Case(config="mouse-tata-promoter", table="tata-no-gue", site=200, others=("gue-tata",), sources=True),
)


def fit(case: Case, learned: str, data: Sequence[LabeledSequence], seed: int) -> TrainedModel:
    """Train one network."""
    config = load_run_config(ROOT / "configs" / f"{case.config}.yaml")
    settings = replace(config.data, subclasses=learned == APART)
    config = replace(config, data=settings, members=1, seed=seed)
    with tempfile.TemporaryDirectory() as work:
        result = train(config, data, None, RunOptions(Path(work)))
    return TrainedModel(result.card, result.networks)


def rows_of(case: Case, folder: Path, seeds: int) -> Iterator[tuple[object, ...]]:
    """A row for each network and set; figures are means over the seeds."""
    sets = {case.table: [e for e in PUBLISHED[case.table](folder) if e.split == "test"]}
    starts = {case.table: 0}
    for name in case.others:
        source = OTHER_SOURCES[name]
        sets[name] = list(source.load(folder, Path()))
        starts[name] = source.site - case.site
    for learned, data in case.learned(folder):
        models = [fit(case, learned, data, seed) for seed in range(1, seeds + 1)]
        for name, examples in sets.items():
            figures = np.mean([measure(model, examples, starts[name]) for model in models], axis=0)
            yield (case.config, learned, name, len(examples), *figures.tolist())


def measure(model: TrainedModel, examples: Sequence[LabeledSequence], start: int) -> tuple[float, ...]:
    """AUROC, and MCC, sensitivity and specificity at the threshold."""
    truth = np.array([e.label == model.card.positive for e in examples])
    scores, _ = answers(model, cut_windows(examples, start, model.card.window))
    at = threshold_metrics(truth, scores >= model.card.threshold)
    return auroc(truth, scores), at["mcc"], at["sensitivity"], at["specificity"]


def main() -> None:
    parser = script_parser(__doc__, "subclasses.tsv")
    add_data(parser)
    parser.add_argument("--seeds", type=int, default=2, help="networks of each kind (default: 2)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    for case in CASES:
        for row in rows_of(case, args.data, args.seeds):
            print(*row, flush=True)
            rows.append(with_decimals(row))
    write_table(args.out, COLUMNS, rows, [*describe(sys.argv), f"means of {args.seeds} networks"])


if __name__ == "__main__":
    main()
