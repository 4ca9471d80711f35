"""Calls of a model in regions of a genome: scores of both strands, and their peaks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seqray.annotation import track_rows
from seqray.core import (
    MIN_CALL_SCORE,
    MIN_DISTANCE_OF_LOCATORS,
    Floats,
    Ints,
    local_maxima,
    suppress_neighbors,
)
from seqray.inference import CHUNK, Strand, StrandScorer
from seqray.modelfile import TrainedModel
from seqray.training.genomes.strands import LabeledStrand

TOLERANCE = 25
"""Letters between a call and a site within which the call is right."""


class StrandCalls(NamedTuple):
    """Calls of a stretch of one strand, in coordinates of the strand."""

    position: Ints
    score: Floats


def profile_peaks(scores: Floats) -> Ints:
    """Positions of the calls of a profile (n,), rising."""
    candidates = np.flatnonzero(local_maxima(scores) & (scores >= MIN_CALL_SCORE))
    return candidates[suppress_neighbors(candidates, scores[candidates], MIN_DISTANCE_OF_LOCATORS)]


def call_stretch(
    model: TrainedModel, strand: LabeledStrand, start: int, end: int, *, genes: bool
) -> StrandCalls:
    """Calls of the positive class in ``[start, end)`` of a strand, scored as a scan does.

    The model is a locator, and also sees what lies around the stretch; with ``genes`` it gets the genes of
    the strand.
    """
    rows, tracks = track_rows(model.card.model.tracks), None
    if genes and rows and strand.genes is not None:
        tracks = strand.tracks(0, len(strand))[rows]
    read = Strand(strand.codes, tracks, strand.circular)
    first, scorer = start // CHUNK, StrandScorer(model)
    with scorer.running():
        chunks = scorer.chunks(read, range(first, -(-end // CHUNK)))
    scores = np.concatenate([*chunks, np.empty(0)])[start - first * CHUNK :][: end - start]
    scores[strand.codes[start:end] == model.alphabet.unknown] = 0.0  # no call at an unknown letter
    found = profile_peaks(scores)
    return StrandCalls(found + start, scores[found])
