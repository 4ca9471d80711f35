"""Subsets of the records to measure separately: contexts, subclasses, ranges of similarity to training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from seqray.core import Alphabet, Example, LabeledSequence
from seqray.homology import best_matches

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of identity; identity 1 is a range by itself
CONTEXT, SUBCLASS, SIMILARITY = "context", "subclass", "similarity"
MIN_SUBCLASS_RECORDS = 10  # a column of unique names has none


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
    """Rows of each part of a class with those of all other classes, ``subclass:<class>:<name>``.

    Most figures need the other classes. Records that name no part are ``unnamed``. Parts with fewer than
    `MIN_SUBCLASS_RECORDS` have no subset, nor has the only part of a class.
    """
    labels = np.array([example.label for example in examples])
    names = np.array([example.subclass or "unnamed" for example in examples])
    counts = Counter(zip(labels.tolist(), names.tolist(), strict=True))
    parts = Counter(label for label, _ in counts)
    return {
        f"{SUBCLASS}:{label}:{name}": np.flatnonzero((labels != label) | (names == name))
        for (label, name), count in sorted(counts.items())
        if count >= MIN_SUBCLASS_RECORDS and parts[label] > 1
    }


def by_similarity(
    examples: Sequence[LabeledSequence], train: Sequence[LabeledSequence], alphabet: Alphabet
) -> dict[str, np.ndarray]:
    """Rows of each range of identity to the nearest training sequence, ``similarity:<range>``.

    Parameters
    ----------
    examples, train
        Records to divide, and the training data.
    alphabet
        Of the sequences.

    Returns
    -------
    dict
        Ranges include their lower end; ``1.0`` holds copies, and sequences that contain a training sequence
        or are part of one. Ranges without a record are left out.
    """
    identity, _ = best_matches(
        [example.sequence for example in train], [example.sequence for example in examples], alphabet
    )
    bins = np.digitize(identity, EDGES[1:])
    names = [*(f"{low:.1f}-{high:.1f}" for low, high in pairwise(EDGES)), "1.0"]
    return {
        f"{SIMILARITY}:{name}": np.flatnonzero(bins == i) for i, name in enumerate(names) if np.any(bins == i)
    }
