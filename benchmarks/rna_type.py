"""Type of RNA from a seed alignment of Rfam, by clan: the network, its linear part, and baselines.

    python data/rna_type.py --out runs/data/rna-type.tsv
    python benchmarks/rna_type.py --labels runs/data/rna-type.tsv

Five folds, whole clans on one side. On each, with the same training families:

- ``random forest`` and ``logistic regression`` on length, composition, words of 1 to 4 letters, helices and
  ends; of the regression, the roots of the shares of words, all standardized. Asked about the first row,
  they are trained on first rows.
- ``network``: the axial network of the configuration alone, and ``network with linear part`` as it is saved.
  Both are trained on alignments, whatever they are asked about.

Each is asked about all rows (the networks read at most as many as the configuration says), and about the
first row. Epoch, temperature and the share of the linear part are chosen on a part of the training folds.
``without other`` are the same answers for families of the other classes, when ``other`` is no answer. ``not
in the trial`` are the families that had no part in the choice of this form of the model, see
docs/decisions/0012-zoo.md.

Writes macro-F1 and Matthews correlation over all folds together with 95 % intervals (bootstrap over clans),
the macro-F1 of ``network with linear part`` minus that of the row (paired bootstrap), and F1 by class.
"""

from __future__ import annotations

import copy
import csv
import hashlib
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
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
from seqray.core.records import Alignment, crop_alignment
from seqray.core.run_config import RunConfig, load_run_config
from seqray.core.serialization import to_mapping
from seqray.homology.split import grouped_folds
from seqray.inference.alignments import alignment_networks, predict_alignments
from seqray.io.alignments import read_labeled_stockholm
from seqray.io.tables import write_table
from seqray.modelfile.model import TrainedModel
from seqray.models.alignment import helix_profile
from seqray.models.tokenizers import FIRST_LETTER, AlignmentTokenizer
from seqray.training.fit import train
from seqray.training.members import RunOptions
from seqray.training.partitions import data_sha256

FOREST, REGRESSION = "random forest", "logistic regression"
NETWORK, MODEL = "network", "network with linear part"
METHODS = (FOREST, REGRESSION, NETWORK, MODEL)
ALL_ROWS, FIRST_ROW = "all", "first"
OTHER = "other"
EVERY, NOT_OTHER, NOT_TRIED = "all", "without other", "not in the trial"
RESAMPLES = 1000
STRETCHES = 12
TRIAL_FAMILIES = 25  # that a type had to have in the trial
TRIAL_FOLDS = 2

Answers = dict[str, np.ndarray]  # by method and rows: probabilities (N, K)


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


def baseline_features(data: Sequence[Alignment], config: RunConfig, rows: str) -> dict[str, np.ndarray]:
    """What forest and regression read of all rows, or of the first one."""
    if rows == FIRST_ROW:
        data = [crop_alignment(one, 1, one.columns) for one in data]
    words, others = mean_words(data), helix_and_end_features(data, config.model, config.data.window)
    return {
        FOREST: np.hstack((composition(data), words, others)),
        REGRESSION: np.hstack((composition(data), np.sqrt(words), others)),
    }


def baseline_answers(features: Mapping[str, np.ndarray], labels: np.ndarray, test: np.ndarray) -> Answers:
    """Probabilities by the cheap classifiers."""
    models: dict[str, Any] = {
        FOREST: RandomForestClassifier(500, min_samples_leaf=3, class_weight="balanced", random_state=0),
        REGRESSION: make_pipeline(
            StandardScaler(), LogisticRegression(C=0.01, class_weight="balanced", max_iter=1000)
        ),
    }
    return {
        name: model.fit(features[name][~test], labels[~test]).predict_proba(features[name][test])
        for name, model in models.items()
    }


def network_answers(
    config: RunConfig, data: Sequence[Alignment], test: np.ndarray, work: Path
) -> tuple[Answers, float]:
    """Probabilities by the network alone and with its linear part, and the share of that part."""
    rest = [replace(data[i], split=None) for i in np.flatnonzero(~test).tolist()]
    held = [data[i] for i in np.flatnonzero(test).tolist()]
    result = train(config, rest, None, RunOptions(work))
    alone = copy.deepcopy(result.networks)
    models = {MODEL: TrainedModel(result.card, result.networks), NETWORK: TrainedModel(result.card, alone)}
    for network in alignment_networks(models[NETWORK]):
        network.linear = None
    order = np.argsort(result.card.classes)  # the card has the positive class last
    answers = {
        f"{name}, {shown}": np.array([x.probabilities for x in predict_alignments(model, held, rows=rows)])[
            :, order
        ]
        for name, model in models.items()
        for shown, rows in ((ALL_ROWS, None), (FIRST_ROW, 1))
    }
    return answers, result.card.training["floor"]["share"]


def fold_identity(config: RunConfig, data: Sequence[Alignment], test: np.ndarray) -> str:
    """What the answers of a fold depend on."""
    settings = json.dumps(to_mapping(replace(config, card={}, summary="")), sort_keys=True, default=str)
    return hashlib.sha256((settings + data_sha256(data)).encode() + test.tobytes()).hexdigest()[:16]


def run_fold(config: RunConfig, data: Sequence[Alignment], test: np.ndarray, work: Path) -> Answers:
    """The networks of one fold; kept in a file, so that a second run goes on where the first one ended."""
    kept = work / f"answers-{fold_identity(config, data, test)}.npz"
    if not kept.exists():
        began = time.monotonic()
        answers, share = network_answers(config, data, test, work / "axial")
        stored: dict[str, Any] = {name.replace(" ", "_"): value for name, value in answers.items()}
        np.savez(kept, share=share, **stored)
        print(f"{work.name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    with np.load(kept) as found:
        return {name.replace("_", " "): found[name] for name in found.files}


def families_of_trial(table: Path) -> set[str]:
    """The families on which the form of the model was chosen: two of five folds of the classes of that time.

    These were the types with 25 families or more, by their last part; ``Gene`` is no class any more.
    """
    with open(table, encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle, delimiter="\t"))
    types = [row["type"].rstrip("; ").split("; ")[-1] for row in rows]
    counts = Counter(types)
    chosen = [i for i, kind in enumerate(types) if counts[kind] >= TRIAL_FAMILIES]
    clans = np.array([rows[i]["clan"] or rows[i]["acc"] for i in chosen])
    folds = grouped_folds(np.array([types[i] for i in chosen]), clans, 5, seed=0)
    return {
        rows[i]["acc"]
        for i, fold in zip(chosen, folds, strict=True)
        if fold < TRIAL_FOLDS and types[i] != "Gene"
    }


def macro_f1(truth: np.ndarray, calls: np.ndarray) -> float:
    return float(f1_score(truth, calls, average="macro"))


def mcc(truth: np.ndarray, calls: np.ndarray) -> float:
    return float(matthews_corrcoef(truth, calls))


def summarize(truth: np.ndarray, groups: np.ndarray, calls: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    """Figures over all folds, with intervals over resampled clans, and differences to the shipped model."""
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
        model, read = name.split(", ")
        best = f"{MODEL}, {read}"
        row: dict[str, Any] = {"rows": read, "model": model, "n": len(truth)}
        for f in (macro_f1, mcc):
            row[f.__name__] = f(truth, answer)
            row[f"{f.__name__}_low"], row[f"{f.__name__}_high"] = np.percentile(drawn[name][f], (2.5, 97.5))
        gain = drawn[best][macro_f1] - drawn[name][macro_f1]
        row["model_gain"] = macro_f1(truth, calls[best]) - row["macro_f1"]
        row["gain_low"], row["gain_high"] = np.percentile(gain, (2.5, 97.5))
        rows.append(row)
    return rows


def views(
    truth: np.ndarray, groups: np.ndarray, answers: Answers, classes: np.ndarray, tried: np.ndarray
) -> list[dict[str, Any]]:
    """The figures of all families, of those of a class, and of those that were not in the trial."""
    rows = []
    for view, inside in ((EVERY, truth == truth), (NOT_OTHER, truth != OTHER), (NOT_TRIED, ~tried)):
        offered = classes != OTHER if view == NOT_OTHER else classes == classes
        names = classes[offered]
        calls = {name: names[one[inside][:, offered].argmax(axis=1)] for name, one in answers.items()}
        of_view = summarize(truth[inside], groups[inside], calls)
        for row, call in zip(of_view, calls.values(), strict=True):
            of_class = {name: float(f1_score(truth[inside] == name, call == name)) for name in names}
            rows.append({"families": view, **row, **{f"f1_{name}": of_class.get(name) for name in classes}})
    return rows


def card_figures(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What the model card shows: figures with intervals, of the model and the baselines."""
    split = "Rfam seeds, clan folds"
    shown: dict[str, Any] = {}
    for row in rows:
        if row["families"] != NOT_TRIED:
            families = "" if row["families"] == EVERY else f", {row['families']}"
            shown[f"{split}, {row['model']}, {row['rows']} rows{families}"] = {
                name: {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
                for name in ("macro_f1", "mcc")
            }
    best = shown[f"{split}, {MODEL}, {ALL_ROWS} rows"]["macro_f1"]
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
    classes, folds = np.unique(truth), grouped_folds(truth, groups, args.folds, seed=0)
    began = time.monotonic()
    of_folds = {
        fold: run_fold(config, data, folds == fold, args.work_dir / f"fold{fold}")
        for fold in args.only or range(args.folds)
    }
    if args.only:
        return
    features = {rows: baseline_features(data, config, rows) for rows in (ALL_ROWS, FIRST_ROW)}
    found: Answers = {}
    for fold, of_networks in of_folds.items():
        answers = {name: values for name, values in of_networks.items() if name != "share"}
        for rows, read in features.items():
            for name, values in baseline_answers(read, truth, folds == fold).items():
                answers[f"{name}, {rows}"] = values
        for name, values in answers.items():
            found.setdefault(name, np.zeros((len(data), len(classes))))[folds == fold] = values
    tried = families_of_trial(args.data / "rfam_seed" / "labels.tsv")
    ordered = {f"{name}, {rows}": found[f"{name}, {rows}"] for rows in features for name in METHODS}
    rows = views(truth, groups, ordered, classes, np.array([one.id in tried for one in data]))
    head = [*describe(sys.argv), f"config: {args.config.name}; one thread"]
    head += [f"families: {len(data)}, clans: {len(np.unique(groups))}, folds: {args.folds}"]
    head += ["shares of the linear part: " + " ".join(str(float(one["share"])) for one in of_folds.values())]
    head += [f"seconds of this run: {time.monotonic() - began:.0f}"]
    write_table(args.out, list(rows[0]), [with_decimals(row.values()) for row in rows], head)
    if args.card:
        write_card_figures(args.card, card_figures(rows))


if __name__ == "__main__":
    main()
