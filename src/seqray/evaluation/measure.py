"""Figures of several classifiers on the same records, with intervals, and the differences between them.

All are measured on the same draws of the bootstrap, so that a difference is paired.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Floats
from seqray.core.results import Answers, Figure
from seqray.metrics import (
    class_figures,
    group_numbers,
    interval,
    p_of_no_difference,
    table_figures,
    weight_blocks,
)

Key = tuple[str, str, str]  # source, class, metric
WHOLE, MACRO = "all", "macro"


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """What is measured on.

    Attributes
    ----------
    classes
        Names [K].
    positive
        The class that counts as positive, of two.
    labels
        (N,) class indices.
    groups
        (N,) keys of what is drawn whole; None for each record by itself.
    """

    classes: tuple[str, ...]
    positive: str
    labels: np.ndarray
    groups: Sequence[object] | np.ndarray | None = None

    def part(self, rows: np.ndarray) -> Records:
        """Some of the records."""
        groups = None if self.groups is None else [self.groups[int(i)] for i in rows]
        return Records(self.classes, self.positive, self.labels[rows], groups)

    def judged(self) -> tuple[str, ...]:
        """Classes that have figures of their own: the positive one of two, else each against the rest."""
        return (self.positive,) if len(self.classes) == 2 else self.classes


def part_of_answers(answers: Answers, rows: np.ndarray) -> Answers:
    """What a classifier says of some of the records."""
    return Answers(
        answers.source,
        answers.note,
        answers.scores[rows],
        answers.calls[rows],
        answers.probabilities,
        answers.threshold,
    )


def measure(
    records: Records,
    answers: Sequence[Answers],
    *,
    subset: str = "all",
    versus: Sequence[str] = (),
    draws: int = 1000,
    seed: int = 0,
) -> list[Figure]:
    """Measure classifiers on the same records.

    Parameters
    ----------
    answers
        Of all records; the first is the one that others are compared with.
    subset
        Name of the records.
    versus
        Sources whose figures are taken from those of the first: ``<first>-<source>``.
    draws, seed
        Of the bootstrap; without draws there are no intervals.
    """
    groups = group_numbers(records.groups, len(records.labels))
    ones = np.ones((1, len(records.labels)))
    values = {key: float(row[0]) for key, row in _all_figures(records, answers, versus, ones).items()}
    count = len(np.unique(groups))
    samples: dict[Key, list[Floats]] = {key: [] for key in values}
    for weights in weight_blocks(groups, draws if count > 1 else 0, seed):
        for key, row in _all_figures(records, answers, versus, weights).items():
            samples[key].append(row)
    drawn = {key: np.concatenate(rows) if rows else np.empty(0) for key, rows in samples.items()}
    return [_figure(records, subset, key, value, drawn[key], count) for key, value in values.items()]


def _figure(records: Records, subset: str, key: Key, value: float, drawn: Floats, groups: int) -> Figure:
    source, label, metric = key
    own = label in records.classes and records.classes.index(label)
    positives = 0 if own is False else int(np.sum(records.labels == own))
    undefined = math.isnan(value)
    low, high = (math.nan, math.nan) if undefined else interval(drawn)
    p = p_of_no_difference(drawn) if "-" in source and not undefined else math.nan
    return Figure(subset, source, label, metric, value, low, high, p, len(records.labels), positives, groups)


def _all_figures(
    records: Records, answers: Sequence[Answers], versus: Sequence[str], weights: Floats
) -> dict[Key, Floats]:
    """Every figure of every source, then the differences."""
    by_source = {one.source: _figures_of(records, one, weights) for one in answers}
    found = {(source, *key): row for source, rows in by_source.items() for key, row in rows.items()}
    first = answers[0].source
    for other in versus:
        for key, row in by_source[other].items():
            if key in by_source[first]:
                found[(f"{first}-{other}", *key)] = by_source[first][key] - row
    return found


def _figures_of(records: Records, answers: Answers, weights: Floats) -> dict[tuple[str, str], Floats]:
    if len(records.classes) == 2:
        return dict(_labelled(records.positive, _one_class(records, answers, records.positive, weights)))
    whole = table_figures(
        records.labels, answers.scores, answers.calls, weights, probabilities=answers.probabilities
    )
    each = {name: _one_class(records, answers, name, weights) for name in records.classes}
    macro = {
        metric: _mean_defined([rows[metric] for rows in each.values()]) for metric in each[records.classes[0]]
    }
    found = dict(_labelled(WHOLE, whole)) | dict(_labelled(MACRO, macro))
    for name, rows in each.items():
        found |= dict(_labelled(name, rows))
    return found


def _labelled(label: str, rows: dict[str, Floats]) -> Iterable[tuple[tuple[str, str], Floats]]:
    return (((label, metric), row) for metric, row in rows.items())


def _one_class(records: Records, answers: Answers, name: str, weights: Floats) -> dict[str, Floats]:
    k = records.classes.index(name)
    y, called = (records.labels == k).astype(np.int64), (answers.calls == k).astype(np.int64)
    return class_figures(y, answers.scores[:, k], called, weights, probabilities=answers.probabilities)


def _mean_defined(rows: Sequence[Floats]) -> Floats:
    """Mean over classes of (W,) figures, those left out that are undefined; nan where none is defined."""
    table = np.stack(rows)
    known = ~np.isnan(table)
    count = known.sum(axis=0)
    total = np.where(known, table, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
