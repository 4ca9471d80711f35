"""What the makers of labeled tables share: reading published files, and groups of related sequences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from seqray.core.alphabet import DNA
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.homology.kmers import kmer_groups
from seqray.io.records import read_fasta

SHARED_WORD = 40
"""Sequences that share a word of this many letters on either strand stay on one side of a split."""


def read(path: Path) -> list[SequenceRecord]:
    """Records of a published file; its duplicate names are kept apart, its empty record is left out."""
    return list(read_fasta(path, DNA, duplicates="rename", on_skip=lambda _: None))


def groups_of(sequences: Sequence[str], blocks: Sequence[object] | None = None) -> list[str]:
    """Name the group of each sequence: those that share a word or, where given, a block of the genome."""
    groups = kmer_groups(sequences, SHARED_WORD)
    if blocks is not None:
        groups = join(groups, blocks)
    return [f"g{group}" for group in groups]


def join(groups: Iterable[object], others: Iterable[object]) -> np.ndarray:
    """Connect what either of two groupings holds together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    one = np.unique(np.array([str(g) for g in groups]), return_inverse=True)[1]
    two = np.unique(np.array([str(o) for o in others]), return_inverse=True)[1] + one.max() + 1
    size = int(two.max()) + 1
    edges = coo_array((np.ones(len(one), dtype=np.int8), (one, two)), shape=(size, size))
    return connected_components(edges, directed=False)[1][one]


def table(positives: Sequence[SequenceRecord], negatives: Sequence[SequenceRecord]) -> list[LabeledSequence]:
    """Label two sets of records and group them by shared words; odd lengths are left out."""
    rows = [(r, "promoter") for r in positives] + [(r, "background") for r in negatives]
    usual = len(positives[0].sequence)
    rows = [(record, label) for record, label in rows if len(record.sequence) == usual]
    groups = groups_of([record.sequence for record, _ in rows])
    return [
        LabeledSequence(record.sequence, label, f"{label}-{record.id}", group)
        for (record, label), group in zip(rows, groups, strict=True)
    ]
