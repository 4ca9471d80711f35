"""An evaluation of predictions beside baselines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqray.core.alphabet import Alphabet, canonical_strand
from seqray.core.arrays import Floats, Ints
from seqray.core.errors import ConfigError, InputError, require_number, setting
from seqray.core.labels import label_faults
from seqray.core.records import Example
from seqray.core.results import Answers, Evaluation, Figure
from seqray.core.text import INTERVAL_DRAWS, align_columns, class_counts, counted, format_interval
from seqray.evaluation.floor import answers_from_probabilities
from seqray.homology.kmers import kmer_groups, word_length
from seqray.homology.options import INSEPARABLE, LEAK, MIN_SIMILAR_LENGTH, MIN_SIMILAR_RESIDUES, SIMILAR
from seqray.homology.similarity import best_matches
from seqray.metrics.baselines import mcnemar
from seqray.metrics.classification import (
    MIN_RELIABLE_GROUPS,
    bootstrap_samples,
    class_metrics,
    difference_p_value,
    group_numbers,
    macro_metrics,
    multiclass_metrics,
    percentile_interval,
)

# --- Subsets of the records to measure separately: contexts, subclasses, ranges of similarity to training

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of identity; identity 1 is a range by itself
CONTEXT, SUBCLASS, SIMILARITY = "context", "subclass", "similarity"
MIN_SUBSET_RECORDS = 10  # a column of unique names has none, and figures of fewer records say little


def group_keys(examples: Sequence[Example], alphabet: Alphabet) -> tuple[list[object] | None, str]:
    """Groups that the bootstrap draws as a whole: a key for each example or None, and a description."""
    if any(example.group for example in examples):  # those without are groups of their own
        keys: list[object] = [example.group or ("", i) for i, example in enumerate(examples)]
        return keys, "groups of the column 'group' drawn whole"
    sequences = [example.sequence for example in examples]
    if all(sequences):
        k = word_length(sequences, alphabet)
        keys = kmer_groups(sequences, k, alphabet=alphabet).tolist()
        return keys, f"sequences that share {k} letters drawn together"
    return None, "records drawn one by one"


def by_context(examples: Sequence[Example]) -> dict[str, np.ndarray]:
    """Rows of each context, ``context:<name>`` in order of name; empty where there are fewer than two."""
    names = sorted({example.context for example in examples if example.context})
    if len(names) + any(not example.context for example in examples) < 2:
        return {}
    return {
        f"{CONTEXT}:{name}": np.flatnonzero([example.context == name for example in examples])
        for name in names
    }


def by_subclass(examples: Sequence[Example]) -> dict[str, np.ndarray]:
    """Rows of each part of a class with those of all other classes, ``subclass:<class>:<name>``."""
    labels = np.array([example.label for example in examples])
    names = np.array([example.subclass or "unnamed" for example in examples])
    counts = Counter(zip(labels.tolist(), names.tolist(), strict=True))
    parts = Counter(label for label, _ in counts)
    return {
        f"{SUBCLASS}:{label}:{name}": np.flatnonzero((labels != label) | (names == name))
        for (label, name), count in sorted(counts.items())
        if count >= MIN_SUBSET_RECORDS and parts[label] > 1
    }


def by_similarity(identity: Floats) -> dict[str, np.ndarray]:
    """Rows of each range of identity (N,) to training, ``similarity:<range>``; 1.0 holds copies and parts."""
    bins = np.digitize(identity, EDGES[1:])
    names = [*(f"{low:.1f}-{high:.1f}" for low, high in pairwise(EDGES)), "1.0"]
    rows = {f"{SIMILARITY}:{name}": np.flatnonzero(bins == i) for i, name in enumerate(names)}
    return {name: own for name, own in rows.items() if len(own) >= MIN_SUBSET_RECORDS}


def notes_on_training(
    examples: Sequence[Example], train: Sequence[Example], identity: Floats, alphabet: Alphabet
) -> Iterator[str]:
    """Count records that are training data, have their group, or by their identity (N,) are relatives."""
    count, texts = len(examples), [one.sequence for one in train]
    if not train:
        yield (
            "relatives of the training data among these records are not looked for: name these data by "
            f"{setting('train')}, or see 'seqray audit' of all"
        )
    learned = {canonical_strand(text, alphabet) for text in texts} - {""}
    if shared := sum(canonical_strand(one.sequence, alphabet) in learned for one in examples):
        yield (
            f"{shared} of {count} records are also in the training data of the baseline "
            f"({setting('train')}): it remembers them, and its figures are too good; "
            "leave them out (seqray split)"
        )
    groups = {one.group for one in train} - {None, ""}
    if shared := sum(one.group in groups for one in examples):
        yield (
            f"{shared} of {count} records have a group (column 'group') that training records have, "
            "too: the figures may be too high for new groups; split by whole groups (seqray split)"
        )
    similar = int((identity >= SIMILAR).sum())
    least = MIN_SIMILAR_LENGTH if alphabet.is_nucleotide else MIN_SIMILAR_RESIDUES
    if similar >= LEAK * count and similar and np.quantile([len(text) for text in texts], 0.25) >= least:
        yield (
            f"caution: {similar} of {count} records are {SIMILAR:.0%} identical or more to a training "
            "record: the figures say little about records that differ from these; see 'seqray audit', and "
            "divide the data by relatives (seqray split)"
        )


# --- Metrics of several classifiers on the same records, with intervals, and the differences between them

Key = tuple[str, str, str]  # source, class, metric
WHOLE, MACRO = "all", "macro"


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records that classifiers are measured on."""

    classes: tuple[str, ...]  # names [K], and of two classes the one that counts as positive
    positive: str
    labels: Ints  # (N,) class indices
    # (N,) keys of the groups that are drawn whole; None for each record by itself
    groups: Sequence[object] | np.ndarray | None = None

    def __post_init__(self) -> None:
        if self.positive not in self.classes:
            raise ConfigError(f"'{self.positive}' is not one of the classes {', '.join(self.classes)}")
        for name in {WHOLE, MACRO}.intersection(self.classes if len(self.classes) > 2 else ()):
            what = f"the class '{name}' has the name of a summary over all classes"
            raise InputError(what, remedy="rename it")
        if self.groups is not None and len(self.groups) != len(self.labels):
            raise InputError(f"{len(self.labels)} labels but {len(self.groups)} groups")

    def subset(self, rows: Ints) -> Records:
        """A subset of the records."""
        groups = None if self.groups is None else [self.groups[int(i)] for i in rows]
        return replace(self, labels=self.labels[rows], groups=groups)


def measure(
    records: Records,
    answers: Sequence[Answers],
    *,
    subset: str = "all",
    versus: Sequence[str] = (),
    draws: int = INTERVAL_DRAWS,
    seed: int = 0,
) -> list[Figure]:
    """Measure classifiers on the same records; ``versus`` are sources to subtract from the first."""
    first = answers[0].source

    def every_metric(weights: Floats) -> dict[Key, Floats]:
        by_source = {one.source: _metrics_of(records, one, weights) for one in answers}
        rows = {(source, *key): row for source, own in by_source.items() for key, row in own.items()}
        for other in versus:
            both = [key for key in by_source[other] if key in by_source[first]]
            rows |= {
                (f"{first}-{other}", *key): by_source[first][key] - by_source[other][key] for key in both
            }
        return rows

    groups, n = group_numbers(records.groups, len(records.labels)), len(records.labels)
    drawn, count = bootstrap_samples(every_metric, groups, draws, seed), len(np.unique(groups))
    positives = {name: int(np.sum(records.labels == k)) for k, name in enumerate(records.classes)}
    figures = []
    for (source, label, metric), (value, samples) in drawn.items():
        low = high = p = math.nan
        if not math.isnan(value):
            low, high = percentile_interval(samples)
            p = difference_p_value(samples) if source.startswith(f"{first}-") else math.nan
        row = (value, low, high, p, n, positives.get(label, 0), count)
        figures.append(Figure(subset, source, label, metric, *row))
    return figures


def _metrics_of(records: Records, answers: Answers, weights: Floats) -> dict[tuple[str, str], Floats]:
    """Metrics by class and name, in the order of the output."""
    if len(records.classes) == 2:
        by_class = {records.positive: _one_vs_rest(records, answers, records.positive, weights)}
    else:
        each = {name: _one_vs_rest(records, answers, name, weights) for name in records.classes}
        whole = multiclass_metrics(
            records.labels, answers.scores, answers.calls, weights, probabilities=answers.probabilities
        )
        macro = macro_metrics(records.labels, list(each.values()), weights)
        by_class = {WHOLE: whole, MACRO: macro} | each
    return {(label, metric): row for label, rows in by_class.items() for metric, row in rows.items()}


def _one_vs_rest(records: Records, answers: Answers, name: str, weights: Floats) -> dict[str, Floats]:
    k = records.classes.index(name)
    labels, calls = (records.labels == k).astype(np.int64), (answers.calls == k).astype(np.int64)
    return class_metrics(labels, answers.scores[:, k], calls, weights, probabilities=answers.probabilities)


# --- From labels and classifiers' answers to an `Evaluation`: metrics of all records and of subsets

MODEL, AGAINST, FLOOR, BASELINE, FOREST = "model", "against", "floor", "baseline", "forest"
COMPARED = (FLOOR, FOREST, AGAINST)
SHOWN = (MODEL, BASELINE, FOREST, AGAINST)
MAX_GROUP_SHARE = 0.2  # of the records
SUM_TOLERANCE = 1e-3  # tables carry a few digits
MAX_SHOWN_PROBABILITIES = 5


def evaluate_scores(
    labels: Sequence[str] | np.ndarray,
    probabilities: ArrayLike,
    classes: Sequence[str],
    positive: str,
    threshold: float | None = 0.5,
    groups: Sequence[object] | np.ndarray | None = None,
    *,
    beside: Sequence[Answers] = (),
    subsets: Mapping[str, np.ndarray] | None = None,
    draws: int = INTERVAL_DRAWS,
    seed: int = 0,
    split: str = "all",
) -> Evaluation:
    """Measure probabilities against labels.

    Parameters
    ----------
    labels
        (N,) names of classes.
    probabilities
        (N, K), or (N,) of the positive class where there are two.
    classes
        Names [K] in the order of the columns.
    positive
        Of two classes the one that the metrics describe.
    threshold
        Probability of the positive class at and above which it is called; None for that of the highest
        expected Matthews correlation. Of more than two classes the most probable is called.
    groups
        (N,) keys; records of one group are drawn together in the bootstrap.
    beside
        Answers of other classifiers for the same records, such as `seqray.evaluation.floor.floor_answers`.
    subsets
        Rows of subsets that are also measured by themselves.
    draws, seed
        Of the bootstrap.
    split
        Name of the data, for the tables.

    Raises an InputError if the arrays don't match, a label is unknown, or the scores are not probabilities.

    Examples
    --------
    >>> found = evaluate_scores(["a", "b", "b", "a"], [0.9, 0.2, 0.6, 0.8], ["a", "b"], "a", draws=0)
    >>> [(f.metric, f.value) for f in found.figures if f.metric in ("sensitivity", "auroc")]
    [('auroc', 1.0), ('sensitivity', 1.0)]
    """
    names, positive = tuple(str(name) for name in classes), str(positive)
    truth = label_indices(labels, names)
    scores = np.asarray(probabilities, dtype=np.float64)
    if scores.ndim == 1 and len(names) == 2:
        scores = np.stack((scores, 1 - scores) if positive == names[0] else (1 - scores, scores), axis=1)
    check_probabilities(scores, len(truth), len(names))
    require_number(threshold, "threshold")
    records = Records(names, positive, truth, None if groups is None else list(groups))
    model = answers_from_probabilities(MODEL, "the model evaluated", scores, names, positive, threshold)
    return evaluate_answers(records, [model, *beside], subsets=subsets, draws=draws, seed=seed, split=split)


def evaluate_examples(
    examples: Sequence[Example],
    train: Sequence[Example],
    records: Records,
    answers: Sequence[Answers],
    alphabet: Alphabet,
    *,
    notes: Sequence[str] = (),
    **how: Any,
) -> Evaluation:
    """Measure classifiers on labeled records and their subsets, and note what speaks against the figures."""
    identity = np.zeros(0)
    subsets = by_context(examples) | by_subclass(examples)
    if train and all(one.sequence for one in examples):
        known, asked = ([one.sequence for one in part] for part in (train, examples))
        identity, _ = best_matches(known, asked, alphabet)
        subsets |= by_similarity(identity)
    faults = label_faults([replace(one, split=None) for one in examples])
    told = [
        *(f"caution: {fault}" for fault in faults),
        *notes_on_training(examples, train, identity, alphabet),
    ]
    return evaluate_answers(records, answers, subsets=subsets, notes=[*notes, *told], **how)


def evaluate_answers(
    records: Records,
    answers: Sequence[Answers],
    *,
    subsets: Mapping[str, np.ndarray] | None = None,
    draws: int = INTERVAL_DRAWS,
    seed: int = 0,
    split: str = "all",
    grouping: str = "",
    notes: Sequence[str] = (),
) -> Evaluation:
    """Measure classifiers on the same records."""
    versus = [one.source for one in answers if one.source in COMPARED]
    figures = measure(records, answers, versus=versus, draws=draws, seed=seed)
    calls = {one.source: one.calls for one in answers}
    shown = [one for one in answers if one.source in (MODEL, *COMPARED)]
    for name, rows in (subsets or {}).items():
        parts = [replace(one, scores=one.scores[rows], calls=one.calls[rows]) for one in shown]
        figures += measure(records.subset(rows), parts, subset=name, draws=draws, seed=seed)
    return Evaluation(
        records.classes,
        records.positive,
        records.labels,
        tuple(answers),
        tuple(figures),
        split,
        {name: len(rows) for name, rows in (subsets or {}).items()},
        grouping or ("records drawn one by one" if records.groups is None else "groups as given"),
        draws,
        seed,
        (*notes, *_notes(records, answers[0], subsets or {})),
        {name: mcnemar(records.labels, calls[MODEL], calls[name]) for name in COMPARED if name in calls},
    )


def _notes(records: Records, model: Answers, subsets: Mapping[str, np.ndarray]) -> list[str]:
    """Warnings that the metrics don't show."""
    found = []
    counts = np.bincount(records.labels, minlength=len(records.classes))
    absent = [name for name, count in zip(records.classes, counts, strict=True) if count == 0]
    if absent:
        found.append(f"no record of class {', '.join(absent)}: figures that need it are undefined")
    found += [
        f"{model.source} never calls class {name}, which {count} of {len(records.labels)} records have"
        for k, (name, count) in enumerate(zip(records.classes, counts, strict=True))
        if count and not np.any(model.calls == k)
    ]
    numbers = group_numbers(records.groups, len(records.labels))
    groups = len(np.unique(numbers))
    if groups == 1:
        return [*found, f"all records are relatives, so there are no intervals; {INSEPARABLE}"]
    if groups < MIN_RELIABLE_GROUPS:
        return [*found, f"only {counted(groups, 'group')}: intervals are missing or too narrow"]
    [(key, size)] = Counter(numbers if records.groups is None else records.groups).most_common(1)
    if size > MAX_GROUP_SHARE * len(records.labels):  # such as the missing values ``NA`` of a column
        name = f"the group '{key}'" if isinstance(key, str) else "one group"
        found.append(
            f"{name} has {size} of {len(records.labels)} records, drawn as one: the intervals do not "
            "show how these differ; if the name stands for a missing value, leave the cell empty"
        )
    small = [name for name, rows in subsets.items() if len(np.unique(numbers[rows])) < MIN_RELIABLE_GROUPS]
    if small:
        found.append(
            f"fewer than {MIN_RELIABLE_GROUPS} groups in {', '.join(small)}: intervals there are too narrow"
        )
    return found


def label_indices(labels: Sequence[str] | np.ndarray, classes: Sequence[str]) -> Ints:
    """Class index of each label: (N,)."""
    index = {name: k for k, name in enumerate(classes)}
    unknown = sorted({str(label) for label in labels} - set(index))
    if unknown:
        raise InputError(
            f"the label '{unknown[0]}' is none of the classes {', '.join(classes)}",
            remedy="rename it to one of them, or leave out its records",
        )
    if len(labels) == 0:
        raise InputError("no record to evaluate")
    return np.array([index[str(label)] for label in labels], dtype=np.int64)


def check_probabilities(
    scores: np.ndarray, count: int, classes: int, ids: Sequence[str] | None = None
) -> None:
    """Raise an InputError unless scores (N, K) are probabilities; ``ids`` name the records in the error."""
    if scores.shape != (count, classes):
        raise InputError(f"probabilities {scores.shape} for {count} records of {classes} classes")
    if not np.isfinite(scores).all():
        raise InputError("a probability is not a number")
    outside = (scores < 0) | (scores > 1)
    wrong = np.flatnonzero(outside.any(axis=1) | (np.abs(scores.sum(axis=1) - 1) > SUM_TOLERANCE))
    if len(wrong):
        i = int(wrong[0])
        name = f"'{ids[i]}'" if ids else f"{i + 1}"
        shown = ", ".join(f"{value:g}" for value in scores[i, :MAX_SHOWN_PROBABILITIES])
        shown += ", ..." if classes > MAX_SHOWN_PROBABILITIES else ""
        raise InputError(
            f"probabilities are outside 0 to 1 or don't sum to 1, first those of record {name}: {shown}"
        )


# --- Summary of an evaluation in a few lines of text

SHOWN_METRICS = ("mcc", "auroc", "auprc", "sensitivity", "specificity", "precision", "ece")
DIFFERENCES = ("mcc", "auroc", "auprc")
OF_PARTS = ("mcc", "auroc")  # with their intervals


def summary(evaluation: Evaluation, name: str) -> list[str]:
    """Metrics of the model and of what it is compared with, differences, subsets and notes."""
    judged, evaluation = judged_label(evaluation), for_people(evaluation)
    found = {(f.subset, f.source, f.metric): f for f in evaluation.figures if f.label == judged}
    counts = {name: int((evaluation.labels == k).sum()) for k, name in enumerate(evaluation.classes)}
    records = f"{len(evaluation.labels)} records of split {evaluation.split}"
    lines = [f"{name} on {records}: {class_counts(counts)}"]
    columns = [metric for metric in SHOWN_METRICS if ("all", "model", metric) in found]
    rows = [["" if judged == evaluation.positive else "mean of classes", *columns]]
    for answers in evaluation.answers:
        rows.append(
            [answers.source, *(_value(found.get(("all", answers.source, metric))) for metric in columns)]
        )
    lines += align_columns(rows)
    lines += _differences(evaluation, found)
    lines += _parts(evaluation, found)
    lines += (f"note: {note}" for note in evaluation.notes)
    if judged != evaluation.positive:
        return [*lines, "figures above are means over the classes"]
    return [*lines, f"positive class: {evaluation.positive}"]


def for_people(evaluation: Evaluation) -> Evaluation:
    """The same with the floor called baseline, which is what pages and the terminal say."""

    def word(source: str) -> str:
        return source.replace(FLOOR, BASELINE)

    answers = (replace(one, source=word(one.source)) for one in evaluation.answers)
    figures = (replace(figure, source=word(figure.source)) for figure in evaluation.figures)
    mcnemar = {word(source): counts for source, counts in evaluation.mcnemar.items()}
    return replace(evaluation, answers=tuple(answers), figures=tuple(figures), mcnemar=mcnemar)


def judged_label(evaluation: Evaluation) -> str:
    """The label of the summary metrics: the positive class of two, else the mean over classes."""
    return evaluation.positive if len(evaluation.classes) == 2 else "macro"


def _differences(evaluation: Evaluation, found: dict[tuple[str, str, str], Figure]) -> list[str]:
    lines = []
    for source, (model, other, p) in evaluation.mcnemar.items():
        parts = [
            f"{metric} {figure.value:+.3f} ({figure.low:+.3f} to {figure.high:+.3f}, p {figure.p:.2g})"
            if math.isfinite(figure.low)
            else f"{metric} {figure.value:+.3f}{' (no interval: too few groups)' if evaluation.draws else ''}"
            for metric in DIFFERENCES
            if (figure := found.get(("all", f"model-{source}", metric))) and not math.isnan(figure.value)
        ]
        lines.append(f"model minus {source}: {', '.join(parts)}")
        lines.append(
            f"  records that only one gets right: model {model}, {source} {other}; McNemar p {p:.2g}"
        )
    return lines


def _parts(evaluation: Evaluation, found: dict[tuple[str, str, str], Figure]) -> list[str]:
    if not evaluation.subsets:
        return []
    sources = [one.source for one in evaluation.answers if one.source in SHOWN]
    rows = [["", "n", *(f"{source} {metric}" for source in sources for metric in OF_PARTS)]]
    for subset, count in evaluation.subsets.items():
        values = [_value(found.get((subset, source, m))) for source in sources for m in OF_PARTS]
        rows.append([subset, str(count), *values])
    return align_columns(rows)


def _value(figure: Figure | None) -> str:
    if figure is None or math.isnan(figure.value):
        return "-"
    interval = format_interval(figure.low, figure.high, ".2f") if figure.metric in OF_PARTS else ""
    return f"{figure.value:.3f}{interval}"
