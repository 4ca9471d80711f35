"""From labels and classifiers' answers to an `Evaluation`: metrics of all records and of subsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from seqray.core import InputError, Ints, counted
from seqray.core.results import Answers, Evaluation
from seqray.evaluation.floor import answers_from_probabilities
from seqray.evaluation.measure import Records, measure, subset_of_answers
from seqray.metrics import MIN_RELIABLE_GROUPS, group_numbers, mcnemar

MODEL, AGAINST, FLOOR = "model", "against", "floor"
COMPARED = (FLOOR, AGAINST)
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
    draws: int = 1000,
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
        Answers of other classifiers for the same records, such as `seqray.evaluation.floor_answers`.
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
    names = tuple(classes)
    truth = label_indices(labels, names)
    scores = np.asarray(probabilities, dtype=np.float64)
    if scores.ndim == 1 and len(names) == 2:
        scores = np.stack((scores, 1 - scores) if positive == names[0] else (1 - scores, scores), axis=1)
    check_probabilities(scores, len(truth), len(names))
    model = answers_from_probabilities(MODEL, "the model evaluated", scores, names, positive, threshold)
    records = Records(names, positive, truth, groups)
    return evaluate_answers(records, [model, *beside], subsets=subsets, draws=draws, seed=seed, split=split)


def evaluate_answers(
    records: Records,
    answers: Sequence[Answers],
    *,
    subsets: Mapping[str, np.ndarray] | None = None,
    draws: int = 1000,
    seed: int = 0,
    split: str = "all",
    grouping: str = "",
    notes: Sequence[str] = (),
) -> Evaluation:
    """Measure classifiers on the same records.

    Parameters
    ----------
    records
        With their labels.
    answers
        Of the model first, then of those that are compared with it.
    subsets, draws, seed, split
        As for `evaluate_scores`.
    grouping
        What the groups are, in words.
    notes
        Further notes for the reader.
    """
    versus = [one.source for one in answers if one.source in COMPARED]
    figures = measure(records, answers, versus=versus, draws=draws, seed=seed)
    shown = [one for one in answers if one.source in (MODEL, *COMPARED)]
    for name, rows in (subsets or {}).items():
        parts = [subset_of_answers(one, rows) for one in shown]
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
        _disagreements(records.labels, answers),
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
    if groups < MIN_RELIABLE_GROUPS:
        return [*found, f"only {counted(groups, 'group')}: intervals are too narrow"]
    found += _large_group(records)
    small = [name for name, rows in subsets.items() if len(np.unique(numbers[rows])) < MIN_RELIABLE_GROUPS]
    if small:
        found.append(
            f"fewer than {MIN_RELIABLE_GROUPS} groups in {', '.join(small)}: intervals there are too narrow"
        )
    return found


def _large_group(records: Records) -> Iterator[str]:
    """A note where one group, such as the missing values ``NA`` of a column, holds many records."""
    if records.groups is None:
        return
    [(key, size)] = Counter(records.groups).most_common(1)
    if size > MAX_GROUP_SHARE * len(records.labels):
        name = f"the group '{key}'" if isinstance(key, str) else "one group"
        yield (
            f"{name} has {size} of {len(records.labels)} records, drawn as one: the intervals do not "
            "show how these differ; if the name stands for a missing value, leave the cell empty"
        )


def _disagreements(labels: np.ndarray, answers: Sequence[Answers]) -> dict[str, tuple[int, int, float]]:
    """McNemar's test of the model against each other classifier."""
    calls = {one.source: one.calls for one in answers}
    tests = {name: mcnemar(labels, calls[MODEL], calls[name]) for name in COMPARED if name in calls}
    return {name: (test.first_only, test.second_only, test.p) for name, test in tests.items()}


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
    """Raise an InputError unless scores are probabilities.

    Parameters
    ----------
    scores
        (count, classes), rows that sum to 1.
    count, classes
        Number of records and of classes.
    ids
        Of the records, for the error; by default their numbers, from 1.
    """
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
