"""Parts of NC_000913.3 that no training window may touch, in one place so that nothing drifts apart.

Coordinates are 0-based and half-open, on the plus strand.
"""

from __future__ import annotations

CONTIG = "NC_000913.3"
LENGTH = 4_641_652
"""Length of the contig in letters."""

TEST = (2_300_000, 3_500_000)
"""The region on which scans are compared; looked at for the final table only."""

DEV = (2_000_000, 2_300_000)
"""The region on which settings of a scan may be chosen."""

TOLERANCE = 25
"""A call finds a transcription start at most this many nucleotides away, on the same strand."""


def overlaps(start: int, end: int, region: tuple[int, int]) -> bool:
    """Say whether the half-open interval ``[start, end)`` shares a position with ``region``."""
    return start < region[1] and end > region[0]
