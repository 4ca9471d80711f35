"""Parts of the records that a single figure hides: each context, and each range of similarity to training."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from seqray.core import Alphabet, LabelledSequence
from seqray.homology import best_matches

EDGES = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)  # of identity; sequences of identity 1 are a range of their own
CONTEXT, SIMILARITY = "context", "similarity"


def by_context(examples: Sequence[LabelledSequence]) -> dict[str, np.ndarray]:
    """Rows of each context, ``context:<name>`` in order of name; empty where there are fewer than two."""
    names = sorted({example.context for example in examples if example.context})
    if len(names) + any(not example.context for example in examples) < 2:
        return {}
    return {
        f"{CONTEXT}:{name}": np.flatnonzero([example.context == name for example in examples])
        for name in names
    }


def by_similarity(
    examples: Sequence[LabelledSequence], train: Sequence[LabelledSequence], alphabet: Alphabet
) -> dict[str, np.ndarray]:
    """Rows of each range of identity to the nearest training sequence, ``similarity:<range>``.

    Ranges include their lower end; ``1.0`` holds copies, and what lies within a training sequence or around
    one. Ranges without a record are left out.
    """
    identity, _ = best_matches(
        [example.sequence for example in train], [example.sequence for example in examples], alphabet
    )
    return {f"{SIMILARITY}:{name}": rows for name, rows in _ranges(np.asarray(identity)).items() if len(rows)}


def _ranges(identity: np.ndarray) -> dict[str, np.ndarray]:
    bins = np.digitize(identity, EDGES[1:])
    names = [f"{low:.1f}-{high:.1f}" for low, high in pairwise(EDGES)]
    return {name: np.flatnonzero(bins == i) for i, name in enumerate([*names, "1.0"])}
