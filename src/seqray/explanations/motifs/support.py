"""Whether the sites of a motif are where the scores are high, or anywhere in the records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Alphabet, Codes, Floats
from seqray.core.results import Explanation, Motif
from seqray.explanations.motifs.seqlets import window_sums
from seqray.explanations.ranks import mean_ranks

_PSEUDOCOUNT = 0.5
# Passed by one in thirty thousand if scores and motif are independent; that strict because the motif was
# fitted to letters with high scores.
_DEVIATIONS = 4.0


def support_ranks(
    motif: Motif, explanations: Sequence[Explanation], alphabet: Alphabet, background: Floats
) -> Floats:
    """Rank of the scores under each good match to a motif, among all windows of its record.

    Those windows are taken that match best, half as many as the motif has sites. A rank is 0 for the lowest
    and 1 for the highest sum of supporting scores of the record; ranks are uniform if the scores are
    independent of the motif. Records without a site count too. ``background`` holds the (A,) probabilities of
    the letters.
    """
    weights = _log_odds(motif.counts, background)
    width = len(weights)
    long_enough = [e for e in explanations if len(e.sequence) >= width]
    matches = [_match(alphabet.encode(e.sequence), weights) for e in long_enough]
    if not matches:
        return np.empty(0)
    # As many as half of the sites: the better half of them, unless others match as well.
    limit = np.sort(np.concatenate(matches))[-max(1, motif.sites // 2)]
    ranks = []
    for explanation, match in zip(long_enough, matches, strict=True):
        sums = window_sums(explanation.scores, width)
        ranks.append((mean_ranks(sums)[match >= limit] - 1) / max(1, len(sums) - 1))
    return np.concatenate(ranks)


def scores_prefer(
    motif: Motif, explanations: Sequence[Explanation], alphabet: Alphabet, background: Floats
) -> bool:
    """Whether the mean of the `support_ranks` exceeds 0.5 by more than chance allows."""
    ranks = support_ranks(motif, explanations, alphabet, background)
    deviation = 1 / np.sqrt(12 * max(1, len(ranks)))  # of the mean of uniform ranks
    return bool(len(ranks) and ranks.mean() - 0.5 > _DEVIATIONS * deviation)


def _log_odds(counts: Floats, background: Floats) -> Floats:
    """(w, A + 1); the last column is that of unknown letters."""
    smooth = counts + _PSEUDOCOUNT * background
    odds = np.log(smooth / smooth.sum(axis=1, keepdims=True) / background)
    return np.concatenate([odds, np.zeros((len(odds), 1))], axis=1)


def _match(codes: Codes, weights: Floats) -> Floats:
    windows = np.lib.stride_tricks.sliding_window_view(codes, len(weights))
    return weights[np.arange(len(weights)), windows].sum(axis=1)
