"""Where the boxes of real promoters lie: -35 and -10 of σ70 promoters, TATA of plant promoters.

RegulonDB's table of promoters names the transcription start but not the boxes, so they are marked twice:

- at fixed places relative to the start, -37 .. -30 and -13 .. -6;
- where the best pair of hexamers stands: of all starts and spacers allowed, the one that agrees best with the
  consensus by the frequencies below. It uses the letters alone and no model.

The TATA box of plants: in the 1,497 promoters of the set the word TATAWA starts 1,111 times at -36 .. -28 (23
to 249 times at each place, at most 14 at any other), so its letters lie at -36 .. -23; two letters more
upstream make room for longer boxes. Molina and Grotewold 2005 (BMC Genomics 6:25) name 25 to 35 letters.

There is no position 0: -1 is the letter before the start.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ecoli_split import TEST
from ecoli_truth import in_region, letters_at, load_truth
from seqray.core.alphabet import DNA
from seqray.io.records import read_fasta
from seqray.modelfile.model import TrainedModel

Codes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

SIGMA = "sigma70"
FIXED_BOXES = ((-37, -30), (-13, -6))
TATA_WINDOW = ((-38, -23),)
AROUND = 1
"""Letters beside a box of bacteria that still count."""

# Percent of 263 promoters of E. coli with the letter (Wösten et al. 1998, J. Bacteriol. 180:594, table 3).
MINUS_35 = (("T", 78), ("T", 82), ("G", 68), ("A", 58), ("C", 51), ("A", 55))
MINUS_10 = (("T", 82), ("A", 90), ("T", 52), ("A", 59), ("A", 49), ("T", 89))
SPACERS = range(15, 20)
"""Letters between the hexamers; 17 is the usual number."""
BEFORE_START = range(4, 10)
"""Letters between the -10 hexamer and the start; 6 is the usual number."""
TATA_FILE = "umarov2017/Arabidopsis_tata.fa.gz"


@dataclass(frozen=True, slots=True, eq=False)
class Promoters:
    """Windows of one length (N, n), and marks (N, n) by name: True at the letters of a box."""

    codes: Codes
    marks: dict[str, Mask]

    def take(self, chosen: npt.NDArray[np.int64]) -> Promoters:
        """Keep some of the records."""
        return Promoters(self.codes[chosen], {name: mark[chosen] for name, mark in self.marks.items()})


def mark_places(places: Iterable[tuple[int, int]], site: int, length: int, around: int = 0) -> Mask:
    """Mark closed intervals of positions upstream of the start: (length,)."""
    mark = np.zeros(length, dtype=bool)
    for first, last in places:
        mark[max(0, site + first - around) : site + last + around + 1] = True
    return mark


def _agreement(codes: Codes, consensus: tuple[tuple[str, int], ...]) -> npt.NDArray[np.float64]:
    """Log-odds of the hexamer that starts at each letter, against even frequencies: (n - 5,)."""
    windows = np.lib.stride_tricks.sliding_window_view(codes, len(consensus))
    total = np.zeros(len(windows))
    for column, (letter, percent) in zip(windows.T, consensus, strict=True):
        share = percent / 100
        match = column == DNA.letters.index(letter)
        total += np.where(match, np.log(share / 0.25), np.log((1 - share) / 0.75))
    return total


def find_boxes(codes: Codes, site: int) -> tuple[int, int]:
    """Find the starts of the -35 and the -10 hexamer, as indices of the window (n,)."""
    upstream, downstream = _agreement(codes, MINUS_35), _agreement(codes, MINUS_10)
    pairs = [
        (ten - spacer - len(MINUS_35), ten)
        for ten in (site - before - len(MINUS_10) for before in BEFORE_START)
        for spacer in SPACERS
    ]
    return max(pairs, key=lambda pair: upstream[pair[0]] + downstream[pair[1]])


def mark_found(codes: Codes, site: int, around: int = AROUND) -> Mask:
    """Mark the hexamers that `find_boxes` finds and ``around`` letters beside them: (n,)."""
    mark = np.zeros(len(codes), dtype=bool)
    for start in find_boxes(codes, site):
        mark[start - around : start + len(MINUS_10) + around] = True
    return mark


def sigma70(data: Path, model: TrainedModel) -> Promoters:
    """Windows of well supported σ70 promoters of the region that no training window touched."""
    site, length = model.card.site, model.card.window
    assert site is not None
    truth = load_truth(data)
    rows = in_region((row for row in truth.strong() if row.site.sigma == SIGMA), TEST)
    starts = sorted({(row.position, row.strand) for row in rows})
    windows = [letters_at(truth.genome, p + 1, strand, site, length - site - 1) for p, strand in starts]
    codes = np.stack([DNA.encode(window) for window in windows])
    fixed = np.tile(mark_places(FIXED_BOXES, site, length, AROUND), (len(codes), 1))
    found = np.stack([mark_found(row, site) for row in codes])
    return Promoters(codes, {"fixed_boxes": fixed, "found_boxes": found})


def plant_tata(data: Path, model: TrainedModel) -> Promoters:
    """TATA promoters of Arabidopsis in EPD, as the model was trained on them."""
    site, length = model.card.site, model.card.window
    assert site is not None
    records = read_fasta(data / TATA_FILE, DNA, duplicates="rename", on_skip=lambda _: None)
    codes = np.stack([DNA.encode(r.sequence) for r in records if len(r.sequence) == length])
    window = np.tile(mark_places(TATA_WINDOW, site, length), (len(codes), 1))
    return Promoters(codes, {"tata_window": window})
