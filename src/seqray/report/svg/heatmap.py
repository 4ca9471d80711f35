"""Attention of CLS to each letter, a row for each head, as a picture of 16 shades inside an SVG."""

from __future__ import annotations

import numpy as np

from seqray.core import Floats
from seqray.report.html import number
from seqray.report.svg.axis import map_axis
from seqray.report.svg.canvas import SHADES, picture, shades_to
from seqray.report.svg.color_levels import reach, scaled
from seqray.report.svg.lines import GUTTER, MARGIN, SLOT

_DARKEST = (0x2B, 0x1B, 0x5A)
_ROW = 14  # px
_TOP = 22
_BOTTOM = 26


def attention_map(attention: Floats, width: int, site: int | None) -> str:
    """Draw (layers, heads, n) weights; the darkest cell is the largest weight of the record.

    Parameters
    ----------
    attention
        The weights.
    width
        Letters of a line of the page: the map is as wide as a line.
    site
        Index of the site, None if it isn't in the record.
    """
    layers, heads, letters = attention.shape
    high, wide = layers * heads * _ROW, width * SLOT
    image = f'<image href="{_picture(attention)}" width={wide} height={high} preserveAspectRatio=none />'
    box = f"{-GUTTER} {-_TOP} {GUTTER + wide + MARGIN} {_TOP + high + _BOTTOM}"
    return (
        f'<svg class="row map" viewBox="{box}" role=img '
        f'aria-label="Attention of CLS to each letter, a row for each layer and head">{image}'
        f"{_row_labels(layers, heads)}{map_axis(letters, site)}{_site(letters, wide, high, site)}"
        f"<text class=tick x=0 y={high + 20}>white 0, darkest {number(reach(attention))}; share of the "
        "attention of CLS, mean over members; heads from top to bottom</text></svg>\n"
    )


def _row_labels(layers: int, heads: int) -> str:
    many = f"heads 1\N{EN DASH}{heads}" if heads > 1 else "head 1"
    return "".join(
        f'<text class="lab end" x=-12 y={_middle(layer, heads)}>layer {layer + 1}, {many}</text>'
        + (f'<path class=rule d="M-140 {layer * heads * _ROW}H0"/>' if layer else "")
        for layer in range(layers)
    )


def _middle(layer: int, heads: int) -> int:
    return layer * heads * _ROW + heads * _ROW // 2 + 4


def _site(letters: int, wide: int, high: int, site: int | None) -> str:
    if site is None:
        return ""
    return f'<path class=site d="M{(site + 0.5) * wide / letters:.0f} 0v{high}"/>'


def _picture(attention: Floats) -> str:
    cells = scaled(attention, SHADES).clip(min=0).reshape(-1, attention.shape[-1])
    return picture(cells.astype(np.uint8), shades_to(_DARKEST))
