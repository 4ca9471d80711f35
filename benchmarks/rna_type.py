"""Type of RNA from a seed alignment of Rfam, by clan: floors, single sequences, alignments, and ablations.

    python data/rna_type.py --out runs/data/rna-type.tsv
    python benchmarks/rna_type.py --labels runs/data/rna-type.tsv

Five folds, whole clans on one side. On each, with the same training families:

- ``length + composition`` of the first row, by a random forest;
- ``k-mers of the first row`` (`seqray.metrics`), and ``k-mers of all rows``: words of 1 to 4 letters, mean
  over the rows, by a logistic regression;
- ``helices, ends and k-mers of all rows``: what the network is told beside the letters, and words, by a
  random forest;
- ``single sequence``: the network of the configuration as a model of sequences, on the first row;
- ``single sequence, helices``: the axial network, trained and tested on the first row alone, with the helices
  that this row can form;
- ``alignment``: the axial network, whole, and with the rows cut to 1, 2, 4 where it predicts;
- ``alignment, columns shuffled``: trained and tested on alignments whose columns stand in random order, all
  rows alike. What is left is composition, conservation and depth.

``single sequence`` and ``alignment`` have as many members as the configuration says; ``single sequence,
helices`` and ``columns shuffled`` have one, and are to be compared with ``alignment, one member``.

Epoch and temperature of each network are chosen on a part of its training folds. Writes macro-F1 and Matthews
correlation over all folds together with 95 % intervals (bootstrap over clans), and the difference of each
network to the axial one (paired bootstrap).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cross_validation import write_card_figures
from machine import add_data, describe, script_parser, with_decimals
from seqray.core.alphabet import RNA
from seqray.core.model_config import ModelConfig
from seqray.core.records import Alignment, SequenceRecord, crop_alignment
from seqray.core.run_config import RunConfig, load_run_config
from seqray.core.serialization import to_mapping
from seqray.homology.split import grouped_folds
from seqray.inference.alignments import predict_alignments
from seqray.inference.sequences import predict_records
from seqray.io.alignments import read_labeled_stockholm
from seqray.io.tables import write_table
from seqray.kinds.kinds import queries
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import helix_profile
from seqray.models.tokenizers import FIRST_LETTER, AlignmentTokenizer
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.partitions import data_sha256

DEPTHS = (1, 2, 4)
COMPOSITION, FIRST_ROW, ALL_ROWS = "length + composition", "k-mers of the first row", "k-mers of all rows"
TOLD = "helices, ends and k-mers of all rows"
SINGLE, FOLDED = "single sequence", "single sequence, helices"
AXIAL, SHUFFLED = "alignment", "alignment, columns shuffled"
ALONE = "one member"
RESAMPLES = 1000
STRETCHES = 12

Calls = dict[str, list[str]]


def composition(data: Sequence[Alignment]) -> np.ndarray:
    """Length, its logarithm and shares of the letters of the first rows: (N, 6)."""
    rows = [one.sequence for one in data]
    return np.array([[len(s), np.log(len(s)), *(s.count(c) / len(s) for c in "ACGU")] for s in rows])


def mean_words(data: Sequence[Alignment]) -> np.ndarray:
    """Frequencies of words of 1 to 4 letters, mean over the rows: (N, 340)."""
    words = ["".join(word) for k in (1, 2, 3, 4) for word in itertools.product("ACGU", repeat=k)]
    counter = CountVectorizer(analyzer="char", ngram_range=(1, 4), lowercase=False, vocabulary=words)
    means = []
    for one in data:
        rows = [RNA.decode(row[row <= RNA.unknown]) for row in one.codes]
        counts = np.asarray(counter.transform(rows).todense(), dtype=np.float64)
        means.append((counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)).mean(axis=0))
    return np.array(means)


def helix_and_end_features(data: Sequence[Alignment], settings: ModelConfig, columns: int) -> np.ndarray:
    """Mean helix profile of each of twelve stretches, and shares of the letters at both ends of the rows."""
    tokenizer = AlignmentTokenizer(RNA)
    features = []
    for one in data:
        rows = crop_alignment(one, settings.max_rows, columns).codes
        letters = torch.from_numpy(tokenizer.encode(rows))[None, :, 1:] - FIRST_LETTER
        profile = helix_profile(letters)[0].numpy()
        stretches = [part.mean(axis=0) for part in np.array_split(profile, STRETCHES) if len(part)]
        stretches += [np.zeros(profile.shape[1])] * (STRETCHES - len(stretches))
        ends = np.zeros((2, settings.ends, RNA.unknown + 1))
        for row in rows:
            there = row[row <= RNA.unknown]
            for side, read in enumerate((there, there[::-1])):
                near = read[: settings.ends]
                ends[side, np.arange(len(near)), near] += 1 / len(rows)
        features.append(np.concatenate((np.ravel(stretches), ends.ravel())))
    return np.array(features)


def shuffled(data: Sequence[Alignment]) -> list[Alignment]:
    """Columns in random order, another one for each alignment."""
    rng = np.random.default_rng(0)
    return [one.take_columns(rng.permutation(one.columns)) for one in data]


def floors(rest: Sequence[Alignment], test: Sequence[Alignment], config: RunConfig) -> Calls:
    """Calls of the cheap classifiers."""
    window = config.data.window
    labels = [one.label for one in rest]
    forest = RandomForestClassifier(500, min_samples_leaf=2, class_weight="balanced", random_state=0)
    linear = make_pipeline(
        StandardScaler(), LogisticRegression(C=0.01, class_weight="balanced", max_iter=1000)
    )
    words = KmerPositionalBaseline(alphabet="rna")
    words.fit([one.sequence[:window] for one in rest], np.array(labels))
    known, asked = (
        np.hstack((composition(part), mean_words(part), helix_and_end_features(part, config.model, window)))
        for part in (rest, test)
    )
    large = RandomForestClassifier(500, min_samples_leaf=3, class_weight="balanced", random_state=0)
    return {
        TOLD: list(large.fit(known, labels).predict(asked)),
        COMPOSITION: list(forest.fit(composition(rest), labels).predict(composition(test))),
        FIRST_ROW: list(words.predict([one.sequence[:window] for one in test])),
        ALL_ROWS: list(linear.fit(mean_words(rest), labels).predict(mean_words(test))),
    }


def single(config: RunConfig, rest: Sequence[Alignment], test: Sequence[Alignment], work: Path) -> Calls:
    """Calls of the network as a model of sequences."""
    model = replace(config.model, kind="sequence", helices=False)
    augment = replace(config.augment, query=0.0)
    settings = replace(config, model=model, augment=augment)
    result = train(settings, queries(list(rest), config.data.window), None, RunOptions(work))
    records = [SequenceRecord(one.id, one.sequence[: config.data.window]) for one in test]
    trained = TrainedModel(result.card, result.networks)
    return {SINGLE: [answer.label for answer in predict_records(trained, records)]}


def axial(
    config: RunConfig,
    rest: Sequence[Alignment],
    test: Sequence[Alignment],
    work: Path,
    name: str,
    depths: Sequence[int],
) -> Calls:
    """Calls of the axial network, and of the same network with fewer rows."""
    result = train(config, list(rest), None, RunOptions(work))
    trained = TrainedModel(result.card, result.networks)

    def calls(model: TrainedModel, rows: int | None) -> list[str]:
        return [answer.label for answer in predict_alignments(model, test, rows=rows)]

    found = {name: calls(trained, None)}
    if config.members > 1:
        found[f"{name}, {ALONE}"] = calls(TrainedModel(result.card, result.networks[:1]), None)
    return found | {f"{name}, {depth} rows": calls(trained, depth) for depth in depths}


def folded(config: RunConfig, rest: Sequence[Alignment], test: Sequence[Alignment], work: Path) -> Calls:
    """Calls of the axial network that has never seen a second row."""
    settings = replace(
        config,
        members=1,
        model=replace(config.model, max_rows=1),
        augment=replace(config.augment, query=0.0),
    )
    return axial(settings, rest, test, work, FOLDED, ())


def fingerprint(config: RunConfig, data: Sequence[Alignment], test: np.ndarray) -> str:
    """What the answers of a fold depend on."""
    settings = json.dumps(to_mapping(replace(config, card={}, summary="")), sort_keys=True, default=str)
    return hashlib.sha256((settings + data_sha256(data)).encode() + test.tobytes()).hexdigest()[:16]


def run_fold(config: RunConfig, data: Sequence[Alignment], test: np.ndarray, work: Path) -> Calls:
    """Everything on one fold; kept in a file, so that a second run goes on where the first one ended."""
    kept = work / f"calls-{fingerprint(config, data, test)}.json"
    calls: Calls = json.loads(kept.read_text()) if kept.exists() else {}
    held = [data[i] for i in np.flatnonzero(test).tolist()]
    rest = [replace(data[i], split=None) for i in np.flatnonzero(~test).tolist()]
    mixed_rest, mixed_held = shuffled(rest), shuffled(held)
    one = replace(config, members=1)
    steps: dict[str, Callable[[], Calls]] = {
        TOLD: lambda: floors(rest, held, config),
        SINGLE: lambda: single(config, rest, held, work / "single"),
        AXIAL: lambda: axial(config, rest, held, work / "axial", AXIAL, DEPTHS),
        FOLDED: lambda: folded(config, rest, held, work / "folded"),
        SHUFFLED: lambda: axial(one, mixed_rest, mixed_held, work / "shuffled", SHUFFLED, ()),
    }
    for name, step in steps.items():
        if name not in calls:
            began = time.monotonic()
            calls |= step()
            work.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps({key: [str(c) for c in value] for key, value in calls.items()}))
            print(f"{work.name} {name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return calls


def macro_f1(truth: np.ndarray, calls: np.ndarray) -> float:
    return float(f1_score(truth, calls, average="macro"))


def mcc(truth: np.ndarray, calls: np.ndarray) -> float:
    return float(matthews_corrcoef(truth, calls))


def summarize(truth: np.ndarray, groups: np.ndarray, calls: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    """Figures over all folds, with intervals over resampled clans, and differences to the axial network."""
    keys, owner = np.unique(groups, return_inverse=True)
    members = [np.flatnonzero(owner == i) for i in range(len(keys))]
    rng = np.random.default_rng(0)
    draws = [
        np.concatenate([members[i] for i in rng.integers(len(keys), size=len(keys))])
        for _ in range(RESAMPLES)
    ]
    drawn = {
        name: {f: np.array([f(truth[d], answer[d]) for d in draws]) for f in (macro_f1, mcc)}
        for name, answer in calls.items()
    }
    rows = []
    for name, answer in calls.items():
        row: dict[str, Any] = {"model": name, "n": len(truth)}
        for f in (macro_f1, mcc):
            row[f.__name__] = f(truth, answer)
            row[f"{f.__name__}_low"], row[f"{f.__name__}_high"] = np.percentile(drawn[name][f], (2.5, 97.5))
        gain = drawn[AXIAL][macro_f1] - drawn[name][macro_f1]
        row["alignment_gain"] = macro_f1(truth, calls[AXIAL]) - row["macro_f1"]
        row["gain_low"], row["gain_high"] = np.percentile(gain, (2.5, 97.5))
        rows.append(row)
    return rows


def card_figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the model card shows: figures with intervals, of the network, the floors and the ablations."""
    split = "Rfam seeds, clan folds"
    shown: dict[str, Any] = {}
    for row in rows:
        shown[f"{split}, {row['model']}"] = {
            name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
            for name in ("macro_f1", "mcc")
        }
    best = shown[f"{split}, {AXIAL}"]["macro_f1"]
    return {"headline": {"metric": "macro_f1", "split": split, **best}, **shown}


def main() -> None:
    parser = script_parser(__doc__, "rna_type.tsv")
    add = parser.add_argument
    add_data(parser)
    add("--labels", type=Path, default=Path("runs/data/rna-type.tsv"))
    add("--config", type=Path, default=Path("configs/rna-family-type.yaml"))
    add("--folds", type=int, default=5)
    add("--only", type=int, action="append", help="compute this fold and write no table; may be repeated")
    add("--work-dir", type=Path, default=Path("runs/rna_type"))
    add("--card", help="JSON for seqray train --metrics; figures are added to it")
    args = parser.parse_args()
    torch.set_num_threads(1)
    config = load_run_config(args.config)
    [data], _ = read_labeled_stockholm([args.data / "rfam_seed" / "seed.sto.gz"], args.labels, RNA)
    truth, groups = np.array([one.label for one in data]), np.array([one.group for one in data])
    folds = grouped_folds(truth, groups, args.folds, seed=0)
    began = time.monotonic()
    found: dict[str, np.ndarray] = {}
    for fold in args.only or range(args.folds):
        for name, calls in run_fold(config, data, folds == fold, args.work_dir / f"fold{fold}").items():
            found.setdefault(name, np.empty(len(data), dtype=truth.dtype))[folds == fold] = calls
    if args.only:
        return
    rows = summarize(truth, groups, found)
    head = [*describe(sys.argv), f"config: {args.config.name}; one thread"]
    head += [f"families: {len(data)}, clans: {len(np.unique(groups))}, folds: {args.folds}"]
    head += [f"seconds of this run: {time.monotonic() - began:.0f}"]
    write_table(args.out, list(rows[0]), [with_decimals(row.values()) for row in rows], head)
    if args.card:
        write_card_figures(args.card, card_figures(rows))


if __name__ == "__main__":
    main()
