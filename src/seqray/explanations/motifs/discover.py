"""Find what the high-scoring stretches of many explained records have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seqray.core import Alphabet, Codes, Floats, Ints
from seqray.core.msa import letter_counts
from seqray.core.results import Explanation, Motif
from seqray.explanations.motifs.consensus import informative_places, motif_of_sites
from seqray.explanations.motifs.mixture import Mixture, are_alike
from seqray.explanations.motifs.seqlets import Seqlets, extract_seqlets
from seqray.explanations.motifs.support import scores_prefer

MIN_RECORDS = 10
WIDTH = 10  # letters of the window that is scored, and of a motif before its uninformative ends are cut off
_MAX_MOTIFS = 5
_MIN_SITES = 5
_MIN_SITE_SHARE = 0.02  # of the records
_SHUFFLES = 12
# The gain of the best of many k-mers has a long tail, and few shuffles estimate mean and deviation coarsely.
_DEVIATIONS = 5.0
_SPARE = 3  # matrices for frequent k-mers that the scores do not prefer
_MIN_MEMBERSHIP = 0.5


def find_motifs(explanations: Sequence[Explanation], alphabet: Alphabet) -> tuple[Motif, ...]:
    """Cluster the seqlets of explained records to motifs.

    Parameters
    ----------
    explanations
        One for each record, of one method and member. Records may differ in length and hold unknown letters.
        Records that are almost the same count as often as they occur, so remove redundant ones first.
    alphabet
        Of the records. Nucleotides are read on the given strand only.

    Returns
    -------
    tuple of Motif
        At most five of at most `WIDTH` letters, those with the most sites first; none for fewer than 10
        records. Those of nucleotides are compared with the promoter elements. The order of the records does
        not matter, and equal input gives equal motifs.

    Raises
    ------
    ValueError
        For explanations of more than one method or member.

    Notes
    -----
    A record gives at most four seqlets: the windows of highest summed scores (scores below 0 count as 0),
    if they exceed the mean of the windows of the record by a standard deviation. A mixture of weight matrices
    is fitted to all seqlets (see the module ``mixture``), started from k-mers that are enriched in them. A
    matrix is added as long as that improves the likelihood clearly more than the first matrix does when the
    letters of each seqlet are shuffled, unless it repeats an earlier one.

    Genomes are full of frequent k-mers, so a motif counts only if the scores prefer it: under its best
    matches anywhere in the records the scores must rank higher, by four standard deviations, than under the
    other windows of the same record. A motif with fewer than 5 sites, or sites in fewer than 2 % of the
    records, is dropped.
    """
    if len({(e.method, e.member) for e in explanations}) > 1:
        raise ValueError("motifs are found in the explanations of one method and member")
    if len(explanations) < MIN_RECORDS:
        return ()
    # Sorted, because the shuffles and the rounding of sums depend on the order.
    ordered = sorted(explanations, key=lambda e: (e.sequence, e.scores.tobytes()))
    background = background_of(ordered, alphabet)
    seqlets = extract_seqlets(ordered, alphabet, WIDTH)
    fewest = max(_MIN_SITES, int(np.ceil(_MIN_SITE_SHARE * len(ordered))))
    if len(seqlets) < fewest:
        return ()
    reference = alphabet.encode(alphabet.unknown_letter.join(e.sequence for e in ordered))
    candidates = [
        motif_of_sites(*_sites(seqlets, chances, background, alphabet), background, alphabet)
        for chances in _fit_beyond_chance(seqlets, reference, len(alphabet.letters))
    ]
    large = [motif for motif in candidates if motif is not None and motif.sites >= fewest]
    found = [motif for motif in large if scores_prefer(motif, ordered, alphabet, background)]
    return number_motifs(found)[:_MAX_MOTIFS]


def background_of(explanations: Sequence[Explanation], alphabet: Alphabet) -> Floats:
    """Shares (A,) of the letters of the alphabet in all records; one of each is added, so none is 0."""
    text = "".join(e.sequence for e in explanations)
    counts = np.bincount(alphabet.encode(text), minlength=alphabet.unknown + 1)[: alphabet.unknown] + 1.0
    return counts / counts.sum()


def number_motifs(motifs: Sequence[Motif]) -> tuple[Motif, ...]:
    """Sort by the number of sites and name them ``motif_1``, ``motif_2``, ..."""
    ordered = sorted(motifs, key=lambda motif: (-motif.sites, motif.consensus))
    return tuple(replace(motif, name=f"motif_{number}") for number, motif in enumerate(ordered, start=1))


def _fit_beyond_chance(seqlets: Seqlets, reference: Codes, letters: int) -> list[Floats]:
    """For each motif that a fit to shuffled letters does not give, the probabilities (S, m) of its sites."""
    rng = np.random.default_rng(0)
    shuffles = (Mixture(seqlets.shuffled(rng).codes, letters, WIDTH) for _ in range(_SHUFFLES))
    chance = [shuffle.fit().gain for shuffle in shuffles]
    limit = float(np.mean(chance) + _DEVIATIONS * np.std(chance, ddof=1))
    mixture = Mixture(seqlets.codes, letters, WIDTH, reference)
    fit = None
    for _ in range(_MAX_MOTIFS + _SPARE):
        more = mixture.fit(fit.kmers if fit else ())
        # A further matrix can also share the sites of one that is there.
        if more.gain - (fit.gain if fit else 0.0) <= limit or are_alike(more.matrices):
            break
        fit = more
    return list(np.moveaxis(mixture.sites(fit), 2, 0)) if fit else []


def _sites(seqlets: Seqlets, chances: Floats, background: Floats, alphabet: Alphabet) -> tuple[Floats, Ints]:
    """Counts (w, A) and positions (sites,) of the likely sites."""
    member = chances.sum(axis=1) >= _MIN_MEMBERSHIP
    members, shifts = seqlets.select(member), chances[member].argmax(axis=1)
    sites = members.codes[np.arange(len(members))[:, None], shifts[:, None] + np.arange(WIDTH)]
    positions: Ints = members.starts + shifts
    kept = informative_places(_count(sites, alphabet), background)
    # Only an end that is cut off may reach beyond the record.
    whole = (positions + kept.start >= 0) & (positions + kept.stop <= members.lengths)
    return _count(sites[whole], alphabet), positions[whole]


def _count(sites: np.ndarray, alphabet: Alphabet) -> Floats:
    """Counts (w, A) of each letter in each column of codes (sites, w), unknown letters left out."""
    return letter_counts(sites, alphabet).T.astype(np.float64)
