"""Genes as numbers along one strand, the second input of a locator beside the letters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

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
    for gene in genes:
        start = gene.start if strand == "+" else (length - gene.end) % length
        for name, first, values in _painted(gene, start, same=gene.strand == strand):
            _raise_row(tracks[_ROWS[name]], first, values, circular=circular)
    return tracks


def _painted(gene: Gene, start: int, *, same: bool) -> Iterator[tuple[str, int, Tracks]]:
    """Tracks of a gene of the strand that is read, or of the other one, and where their values begin."""
    end = start + gene.end - gene.start
    whole = np.full(end - start, _FULL, dtype=np.uint8)
    if gene.coding and same:
        for frame in range(3):
            row = np.zeros(end - start, dtype=np.uint8)
            row[frame::3] = _FULL
            yield f"frame-{frame + 1}", start, row
    else:
        yield "opposite" if gene.coding else "untranslated", start, whole
    left, right = ("start", "stop") if same else ("opposite-stop", "opposite-start")
    ahead, behind = ("to-start", "from-end") if same else ("to-opposite-end", "from-opposite-start")
    open_left, open_right = gene.partial_start, gene.partial_end
    if not same:
        open_left, open_right = open_right, open_left
    if not open_left:  # else the true edge is not on the contig
        yield left, start, whole[:1]
        yield ahead, start - REACH + 1, _AHEAD
    if not open_right:
        yield right, end - 1, whole[:1]
        yield behind, end - 1, _AHEAD[::-1]


def _raise_row(row: Tracks, first: int, values: Tracks, *, circular: bool) -> None:
    """Raise a row to at least these values, which may reach beyond its ends."""
    places = np.arange(first, first + len(values))
    if first >= 0 and first + len(values) <= len(row):
        part = row[first : first + len(values)]
        np.maximum(part, values, out=part)
    elif circular:
        np.maximum.at(row, places % len(row), values)
    else:
        inside = (places >= 0) & (places < len(row))
        np.maximum.at(row, places[inside], values[inside])
