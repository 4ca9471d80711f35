"""Compare ``seqray train`` without settings with tuned settings and the floor, on the parts held out.

    python data/prepare.py mouse-tata --out runs/data/mouse-tata.tsv.gz      # and the other sets
    python benchmarks/automatic.py

Each set is trained with ``--train`` and ``--out`` alone, on one thread. The tuned settings are those of the
shipped model, which held out the same part, or are trained on it with ``--config``; some sets have none.
A linear part of a model was fitted to all examples. Here copies answer that lack the fold of an example, as
in the training; they learned from the rest of this part, too, which networks and floor did not.
The floor is fitted on what the members learned from. The part also chose the epochs, of both. ``difference``
is that to the tuned settings, paired, with a 95 % interval (bootstrap over groups). Figures of several
classes are means over the classes. A model that exists in the folder is not trained again, and keeps the
processor time that its training took (``SET.cpu``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from machine import ROOT, describe, run, script_parser
from seqray.calibration.fit import Calibration
from seqray.core.alphabet import ALPHABETS
from seqray.core.records import LabeledSequence
from seqray.core.results import Answers
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping, to_mapping
from seqray.evaluation.floor import answers_from_probabilities, floor_answers
from seqray.evaluation.run import Records, evaluate_answers
from seqray.io.sequences import read_labeled_table
from seqray.io.tables import write_table
from seqray.modelfile.file import build_network, load_model
from seqray.modelfile.model import TrainedModel
from seqray.models.sequence import Network
from seqray.training.data import encode
from seqray.training.final_card import held_out_logits
from seqray.training.linear_part import fit_linear
from seqray.training.partitions import Partition, partition, related_groups

FIGURES = ("mcc", "auroc", "auprc", "accuracy")
COLUMNS = (
    *("set", "held_out", "classes", "figure", "automatic", "floor", "tuned", "tuned_low", "tuned_high"),
    *("difference", "difference_low", "difference_high", "tuned_settings", "cpu_minutes"),
)


@dataclass(frozen=True)
class Tuned:
    """Settings that somebody chose for a set.

    Attributes
    ----------
    shipped
        Model that was trained on the same parts; empty where settings are trained.
    config, changes
        Settings in ``configs/``, empty for none, and what is changed so that the parts are the same.
    """

    shipped: str = ""
    config: str = ""
    changes: tuple[str, ...] = ()


SETS = {
    "ecoli-cnnprom": Tuned(config="ecoli-cnnprom"),
    "ecoli-sigma": Tuned(
        config="ecoli-sigma", changes=("data.positive=sigma54",)
    ),  # orders the classes alike
    "arabidopsis": Tuned(),  # each network of the shipped model held out another part
    "mouse-tata": Tuned(config="mouse-tata"),
    "human-core-all": Tuned("human-core-promoter"),
    "human-300-tata": Tuned("human-promoter-300"),
    "amp": Tuned(config="antimicrobial-peptide", changes=("data.validation=0.12",)),
    "deeploc1": Tuned(),
}


def train(words: Sequence[str], out: Path) -> TrainedModel:
    """Train a model that does not exist yet, and note the minutes of processor time."""
    if not out.exists():
        cost = run([sys.executable, "-m", "seqray", "train", *words, "--out", str(out), "--quiet"])
        out.with_suffix(".cpu").write_text(f"{cost.cpu / 60:.1f}\n")
    return load_model(out)


def tuned_model(name: str, words: Sequence[str], work: Path) -> tuple[TrainedModel | None, str]:
    """The model of the tuned settings of a set, and where they are from; None where a set has none."""
    tuned = SETS[name]
    if tuned.shipped:
        return load_model(tuned.shipped), tuned.shipped
    if not tuned.config:
        return None, ""
    changes = [word for change in tuned.changes for word in ("--set", change)]
    config = ["--config", str(ROOT / "configs" / f"{tuned.config}.yaml"), *changes]
    source = " ".join([f"configs/{tuned.config}.yaml", *tuned.changes])
    return train([*words, *config], work / f"tuned-{name}.safetensors"), source


def settings_of(model: TrainedModel) -> RunConfig:
    """The settings that a model was trained with."""
    card = model.card
    return from_mapping(RunConfig, {**card.training["config"], "model": to_mapping(card.model)})


def part_of(model: TrainedModel, data: Sequence[LabeledSequence]) -> Partition:
    """What the members learned from and held out."""
    return partition(data, settings_of(model), model.card.classes)


def answers(source: str, model: TrainedModel, data: Sequence[LabeledSequence], part: Partition) -> Answers:
    """Answers of the members for what they held out, with a linear part that has not seen it."""
    networks = [without_linear(network) for network in model.networks]
    card = replace(model.card, model=networks[0].config)
    settings = replace(settings_of(model), model=card.model)
    logits = held_out_logits(card, networks, data, part, settings)
    if model.card.model.linear:
        groups = related_groups([data[i] for i in part.validation], ALPHABETS[card.model.alphabet])
        rows = np.union1d(part.train, part.validation)
        held = np.searchsorted(rows, part.validation)
        linear = fit_linear(encode(data, part.labels, rows, settings), held, groups, logits, settings)
        logits = linear.logits["together"]
    scores = Calibration.of(card).probabilities(logits)
    threshold = card.threshold if len(card.classes) == 2 else None
    return answers_from_probabilities(source, source, scores, card.classes, card.positive, threshold)


def without_linear(network: Network) -> Network:
    """A network as it was before its linear part was added."""
    plain = build_network(replace(network.config, linear=None))
    plain.load_state_dict({k: v for k, v in network.state_dict().items() if not k.startswith("linear.")})
    return plain.eval()


def floor(model: TrainedModel, data: Sequence[LabeledSequence], part: Partition) -> Answers:
    """The floor, fitted on what the members learned from."""
    card, alphabet = model.card, ALPHABETS[model.card.model.alphabet]
    examples, train = ([data[i] for i in rows] for rows in (part.validation, part.train))
    all_ = floor_answers(examples, train, card.classes, card.positive, alphabet, list(range(len(examples))))
    return next(one for one in all_ if one.source == "floor")


def compare(
    name: str, automatic: TrainedModel, tuned: TrainedModel | None, data: Sequence[LabeledSequence]
) -> list[list[object]]:
    """Rows of a set.

    Raises
    ------
    ValueError
        Where the two models held out other parts.
    """
    part = part_of(automatic, data)
    card, held = automatic.card, part.validation
    same = tuned is None or np.array_equal(part_of(tuned, data).validation, held)
    if not same or (tuned is not None and tuned.card.training["held_out"] != len(held)):
        raise ValueError(f"{name}: the tuned settings hold out another part")
    examples = [data[i] for i in held]
    labels = np.array([card.classes.index(example.label) for example in examples])
    groups = related_groups(examples, ALPHABETS[card.model.alphabet])
    answered = [answers("model", automatic, data, part), floor(automatic, data, part)]
    if tuned is not None:
        against = answers("against", tuned, data, part)
        order = [tuned.card.classes.index(label) for label in card.classes]
        calls = np.array([order.index(call) for call in against.calls.tolist()], dtype=np.int64)
        answered.insert(1, replace(against, scores=against.scores[:, order], calls=calls))
    evaluation = evaluate_answers(Records(tuple(card.classes), card.positive, labels, groups), answered)
    figures = {(one.source, one.label, one.metric): one for one in evaluation.figures}
    rows: list[list[object]] = []
    for metric in FIGURES:
        many = "all" if metric == "accuracy" else "macro"
        label = many if len(card.classes) > 2 else card.positive
        mine, low, other, gap = (
            figures.get((source, label, metric)) for source in ("model", "floor", "against", "model-against")
        )
        if mine is None or low is None:
            continue
        cells = [mine.value, low.value]
        for one in (other, gap):
            cells += [one.value, one.low, one.high] if one else [np.nan] * 3
        shown = [f"{cell:.4f}" if np.isfinite(cell) else "" for cell in cells]
        rows.append([name, len(labels), len(card.classes), metric, *shown])
    return rows


def known_rows(path: Path) -> list[list[str]]:
    """Rows of an earlier table."""
    if not path.exists():
        return []
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    return [line.split("\t") for line in lines[1:]]


def main(argv: Sequence[str] | None = None) -> int:
    """Train, compare and write."""
    parser = script_parser(__doc__, "automatic.tsv")
    parser.add_argument("--data", type=Path, default=Path("runs/data"), help="folder of the tables")
    parser.add_argument("--work", type=Path, default=Path("runs/automatic"), help="folder of the models")
    parser.add_argument(
        "--only", nargs="+", choices=list(SETS), default=list(SETS), help="the others keep their rows"
    )
    args = parser.parse_args(argv)
    args.work.mkdir(parents=True, exist_ok=True)
    rows: list[list[Any]] = []
    for name in args.only:
        table = args.data / f"{name}.tsv.gz"
        words = ["--train", str(table), "--threads", "1"]
        automatic = train(words, args.work / f"{name}.safetensors")
        data = read_labeled_table(table, ALPHABETS[automatic.card.model.alphabet])
        tuned, source = tuned_model(name, words, args.work)
        minutes = (args.work / f"{name}.cpu").read_text().strip()
        rows += [[*row, source, minutes] for row in compare(name, automatic, tuned, data)]
    kept = [row for row in known_rows(args.out) if row[0] not in args.only]
    order = list(SETS)
    write_table(
        args.out, COLUMNS, sorted(kept + rows, key=lambda row: order.index(str(row[0]))), describe(sys.argv)
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
