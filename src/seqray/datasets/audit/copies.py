"""Exact copies, on either strand, within and across splits, and copies under two labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seqray.core import reverse_complement
from seqray.core.results import AuditFigure
from seqray.datasets.audit.data import AuditSet

SECTION = "copies"


def copy_figures(data: AuditSet) -> list[AuditFigure]:
    """Count copies.

    ``duplicates`` are sequences beyond the first of each text, ``strand_duplicates`` those beyond the first
    of each text or its reverse complement, less the former. Across splits the same two count sequences of
    the first split that stand in the second. ``contradicted`` are different sequences (read on either
    strand) with more than one label, ``contradicted_rows`` the examples that carry them.
    """
    plain, canonical = _numbers(data)
    figures = [
        AuditFigure(SECTION, split, name, quantity, value)
        for split in data.parts
        for label, name in [(None, "*"), *enumerate(data.classes)]
        for quantity, value in _within(plain, canonical, data.rows(split, label))
    ]
    for one, other in pairs_of_parts(data):
        figures += list(_across(data, plain, canonical, one, other))
    return [*figures, *_contradictions(data, canonical)]


def pairs_of_parts(data: AuditSet) -> list[tuple[str, str]]:
    """Pairs of splits to compare, the held-out one first."""
    order = [name for name in ("test", "validation", "train") if name in data.parts]
    return [(one, other) for i, one in enumerate(order) for other in reversed(order[i + 1 :])]


def _numbers(data: AuditSet) -> tuple[np.ndarray, np.ndarray]:
    """Number different texts, and different texts up to the strand: int64 (N,) each."""
    texts: dict[str, int] = {}
    plain = np.array([texts.setdefault(s, len(texts)) for s in data.sequences], dtype=np.int64)
    if not data.alphabet.is_nucleotide:
        return plain, plain
    both: dict[str, int] = {}
    strands = (min(s, reverse_complement(s, data.alphabet)) for s in data.sequences)
    return plain, np.array([both.setdefault(s, len(both)) for s in strands], dtype=np.int64)


def _within(plain: np.ndarray, canonical: np.ndarray, rows: np.ndarray) -> Iterator[tuple[str, float]]:
    different = len(np.unique(plain[rows]))
    yield "duplicates", len(rows) - different
    yield "strand_duplicates", different - len(np.unique(canonical[rows]))


def _across(
    data: AuditSet, plain: np.ndarray, canonical: np.ndarray, one: str, other: str
) -> Iterator[AuditFigure]:
    mine, theirs = data.rows(one), data.rows(other)
    same = np.isin(plain[mine], plain[theirs])
    turned = np.isin(canonical[mine], canonical[theirs]) & ~same
    for label, name in [(None, "*"), *enumerate(data.classes)]:
        chosen = np.ones(len(mine), bool) if label is None else data.labels[mine] == label
        pair = f"{one} to {other}"
        yield AuditFigure(SECTION, pair, name, "duplicates", int(np.sum(same & chosen)))
        yield AuditFigure(SECTION, pair, name, "strand_duplicates", int(np.sum(turned & chosen)))


def _contradictions(data: AuditSet, canonical: np.ndarray) -> list[AuditFigure]:
    pairs = np.unique(np.stack((canonical, data.labels), axis=1), axis=0)
    labels_of = np.bincount(pairs[:, 0])
    rows = labels_of[canonical] > 1
    return [
        AuditFigure(SECTION, "all", "*", "contradicted", int(np.sum(labels_of > 1))),
        AuditFigure(SECTION, "all", "*", "contradicted_rows", int(rows.sum())),
    ]
