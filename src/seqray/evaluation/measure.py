"""Metrics of several classifiers on the same records, with intervals, and the differences between them.

All are measured on the same draws of the bootstrap, so that a difference is paired.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqray.core import ConfigError, Floats, InputError, Ints
from seqray.core.results import Answers, Figure
from seqray.metrics import (
    bootstrap_samples,
    class_metrics,
    difference_p_value,
    group_numbers,
    macro_metrics,
    multiclass_metrics,
    percentile_interval,
)

Key = tuple[str, str, str]  # source, class, metric
WHOLE, MACRO = "all", "macro"


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """The records that classifiers are measured on.

    ConfigError is raised for a positive class that is none of the classes, InputError for a class with the
    name of a summary over classes, and for more or fewer groups than labels.

    Attributes
    ----------
    classes, positive
        Names [K], and of two classes the one that counts as positive.
    labels
        (N,) class indices.
    groups
        (N,) keys of the groups that are drawn whole; None for each record by itself.
    """

    classes: tuple[str, ...]
    positive: str
    labels: Ints
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


def subset_of_answers(answers: Answers, rows: Ints) -> Answers:
    """The answers for a subset of the records."""
    return replace(answers, scores=answers.scores[rows], calls=answers.calls[rows])


def measure(
    records: Records,
    answers: Sequence[Answers],
    *,
    subset: str = "all",
    versus: Sequence[str] = (),
    draws: int = 1000,
    seed: int = 0,
) -> list[Figure]:
    """Measure classifiers on the same records; the others are compared with the first.

    ``versus`` are sources to subtract from the first, as ``<first>-<source>``. Without draws of the bootstrap
    there are no intervals.
    """
    groups = group_numbers(records.groups, len(records.labels))
    found = bootstrap_samples(
        lambda weights: _all_metrics(records, answers, versus, weights), groups, draws, seed
    )
    count, differences = len(np.unique(groups)), {f"{answers[0].source}-{other}" for other in versus}
    return [
        _figure(records, subset, key, value, samples, count, is_difference=key[0] in differences)
        for key, (value, samples) in found.items()
    ]


def _figure(
    records: Records,
    subset: str,
    key: Key,
    value: float,
    samples: Floats,
    groups: int,
    *,
    is_difference: bool,
) -> Figure:
    source, label, metric = key
    positives = int(np.sum(records.labels == records.classes.index(label))) if label in records.classes else 0
    undefined = math.isnan(value)
    low, high = (math.nan, math.nan) if undefined else percentile_interval(samples)
    p = difference_p_value(samples) if is_difference and not undefined else math.nan
    return Figure(subset, source, label, metric, value, low, high, p, len(records.labels), positives, groups)


def _all_metrics(
    records: Records, answers: Sequence[Answers], versus: Sequence[str], weights: Floats
) -> dict[Key, Floats]:
    """Every metric of every source, then the differences."""
    by_source = {one.source: _metrics_of(records, one, weights) for one in answers}
    found = {(source, *key): row for source, rows in by_source.items() for key, row in rows.items()}
    first = answers[0].source
    for other in versus:
        for key, row in by_source[other].items():
            if key in by_source[first]:
                found[(f"{first}-{other}", *key)] = by_source[first][key] - row
    return found


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
