"""Genes as numbers along one strand, the second input of a locator beside the letters."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from seqray.core.errors import ConfigError
from seqray.genome.genes import Gene

TRACKS = (
    "known",
    "frame-1",
    "frame-2",
    "frame-3",
    "opposite",
    "untranslated",
    "start",
    "stop",
    "opposite-start",
    "opposite-stop",
    "to-start",
    "from-end",
    "to-opposite-end",
    "from-opposite-start",
)
"""Names of the tracks, in the direction of the strand:

- ``known``: the genes of the contig are known; where they are not, the other tracks are 0
- ``frame-1`` to ``frame-3``: in a coding gene of this strand, by the position in the codon; ``opposite``: in
  one of the other strand; ``untranslated``: in a gene of either strand that makes no protein
- ``start``, ``stop``: outermost letter of the start and of the stop codon of a gene of this strand;
  ``opposite-start``, ``opposite-stop``: the same of the other strand
- ``to-start``: nearness of the next gene of this strand ahead, ``from-end``: of the last one behind;
  ``to-opposite-end`` and ``from-opposite-start``: of the genes of the other strand ahead and behind. Nearness
  is 1 at the outermost letter of the gene and falls evenly to 0 over `REACH` letters.
"""

REACH = 512

Tracks = npt.NDArray[np.uint8]

_ROWS = {name: row for row, name in enumerate(TRACKS)}
_FULL = 255  # stands for 1
_AHEAD = np.round(_FULL * np.arange(1, REACH + 1) / REACH).astype(np.uint8)


def track_rows(names: Sequence[str]) -> list[int]:
    """Rows of `gene_tracks`. Raises `ConfigError` for a name that is not one of `TRACKS`."""
    if unknown := [name for name in names if name not in _ROWS]:
        raise ConfigError(f"the model reads a gene track '{unknown[0]}', which is unknown")
    return [_ROWS[name] for name in names]


def gene_tracks(genes: Sequence[Gene] | None, length: int, strand: str, *, circular: bool = False) -> Tracks:
    """Tracks of a contig, in the direction of a strand."""
    tracks = np.zeros((len(TRACKS), length), dtype=np.uint8)
    if genes is None or not length:
        return tracks
    tracks[_ROWS["known"]] = _FULL
    painter = _Painter(tracks, length, circular)
    for gene in genes:
        start = gene.start if strand == "+" else (length - gene.end) % length
        painter.paint(gene, start, start + gene.end - gene.start, same=gene.strand == strand)
    return tracks


class _Painter:
    """Paints genes, given by their half-open range in the direction of the strand."""

    def __init__(self, tracks: Tracks, length: int, circular: bool) -> None:
        self._tracks, self._length, self._circular = tracks, length, circular

    def paint(self, gene: Gene, start: int, end: int, *, same: bool) -> None:
        if not gene.coding:
            self._add("untranslated", start, np.full(end - start, _FULL, dtype=np.uint8))
        elif same:
            for frame in range(3):
                row = np.zeros(end - start, dtype=np.uint8)
                row[frame::3] = _FULL
                self._add(f"frame-{frame + 1}", start, row)
        else:
            self._add("opposite", start, np.full(end - start, _FULL, dtype=np.uint8))
        first_partial, last_partial = gene.partial_start, gene.partial_end
        if same:
            self._edge("start", "to-start", start, first_partial, ahead=True)
            self._edge("stop", "from-end", end - 1, last_partial, ahead=False)
        else:
            self._edge("opposite-stop", "to-opposite-end", start, last_partial, ahead=True)
            self._edge("opposite-start", "from-opposite-start", end - 1, first_partial, ahead=False)

    def _edge(self, edge: str, nearness: str, place: int, partial: bool, *, ahead: bool) -> None:
        if partial:  # the true edge is not on the contig
            return
        self._add(edge, place, np.full(1, _FULL, dtype=np.uint8))
        if ahead:
            self._add(nearness, place - REACH + 1, _AHEAD)
        else:
            self._add(nearness, place, _AHEAD[::-1])

    def _add(self, name: str, first: int, values: Tracks) -> None:
        """Raise a row to at least these values."""
        row = self._tracks[_ROWS[name]]
        if first >= 0 and first + len(values) <= self._length:
            part = row[first : first + len(values)]
            np.maximum(part, values, out=part)
            return
        places = np.arange(first, first + len(values))
        if self._circular:
            np.maximum.at(row, places % self._length, values)
        else:
            inside = (places >= 0) & (places < self._length)
            np.maximum.at(row, places[inside], values[inside])
