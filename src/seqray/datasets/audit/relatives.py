"""Relatives within a class and across splits: shared words, identities, and named groups that leak."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqray.core.results import AuditFigure, Histogram
from seqray.datasets.audit.composition import histogram
from seqray.datasets.audit.copies import pairs_of_parts
from seqray.datasets.audit.data import WHOLE, AuditSet
from seqray.datasets.audit.plans import Plan
from seqray.datasets.audit.shared import WordTable, related_across, related_within, word_table
from seqray.homology import best_matches

SECTION = "relatives"
LEVELS = (0.8, 0.9, 0.99)
MOST_ALIGNED = 2000  # measured sequences that are aligned with training
MOST_CELLS = 1e8  # of one alignment with each; longer sequences are sampled more thinly
FEWEST_ALIGNED = 50


@dataclass(frozen=True, slots=True, eq=False)
class Relatives:
    """What is known of relatives.

    Attributes
    ----------
    figures, histograms
        For the tables.
    held_out_related : bool (N,) or None
        Rows of the held-out split that share a word with training; None where there is no such split.
    """

    figures: list[AuditFigure]
    histograms: list[Histogram]
    held_out_related: np.ndarray | None


def find_relatives(data: AuditSet, k: int, plan: Plan | None, seed: int) -> Relatives:
    """Look for relatives: words of ``k`` letters within and across, identities under a plan."""
    table = word_table(data.sequences, k, data.alphabet)
    figures = [*_within(data, table), *_across(data, table), *_named_groups(data, table)]
    related = None
    if data.held_out:
        rows = data.rows(data.held_out)
        related = np.zeros(len(data), dtype=bool)
        related[rows] = related_across(table, rows, data.rows("train"))
    identities, histograms = _identities(data, plan, seed)
    return Relatives([*figures, *identities], histograms, related)


def _within(data: AuditSet, table: WordTable) -> list[AuditFigure]:
    """Sequences that share a word with another of their split; of a class, with another of the class."""
    figures = []
    for split in data.parts:
        rows = data.rows(split)
        of_class = related_within(table, rows, data.labels)
        for label, name in [(None, "*"), *enumerate(data.classes)]:
            chosen = data.labels[rows] == label
            found = related_within(table, rows) if label is None else of_class[chosen]
            figures += [
                AuditFigure(SECTION, split, name, "sharing", int(found.sum())),
                AuditFigure(SECTION, split, name, "sharing_share", found.sum() / max(len(found), 1)),
            ]
    return figures


def _across(data: AuditSet, table: WordTable) -> list[AuditFigure]:
    figures = []
    for one, other in pairs_of_parts(data):
        rows = data.rows(one)
        found = related_across(table, rows, data.rows(other))
        for label, name in [(None, "*"), *enumerate(data.classes)]:
            chosen = found if label is None else found[data.labels[rows] == label]
            figures += [
                AuditFigure(SECTION, f"{one} to {other}", name, "sharing", int(chosen.sum())),
                AuditFigure(
                    SECTION, f"{one} to {other}", name, "sharing_share", chosen.sum() / max(len(chosen), 1)
                ),
            ]
    return figures


def _named_groups(data: AuditSet, table: WordTable) -> list[AuditFigure]:
    """Groups that the data name: on both sides of a split, and shared words between groups."""
    numbers: dict[str, int] = {}
    named = np.array([-1 if g is None else numbers.setdefault(g, len(numbers)) for g in data.groups])
    if not numbers:
        return []
    figures = [AuditFigure("groups", "all", "*", "groups", len(numbers))]
    for one, other in pairs_of_parts(data):
        mine, theirs = named[data.rows(one)], named[data.rows(other)]
        both = np.isin(mine, theirs) & (mine >= 0)
        pair = f"{one} to {other}"
        figures += [
            AuditFigure("groups", pair, "*", "on_both_sides", len(np.unique(mine[both]))),
            AuditFigure("groups", pair, "*", "sequences", int(both.sum())),
        ]
    strangers = _sharing_between(table, named)
    return [*figures, AuditFigure("groups", "all", "*", "sharing_between", int(strangers.sum()))]


def _sharing_between(table: WordTable, group: np.ndarray) -> np.ndarray:
    """Tell which sequences of a named group share a word with one of another named group: bool (N,)."""
    inside = group[table.owner] >= 0
    key, owner = table.key[inside], table.owner[inside]
    order = np.lexsort((group[owner], key))
    key, owner = key[order], owner[order]
    begin = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1]))) if len(key) else np.empty(0, int)
    found = np.zeros(len(group), dtype=bool)
    if len(begin):
        low, high = np.minimum.reduceat(group[owner], begin), np.maximum.reduceat(group[owner], begin)
        mixed = np.repeat(low != high, np.diff(np.append(begin, len(key))))
        found[owner[mixed]] = True
    return found


def _identities(data: AuditSet, plan: Plan | None, seed: int) -> tuple[list[AuditFigure], list[Histogram]]:
    """Align measured sequences with the most similar ones of training, in the first pair of a plan."""
    if plan is None:
        return [], []
    train, rows = plan.pairs[0]
    rows = _aligned_rows(data, rows, seed)
    best, _ = best_matches(data.take(train), data.take(rows), data.alphabet)
    pair = f"{data.held_out} to train" if data.held_out else f"{WHOLE}, random fold to the others"
    figures = [AuditFigure("identity", pair, "*", "aligned", len(rows))]
    for label, name in [(None, "*"), *enumerate(data.classes)]:
        values = best if label is None else best[data.labels[rows] == label]
        figures += _quantiles(pair, name, values)
    edges = np.linspace(0.0, 1.0, 21)
    bars = [
        histogram("identity", pair, name, best[data.labels[rows] == label], edges)
        for label, name in data.largest_classes()
    ]
    return figures, bars


def _aligned_rows(data: AuditSet, rows: np.ndarray, seed: int) -> np.ndarray:
    """Draw as many rows as alignment bears."""
    longest = max(len(data.sequences[row]) for row in rows.tolist())
    most = min(MOST_ALIGNED, max(FEWEST_ALIGNED, int(MOST_CELLS / longest**2)))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _quantiles(pair: str, name: str, values: np.ndarray) -> list[AuditFigure]:
    if not len(values):
        return []
    quantiles = {"median": 0.5, "q90": 0.9, "q99": 0.99, "max": 1.0}
    found = [
        AuditFigure("identity", pair, name, q, float(np.quantile(values, p))) for q, p in quantiles.items()
    ]
    return found + [
        AuditFigure("identity", pair, name, f"at_least_{level:g}", float(np.mean(values >= level)))
        for level in LEVELS
    ]
