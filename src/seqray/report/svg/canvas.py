"""Arrays of colours as PNG pictures inside the page, a pixel a cell; ``page.css`` keeps their edges sharp."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]

SHADES = 15
WHITE: Colour = (255, 255, 255)


def shades_to(darkest: Colour) -> list[Colour]:
    """`SHADES` steps from white to a colour, white first."""
    return [mixed(darkest, shade / SHADES) for shade in range(SHADES + 1)]


def mixed(colour: Colour, share: float) -> Colour:
    """Share of a colour on white."""
    red, green, blue = (round(255 + (part - 255) * share) for part in colour)
    return red, green, blue


def colour_of_hex(text: str) -> Colour:
    """``#1f4e9e`` as numbers."""
    return int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16)


def picture(cells: npt.NDArray[np.uint8], palette: Sequence[Colour]) -> str:
    """Address of a picture that is its own content.

    Parameters
    ----------
    cells
        (rows, columns) number of each cell's colour.
    palette
        At most 256 colours; up to 16 take half a byte a cell.
    """
    return "data:image/png;base64," + base64.b64encode(_png(cells, palette)).decode("ascii")


def _png(cells: npt.NDArray[np.uint8], palette: Sequence[Colour]) -> bytes:
    rows, columns = cells.shape
    depth, packed = 8, cells
    if len(palette) <= 16:
        padded = np.pad(cells, ((0, 0), (0, columns % 2)))
        depth, packed = 4, (padded[:, ::2] << 4 | padded[:, 1::2]).astype(np.uint8)
    lines = b"".join(b"\0" + row.tobytes() for row in packed)
    header = struct.pack(">IIBBBBB", columns, rows, depth, 3, 0, 0, 0)
    colours = bytes(part for colour in palette for part in colour)
    chunks = ((b"IHDR", header), (b"PLTE", colours), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
