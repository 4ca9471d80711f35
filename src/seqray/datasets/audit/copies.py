"""Exact copies, on either strand, within and across splits, and copies with different labels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from seqray.core import Ints, canonical_strand, number_by_appearance
from seqray.core.results import AuditFigure
from seqray.datasets.audit.dataset import AuditSet

SECTION = "copies"


def copy_figures(data: AuditSet) -> list[AuditFigure]:
    """Count copies.

    ``duplicates`` are sequences beyond the first of each text, ``strand_duplicates`` those beyond the first
    of each text or its reverse complement, minus the former. Across splits the two count sequences of the
    first split that also occur in the second. ``contradicted`` are different sequences (on either strand)
    with more than one label, ``contradicted_rows`` the examples that carry them.
    """
    plain = number_by_appearance(data.sequences)
    canonical = number_by_appearance(canonical_strand(s, data.alphabet) for s in data.sequences)
    figures = []
    for split in data.parts:
        for label, name in data.labels_and_all():
            rows = data.rows(split, label)
            texts, sequences = len(np.unique(plain[rows])), len(np.unique(canonical[rows]))
            figures += _pair(split, name, len(rows) - texts, texts - sequences)
    for one, other in data.pairs_of_parts():
        theirs = data.rows(other)
        for label, name in data.labels_and_all():
            mine = data.rows(one, label)
            same = np.isin(plain[mine], plain[theirs])
            reversed_only = np.isin(canonical[mine], canonical[theirs]) & ~same
            figures += _pair(f"{one} to {other}", name, int(same.sum()), int(reversed_only.sum()))
    return [*figures, *_contradictions(data, canonical)]


def _pair(split: str, name: str, same: int, reverse: int) -> Iterator[AuditFigure]:
    yield AuditFigure(SECTION, split, name, "duplicates", same)
    yield AuditFigure(SECTION, split, name, "strand_duplicates", reverse)


def _contradictions(data: AuditSet, canonical: Ints) -> Iterator[AuditFigure]:
    pairs = np.unique(np.stack((canonical, data.labels), axis=1), axis=0)
    label_counts = np.bincount(pairs[:, 0])
    yield AuditFigure(SECTION, "all", "*", "contradicted", int(np.sum(label_counts > 1)))
    yield AuditFigure(SECTION, "all", "*", "contradicted_rows", int(np.sum(label_counts[canonical] > 1)))
