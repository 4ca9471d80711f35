"""What a position weighs where no site is mapped: by the genes around it, and by what is held out."""

from __future__ import annotations

import numpy as np

from seqray.annotation import REACH, TRACKS, Tracks
from seqray.core import Bools, mark_intervals
from seqray.training.genomes.strands import GAP, INSIDE, MASKED, PLAIN, Sites

MAX_GENE_DISTANCE = 300
"""Letters before the start of a gene in which a site may be missing."""
_BEFORE, _AFTER = 150, 300  # of a known site: there the site of the gene is known

_CODING = [TRACKS.index(name) for name in ("frame-1", "frame-2", "frame-3", "opposite")]
_AHEAD = TRACKS.index("to-start")


def levels(tracks: Tracks | None, length: int, sites: Sites, masked: Bools) -> np.ndarray:
    """Level of each position: uint8 (L,), see `seqray.training.genomes.strands.MASKED`.

    The (T, L) tracks are those of the strand, None where its genes are not known. The sites are all of the
    strand, those of weight 0 too; ``masked`` (L,) marks what is not learned from.
    """
    result = np.full(length, PLAIN, dtype=np.uint8)
    if tracks is not None:
        coding = tracks[_CODING].any(axis=0)
        result[coding] = INSIDE
        near_gene = tracks[_AHEAD] > 255 * (1 - MAX_GENE_DISTANCE / REACH)
        result[~coding & near_gene & ~_explained(sites, length)] = GAP
    result[masked] = MASKED
    return result


def _explained(sites: Sites, length: int) -> Bools:
    """Positions with a known site near."""
    return mark_intervals(sites.position - _BEFORE, sites.position + _AFTER, length)
