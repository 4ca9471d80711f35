"""Windows of a contig and their cutoffs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import reverse_complement_codes
from seqray.core.arrays import Codes, Floats, Ints, logistic
from seqray.core.records import Intervals

# --- Which windows are worth the model's time at a threshold, and whether a prefilter pays

MAX_PASSED_SHARE = 0.1
"""Of the windows. Stride 10 scores as many: a prefilter that lets more pass is left out."""


@dataclass(frozen=True)
class Cutoffs:
    """What a window must reach to be read further, in log-odds.

    Attributes
    ----------
    prefilter
        What the prefilter must answer.
    second
        What its second network must answer; None for a prefilter of one.
    members
        What the first 1, 2, ... members must give together, see `seqray.inference.cascade_log_odds`.
    passed
        Share of all windows that pass the prefilter.
    """

    prefilter: float
    second: float | None = None
    members: tuple[float, ...] = ()
    passed: float = 0.0

    @classmethod
    def at(cls, facts: Mapping[str, Any], threshold: float) -> Self:
        """Those of the highest level that a threshold reaches.

        Parameters
        ----------
        facts
            Of the prefilter, from the model's card.
        threshold
            Probability from which sites are called.
        """
        levels: Sequence[Sequence[float]] = facts.get("levels", ())
        second: Sequence[float | None] = facts.get("second") or [None] * len(levels)
        members: Sequence[Sequence[float]] = facts.get("members") or [()] * len(levels)
        reached = [
            cls(cutoff, other, tuple(others), passed)
            for (level, cutoff, passed), other, others in zip(levels, second, members, strict=True)
            if level <= threshold
        ]
        return reached[-1] if reached else cls(float("-inf"), passed=1.0)

    @property
    def is_selective(self) -> bool:
        """Whether few enough windows pass."""
        return self.passed <= MAX_PASSED_SHARE


# --- The windows of one contig on both strands: their starts, sites and scores

Scorer = Callable[[Codes], npt.NDArray[np.floating]]
"""Codes (N, W) to the probability of the positive class (N,); each answer depends on its own row alone."""
StrandAnswers = Callable[[Codes], npt.NDArray[np.floating]]
"""Codes (L,) to what the prefilter answers for each window (L - W + 1,), in log-odds."""

_MAX_GAP = 1024  # windows between two of one strand: a strand costs about as many, however short
# Letters gathered for one call of the scorer: 4 MB, so that codes and scores stay in the processor's cache.
_BATCH_LETTERS = 1 << 22


@dataclass(frozen=True, slots=True)
class WindowRule:
    """What a window is.

    Attributes
    ----------
    window
        Letters in a window [W].
    site
        0-based index of the site within a window read in its own direction.
    stride
        Letters between the starts of neighboring windows.
    max_ambiguous
        Windows with a larger share of ambiguous letters aren't scored.
    unknown
        Code of an ambiguous letter.
    cutoffs
        Which windows the model reads to the end; None for no prefilter.
    """

    window: int
    site: int
    stride: int
    max_ambiguous: float
    unknown: int
    cutoffs: Cutoffs | None = None

    @property
    def is_position(self) -> bool:
        """Whether a window is one letter: every position is scored."""
        return self.window == 1


class Grid:
    """Positions of the windows of one contig of at least W letters, without its letters.

    Windows run across the origin if it is ``circular``.
    """

    def __init__(self, length: int, rule: WindowRule, *, circular: bool = False) -> None:
        self.length = length
        self.circular = circular
        self.rule = rule
        self.last = self.length - 1 if circular else self.length - rule.window
        self.points = -(-self.last // rule.stride) + 1 if not circular else -(-self.length // rule.stride)

    def offset(self, strand: str) -> int:
        """Distance from the start of a window to its site on the plus strand."""
        return self.rule.site if strand == "+" else self.rule.window - 1 - self.rule.site

    def starts(self, first: int, stop: int, strand: str) -> Ints:
        """Starts of a range of grid windows, in the order of their sites.

        On a circular contig the windows whose sites lie past the origin come first.

        ``first`` and ``stop`` are a half-open range of grid points.
        """
        index = np.arange(first, min(stop, self.points), dtype=np.int64)
        if self.circular:
            wrapped = -(-(self.length - self.offset(strand)) // self.rule.stride)
            index = (index + wrapped) % self.points
        return np.minimum(index * self.rule.stride, self.last)

    def sites(self, starts: Ints, strand: str) -> Ints:
        """Positions of the sites within the contig."""
        sites = starts + self.offset(strand)
        return sites % self.length if self.circular else sites

    def gaps(self, starts: Ints) -> Ints:
        """Letters from each window of the grid to the next; 1 for the last of a linear contig."""
        end = self.length if self.circular else self.last
        return np.maximum(np.minimum(starts + self.rule.stride, end) - starts, 1)

    def around(self, starts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Windows between each window and its neighbors on the grid, at stride 1.

        Both are (n, 2 stride - 1): starts, in the direction of the plus strand along each row, with the
        window itself in the middle, and booleans, False beyond the ends of a linear contig.
        """
        reach = np.arange(1 - self.rule.stride, self.rule.stride, dtype=np.int64)
        near = starts[:, None] + reach
        if self.circular:
            return near % self.length, np.ones(near.shape, dtype=bool)
        return np.clip(near, 0, self.last), (near >= 0) & (near <= self.last)


class ScoredGrid(Grid, ABC):
    """The windows of one contig, with what scores them.

    Only windows whose site lies in ``parts`` and not in ``masked`` are scored; ``scored`` counts them.
    """

    def __init__(
        self,
        length: int,
        rule: WindowRule,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> None:
        super().__init__(length, rule, circular=circular)
        self.scored = 0
        self._parts = parts
        self._masked = masked

    @abstractmethod
    def score(self, starts: Ints, strand: str) -> Floats:
        """Score windows that begin at ``starts`` (n,).

        The probabilities are (n,), NaN for a window that isn't scored: its site is masked or outside the
        parts, or it has too many ambiguous letters.
        """

    @abstractmethod
    def at_sites(self, sites: Ints) -> Codes:
        """Windows of the plus strand at given sites, to compare with training data: (n, W) codes."""

    def letters(self, sites: Ints, strand: str) -> Codes:
        """Letters around sites that calls keep, in reading direction: (n, K) codes."""
        return np.empty((len(sites), 0), dtype=np.uint8)

    def _wanted(self, sites: Ints) -> npt.NDArray[np.bool_]:
        wanted = np.ones(len(sites), dtype=bool)
        if self._parts is not None:
            wanted &= self._parts.contains(sites)
        if self._masked is not None:
            wanted &= ~self._masked.contains(sites)
        return wanted


class ContigWindows(ScoredGrid):
    """All windows of one contig, with their letters.

    The codes are (L,) with L >= W. The prefilter is needed for a rule with cutoffs; what it skips gets its
    own answer as the probability. The other parameters are as in `ScoredGrid`.
    """

    def __init__(
        self,
        codes: Codes,
        rule: WindowRule,
        scorer: Scorer,
        prefilter: StrandAnswers | None = None,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> None:
        super().__init__(len(codes), rule, circular=circular, parts=parts, masked=masked)
        self._scorer, self._prefilter = scorer, prefilter
        self._unrolled = np.concatenate((codes, codes[: rule.window - 1])) if circular else codes
        self._view = np.lib.stride_tricks.sliding_window_view(self._unrolled, rule.window)

    def score(self, starts: Ints, strand: str) -> Floats:
        scores = np.full(len(starts), np.nan)
        chosen = np.flatnonzero(self._wanted(self.sites(starts, strand)))
        chosen = chosen[self._clear(starts[chosen])]
        self.scored += len(chosen)
        if self._prefilter is not None and self.rule.cutoffs is not None and len(chosen):
            answers = self._answers(self._prefilter, starts[chosen], strand)
            scores[chosen] = logistic(answers)
            chosen = chosen[answers >= self.rule.cutoffs.prefilter]
        step = max(1, _BATCH_LETTERS // self.rule.window)
        for chunk in (chosen[i : i + step] for i in range(0, len(chosen), step)):
            codes = self._view[starts[chunk]]
            scores[chunk] = self._scorer(codes if strand == "+" else reverse_complement_codes(codes))
        return scores

    def _answers(self, prefilter: StrandAnswers, starts: Ints, strand: str) -> Floats:
        """What the prefilter answers for windows; those that lie near each other are read as one strand."""
        steps = np.diff(starts, append=-1)
        ends = np.flatnonzero((steps < 1) | (steps > _MAX_GAP)) + 1
        answers = []
        for run in np.split(starts, ends[:-1]):
            codes = self._unrolled[run[0] : run[-1] + self.rule.window]
            if strand == "+":
                answers.append(prefilter(codes)[run - run[0]])
            else:
                answers.append(prefilter(reverse_complement_codes(codes))[run[-1] - run])
        return np.concatenate(answers)

    def at_sites(self, sites: Ints) -> Codes:
        """Windows at given sites, or as near as the contig's ends allow.

        Those with too many ambiguous letters are left out.
        """
        starts = sites - self.offset("+")
        starts = starts % self.length if self.circular else np.clip(starts, 0, self.last)
        return self._view[starts[self._clear(starts)]]

    def _clear(self, starts: Ints) -> npt.NDArray[np.bool_]:
        """Which windows have no more ambiguous letters than allowed."""
        if not len(starts):
            return np.zeros(0, dtype=bool)
        first, window = starts.min(), self.rule.window
        unknown = self._unrolled[first : starts.max() + window] == self.rule.unknown
        before = np.concatenate(([0], np.cumsum(unknown, dtype=np.int32)))
        counts = before[starts - first + window] - before[starts - first]
        return counts / window <= self.rule.max_ambiguous
