"""Scores as one of a few shades, written as one character a letter; ``script.js`` reads the same characters.

``1`` to ``6`` are shares, ``A`` to ``F`` support the class, ``a`` to ``f`` oppose it, ``0`` is close to
zero. The CSS class of an element of that shade is ``l`` and the character.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from seqray.core import Floats

STEPS = 6
_SHARES = "0123456"
_FOR = "0ABCDEF"
_AGAINST = "0abcdef"


def reach(values: Floats) -> float:
    """Largest size of a finite value, 0 if there is none."""
    sizes = np.abs(values[np.isfinite(values)])
    return float(sizes.max(initial=0.0))


def scaled(values: Floats, height: int, largest: float | None = None) -> np.ndarray:
    """Whole numbers from ``-height`` to ``height``; what is not finite becomes 0.

    Parameters
    ----------
    values
        Of any shape.
    height
        Number for the largest value.
    largest
        Size of that value; by default that of the values.
    """
    top = reach(values) if largest is None else largest
    if not top > 0:
        return np.zeros(values.shape, dtype=np.int64)
    share = np.nan_to_num(values / top, nan=0.0, posinf=0.0, neginf=0.0)
    return np.rint(np.clip(share, -1, 1) * height).astype(np.int64)


def write_levels(values: Floats, signed: bool, largest: float | None = None) -> str:
    """Write the level of each value, relative to the largest.

    Parameters
    ----------
    values
        (n,) scores.
    signed
        Whether scores below 0 oppose the class.
    largest
        As for `scaled`.
    """
    steps = scaled(values, STEPS, largest)
    above = _FOR if signed else _SHARES
    return "".join(above[step] if step >= 0 else _AGAINST[-step] for step in steps.tolist())


def draw_levels(text: str, slot: int) -> str:
    """Draw stretches of one level as thick strokes along the x axis, one path a level."""
    strokes: dict[str, list[str]] = {}
    start = 0
    for shade, run in groupby(text):
        length = len(list(run))
        if shade != "0":
            strokes.setdefault(shade, []).append(f"M{start * slot} 0h{length * slot}")
        start += length
    return "".join(f'<path class=l{shade} d="{"".join(strokes[shade])}"/>' for shade in sorted(strokes))
