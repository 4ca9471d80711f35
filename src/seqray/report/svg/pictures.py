"""Arrays as PNG pictures inside a drawing, a pixel a cell; ``style.css`` keeps the edges of cells sharp."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from PIL import Image

from seqray.core import Floats
from seqray.report.html import number
from seqray.report.palette import Color, components, tint
from seqray.report.svg.levels import reach, scaled
from seqray.report.svg.rows import GUTTER, MARGIN, SLOT, map_axis

_SHADES = 15
_ROW = 14  # of a map of attention, px
_TOP, _BOTTOM = 22, 26


def picture(cells: npt.NDArray[np.uint8], colors: Sequence[str], width: int, height: int) -> str:
    """Draw an array as an image that is its own content.

    Parameters
    ----------
    cells
        (rows, columns) number of each cell's color.
    colors
        At most 256; up to 16 take half a byte a cell.
    width, height
        Size of the image, px.
    """
    image, buffer = Image.fromarray(cells), io.BytesIO()
    image.putpalette([part for color in colors for part in components(color)])
    image.save(buffer, "PNG", optimize=True)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    size = f"width={width} height={height} preserveAspectRatio=none"
    return f'<image href="data:image/png;base64,{data}" {size} />'


def shade_steps(scores: Floats, largest: float | None = None) -> npt.NDArray[np.uint8]:
    """Number of each score's shade for `heat_map`; scores below 0 are white."""
    return scaled(scores, _SHADES, largest).clip(min=0).astype(np.uint8)


def heat_map(steps: npt.NDArray[np.uint8], width: int, height: int) -> str:
    """Draw steps from white to the darkest shade.

    Parameters
    ----------
    steps
        (rows, columns) of `shade_steps`.
    width, height
        Size of the picture, px.
    """
    colors = [tint(Color.DEEP_VIOLET, shade / _SHADES) for shade in range(_SHADES + 1)]
    return picture(steps, colors, width, height)


def attention_map(attention: Floats, width: int, site: int | None) -> str:
    """Draw the attention of CLS to each letter, a row for each head; the largest weight is the darkest.

    Parameters
    ----------
    attention
        (layers, heads, n) weights.
    width
        Letters of a line of the page: the map is as wide as a line.
    site
        Index of the site, None if it is not in the record.
    """
    layers, heads, letters = attention.shape
    high, wide = layers * heads * _ROW, width * SLOT
    box = f"{-GUTTER} {-_TOP} {GUTTER + wide + MARGIN} {_TOP + high + _BOTTOM}"
    mark = "" if site is None else f'<path class=site d="M{(site + 0.5) * wide / letters:.0f} 0v{high}"/>'
    return (
        f'<svg class="row map" viewBox="{box}" role=img '
        'aria-label="Attention of CLS to each letter, a row for each layer and head">'
        f"{heat_map(shade_steps(attention).reshape(-1, letters), wide, high)}"
        f"{_row_labels(layers, heads)}{map_axis(letters, site)}{mark}"
        f"<text class=tick x=0 y={high + 20}>white 0, darkest {number(reach(attention))}; share of the "
        "attention of CLS, mean over members; heads from top to bottom</text></svg>\n"
    )


def _row_labels(layers: int, heads: int) -> str:
    many = f"heads 1\N{EN DASH}{heads}" if heads > 1 else "head 1"
    high = heads * _ROW
    return "".join(
        f'<text class="lab end" x=-12 y={layer * high + high // 2 + 4}>layer {layer + 1}, {many}</text>'
        + (f'<path class=rule d="M-140 {layer * high}H0"/>' if layer else "")
        for layer in range(layers)
    )
