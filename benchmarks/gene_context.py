"""What genes alone tell about transcription starts: a rule without letters, and a prior for each position."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from matching import Calls, Starts, rank_calls
from seqray.genome.genes import Gene

UPSTREAM = 45
"""Letters from the start that the rule without letters calls to the start codon of its gene."""
DISTANCES = (1, 10, 20, 30, 40, 60, 80, 100, 130, 170, 220, 300, 400, 500)
"""Lower limits of the classes of distances to the next start codon downstream."""
GAPS = (20, 40, 70, 100, 150, 250, 400, 700)
"""Lower limits of the classes of lengths of gaps between genes."""
BETWEEN, SAME, OPPOSITE = range(3)
WINDOW_WEIGHT = 0.5
"""Weight of a window's log-odds beside the prior, chosen on the development region of E. coli from .5, .75,
1 and 1.5: the windows know some of the context, for genes are among the examples that they learned from."""


def upstream_gaps(genes: Sequence[Gene], length: int) -> list[tuple[Gene, int]]:
    """Return each gene with a known start, and the letters between it and the gene before it.

    The gene before it is the nearest upstream on either strand; the gap is negative where the two overlap,
    and is counted to the end of the contig where there is none.
    """
    forward = _gaps([(gene.start, gene.end) for gene in genes])
    backward = _gaps([(length - gene.end, length - gene.start) for gene in genes])
    return [
        (gene, forward[i] if gene.strand == "+" else backward[i])
        for i, gene in enumerate(genes)
        if not gene.partial_start
    ]


def _gaps(spans: Sequence[tuple[int, int]]) -> list[int]:
    """Return for each interval the letters since the end of any that begins before it, or since 0."""
    gaps, reached = [0] * len(spans), 0
    for i in sorted(range(len(spans)), key=lambda i: spans[i]):
        gaps[i] = spans[i][0] - reached
        reached = max(reached, spans[i][1])
    return gaps


def no_letters(genes: Sequence[Gene], length: int, upstream: int = UPSTREAM) -> Calls:
    """Call a start upstream of each gene, ranked by the length of the gap before the gene."""
    found = [
        (gene.start - upstream if gene.strand == "+" else gene.end - 1 + upstream, gene.strand, float(gap))
        for gene, gap in upstream_gaps(genes, length)
    ]
    inside = [call for call in found if 0 <= call[0] < length]
    return rank_calls(
        [call[0] for call in inside], [call[1] for call in inside], [call[2] for call in inside]
    )


class GeneContext:
    """Where positions of a contig stand among its genes.

    Parameters
    ----------
    genes
        Of the contig.
    length
        Of the contig, in letters.
    """

    def __init__(self, genes: Sequence[Gene], length: int) -> None:
        covered = {strand: np.zeros(length, dtype=bool) for strand in "+-"}
        for gene in genes:
            covered[gene.strand][gene.start : gene.end] = True
        self._covered = covered
        self._gap = gap_lengths(covered["+"] | covered["-"])
        self._starts = {
            strand: np.array(sorted(gene.start_codon for gene in genes if gene.strand == strand))
            for strand in "+-"
        }

    def classes(self, position: np.ndarray, plus: np.ndarray) -> np.ndarray:
        """Return one-hot features (N, F): distance to the next start codon by place; length of the gap."""
        place = self._place(position, plus)
        distance = np.digitize(self._to_start(position, plus), DISTANCES)
        gap = np.digitize(self._gap[position], GAPS)
        joint = place * (len(DISTANCES) + 1) + distance
        between = np.where(place == BETWEEN, gap + 1, 0)
        return np.hstack([np.eye(3 * (len(DISTANCES) + 1))[joint], np.eye(len(GAPS) + 2)[between]])

    def _place(self, position: np.ndarray, plus: np.ndarray) -> np.ndarray:
        forward, backward = self._covered["+"][position], self._covered["-"][position]
        same, opposite = np.where(plus, forward, backward), np.where(plus, backward, forward)
        return np.where(same, SAME, np.where(opposite, OPPOSITE, BETWEEN))

    def _to_start(self, position: np.ndarray, plus: np.ndarray) -> np.ndarray:
        forward = np.append(self._starts["+"], np.iinfo(np.int64).max // 2)
        backward = np.insert(self._starts["-"], 0, np.iinfo(np.int64).min // 2)
        ahead = forward[np.searchsorted(forward, position)] - position
        behind = position - backward[np.searchsorted(backward, position, side="right") - 1]
        return np.where(plus, ahead, behind)


def gap_lengths(covered: np.ndarray) -> np.ndarray:
    """Return the length of the gap that each position lies in, 0 in genes."""
    edges = np.flatnonzero(np.diff(np.concatenate(([True], covered, [True]))))
    starts, ends = edges[::2], edges[1::2]
    lengths = np.zeros(len(covered), dtype=np.int64)
    lengths[~covered] = np.repeat(ends - starts, ends - starts)
    return lengths


class ContextPrior:
    """Log-odds of a start at a position, from genes alone; up to a constant.

    Logistic regression of known starts against positions drawn at random.

    Parameters
    ----------
    context
        Of the contig.
    starts
        Known starts of the part that it learns from.
    regions
        That part, half-open.
    drawn
        Number of random positions.
    """

    def __init__(
        self, context: GeneContext, starts: Starts, regions: Sequence[tuple[int, int]], drawn: int = 200_000
    ) -> None:
        self._context = context
        positions = np.concatenate([np.arange(*region) for region in regions])
        rng = np.random.default_rng(0)
        position = np.concatenate([starts.position, rng.choice(positions, drawn)])
        plus = np.concatenate([starts.plus, rng.random(drawn) < 0.5])
        known = np.arange(len(position)) < len(starts)
        self._model = LogisticRegression(max_iter=1000).fit(context.classes(position, plus), known)

    def log_odds(self, position: np.ndarray, plus: np.ndarray) -> np.ndarray:
        """Return the log-odds at positions (N,)."""
        return self._model.decision_function(self._context.classes(position, plus))


def with_prior(calls: Calls, prior: ContextPrior) -> Calls:
    """Rank calls, whose scores are probabilities, by their weighted log-odds plus those of the prior."""
    share = np.clip(calls.score, 1e-6, 1 - 1e-6)
    score = WINDOW_WEIGHT * np.log(share / (1 - share)) + prior.log_odds(calls.position, calls.plus)
    strand = np.where(calls.plus, "+", "-").tolist()
    return rank_calls(calls.position.tolist(), strand, score.tolist())
