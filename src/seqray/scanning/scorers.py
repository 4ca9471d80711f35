"""What scores the contigs of a scan: windows by a classifier, or every position by a locator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from seqray.calibration.domain import out_of_domain
from seqray.calibration.expected_precision import ExpectedPrecision
from seqray.core.alphabet import Alphabet, reverse_complement_codes
from seqray.core.arrays import (
    MIN_DISTANCE_OF_LOCATORS,
    MIN_DISTANCE_OF_WINDOWS,
    Bools,
    Codes,
    Floats,
    Ints,
    logistic,
)
from seqray.core.boxes import MAX_REACH
from seqray.core.card import Card
from seqray.core.card_parts import LocatorFacts, PrefilterFacts
from seqray.core.errors import ConfigError, InputError, setting
from seqray.core.records import Intervals
from seqray.genome.genes import Annotation, Gene, named_tracks
from seqray.inference.locators import Strand, StrandScorer
from seqray.inference.origin import CAUTION
from seqray.inference.sequences import BatchSize, Dtype, cascade_log_odds, prefilter_log_odds, score_codes
from seqray.modelfile.model import TrainedModel
from seqray.scanning.contigs import OpenContig
from seqray.scanning.options import STRIDE, ScanOptions

LETTERS_BEFORE, LETTERS_AFTER = MAX_REACH, 20
"""Letters on either side of a site that a locator's calls keep."""


class Scorer(ABC):
    """A model that is moved along contigs as the options say, made once a run.

    Peaks are collected down to ``threshold``; ``extent``: letters of a call; ``annotation`` is None without
    genes; ``out_of_domain``: which codes (N, W) are unlike training (N,).
    """

    from_positions = False
    unit = "windows"
    null_mb = 1.0
    halo = 2  # smallest distances scored around a part, from where peaks may be suppressed
    around = 0  # letters that a call keeps

    def __init__(
        self,
        options: ScanOptions,
        *,
        grid: tuple[int, int, int],
        extent: tuple[int, int],
        min_distance: int,
        threshold: float,
        label: str,
        alphabet: Alphabet,
        max_ambiguous: float = 0.0,
        annotation: Annotation | None = None,
        out_of_domain: Callable[[Codes], Bools] | None = None,
        limits: Iterable[str] = (),
        figures: LocatorFacts | None = None,
    ) -> None:
        self.options, self.grid, self.extent = options, grid, extent
        self.max_ambiguous = max_ambiguous
        self.window, self.site, self.stride = grid
        self.min_distance = options.min_distance or min_distance
        self.threshold = options.lowest_threshold(threshold)
        self.label, self.alphabet, self.annotation = label, alphabet, annotation
        self.out_of_domain, self.limits, self.figures = out_of_domain, [*limits], figures
        self.cutoffs: Cutoffs | None = None

    def open(
        self,
        codes: Codes,
        genes: tuple[Gene, ...] | None = None,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> OpenContig:
        """A contig (L,), ready to be scored, see `OpenContig`."""
        return OpenContig(
            codes,
            self.grid,
            self.alphabet.unknown,
            self.max_ambiguous,
            genes=genes,
            circular=circular,
            parts=parts,
            masked=masked,
        )

    def score(self, contig: OpenContig, strand: str, starts: Ints) -> Floats:
        """Score the windows that begin at ``starts`` (n,): from 0 to 1, NaN for one that isn't scored."""
        scores = np.full(len(starts), np.nan)
        chosen = contig.choose(starts, strand)
        contig.scored += len(chosen)
        if len(chosen):
            scores[chosen] = self._compute(contig, strand, starts[chosen])
        return scores

    @abstractmethod
    def _compute(self, contig: OpenContig, strand: str, starts: Ints) -> Floats:
        """Scores of windows (n,), at least one."""

    def letters(self, contig: OpenContig, strand: str, sites: Ints) -> Codes:
        """Letters around sites that calls keep, in reading direction: (n, K) codes."""
        return np.empty((len(sites), 0), dtype=np.uint8)

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """What is scored, for the header of every output."""

    def running(self) -> AbstractContextManager[None]:
        """What is needed while contigs are scored."""
        return nullcontext()


# --- A locator, which scores every position by its letters and genes


class LocatorScorer(Scorer):
    """A locator, made by `make_scorer`."""

    from_positions = True
    unit = "positions"
    null_mb = 0.0
    halo = 40
    around = LETTERS_BEFORE + 1 + LETTERS_AFTER

    def __init__(
        self,
        options: ScanOptions,
        model: TrainedModel,
        dtype: Dtype = "fp32",
        annotation: Annotation | None = None,
    ) -> None:
        card = model.card
        self._tracks, self._strands = card.model.tracks, StrandScorer(model, dtype)
        annotation = annotation if self._tracks else None
        without, (before, after) = card.locator.threshold_without_genes, card.locator.extent
        without = card.threshold if without is None else without
        super().__init__(
            options,
            grid=(1, 0, 1),
            extent=(int(before), int(after)),
            min_distance=MIN_DISTANCE_OF_LOCATORS,
            threshold=_locator_threshold(
                card, options, without if annotation is None else card.threshold, annotation
            ),
            label=card.positive,
            alphabet=model.alphabet,
            annotation=annotation,
            figures=card.locator,
        )

    def _compute(self, contig: OpenContig, strand: str, starts: Ints) -> Floats:
        if strand not in contig.strands:
            codes = contig.codes if strand == "+" else reverse_complement_codes(contig.codes)
            at = {"length": len(codes), "strand": strand, "circular": contig.circular}
            tracks = named_tracks(self._tracks, contig.genes, **at)
            contig.strands = {strand: Strand(codes, tracks, contig.circular)}
        places = starts if strand == "+" else contig.length - 1 - starts
        return self._strands.at(contig.strands[strand], places)

    def letters(self, contig: OpenContig, strand: str, sites: Ints) -> Codes:
        offsets = np.arange(-LETTERS_BEFORE, LETTERS_AFTER + 1)
        places = sites[:, None] + (offsets if strand == "+" else -offsets)
        codes = contig.codes[places % contig.length]
        if not contig.circular:
            codes[(places < 0) | (places >= contig.length)] = self.alphabet.unknown
        return codes if strand == "+" else reverse_complement_codes(codes[:, ::-1])

    def facts(self) -> dict[str, str]:
        return {
            "positions": f"each, from the {self._strands.radius} bases on either side",
            "genes": "not known" if self.annotation is None else self.annotation.source,
            "ambiguous bases": "positions with N or another ambiguity code are not scored",
        }

    def running(self) -> AbstractContextManager[None]:
        return self._strands.running()


def _locator_threshold(
    card: Card, options: ScanOptions, default: float, annotation: Annotation | None
) -> float:
    """The lowest threshold at which the precision that was asked for is to be expected, else the default."""
    if options.precision is None and options.species is None and options.trust is None:
        return float(default)
    genes, species = annotation is not None, options.species
    how = "with genes" if genes else "without genes"
    expected = ExpectedPrecision(card.locator)
    measured = sorted({table.species for table in expected.tables if table.genes == genes})
    if not measured:
        remedy = "give a threshold or calls per kb"
        raise ConfigError(f"the model's description states no precision {how}", remedy=remedy)
    if species is not None and species not in measured:
        alike = [name for name in measured if species.casefold() in name.casefold()]
        raise ConfigError(
            f"the precision of '{species}' was not measured {how}",
            remedy=f"did you mean '{alike[0]}'?" if alike else f"measured were {', '.join(measured)}",
        )
    if options.precision is None:
        return float(default)
    threshold = expected.threshold_for(options.precision, genes, species)
    if threshold is None:
        remedy = f"give a lower precision: the highest is {expected.highest_precision(genes, species):.2f}"
        if species is None and len({table.species for table in expected.tables}) > 1:
            remedy += ", the median over species"
            remedy += f"; a species that was measured may reach more ({setting('species', 'NAME')})"
        raise ConfigError(
            f"no threshold is expected to reach a precision of {options.precision:g} {how}", remedy=remedy
        )
    return threshold


# --- A classifier of windows, which a prefilter may spare most of them

MAX_PASSED_SHARE = 0.1  # of the windows; stride 10 scores as many: a prefilter that passes more is left out
_MAX_GAP = 1024  # windows between two of one strand: a strand costs about as many, however short
# Letters gathered for one call of the model: 4 MB, so that codes and scores stay in the processor's cache.
_BATCH_LETTERS = 1 << 22

WindowScores = Callable[[Codes], npt.NDArray[np.floating]]
"""Codes (N, W) to the probability of the positive class (N,); each answer depends on its own row alone."""
StrandAnswers = Callable[[Codes], npt.NDArray[np.floating]]
"""Codes (L,) to what the prefilter answers for each window (L - W + 1,), in log-odds."""


@dataclass(frozen=True)
class Cutoffs:
    """Log-odds at which a window is read on, of the prefilter and members: see `cascade_log_odds`."""

    prefilter: float
    second: float | None = None
    members: tuple[float, ...] = ()
    passed: float = 0.0

    @classmethod
    def at(cls, facts: PrefilterFacts, threshold: float) -> Self:
        """Those of the highest level that a threshold reaches; ``facts`` are the prefilter's of the card."""
        levels = facts.levels.tolist()
        second = [None] * len(levels) if facts.second is None else facts.second.tolist()
        members = [()] * len(levels) if facts.members is None else facts.members.tolist()
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


class WindowScorer(Scorer):
    """A classifier of windows of fixed length; ``site`` is None for the middle.

    ``cascade`` gives windows up by ``cutoffs`` of a threshold; ``missed`` is the share that may be skipped.
    """

    def __init__(
        self,
        options: ScanOptions,
        *,
        score: WindowScores,
        window: int,
        site: int | None,
        threshold: float,
        prefilter: StrandAnswers | None = None,
        cutoffs: Callable[[float], Cutoffs] | None = None,
        cascade: Callable[[Cutoffs], WindowScores] | None = None,
        missed: float = 0.0,
        **others: Any,
    ) -> None:
        at = None
        if cutoffs is not None and options.prefilter != "none" and options.stride is None:
            at = cutoffs(options.lowest_threshold(threshold))
            at = at if at.is_selective else None  # too many windows would pass
        anchor = window // 2 if site is None else site
        super().__init__(
            options,
            grid=(window, anchor, options.stride or (STRIDE if at is None else 1)),
            extent=(anchor, window - 1 - anchor),
            min_distance=MIN_DISTANCE_OF_WINDOWS,
            threshold=threshold,
            max_ambiguous=options.max_ambiguous,
            **others,
        )
        self.cutoffs, self._prefilter, self._missed = at, prefilter, missed
        self._states_site = site is not None
        self._score = cascade(at) if cascade and at else score

    def _compute(self, contig: OpenContig, strand: str, starts: Ints) -> Floats:
        scores, read = np.empty(len(starts)), np.arange(len(starts))
        if self._prefilter is not None and self.cutoffs is not None:
            answers = self._answers(self._prefilter, contig, strand, starts)
            scores, read = logistic(answers), np.flatnonzero(answers >= self.cutoffs.prefilter)
        step = max(1, _BATCH_LETTERS // self.window)
        for chunk in (read[i : i + step] for i in range(0, len(read), step)):
            codes = contig.windows[starts[chunk]]
            scores[chunk] = self._score(codes if strand == "+" else reverse_complement_codes(codes))
        return scores

    def _answers(self, prefilter: StrandAnswers, contig: OpenContig, strand: str, starts: Ints) -> Floats:
        """What the prefilter answers for windows; those that lie near each other are read as one strand."""
        steps = np.diff(starts, append=-1)
        ends = np.flatnonzero((steps < 1) | (steps > _MAX_GAP)) + 1
        answers = []
        for run in np.split(starts, ends[:-1]):
            codes = contig.unrolled[run[0] : run[-1] + self.window]
            if strand == "+":
                answers.append(prefilter(codes)[run - run[0]])
            else:
                answers.append(prefilter(reverse_complement_codes(codes))[run[-1] - run])
        return np.concatenate(answers)

    def facts(self) -> dict[str, str]:
        site = f"index {self.site} of the window of {self.window}, 0-based"
        windows = f"{self.window} bases, stride {self.stride}"
        if self.cutoffs is None:
            windows += ", refined at stride 1" if self.stride > 1 else ""
        else:
            windows += "; the prefilter skips those that can hardly reach the threshold, and misses about "
            windows += f"{self._missed:.2g} of those that do"
        return {
            "windows": windows,
            "site": site if self._states_site else f"{site}: its middle, since the model names no site",
            "ambiguous bases": f"windows with more than {self.max_ambiguous:.3g} of them are not scored",
        }


def _window_limits(card: Card, options: ScanOptions) -> Iterator[str]:
    """Say what a model of windows was not made for."""
    if (others := len(card.classes) - 1) > 1:
        yield f"only the class '{card.positive}' is searched, none of the {others} others"
    if card.site is None:
        yield "the model does not state where a site lies in its windows: calls state the middle"
    if options.threshold is None and options.fdr is None and "scan_threshold" not in card.info:
        yield (
            f"{CAUTION}the threshold {card.scan_threshold:.3g} is that for single windows, of which "
            f"{card.prevalence:.0%} were sites; in a genome nearly all are not, so most calls may be false: "
            f"choose by {setting('fdr')} or {setting('threshold')}"
        )


# --- The scorer of a model, and the options that it takes


def make_scorer(
    model: TrainedModel,
    options: ScanOptions,
    *,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
    genes: Annotation | None = None,
) -> Scorer:
    """The scorer of a model over nucleotides: of positions for a locator, which has genes, or of windows."""
    card = model.card
    if not model.alphabet.is_nucleotide:
        what = f"the model '{card.name}' reads {model.alphabet.name}"
        raise InputError(what, remedy="scan takes DNA or RNA models")
    if model.is_locator:
        return LocatorScorer(options, model, dtype, genes)
    model.check_reads_sequences()

    def score(codes: Codes) -> Floats:
        return score_codes(model, codes, batch_size=batch_size, dtype=dtype)[:, card.positive_index]

    def cascade(cutoffs: Cutoffs) -> WindowScores:
        how = {"second": cutoffs.second, "batch_size": batch_size, "dtype": dtype}
        return lambda codes: logistic(cascade_log_odds(model, codes, cutoffs.members, **how)[:, -1])

    facts, domain = card.prefilter, card.domain
    return WindowScorer(
        options,
        score=score,
        cascade=cascade,
        window=card.window,
        site=card.site,
        prefilter=partial(prefilter_log_odds, model) if model.prefilter else None,
        cutoffs=partial(Cutoffs.at, facts) if facts and model.prefilter else None,
        missed=(facts.lost or 0.0) if facts else 0.0,
        threshold=card.scan_threshold,
        label=card.positive,
        alphabet=model.alphabet,
        out_of_domain=partial(out_of_domain, domain) if domain else None,
        limits=_window_limits(card, options),
    )
