"""Calls of a model in regions of a genome: scores of both strands, and their peaks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch

from seqray.annotation import track_rows
from seqray.core import Floats, Ints, local_maxima, suppress_neighbors
from seqray.modelfile import TrainedModel
from seqray.models import locator_radius
from seqray.training.genomes.strands import Strand

DISTANCE = 50
"""Smallest distance of two calls of a strand."""
TOLERANCE = 25
"""Letters between a call and a site within which the call is right."""
FLOOR = 1e-3
"""Lowest score of a call."""
_CHUNK = 8192


class StrandCalls(NamedTuple):
    """Calls of a stretch of one strand, in coordinates of the strand."""

    position: Ints
    score: Floats


def profile_peaks(scores: Floats, floor: float = FLOOR) -> Ints:
    """Positions of the calls of a profile (n,), rising."""
    candidates = np.flatnonzero(local_maxima(scores) & (scores >= floor))
    return candidates[suppress_neighbors(candidates, scores[candidates], DISTANCE)]


def call_stretch(model: TrainedModel, strand: Strand, start: int, end: int, *, genes: bool) -> StrandCalls:
    """Calls of the positive class in ``[start, end)`` of a strand.

    The model is a locator, and also sees what lies around the stretch; with ``genes`` it gets the genes of
    the strand.
    """
    scores = np.concatenate([*_scores(model, strand, start, end, genes), np.empty(0)])
    found = profile_peaks(scores)
    return StrandCalls(found + start, scores[found])


def _scores(model: TrainedModel, strand: Strand, start: int, end: int, genes: bool) -> Iterator[Floats]:
    margin = -(-locator_radius(model.card.model) // 4) * 4
    rows = track_rows(model.card.model.tracks)
    start_of = start - start % 4  # tokens are counted from the first letter of the strand
    for low in range(start_of, end, _CHUNK):
        size = min(_CHUNK, -(-(end - low) // 4) * 4)
        span = low - margin, low + size + margin
        letters = torch.from_numpy(strand.letters(*span).astype(np.int64))[None].to(model.device)
        tracks = None
        if genes and rows and strand.genes is not None:
            tracks = torch.from_numpy(strand.tracks(*span)[rows])[None].to(model.device)
        logits = model.locate(letters, tracks)[0, margin : margin + size, model.card.positive_index]
        scores = torch.sigmoid(logits.double()).cpu().numpy()
        yield scores[max(start - low, 0) : end - low]
