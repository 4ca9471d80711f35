"""Soft labels of a stretch, and the weight of each position in the loss."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqray.training.genomes.strands import GAP, INSIDE, MASKED, LabeledStrand

SURROUNDINGS = 10
"""Letters on either side of a site that it says something about."""

Singles = npt.NDArray[np.float32]


def kernel(sigma: float) -> Singles:
    """Target around a site, (21,): 1 at the site, falling as a Gaussian of this width in letters."""
    distance = np.arange(-SURROUNDINGS, SURROUNDINGS + 1)
    return np.exp(-0.5 * (distance / sigma) ** 2).astype(np.float32)


def targets(
    strand: LabeledStrand, start: int, end: int, classes: int, shape: Singles, gap: float
) -> tuple[Singles, Singles]:
    """Labels and weights (K, n) of ``[start, end)``, which lies within the strand.

    Around a site the label of its class is the kernel (the highest of several), the weight that of the site;
    other classes have no weight there, unless a site of their own is near. Elsewhere the label is 0, and the
    weight follows from the level of the position. What is masked has weight 0 in all classes.

    The ``shape`` is as `kernel` gives it; ``gap`` is the weight of positions where unmapped sites may lie.
    """
    level = strand.level[start:end]
    table = np.ones(4, dtype=np.float32)
    table[MASKED], table[INSIDE], table[GAP] = 0, strand.inside, gap
    labels = np.zeros((classes, end - start), dtype=np.float32)
    weights = np.repeat(table[level][None], classes, axis=0)
    near = strand.sites.between(start - SURROUNDINGS, end + SURROUNDINGS)
    spans = []
    for position, kind, weight in zip(
        near.position.tolist(), near.kind.tolist(), near.weight.tolist(), strict=True
    ):
        place = position - start
        low, high = max(place - SURROUNDINGS, 0), min(place + SURROUNDINGS + 1, end - start)
        if low < high:
            values = shape[low - place + SURROUNDINGS : high - place + SURROUNDINGS]
            spans.append((low, high, kind, weight, values))
            weights[:, low:high] = 0  # of the other classes; that of its own follows
    for low, high, kind, weight, values in spans:
        highest = values >= labels[kind, low:high]
        labels[kind, low:high][highest] = values[highest]
        weights[kind, low:high][highest] = weight
    weights[:, level == MASKED] = 0
    return labels, weights
