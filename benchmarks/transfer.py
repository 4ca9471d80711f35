"""Shipped models on sets of another source: does what they learned hold elsewhere?

    python data/prepare_genomes.py --out runs/data/genomes
    python benchmarks/transfer.py

Each model meets the sets of ``data/other_sources.py`` that ask its question, cut to its window around the
start. The table has AUROC with a 95 % interval (bootstrap over groups that share a 40-mer); MCC, sensitivity
and specificity at the threshold on the card; and the share of prediction sets that hold the class where 90 %
was asked for (``--coverage 0.9``). Two models fitted to the same training table are in columns beside it: a
regression on k-mers and positions, and one on the shares of letters alone. Protocol ``unrelated`` leaves out
what shares a 40-mer with that table; ``all`` does not. ``shift`` moves the window by so many letters,
upstream below 0.

``--models`` scores the files in a folder in place of the shipped ones of the same name. Models that are not
shipped are there, too: those that lack a source, trained with one member each, and that of one source alone:

    python data/prepare.py tata-no-gue --out runs/data/tata-no-gue.tsv.gz
    seqray train --config configs/mouse-tata-promoter.yaml --train runs/data/tata-no-gue.tsv.gz \\
        --set members=1 --out runs/transfer/tata-no-gue.safetensors
    seqray train --config configs/mouse-tata.yaml --train runs/data/mouse-tata.tsv.gz \\
        --out runs/transfer/mouse-tata.safetensors

``benchmarks/transfer_cards.py`` puts the figures on model cards.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

from accuracy import interval, table_of, threshold_metrics
from machine import add_data, describe, keep_rows, script_parser, with_decimals
from other_sources import OTHER_SOURCES, OtherSource
from seqray.calibration.conformal import coverage_cutoffs
from seqray.core.alphabet import DNA
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.homology.kmers import KmerSet
from seqray.inference.origin import recognize_context
from seqray.inference.sequences import predict_records
from seqray.io.tables import write_table
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.metrics.classification import auroc
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel

SHARED_WORD = 40
COVERAGE = 0.9
SHIFTS = (0, -2, -5)
"""Letters; where a sequence ends they are unknown."""
MEASURES = ("mcc", "sensitivity", "specificity")
COLUMNS = (
    *("model", "set", "context", "shift", "protocol", "n", "promoters", "auroc", "low", "high"),
    *(*MEASURES, "coverage", "floor_auroc", "floor_mcc", "letters_auroc"),
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """A model, the index of the start in its window, the table that it learned, and sets to score.

    ``context`` is what the model is given, or `RECOGNIZED`. ``without`` says of a model that is not shipped
    how it was trained, without the sources of its sets, and ``beside`` names the shipped one like it.
    """

    model: str
    site: int
    table: str
    sets: tuple[str, ...]
    context: str = ""
    without: str = ""
    beside: str = ""

    def start_in(self, source: OtherSource, shift: int) -> int:
        """First letter of the window in a sequence of a source."""
        return source.site - self.site + shift


ECOLI = "Escherichia coli K-12 MG1655"
RECOGNIZED = "recognized"
"""The context that ``seqray predict`` recognizes by default, from the same windows."""
NEW_SPECIES = ("mapped-sagalactiae", "mapped-mtuberculosis", "mapped-zmobilis")
LEFT_OUT = "left out of training (one member)"
QUESTIONS = (
    Question(
        model="mouse-tata-promoter",
        site=200,
        table="tata",
        sets=("tata-cnnprom", "gue-tata", "ipromoter-mouse", "ipromoter-human"),
    ),
    *(
        Question(
            model=f"tata-no-{source}",
            site=200,
            table=f"tata-no-{source}",
            sets=sets,
            without=LEFT_OUT,
            beside="mouse-tata-promoter",
        )
        for source, sets in (
            ("gue", ("gue-tata",)),
            ("ipromoter", ("ipromoter-mouse", "ipromoter-human")),
            ("cnnprom", ("tata-cnnprom",)),
        )
    ),
    Question(
        model="mouse-tata",
        site=200,
        table="mouse-tata",
        sets=("gue-tata", "ipromoter-mouse", "ipromoter-human"),
        without="not in training (CNNProm alone, without shifts)",
        beside="mouse-tata-promoter",
    ),
    Question(
        model="human-promoter-300",
        site=249,
        table="human-300-tata-made",
        sets=("ipromoter-human", "ipromoter-mouse"),
    ),
    Question(
        model="human-core-tata-promoter",
        site=33,
        table="human-core-tata-made",
        sets=("ipromoter-human", "ipromoter-mouse", "cnnprom-mouse"),
    ),
    Question(model="human-nontata-promoter", site=200, table="human-nontata-made", sets=("gue-nontata",)),
    Question(model="human-core-promoter", site=33, table="human-core-all-made", sets=("genomic-nontata",)),
    Question(
        model="ecoli-promoter",
        site=60,
        table="ecoli",
        sets=("cnnprom-ecoli", "lcnn-ecoli", "ipromp-ecoli", "mapped-bsubtilis", "ipromp-bsubtilis"),
    ),
    Question(
        model="bacteria-promoter",
        site=60,
        table="bacteria",
        sets=("cnnprom-ecoli", "lcnn-ecoli", "mapped-bsubtilis", *NEW_SPECIES),
    ),
    Question(
        model="bacteria-promoter",
        site=60,
        table="bacteria",
        sets=("cnnprom-ecoli", "lcnn-ecoli"),
        context=ECOLI,
    ),
    Question(
        model="bacteria-promoter", site=60, table="bacteria", sets=("mapped-bsubtilis",), context=RECOGNIZED
    ),
)


@dataclass(frozen=True)
class Known:
    """What is fitted to the training table of a model: two baselines, and its words of 40 letters."""

    floor: KmerPositionalBaseline
    letters: KmerPositionalBaseline
    words: KmerSet

    @classmethod
    def learn(cls, table: str, positive: str, window: int) -> Known:
        """Fit to the rows of a table that are not its test part."""
        rows = [e for e in table_of(table) if e.split != "test"]
        sequences = [middle(e.sequence, window) for e in rows]
        labels = ["1" if e.label == positive else "0" for e in rows]
        alone = KmerPositionalBaseline(kmers=(1,), positional=())
        words = KmerSet([DNA.encode(e.sequence) for e in rows], SHARED_WORD)
        return cls(KmerPositionalBaseline().fit(sequences, labels), alone.fit(sequences, labels), words)


def middle(sequence: str, window: int) -> str:
    """Cut the flanks off."""
    flank = (len(sequence) - window) // 2
    return sequence[flank : flank + window]


def cut_windows(examples: Sequence[LabeledSequence], start: int, length: int) -> list[str]:
    """Cut windows that begin at an index; empty where the sequences are more than a shift too short."""
    most = -min(SHIFTS)
    if start < -most or start + length > len(examples[0].sequence) + most:
        return []
    padded = ["N" * most + e.sequence + "N" * most for e in examples]
    return [letters[start + most : start + most + length] for letters in padded]


def answers(model: TrainedModel, sequences: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Probability of the positive class (N,), and which classes are in the sets: bool (N, K)."""
    found = predict_records(model, records_of(sequences))
    probabilities = np.array([p.probabilities for p in found])
    return probabilities[:, model.card.positive_index], probabilities >= coverage_cutoffs(
        model.card, COVERAGE
    )


def records_of(sequences: Sequence[str]) -> list[SequenceRecord]:
    """Give them names."""
    return [SequenceRecord(f"s{i}", s) for i, s in enumerate(sequences)]


def set_context(model: TrainedModel, context: str, sequences: Sequence[str]) -> tuple[TrainedModel, str]:
    """The model that reads sequences in a context, and what the table says of it."""
    if context == RECOGNIZED:
        model, _ = recognize_context(model, records_of(sequences))
        return model, f"{RECOGNIZED}: {model.context or 'none'}"
    return model.with_context(context or None), context or "-"


@dataclass(frozen=True)
class Scored:
    """A set scored by a model: truth, groups, scores, whether the set of classes holds the class; N each."""

    truth: np.ndarray
    groups: np.ndarray
    scores: np.ndarray
    held: np.ndarray
    floor: np.ndarray
    letters: np.ndarray
    fresh: np.ndarray

    @classmethod
    def score(
        cls, examples: Sequence[LabeledSequence], start: int, model: TrainedModel, known: Known
    ) -> Scored | None:
        """Cut the windows and score them; None where the sequences are more than a shift too short."""
        card, sequences = model.card, cut_windows(examples, start, model.card.window)
        if not sequences:
            return None
        truth = np.array([e.label == "promoter" for e in examples])
        scores, sets = answers(model, sequences)
        classes = np.where(truth, card.positive_index, 1 - card.positive_index)
        return cls(
            truth,
            np.array([e.group or e.id for e in examples]),
            scores,
            sets[np.arange(len(sets)), classes],
            known.floor.predict_proba(sequences)[:, 1],
            known.letters.predict_proba(sequences)[:, 1],
            np.array([not known.words.marks(DNA.encode(s)).any() for s in sequences]),
        )

    def take(self, rows: np.ndarray) -> Scored:
        """Return some of the sequences."""
        return replace(self, **{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def figures(self, threshold: float) -> dict[str, Any]:
        """Measure the model and the baselines."""

        def ranked(rows: np.ndarray) -> float:
            return auroc(self.truth[rows], self.scores[rows])

        low, high = interval(ranked, self.groups)
        at = threshold_metrics(self.truth, self.scores >= threshold)
        return {
            "n": len(self.truth),
            "promoters": int(self.truth.sum()),
            "auroc": auroc(self.truth, self.scores),
            "low": low,
            "high": high,
            **{measure: at[measure] for measure in MEASURES},
            "coverage": float(self.held.mean()),
            "floor_auroc": auroc(self.truth, self.floor),
            "floor_mcc": threshold_metrics(self.truth, self.floor >= 0.5)["mcc"],
            "letters_auroc": auroc(self.truth, self.letters),
        }


def all_rows(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Score the models that were asked for; what was fitted to a table serves all its models."""
    learned: dict[tuple[str, int], Known] = {}
    for question in QUESTIONS:
        if args.only and question.model not in args.only:
            continue
        file = args.models / f"{question.model}.safetensors" if args.models else Path()
        if question.without and not file.is_file():
            print(f"transfer: no file of {question.model} in --models; left out", file=sys.stderr)
            continue
        loaded = load_model(str(file) if file.is_file() else question.model)
        window = loaded.card.window
        key = (question.table, window)
        if key not in learned:
            learned[key] = Known.learn(question.table, loaded.card.positive, window)
        for name in question.sets:
            source = OTHER_SOURCES[name]
            examples = source.load(args.data, args.genomes)
            for shift in SHIFTS:
                start = question.start_in(source, shift)
                windows = cut_windows(examples, start, window)
                model, context = set_context(loaded, question.context, windows)
                scored = Scored.score(examples, start, model, learned[key])
                for protocol, part in protocols(scored):
                    names = (question.model, name, context, shift, protocol)
                    yield dict(zip(COLUMNS, names, strict=False)) | part.figures(model.card.threshold)


def protocols(scored: Scored | None) -> Iterator[tuple[str, Scored]]:
    """Name the parts of a set that have both classes: all, and what shares no 40-mer with training."""
    if scored is not None:
        parts = (("all", scored), ("unrelated", scored.take(np.flatnonzero(scored.fresh))))
        yield from ((name, part) for name, part in parts if len(np.unique(part.truth)) == 2)


def main() -> None:
    parser = script_parser(__doc__, "transfer.tsv")
    add_data(parser)
    parser.add_argument(
        "--genomes", type=Path, default=Path("runs/data/genomes"), help="of prepare_genomes.py"
    )
    parser.add_argument("--models", type=Path, help="folder of model files; default: the shipped ones")
    parser.add_argument("--only", nargs="+", metavar="MODEL", help="these models; the others keep their rows")
    args = parser.parse_args()
    notes, rows = describe(sys.argv), []
    for row in all_rows(args):
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
        rows.append(row)
    before, kept = keep_rows(args.out, "model", args.only) if args.only else ([], [])
    order = [question.model for question in QUESTIONS]
    ordered = sorted([*rows, *kept], key=lambda row: order.index(row["model"]))
    cells = [with_decimals(row[column] for column in COLUMNS) for row in ordered]
    write_table(args.out, COLUMNS, cells, [*notes, *before])


if __name__ == "__main__":
    main()
