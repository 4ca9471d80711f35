"""Letters drawn as tall as a number says: logos."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from seqray.core import Alphabet, Floats
from seqray.report.palette import letter_color


@cache
def _outline(letter: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and codes of a letter that fills the square from 0 to 1."""
    path = TextPath((0, 0), letter, size=1, prop=FontProperties(family="DejaVu Sans", weight="bold"))
    box = path.get_extents()
    # I is a bar: drawn as wide as an M it would be a block.
    share = 0.4 if letter == "I" else 1.0
    fit = Affine2D().translate(-box.x0, -box.y0).scale(share / box.width, 1 / box.height)
    fit.translate((1 - share) / 2, 0)
    return fit.transform(path.vertices), np.asarray(path.codes)


def draw_logo(axes: Axes, heights: Floats, alphabet: Alphabet, first: float = 0) -> None:
    """Stack letters at each place, the tallest outermost; those below 0 hang upside down.

    ``heights`` are signed (n, A). ``first`` is where the first place is on the x axis; a letter takes the
    width from -0.5 to 0.5 about its place.
    """
    order = np.argsort(np.abs(heights), axis=1)
    sorted_heights = np.take_along_axis(heights, order, axis=1)
    tops = np.where(sorted_heights > 0, np.cumsum(np.maximum(sorted_heights, 0), axis=1), 0)
    tops += np.where(sorted_heights < 0, np.cumsum(np.minimum(sorted_heights, 0), axis=1), 0)
    for code, letter in enumerate(alphabet.letters):
        places, layers = np.nonzero((order == code) & (sorted_heights != 0))
        if len(places):
            tall, top = sorted_heights[places, layers], tops[places, layers]
            outline = _copies(letter, np.asarray(places + first - 0.47, np.float64), top - tall, tall)
            axes.add_patch(PathPatch(outline, facecolor=letter_color(letter, alphabet), linewidth=0))


def _copies(letter: str, left: Floats, base: Floats, tall: Floats) -> Outline:
    """One path of many copies of a letter: a figure of twenty records has thousands of them."""
    vertices, codes = _outline(letter)
    x = left[:, None] + 0.94 * vertices[None, :, 0]
    y = base[:, None] + tall[:, None] * vertices[None, :, 1]
    many = np.stack([x, y], axis=2)
    return Outline(many.reshape(-1, 2), np.tile(codes, len(left)))
