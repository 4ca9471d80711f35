"""Boxes of promoters: which ones each kingdom has, and where letters show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.alphabet import DNA
from seqray.core.arrays import Bools, Codes, Floats, Ints

MAX_REACH = 60  # letters before a site that boxes may lie in
THRESHOLD = 4.0  # bits of the boxes together
NO_BOX = 0  # no box begins at the site
_NEVER = -1e9


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxPattern:
    """A box, and how far before the site it lies; the second one of a kingdom lies before the first one."""

    name: str  # as it is shown: -10, TATA
    weights: Floats  # (L, 4): bits of A, C, G and T at each position
    nearest: int  # fewest letters between the box and the site, or the first box
    costs: Floats  # (M,): bits that this distance costs, and each further one
    extension: str = ""  # letters that extend the first box, one letter before it

    def places(self, behind: int = 0) -> Iterator[tuple[int, float]]:
        """First letters of the box before a place, and what each costs."""
        for i, cost in enumerate(self.costs.tolist()):
            yield behind - self.nearest - i - len(self.weights), cost

    def bits(self, codes: Codes, start: int) -> Floats:
        """Bits of the letters from one index on, (N,); never any if they are unknown or speak against it."""
        table = np.concatenate((self.weights, np.full((len(self.weights), 1), _NEVER)), axis=1)
        letters = np.minimum(codes[:, start : start + len(table)], 4)
        bits = table[np.arange(len(table)), letters].sum(axis=1)
        return np.where(bits > 0, bits, _NEVER)


def find_boxes(codes: Codes, site: int, boxes: Sequence[BoxPattern]) -> tuple[Ints, Bools]:
    """Find the boxes before sites, the index ``site`` of codes (N, W) of DNA in the direction of reading.

    Returns letters from site to box (N, boxes) or `NO_BOX`, and whether the first box is extended.
    """
    places = np.full((len(codes), 2), NO_BOX)
    alone, pairs = [], []
    box, *partners = boxes
    for first, cost in box.places():
        bits = box.bits(codes, site + first) - cost
        alone.append((bits, first, NO_BOX))
        for partner in partners:
            for other, more in partner.places(first):
                pairs.append((bits + partner.bits(codes, site + other) - more, first, other))
    for arrangements in filter(None, (alone, pairs)):  # two beat one; of equals the first
        bits = np.stack([bits for bits, *_ in arrangements])
        best = np.array([firsts for _, *firsts in arrangements])[bits.argmax(axis=0)]
        places = np.where(bits.max(axis=0)[:, None] >= THRESHOLD, best, places)
    first, word = site + places[:, 0], DNA.encode(box.extension)
    before = first[:, None] - 1 - len(word) + np.arange(len(word))
    same = (np.take_along_axis(codes, before, axis=1) == word).all(axis=1)
    return places[:, : len(boxes)], same & (places[:, 0] != NO_BOX) & bool(box.extension)


def _bits(*counts: tuple[float, ...]) -> Floats:
    """Bits from counts of A, C, G and T at each position."""
    table = np.array(counts, dtype=np.float64) + 1
    return np.log2(4 * table / table.sum(axis=1, keepdims=True))


def _consensus(word: str) -> Floats:
    """Bits from a consensus, as of 100 boxes whose letters agree with it in 87 %."""
    means = [{"W": "AT", "R": "AG", "N": "ACGT"}.get(letter, letter) for letter in word]
    return _bits(*(tuple(87 / len(m) if a in m else 13 / (4 - len(m)) for a in "ACGT") for m in means))


_MINUS10 = _bits(
    *((2, 10, 11, 89), (106, 2, 1, 3), (29, 16, 18, 49)),
    *((66, 14, 17, 15), (57, 22, 14, 19), (1, 3, 0, 108)),
)
_MINUS35 = _bits(
    *((2, 7, 11, 92), (6, 6, 6, 94), (2, 11, 88, 11)),
    *((72, 18, 3, 19), (26, 60, 11, 15), (50, 8, 17, 37)),
)
_TATA, _BRE = _consensus("TTTAWA"), _consensus("RNWAAW")

BOXES = {
    # Sigma 70 of E. coli, counted in the 112 promoters of Hawley and McClure 1983. Of the distances, 5 to 7
    # letters behind the -10 box have a share of 75 %, and 16 to 18 between the boxes one of 92 %.
    "bacteria": (
        BoxPattern(
            name="-10", weights=_MINUS10, nearest=3, costs=np.array([2.0, 2, 0, 0, 0, 2, 2]), extension="TG"
        ),
        BoxPattern(name="-35", weights=_MINUS35, nearest=15, costs=np.array([3.5, 1, 0, 1, 3.5])),
    ),
    # Box A of Hain et al. 1992 (Nucleic Acids Research 20:5423), whose first letter lies 31 to 27 before the
    # start, and the element that TFB binds before it, of Bell et al. 1999 (PNAS 96:13662).
    "archaea": (
        BoxPattern(name="TATA", weights=_TATA, nearest=21, costs=np.array([2.0, 0, 0, 0, 2])),
        BoxPattern(name="BRE", weights=_BRE, nearest=1, costs=np.array([2.0, 0, 2])),
    ),
    "eukaryotes": (),  # starts of yeasts are broad, and a minority has a TATA box, far before them
}
