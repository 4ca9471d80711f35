"""The tables of a card, as the model file keeps them; what uses them is in `calibration`."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from seqray.core.alphabet import ALPHABETS
from seqray.core.arrays import Floats, Ints, log_probabilities, logistic
from seqray.core.serialization import CardPart

Kingdom = Literal["bacteria", "archaea", "eukaryotes"]
"""What a locator is for."""
MAX_CHAIN_ORDER = 5  # the best of 2 to 7 on windows of 81 letters (docs/concepts/probabilities.md)
SIGNATURE_WORDS = 136  # 4-mers, each counted with its reverse complement
_MAX_WORD = 8
_MAX_MAGNITUDE = 1e9  # far above any logarithm of a share; its square is still finite
_MAX_STEEP = 1e30  # of log-odds and slopes: other engines compute in float32
_MAX_LOG_ODDS = 36.0  # beyond, float64 has no number between the probability and 1
_MAX_SITE_EXTENT = 1_000_000  # letters
_MAX_CUTOFF = 500  # log-odds


def _check(condition: bool | np.bool_, rule: str) -> None:
    if not condition:
        raise ValueError(rule)


def _are_shares(*values: Floats) -> bool:
    return all(bool(((value >= 0) & (value <= 1)).all()) for value in values)


@dataclass(frozen=True, eq=False)
class RisingMap(CardPart):
    """A strictly rising, piecewise linear map of log-odds: isotonic calibration, or with one knot a shift."""

    # float64 (M,); Log-odds of the positive class after and before the map at its knots. Between knots the
    # map is linear, beyond the first and the last it goes on with slope 1, so that no two scores are made
    # equal and no probability becomes 0 or 1
    after: Floats
    before: Floats

    def __post_init__(self) -> None:
        both = self.before, self.after
        fits = self.before.ndim == 1 and self.before.shape == self.after.shape and len(self.before) > 0
        _check(fits and all((abs(v) < _MAX_STEEP).all() for v in both), "is no two lists of knots")
        _check(all((np.diff(v) > 0).all() for v in both), "has knots that don't rise")
        _check((np.diff(self.after) < _MAX_STEEP * np.diff(self.before)).all(), "is too steep")

    def __call__(self, log_odds: Floats) -> Floats:
        """Map log-odds of any shape."""
        beyond = np.minimum(log_odds - self.before[0], 0) + np.maximum(log_odds - self.before[-1], 0)
        return np.interp(log_odds, self.before, self.after) + beyond

    def of_probabilities(self, probabilities: Floats, positive: int) -> Floats:
        """Map a table (N, 2) of probabilities whose column ``positive`` is the positive class."""
        logs = log_probabilities(probabilities)
        mapped = np.clip(self(logs[:, positive] - logs[:, 1 - positive]), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        table = np.empty_like(logs)
        table[:, positive], table[:, 1 - positive] = logistic(mapped), logistic(-mapped)
        return table

    @property
    def inverse(self) -> RisingMap:
        """The map back."""
        return RisingMap(self.before, self.after)


@dataclass(frozen=True, eq=False)
class HeldOutRanks(CardPart):
    """Low order statistics of the probability of the true class, for the held-out examples of a class."""

    n: int  # number of examples
    # (M,) ranks from 1, and the probability at each, rounded down. Of more than 200 examples the lowest 100
    # ranks are kept, then ever fewer; a rank between two takes the lower, which makes sets a little larger,
    # never smaller
    probability: Floats
    rank: Ints

    def __post_init__(self) -> None:
        fits = self.rank.ndim == 1 and self.rank.shape == self.probability.shape and len(self.rank) <= self.n
        rises = (np.diff(self.rank) > 0).all() and (np.diff(self.probability) >= 0).all()
        _check(fits and rises, "has ranks or probabilities that don't rise")
        whole = self.n == 0 or (len(self.rank) > 0 and self.rank[0] == 1 and self.rank[-1] <= self.n)
        _check(whole, "has ranks that its examples don't have")


@dataclass(frozen=True, eq=False)
class WordTable(CardPart):
    """Mean frequency and spread of the words of ``k`` letters; few sequences are beyond the ``limit``."""

    k: int
    limit: float
    mean: Floats
    spread: Floats

    def __post_init__(self) -> None:
        _check(1 <= self.k <= _MAX_WORD, "has words of the wrong size")
        _check(_are_shares(self.mean, self.spread), "has shares of words that no sequences have")


@dataclass(frozen=True, eq=False)
class MarkovChain(CardPart):
    """Markov chain of the training sequences."""

    limit: float
    # (letters**(order + 1),) ln p of the last letter of each word given the others, in hundredths
    log_p: Ints
    mean: float  # see `calibration.domain`
    order: int  # letters that the next one depends on
    spread: float
    within: float

    def __post_init__(self) -> None:
        numbers = np.append(self.log_p, [self.limit, self.mean, self.spread, self.within])
        _check(1 <= self.order <= MAX_CHAIN_ORDER, "is a chain of the wrong size")
        _check((np.abs(numbers) < _MAX_MAGNITUDE).all(), "is a chain of impossible numbers")


@dataclass(frozen=True, eq=False)
class ContextWords(CardPart):
    """4-mers of a context, None for all data: ``shares`` (classes, 136) are in hundred-thousandths."""

    context: str | None
    shares: Ints
    words: int

    def __post_init__(self) -> None:
        fits = self.shares.ndim == 2 and self.shares.shape[1] == SIGNATURE_WORDS
        _check(fits and (self.shares.sum(axis=1) > 0).all(), "is a signature of the wrong size")


@dataclass(frozen=True, eq=False)
class CalibrationDomain(CardPart):
    """What the data of a later calibration looked like, with the share of sequences by flag; no flag is 0."""

    flags: dict[str, float]
    signature: tuple[ContextWords, ...] | None = None

    def __post_init__(self) -> None:
        _check(all(0 <= share <= 1 for share in self.flags.values()), "has shares that no sequences have")
        _check(self.signature is None or len(self.signature) > 0, "has a signature of no context")


@dataclass(frozen=True, eq=False)
class Sketch(CardPart):
    """The lowest hashes of sequences or words, base64 of uint32; all below ``limit`` are among them."""

    hashes: str
    limit: int

    def __post_init__(self) -> None:
        _check(self.numbers.max(initial=0) < self.limit, "has a hash above the limit")

    @property
    def numbers(self) -> np.ndarray:
        """The hashes: uint32 (M,), sorted."""
        return np.frombuffer(base64.b64decode(self.hashes, validate=True), dtype="<u4")


@dataclass(frozen=True, eq=False)
class Domain(CardPart):
    """What the training sequences looked like."""

    alphabet: Literal["dna", "rna", "protein"]  # name of the alphabet, and shortest and longest sequence
    length: tuple[int, ...]
    words: tuple[WordTable, ...]  # letter composition and, for nucleotides, the composition of 3-letter words
    calibrated: Sketch | None = None
    # of the data that `seqray calibrate` used: what they looked like, and a sample of them
    calibration: CalibrationDomain | None = None
    # of nucleotides, to judge a sequence and a whole file; None in older cards
    chain: MarkovChain | None = None
    # of a locator: a sample of the words of each genome, by species; None in older cards
    genomes: dict[str, Sketch] | None = None
    learned: Sketch | None = None  # A sample of the training sequences; None in older cards
    signature: tuple[ContextWords, ...] | None = None

    def __post_init__(self) -> None:
        _check(len(self.length) == 2, "has no two lengths")
        letters = len(ALPHABETS[self.alphabet].letters)
        sizes = [(table.k, table.mean.shape, table.spread.shape) for table in self.words]
        _check(all(a == b == (letters**k,) for k, a, b in sizes), "has a word table of the wrong size")
        fits = self.chain is None or self.chain.log_p.shape == (letters ** (self.chain.order + 1),)
        _check(fits, "has a chain of the wrong size")
        _check(self.signature is None or len(self.signature) > 0, "has a signature of no context")


@dataclass(frozen=True, eq=False, kw_only=True)
class SpeciesTable(CardPart):
    """Figures of a locator on one species by threshold; ``genes`` says whether it was given genes."""

    genes: bool
    held_out: Literal["region", "species"]
    kilobases: float | None = None  # what was searched, and the mapped sites there
    rows: Floats  # (M, 6): threshold, calls per kb, recall, precision and its interval; thresholds fall
    sites: int | None = None
    # its name, and ``region`` where other parts of its genome were seen in training, else ``species``
    species: str

    def __post_init__(self) -> None:
        rows, name = self.rows, self.species
        _check(rows.ndim == 2 and rows.shape[1] == 6 and len(rows) > 0, f"has no table of {name}")
        _check((np.diff(rows[:, 0]) < 0).all(), f"has thresholds of {name} that don't fall")
        in_order = (rows[:, 1] >= 0).all() and (rows[:, 4] <= rows[:, 5]).all()
        _check(in_order and _are_shares(rows[:, [0, 2, 3, 4, 5]]), f"has a figure of {name} out of range")


@dataclass(frozen=True, eq=False)
class LocatorFacts(CardPart):
    """Of a locator: how calls are drawn, and what to expect of them on mapped sites that were held out."""

    expected: tuple[SpeciesTable, ...] = ()  # recall and precision by species
    extent: tuple[int, ...] = (0, 0)  # letters that a call spans before and behind its site
    threshold_without_genes: float | None = None  # where no genes are known; the card's threshold by default
    # letters between a call and a mapped site within which the call counts as right
    tolerance: int | None = None
    kingdom: str | None = None  # that it is for; bacteria by default

    def __post_init__(self) -> None:
        fits = len(self.extent) == 2 and all(0 <= n < _MAX_SITE_EXTENT for n in self.extent)
        _check(fits, "has an extent that is no pair of numbers of letters")
        _check(0 <= (self.threshold_without_genes or 0) <= 1, "has a threshold outside 0 to 1")
        _check((self.tolerance or 0) >= 0, "has a tolerance below 0")
        _check(self.kingdom in (None, *get_args(Kingdom)), "is for an unknown kingdom")
        _check(not self.expected or self.tolerance is not None, "has no tolerance")

    @property
    def introns(self) -> bool:
        """Whether genes have introns, so that they can't be predicted."""
        return self.kingdom == "eukaryotes"


@dataclass(frozen=True, eq=False, kw_only=True)
class PrefilterFacts(CardPart):
    """Of a model with a prefilter: what a window must answer to be read further, in log-odds."""

    learned_from: int | None = None  # numbers of windows and letters, and the seed of the training
    letters: int | None = None
    # (L, 3): rising thresholds, the cutoff of the prefilter at each, and the share of windows that pass
    levels: Floats
    lost: float | None = None  # share of the windows at or above a threshold that the prefilter loses
    measured_on: int | None = None
    # (L, members - 1) and (L,) cutoffs of the first members, and of the second network, if there is one
    members: Floats | None = None
    second: Floats | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        fits = self.levels.ndim == 2 and self.levels.shape[1] == 3 and len(self.levels) > 0
        _check(fits and _are_shares(self.levels[:, [0, 2]]), "has levels that are no thresholds and shares")
        thresholds = self.levels[:, :1]
        _check((np.diff(thresholds, axis=0) > 0).all(), "has levels that are not by ascending threshold")
        for name, cutoffs in (
            ("levels", self.levels[:, 1]),
            ("members", self.members),
            ("second", self.second),
        ):
            if cutoffs is not None:
                _check((abs(cutoffs) <= _MAX_CUTOFF).all(), f"has {name} beyond all log-odds")
                rows = cutoffs.reshape(len(cutoffs), -1)
                below = len(rows) == len(thresholds) and (1 / (1 + np.exp(-rows)) < thresholds).all()
                _check(below, f"has {name} without a cutoff below each threshold")
        _check(0 <= (self.lost or 0) <= 1, "has a share lost outside 0 to 1")
