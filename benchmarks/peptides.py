"""How accurate is ``seqray train`` without settings on public sets of peptides, beside simple learners?

    python benchmarks/peptides.py peptidereactor --splits random relatives

The folder holds a folder per set, with ``seqs.fasta.gz`` and ``classes.txt.gz`` as in the peptidereactor of
Spaenig et al. 2021 (https://github.com/spaenigs/peptidereactor). Copies of a sequence are left out, and all
sequences that have both classes or are DNA. A fifth is the test part: drawn within the classes, or by
``seqray split``, which keeps relatives together; sets that it can't split have no such row.

Each set is trained with ``--train`` and ``--out`` alone, on one thread. The others learn from the same part:

- ``floor``: the linear floor of ``seqray evaluate``;
- ``regression``: logistic regression on words of one to three letters and on letters at positions;
- ``svm``, ``boosting``, ``forest`` (500 trees): on composition, pairs of letters, length and both ends.

The floor, the regression, the boosting and the forest call at the threshold of the highest expected MCC, as
``seqray evaluate`` lets them do. ``slope`` is that of a logistic regression of the truth on the logits of
the test part: above 1 where probabilities are too timid, below 1 where they are too bold.

Half of the sets are for choices (``choose``), and half are for judging them (``judge``): the half depends on
the name alone. A set that is in the table is not measured again. ``peptides_differences.tsv`` has the mean
differences over the sets with 95 % intervals (t, paired); sets count as independent, though some share
sequences. ``best`` is the best of the five others in each set. A slope is noisy in a small test part: the row
``calibrated`` has how far the mean of its absolute logarithm is above that of a model whose probabilities
are right, by simulation with the size, the share of positives, and our AUROC of each test part; ``won``
counts the sets where it is below.

``f1_published`` is the figure of the best of many encodings that were tried with a forest on each set, by
cross-validation with the copies that are left out here; ``f1_seqray`` is of this test part.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from zlib import crc32

import numpy as np
from Bio import SeqIO
from scipy.special import expit, logit
from scipy.stats import norm, t as student
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, matthews_corrcoef
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, StandardScaler
from sklearn.svm import SVC

from machine import add_row, describe, read_table, run, script_parser, with_decimals, write_and_show
from seqray.core.alphabet import PROTEIN
from seqray.core.errors import InputError
from seqray.evaluation.floor import answers_from_probabilities
from seqray.metrics.baselines import ForestBaseline, default_baseline
from seqray.metrics.classification import auroc

CLASSES = ("0", "1")
SPLITS = ("random", "relatives")
OTHERS = ("floor", "regression", "svm", "boosting", "forest")
MODELS = ("seqray", *OTHERS)
FIGURES = ("auroc", "mcc")
COLUMNS = (
    *("set", "half", "split", "seed", "records", "positives", "tested"),
    *(f"{figure}_{model}" for figure in FIGURES for model in MODELS),
    *(f"slope_{model}" for model in MODELS if model != "svm"),
    *("f1_seqray", "f1_published", "cpu_seconds", "peak_mb"),
)
DIFFERENCES = ("half", "split", "figure", "against", "sets", "won", "difference", "low", "high")
PUBLISHED = {  # Spaenig et al. 2021: median F1 of the best encoding, a forest of 100 trees, 10 x 5 folds
    **{"ace_vaxinpad": 0.958, "amp_iamp2l": 0.817, "atb_antitbp": 0.832, "cpp_cellppdmod": 0.933},
    **{"cpp_mixed": 0.884, "hiv_3tc": 0.899, "hiv_bevirimat": 0.789, "hiv_protease": 0.792},
    **{"hiv_v3": 0.983, "isp_il10pred": 0.680, "pip_pipel": 0.560},
}
MIN_P = 1e-6  # bounds a logit
DRAWS = 100  # of test parts for which a right model is simulated


def half_of(name: str) -> str:
    """What a set is for, by its name alone."""
    return "judge" if crc32(name.encode()) % 2 else "choose"


def read_set(folder: Path) -> tuple[list[str], list[str]]:
    """Sequences and labels of a set, each once, without those of DNA and those with both labels."""
    with gzip.open(folder / "seqs.fasta.gz", "rt") as handle:
        sequences = [str(record.seq).upper() for record in SeqIO.parse(handle, "fasta")]
    with gzip.open(folder / "classes.txt.gz", "rt") as handle:
        labels = handle.read().split()
    pairs = list(dict.fromkeys(zip(sequences, labels, strict=True)))
    seen = Counter(sequence for sequence, _ in pairs)
    kept = [pair for pair in pairs if seen[pair[0]] == 1 and is_protein(pair[0])]
    return [sequence for sequence, _ in kept], [label for _, label in kept]


def is_protein(sequence: str) -> bool:
    """Whether seqray reads a sequence as protein; some sets hold a few of DNA."""
    try:
        return bool(PROTEIN.normalize(sequence))
    except InputError:
        return False


# --- The parts, and what each learner answers for the test part


def test_rows(
    sequences: Sequence[str], labels: Sequence[str], split: str, seed: int, folder: Path
) -> list[int]:
    """Rows of the test part, about a fifth; none where relatives can't be separated."""
    rows = range(len(sequences))
    if split == "random":
        return sorted(train_test_split(rows, test_size=0.2, stratify=labels, random_state=seed)[1])
    table, out = folder / "all.tsv", folder / "split.tsv"
    write_set(table, sequences, labels, rows)
    words = ["split", "--train", str(table), "--out", str(out), "--shares", "0.8,0,0.2", "--seed", str(seed)]
    if subprocess.run([sys.executable, "-m", "seqray", *words, "--quiet"], check=False).returncode:
        return []
    tested = [int(row["id"]) for row in read_table(out) if row["split"] == "test"]
    parts = ({labels[i] for i in tested}, {labels[i] for i in set(rows) - set(tested)})
    return sorted(tested) if all(len(part) == 2 for part in parts) else []


def write_set(path: Path, sequences: Sequence[str], labels: Sequence[str], rows: Sequence[int]) -> None:
    """Write rows as a table for ``--train``, their numbers as ids."""
    lines = [f"{i}\t{sequences[i]}\t{labels[i]}" for i in rows]
    path.write_text("\n".join(["id\tsequence\tlabel", *lines]) + "\n")


def words_and_places(sequence: str) -> Iterator[str]:
    """Words of one to three letters, and each letter with its position."""
    for k in (1, 2, 3):
        yield from (sequence[i : i + k] for i in range(len(sequence) - k + 1))
    yield from (f"{i}{letter}" for i, letter in enumerate(sequence))


def learners() -> dict[str, object]:
    """The other learners, by name."""
    features = FunctionTransformer(ForestBaseline("protein").features)
    counts = CountVectorizer(analyzer=words_and_places)  # pyright: ignore[reportArgumentType]
    return {
        "floor": default_baseline(PROTEIN),
        "regression": make_pipeline(counts, MaxAbsScaler(), LogisticRegression(C=0.1, max_iter=1000)),
        "svm": make_pipeline(features, StandardScaler(), SVC()),
        "boosting": make_pipeline(features, HistGradientBoostingClassifier(random_state=0)),
        "forest": ForestBaseline("protein", trees=500),
    }


def slope(truth: np.ndarray, probabilities: np.ndarray) -> float:
    """Slope of a logistic regression of the truth (N,) on the logits of probabilities (N,)."""
    logits = logit(np.clip(probabilities, MIN_P, 1 - MIN_P))[:, None]
    if np.ptp(logits) == 0:
        return float("nan")
    return float(LogisticRegression(C=np.inf, max_iter=1000).fit(logits, truth).coef_[0, 0])


def figures(truth: np.ndarray, scores: np.ndarray, calls: np.ndarray) -> dict[str, float]:
    """AUROC and MCC."""
    return {"auroc": auroc(truth, scores), "mcc": float(matthews_corrcoef(truth, calls))}


def measure(name: str, split: str, args: object) -> list[object]:
    """The row of a set; an empty list where relatives can't be separated."""
    folder = args.work / f"{name}_{split}_{args.seed}"  # type: ignore[attr-defined]
    folder.mkdir(parents=True, exist_ok=True)
    sequences, labels = read_set(args.folder / name)  # type: ignore[attr-defined]
    tested = test_rows(sequences, labels, split, args.seed, folder)  # type: ignore[attr-defined]
    if not tested:
        return []
    learned = sorted(set(range(len(sequences))) - set(tested))
    truth = np.array([labels[i] == "1" for i in tested], dtype=np.int64)
    table, test, model, out = (folder / file for file in ("train.tsv", "test.fa", "m.safetensors", "p.tsv"))
    write_set(table, sequences, labels, learned)
    test.write_text("".join(f">{i}\n{sequences[i]}\n" for i in tested))
    seqray = [sys.executable, "-m", "seqray"]
    options = ["--threads", "1", "--no-resume", "--quiet"]  # an earlier run would make it cheaper
    cost = run([*seqray, "train", "--train", str(table), "--out", str(model), *options])
    run(
        [*seqray, "predict", str(test), "--model", str(model), "--out", str(out), "--threads", "1", "--quiet"]
    )
    rows = {int(row["id"]): row for row in read_table(out)}
    shares = np.array([float(rows[i]["p_1"]) for i in tested])
    calls = np.array([rows[i]["label"] == "1" for i in tested], dtype=np.int64)
    measured = {"seqray": figures(truth, shares, calls) | {"slope": slope(truth, shares)}}
    f1 = [float(f1_score(truth, calls)), PUBLISHED.get(name, "")]
    known, asked = [sequences[i] for i in learned], [sequences[i] for i in tested]
    for learner, unfitted in learners().items():
        fitted = unfitted.fit(known, [labels[i] for i in learned])  # type: ignore[attr-defined]
        if learner == "svm":
            calls = (fitted.predict(asked) == "1").astype(np.int64)
            measured[learner] = figures(truth, fitted.decision_function(asked), calls)
            continue
        scores = fitted.predict_proba(asked)
        calls = answers_from_probabilities(learner, "", scores, CLASSES, "1").calls
        measured[learner] = figures(truth, scores[:, 1], calls) | {"slope": slope(truth, scores[:, 1])}
    cells = [measured[model][figure] for figure in FIGURES for model in MODELS]
    cells += [measured[model]["slope"] for model in MODELS if model != "svm"]
    counts = [len(sequences), labels.count("1"), len(tested)]
    cells += f1
    costs = [f"{cost.cpu:.0f}", f"{cost.peak_mb:.0f}"]
    head = [name, half_of(name), split, args.seed, *counts]  # type: ignore[attr-defined]
    return [*head, *with_decimals(cells), *costs]


# --- Mean differences over the sets


def differences(rows: Sequence[Mapping[str, str]]) -> Iterator[list[object]]:
    """Mean of ours minus theirs over the sets, with an interval, for each half and split.

    Of our slopes there are the mean of the logarithm, that of its absolute value, and how far the latter is
    above the one of a calibrated model.
    """
    for half in ("all", "choose", "judge"):
        for split in SPLITS:
            own = [row for row in rows if row["split"] == split and half in ("all", row["half"])]
            if len(own) < 2:
                continue
            for figure in FIGURES:
                table = np.array([[float(row[f"{figure}_{model}"]) for model in MODELS] for row in own])
                table = np.column_stack((table, table[:, 1:].max(axis=1)))
                for i, against in enumerate((*OTHERS, "best"), 1):
                    gaps = table[:, 0] - table[:, i]
                    head = [half, split, figure, against, len(gaps), int((gaps > 0).sum())]
                    yield [*head, *with_decimals(mean_and_interval(gaps))]
            logs = log_slopes([float(row["slope_seqray"]) for row in own])
            gaps = abs(logs) - [calibrated_deviation(row) for row in own]
            for figure, against, values in (
                ("log slope", "", logs),
                ("|log slope|", "", abs(logs)),
                ("|log slope|", "calibrated", gaps),
            ):
                lower = int((gaps < 0).sum()) if against else ""
                head = [half, split, figure, against, len(own), lower]
                yield [*head, *with_decimals(mean_and_interval(values))]


def log_slopes(slopes: Sequence[float]) -> np.ndarray:
    """Logarithms of slopes; those outside of 0.1 to 10 count as these."""
    return np.log(np.clip(slopes, 0.1, 10))


def calibrated_deviation(row: Mapping[str, str]) -> float:
    """Mean deviation of the slope of a model whose probabilities are right, on test parts like that of a row.

    Log-odds that are normal in both classes, with variance d² and means d² apart, are right with the means at
    ± d² / 2 from the log-odds of the share; their AUROC is Φ(d / √2).
    """
    tested, share = int(row["tested"]), int(row["positives"]) / int(row["records"])
    apart = np.sqrt(2) * norm.ppf(np.clip(float(row["auroc_seqray"]), 0.55, 0.999))
    rng, slopes = np.random.default_rng(0), []
    while len(slopes) < DRAWS:
        truth = (rng.random(tested) < share).astype(np.int64)
        if 0 < truth.sum() < tested:
            log_odds = rng.normal(logit(share) + (truth - 0.5) * apart**2, apart)
            slopes.append(slope(truth, expit(log_odds)))
    return float(abs(log_slopes(slopes)).mean())


def mean_and_interval(values: np.ndarray) -> tuple[float, float, float]:
    """Mean, and the ends of its 95 % interval by Student's t."""
    mean = float(np.mean(values))
    margin = float(student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return mean, mean - margin, mean + margin


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each set that the table lacks, small ones first, and compare."""
    parser = script_parser(__doc__, "peptides.tsv")
    parser.add_argument("folder", type=Path, help="folder of the sets")
    parser.add_argument("--work", type=Path, default=Path("runs/peptides"), help="folder of the models")
    parser.add_argument("--sets", nargs="+", help="names of sets (default: all)")
    parser.add_argument("--half", choices=("choose", "judge"), help="sets of this half only")
    parser.add_argument("--splits", nargs="+", choices=SPLITS, default=["random"])
    parser.add_argument("--seed", type=int, default=1, help="of the split")
    parser.add_argument("--jobs", type=int, default=1, help="sets that are measured at once")
    args = parser.parse_args(argv)
    files = {path.parent.name: path.stat().st_size for path in args.folder.glob("*/seqs.fasta.gz")}
    names = [name for name in sorted(files, key=lambda name: files[name]) if name in (args.sets or files)]
    names = [name for name in names if args.half in (None, half_of(name))]
    known = read_table(args.out) if args.out.exists() else []
    done = {(row["set"], row["split"], row["seed"]) for row in known}
    todo = [(name, split) for split in args.splits for name in names]
    todo = [pair for pair in todo if (*pair, str(args.seed)) not in done]
    with ThreadPoolExecutor(args.jobs) as pool:
        for (name, split), row in zip(
            todo, pool.map(lambda pair: measure(pair[0], pair[1], args), todo), strict=True
        ):
            if row:
                add_row(args.out, COLUMNS, row)
            else:
                print(f"{name}: relatives can't be separated, no row for split {split}", file=sys.stderr)
    out = args.out.with_name(f"{args.out.stem}_differences.tsv")
    write_and_show(out, DIFFERENCES, differences(read_table(args.out)), describe(sys.argv))
    return 0


if __name__ == "__main__":
    sys.exit(main())
