"""From aligned sites to a `Motif`: information, consensus letters and likeness to known elements."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri

from seqray.core import Alphabet, Floats
from seqray.core.results import Motif

PROMOTER_ELEMENTS: Mapping[str, str] = MappingProxyType(
    {"-35 box": "TTGACA", "-10 box": "TATAAT", "TATA box": "TATAWAW"}
)

_IUPAC = {
    **{base: base for base in "ACGT"},
    **{"R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC"},
    **{"B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT"},
}
_PAIR_SHARE = 0.75  # two letters in three quarters of the sites: D. R. Cavener (1987), NAR 15:1353-1361
_MIN_OVERLAP = 5
_TRIM_SHARE = 0.1  # of the bits of a place where every site has the same letter, all letters being alike
_MIN_WIDTH = 3


def information(counts: npt.ArrayLike, background: npt.ArrayLike) -> Floats:
    """Information content of each place: relative entropy of its letters over the background, in bits.

    Parameters
    ----------
    counts
        (w, A) of letters at each place; no pseudocounts are added. A place without letters has 0 bits.
    background
        (A,) probabilities, all above 0.

    Returns
    -------
    array, shape (w,)
        At least 0; with even background at most log2(A). With n sites, chance alone gives about
        ``(A - 1) / (2 n ln 2)`` bits.
    """
    table = np.asarray(counts, dtype=np.float64)
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0, shares * np.log2(shares / np.asarray(background)), 0.0)
    return np.maximum(terms.sum(axis=1), 0.0)


def informative_places(counts: Floats, background: Floats) -> slice:
    """Places (w, A) from the first to the last that is informative; may be empty.

    Informative is a place with a tenth of the largest possible bits and more than chance gives in one of a
    hundred: with n sites, ``2 n ln 2`` times the bits follow a chi-squared distribution.
    """
    letters, sites = len(background), max(1.0, float(counts.sum(axis=1).max(initial=0.0)))
    chance = float(chdtri(letters - 1, 0.01)) / (2 * sites * np.log(2))
    limit = max(_TRIM_SHARE * np.log2(letters), chance)
    places = np.flatnonzero(information(counts, background) >= limit)
    return slice(int(places[0]), int(places[-1]) + 1) if len(places) else slice(0, 0)


def consensus_letters(counts: Floats, alphabet: Alphabet) -> str:
    """One letter a place: that of half of the sites, else the IUPAC code of the two in three quarters.

    ``counts`` are (w, A) letters at each place. The letter is ``N`` (protein: ``X``, which
    has no codes for pairs) where no letters prevail.
    """
    return "".join(_consensus_letter(row, alphabet) for row in counts)


def _consensus_letter(row: Floats, alphabet: Alphabet) -> str:
    order = np.argsort(-row, kind="stable")
    if row.sum() > 0 and row[order[0]] >= 0.5 * row.sum():
        return alphabet.letters[order[0]]
    if alphabet.is_nucleotide and row.sum() > 0 and row[order[:2]].sum() >= _PAIR_SHARE * row.sum():
        pair = {"ACGT"[code] for code in order[:2]}
        return next(code for code, bases in _IUPAC.items() if set(bases) == pair)
    return alphabet.unknown_letter


def similarity(counts: Floats, background: Floats, known: str, alphabet: Alphabet) -> float:
    """How well aligned sites agree with a known consensus at the best gapless shift.

    Parameters
    ----------
    counts
        (w, A) of letters at each place.
    background
        (A,) probabilities of the letters.
    known
        Consensus in IUPAC codes of DNA.

    Returns
    -------
    float
        Mean over all places of the known consensus of the share of sites with a letter that it allows. Places
        beyond the motif count as background, so that a short overlap earns nothing. nan where the shorter
        of the two has fewer than 5 places.

    Notes
    -----
    Unrelated motifs resemble something, too. Simulated ones of 6 to 10 places around a random hexamer, each
    letter of which is in three quarters of the sites, reach 0.45 to 0.5 in the median with the best of the
    three promoter elements, 0.6 in one case of twenty and 0.7 in one of a hundred; with nine tenths of the
    sites, 0.5, 0.7 and 0.8. A value below that is no evidence.
    """
    allowed = _allowed_letters(known, alphabet)
    agreement = (counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)) @ allowed.T
    chance = background @ allowed.T
    width, length = agreement.shape
    if min(width, length) < _MIN_OVERLAP:
        return float("nan")
    best = 0.0
    for shift in range(_MIN_OVERLAP - length, width - _MIN_OVERLAP + 1):
        places = np.arange(length)
        inside = (places + shift >= 0) & (places + shift < width)
        values = np.where(inside, agreement[np.clip(places + shift, 0, width - 1), places], chance)
        best = max(best, float(values.mean()))
    return best


def _allowed_letters(known: str, alphabet: Alphabet) -> Floats:
    """(length, A): 1 where a place of the consensus allows a base."""
    bases = alphabet.letters.replace("U", "T")
    return np.array([[float(base in _IUPAC[code]) for base in bases] for code in known])


def _most_similar(counts: Floats, background: Floats, alphabet: Alphabet) -> tuple[str, float]:
    known = PROMOTER_ELEMENTS if alphabet.is_nucleotide else {}
    found = [(name, similarity(counts, background, text, alphabet)) for name, text in known.items()]
    found = [(name, value) for name, value in found if not np.isnan(value)]
    return max(found, key=lambda pair: pair[1], default=("", float("nan")))


def motif_of_sites(
    counts: Floats, positions: npt.NDArray[np.int64], background: Floats, alphabet: Alphabet
) -> Motif | None:
    """Describe aligned sites, or None where fewer than three of their places are informative.

    Parameters
    ----------
    counts
        (w, A) of letters at each place; uninformative places at the ends are cut off.
    positions
        (sites,) index in the record of each site's first place.
    background
        (A,) probabilities of the letters in the records.

    Returns
    -------
    Motif
        Without a name. One of nucleotides is compared with the `PROMOTER_ELEMENTS`.
    """
    kept = informative_places(counts, background)
    if kept.stop - kept.start < _MIN_WIDTH:
        return None
    cut = counts[kept]
    name, value = _most_similar(cut, background, alphabet)
    return Motif(
        name="",
        letters=alphabet.letters,
        counts=cut,
        bits=information(cut, background),
        sites=len(positions),
        positions=np.sort(positions + kept.start),
        consensus=consensus_letters(cut, alphabet),
        known=name,
        similarity=value,
    )
