"""What the scan is compared with: published predictions, linear models fitted to the same windows, chance.

The linear models are fitted to the training windows of the shipped model (``data/prepare.py ecoli``) and scan
every position of both strands; their peaks are called as `seqray scan` calls them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ecoli_truth import Placed, in_region
from machine import read_table
from matching import Calls, rank_calls, thin
from seqray.core.alphabet import DNA, reverse_complement_codes
from seqray.core.arrays import local_maxima
from seqray.core.records import LabeledSequence
from seqray.metrics.baselines import KmerPositionalBaseline, PositionWeightMatrix

WINDOW, SITE = 81, 60

Scorer = Callable[[np.ndarray], np.ndarray]
"""Codes (n,) of a sequence to the scores (n - WINDOW + 1,) of its windows."""


def training_windows(examples: Iterable[LabeledSequence]) -> tuple[list[str], list[str]]:
    """Return the middle WINDOW letters and the label of each example of the training split."""
    chosen = [example for example in examples if example.split == "train"]
    margins = [(len(example.sequence) - WINDOW) // 2 for example in chosen]
    windows = [e.sequence[margin : margin + WINDOW] for e, margin in zip(chosen, margins, strict=True)]
    return windows, [example.label for example in chosen]


def weight_matrix(windows: Sequence[str], labels: Sequence[str]) -> Scorer:
    """Fit the classic position weight matrix: letters at 81 positions against the composition."""
    return scorer_of(PositionWeightMatrix(positive="promoter").fit(windows, labels))


def scorer_of(matrix: PositionWeightMatrix) -> Scorer:
    """Score every window of a sequence by a weight matrix."""
    return lambda codes: matrix.score_codes(sliding_window_view(codes, len(matrix.weights_)))


def kmer_logistic(windows: Sequence[str], labels: Sequence[str]) -> Scorer:
    """Fit logistic regression on word counts and words at positions."""
    model = KmerPositionalBaseline().fit(windows, labels)
    return lambda codes: kmer_profile(model, codes)


def kmer_profile(model: KmerPositionalBaseline, codes: np.ndarray) -> np.ndarray:
    """Score every window of a sequence of A, C, G, T: the log-odds of ``classes_[1]``, (n - W + 1,).

    The same numbers as ``predict_proba`` on the windows, without cutting them: a counted word adds its weight
    to every window that holds it (a running sum), a placed word to the one window where it stands so.
    """
    weights = np.asarray(model.model_.coef_)[0] * model.scale_
    windows = len(codes) - model.window_ + 1
    score = np.full(windows, float(np.asarray(model.model_.intercept_)[0]))
    used = 0
    for k in model.kmers:
        running = np.concatenate(([0.0], np.cumsum(weights[used + words(codes, k)])))
        inside = model.window_ - k + 1
        score += running[inside : inside + windows] - running[:windows]
        used += 4**k
    for k in model.positional:
        word = words(codes, k)
        for position in range(model.window_ - k + 1):
            score += weights[used + word[position : position + windows]]
            used += 4**k
    return score


def words(codes: np.ndarray, k: int) -> np.ndarray:
    """Return the base-4 number of the word at each position, (n - k + 1,)."""
    number = np.zeros(len(codes) - k + 1, dtype=np.int64)
    for offset in range(k):
        number = number * 4 + codes[offset : offset + len(number)]
    return number


def scan_with(score: Scorer, genome: str, region: tuple[int, int], min_distance: int) -> Calls:
    """Score the windows of both strands whose site lies in a region, and call the peaks.

    A window starts ``SITE`` before its site on the strand that it is read on.
    """
    codes = DNA.encode(genome)
    start, end = region
    after = WINDOW - SITE - 1
    plus = score(codes[start - SITE : end + after])
    minus = score(reverse_complement_codes(codes[start - after : end + SITE]))[::-1]
    positions: list[np.ndarray] = []
    scores: list[np.ndarray] = []
    for profile in (plus, minus):
        peaks = np.flatnonzero(local_maxima(profile))
        positions.append(start + peaks)
        scores.append(profile[peaks])
    strand = ["+"] * len(positions[0]) + ["-"] * len(positions[1])
    ranked = rank_calls(np.concatenate(positions).tolist(), strand, np.concatenate(scores).tolist())
    return thin(ranked, min_distance)


def published(
    rows: Sequence[Placed], region: tuple[int, int], sigma: str | None, min_distance: int | None
) -> Calls:
    """Rank the published predictions of a region.

    Scores of different sigma factors aren't on one scale, so all sigmas together are ranked by P-value (which
    finds more than ranking by score); one sigma factor by its score. ``min_distance`` thins them as a scan's
    peaks are thinned; None leaves them as published.
    """
    kept = [row for row in in_region(rows, region) if sigma is None or row.site.sigma == sigma]
    value = [-np.log10(row.site.p_value) if sigma is None else row.site.score for row in kept]
    calls = rank_calls([row.position for row in kept], [row.strand for row in kept], value)
    return calls if min_distance is None else thin(calls, min_distance)


def read_promotech(path: Path, region: tuple[int, int]) -> Calls:
    """Read Promotech's published scan of a contig.

    A start is the last of the 40 letters of a window in reading direction: ``end`` (inclusive) on plus,
    ``start`` on minus, both 0-based.
    """
    rows = read_table(path)
    position = [int(row["end"] if row["strand"] == "+" else row["start"]) for row in rows]
    ranked = rank_calls(position, [row["strand"] for row in rows], [float(row["score"]) for row in rows])
    return within(ranked, region)


def within(calls: Calls, region: tuple[int, int]) -> Calls:
    """Return the calls of a half-open region."""
    return calls.take((calls.position >= region[0]) & (calls.position < region[1]))


def random_calls(region: tuple[int, int], count: int, min_distance: int, seed: int = 0) -> Calls:
    """Draw calls at random positions and strands, thinned like the peaks of a scan."""
    rng = np.random.default_rng(seed)
    strand = ["+" if flag else "-" for flag in rng.random(count) < 0.5]
    position = rng.integers(region[0], region[1], count)
    return thin(rank_calls(position.tolist(), strand, rng.random(count).tolist()), min_distance)
