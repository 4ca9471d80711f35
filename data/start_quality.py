"""How sharply a -10 box stands before the starts of a source: a test of their positions without labels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from loci import Place
from seqray.core.alphabet import DNA
from starts import window_at

MIN_WINDOWS = 80
"""Fewest starts that are measured."""
BEFORE, AFTER = 70, 40
MINUS10, MINUS35 = (-14, -5), (-38, -29)
"""First and last position of the two boxes, relative to the start: -1 is the letter just before it."""
MAX_SHIFT = 10
"""A box is looked for at most this many letters from its usual place."""


@dataclass(frozen=True, slots=True)
class Quality:
    """What the letters around n starts say.

    Attributes
    ----------
    n
        Starts with letters on both sides.
    bits10, bits35
        Information of the ten columns of a box above the median of all columns.
    purine
        Share of A or G at the start itself.
    initiator
        Share of a pyrimidine before a purine at the start (YR), less the mean share at the six neighbors.
    offset
        Shift of the starts, -3 to 3, that gives the largest share of YR: 0 where the coordinates are right.
    sharp
        How many times more often than by chance the best match to the box lies within one letter of its usual
        place. The box is learned on every second start and looked for in the others.
    """

    n: int
    bits10: float
    bits35: float
    purine: float
    initiator: float
    offset: int
    sharp: float

    @property
    def weight(self) -> float:
        """How far the starts are to be trusted: 1, 0.5, 0.2, or 0 to leave them out."""
        bits = self.bits10 + self.bits35
        if bits >= 0.6 and self.initiator >= 0.2:
            return 1.0
        if bits >= 0.2 and self.initiator >= 0.12:
            return 0.5
        return 0.2 if bits >= 0.15 and self.sharp >= 1.4 else 0.0


def measure_places(contigs: Mapping[str, str], places: Iterable[Place]) -> Quality | None:
    """Measure the letters around places."""
    return measure([window_at(contigs, place, BEFORE, AFTER) for place in sorted(places)])


def measure(windows: Iterable[str]) -> Quality | None:
    """Measure windows that hold ``BEFORE`` letters, the start, and ``AFTER`` letters.

    Windows cut short and those with unknown letters are left out; None where too few remain.
    """
    width = BEFORE + 1 + AFTER
    windows = [letters for letters in windows if len(letters) == width and set(letters) <= set("ACGT")]
    if len(windows) < MIN_WINDOWS:
        return None
    codes = np.stack([DNA.encode(letters) for letters in windows])
    bits = information(codes)
    bits = bits - np.median(bits)
    box10, box35 = (float(bits[slice(*columns(box))].sum()) for box in (MINUS10, MINUS35))
    purine = (codes == 0) | (codes == 2)
    yr = (purine[:, 1:] & ~purine[:, :-1]).mean(0)[BEFORE - 4 : BEFORE + 3]
    initiator = float(yr[3] - np.delete(yr, 3).mean())
    offset = int(yr.argmax()) - 3
    return Quality(
        len(codes), box10, box35, float(purine[:, BEFORE].mean()), initiator, offset, sharpness(codes)
    )


def columns(box: tuple[int, int]) -> tuple[int, int]:
    """Return the columns of a box, half-open."""
    return BEFORE + box[0], BEFORE + box[1] + 1


def information(codes: np.ndarray) -> np.ndarray:
    """Return the bits of each column against the composition of all: (columns,)."""
    background = share(codes.reshape(-1, 1))
    shares = share(codes)
    return (shares * np.log2(np.maximum(shares, 1e-9) / background)).sum(0)


def share(codes: np.ndarray) -> np.ndarray:
    """Return the share of each letter in each column: (4, columns)."""
    return np.stack([(codes == letter).mean(0) for letter in range(4)])


def sharpness(codes: np.ndarray) -> float:
    """Learn the -10 box on even rows; in odd rows, count best matches within one letter of its place."""
    first, last = columns(MINUS10)
    learned, tested = codes[::2], codes[1::2]
    counts = share(learned[:, first:last]) * len(learned) + 1
    weights = np.log2(counts / counts.sum(0) / np.maximum(share(learned.reshape(-1, 1)), 1e-9))
    places = np.arange(last - first)
    shifts = range(-MAX_SHIFT, MAX_SHIFT + 1)
    scores = np.stack([weights[tested[:, first + s : last + s], places].sum(1) for s in shifts])
    near = np.abs(scores.argmax(0) - MAX_SHIFT) <= 1
    return float(near.mean() * len(shifts) / 3)
