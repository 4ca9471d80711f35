"""What scores a contig: windows or positions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from seqray.calibration.domain import Domain
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
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import Intervals
from seqray.genome.genes import Gene
from seqray.genome.tracks import gene_tracks, track_rows
from seqray.inference.locators import CHUNK, Strand, StrandScorer
from seqray.inference.predictions import BatchSize, Dtype
from seqray.inference.prefilters import cascade_log_odds, prefilter_log_odds
from seqray.inference.sequences import score_codes
from seqray.modelfile.model import TrainedModel
from seqray.scanning.calls import LETTERS_AFTER, LETTERS_BEFORE
from seqray.scanning.genes import GeneSource
from seqray.scanning.options import STRIDE, ScanOptions
from seqray.scanning.windows import ContigWindows, Cutoffs, ScoredGrid, Scorer, StrandAnswers, WindowRule

# --- What is moved along a sequence: a model of windows, or one that scores every position


@dataclass(frozen=True, kw_only=True)
class Detector(ABC):
    """A model that finds sites along contigs.

    Attributes
    ----------
    threshold
        Score at and above which a site is called.
    label
        Name of the positive class.
    alphabet
        Of the codes.
    genes
        Where genes are from; None where none are known, or the model reads none.
    out_of_domain
        Codes (N, W) to booleans (N,): which windows differ from its training data; None if unknown.
    """

    threshold: float
    label: str
    alphabet: Alphabet
    genes: GeneSource | None = None
    out_of_domain: Callable[[Codes], Bools] | None = None

    refused_options: ClassVar[frozenset[str]]
    null_mb: ClassVar[float]
    halo: ClassVar[int]  # smallest distances scored around a part, from where peaks may be suppressed
    unit: ClassVar[str]
    min_distance: ClassVar[int]  # of two calls, where the options give none
    around: ClassVar[int] = 0  # letters that a call keeps

    @property
    @abstractmethod
    def extent(self) -> tuple[int, int]:
        """Letters of a call before its site and after it, in reading direction."""

    @abstractmethod
    def rule(self, options: ScanOptions) -> WindowRule:
        """What a window is."""

    @abstractmethod
    def open(
        self,
        codes: Codes,
        rule: WindowRule,
        genes: tuple[Gene, ...] | None = None,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> ScoredGrid:
        """Make the windows of one contig.

        Parameters
        ----------
        codes
            (L,) codes.
        rule
            What a window is.
        genes
            Of the contig; None where they are not known.
        circular, parts, masked
            As in `ScoredGrid`.
        """

    def default_threshold(self, options: ScanOptions) -> float:
        """Threshold where the options give none."""
        return self.threshold

    def distance(self, options: ScanOptions) -> int:
        """Smallest distance between two calls of a strand."""
        return self.min_distance if options.min_distance is None else options.min_distance

    @abstractmethod
    def facts(self, options: ScanOptions) -> dict[str, str]:
        """What is scored, for the header of every output."""

    def running(self) -> AbstractContextManager[None]:
        """What is needed while contigs are scored."""
        return nullcontext()


# --- The positions of one contig that a locator scores: windows of one letter, which is their site

ChunkScorer = Callable[[Strand, list[int]], list[Floats]]
"""A strand and numbers of chunks to the scores in each, see `seqray.inference.StrandScorer.chunks`."""


class ContigPositions(ScoredGrid):
    """All positions of one contig, with its letters and its genes.

    An unknown letter gets no score.

    The rule has windows of one letter. ``strand_of`` makes one strand, with its gene tracks, of ``+`` or
    ``-`` and the codes in its direction. The other parameters are as in `ScoredGrid`.
    """

    def __init__(
        self,
        codes: Codes,
        rule: WindowRule,
        strand_of: Callable[[str, Codes], Strand],
        scorer: ChunkScorer,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> None:
        super().__init__(len(codes), rule, circular=circular, parts=parts, masked=masked)
        self._codes, self._strand_of, self._scorer = codes, strand_of, scorer
        self._open = "", Strand(codes)
        self._kept: dict[int, Floats] = {}  # the chunks scored last: two pieces may share one

    def score(self, starts: Ints, strand: str) -> Floats:
        scores = np.full(len(starts), np.nan)
        wanted = np.flatnonzero(self._wanted(starts) & (self._codes[starts] != self.rule.unknown))
        places = starts[wanted] if strand == "+" else self.length - 1 - starts[wanted]
        numbers = places // CHUNK
        needed = np.flatnonzero(np.bincount(numbers)).tolist()
        chunks = self._chunks(strand, needed)
        for number in needed:
            here = numbers == number
            scores[wanted[here]] = chunks[number][places[here] - number * CHUNK]
        self.scored += len(wanted)
        return scores

    def _chunks(self, strand: str, needed: list[int]) -> dict[int, Floats]:
        if self._open[0] != strand:
            codes = self._codes if strand == "+" else reverse_complement_codes(self._codes)
            self._open, self._kept = (strand, self._strand_of(strand, codes)), {}
        missing = [number for number in needed if number not in self._kept]
        found = dict(zip(missing, self._scorer(self._open[1], missing), strict=True))
        self._kept = {n: found[n] if n in found else self._kept[n] for n in needed}
        return self._kept

    def at_sites(self, sites: Ints) -> Codes:
        return self._codes[sites][:, None]

    def letters(self, sites: Ints, strand: str) -> Codes:
        offsets = np.arange(-LETTERS_BEFORE, LETTERS_AFTER + 1)
        places = sites[:, None] + (offsets if strand == "+" else -offsets)
        codes = self._codes[places % self.length]
        if not self.circular:
            codes[(places < 0) | (places >= self.length)] = self.rule.unknown
        return codes if strand == "+" else reverse_complement_codes(codes[:, ::-1])


# --- A locator, which scores every position of a sequence


@dataclass(frozen=True, kw_only=True)
class PositionDetector(Detector):
    """A locator, which scores every position.

    Attributes
    ----------
    radius
        Letters on either side of a position that can change its score.
    tracks
        Rows of `seqray.annotation.gene_tracks` that the model reads.
    spans
        Letters of a call before its site and after it.
    run
        Opens what is needed while contigs are scored.
    expected
        What the card says of the precision of calls; None if nothing.
    """

    scorer: ChunkScorer
    radius: int
    tracks: tuple[int, ...] = ()
    spans: tuple[int, int] = (0, 0)
    run: Callable[[], AbstractContextManager[None]] = nullcontext
    expected: ExpectedPrecision | None = None

    refused_options = frozenset({"stride", "prefilter", "fdr", "max_ambiguous"})
    null_mb = 0.0
    halo = 40
    min_distance = MIN_DISTANCE_OF_LOCATORS
    unit = "positions"
    around = LETTERS_BEFORE + 1 + LETTERS_AFTER

    @property
    def extent(self) -> tuple[int, int]:
        return self.spans

    def rule(self, options: ScanOptions) -> WindowRule:
        return WindowRule(1, 0, 1, 0.0, self.alphabet.unknown)

    def open(
        self,
        codes: Codes,
        rule: WindowRule,
        genes: tuple[Gene, ...] | None = None,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> ContigPositions:
        def strand_of(strand: str, letters: Codes) -> Strand:
            if genes is None or not self.tracks:
                return Strand(letters, circular=circular)
            rows = gene_tracks(genes, len(letters), strand, circular=circular)
            if self.tracks != tuple(range(len(rows))):  # a copy is as large as ten contigs
                rows = rows[list(self.tracks)]
            return Strand(letters, rows, circular)

        return ContigPositions(
            codes, rule, strand_of, self.scorer, circular=circular, parts=parts, masked=masked
        )

    def facts(self, options: ScanOptions) -> dict[str, str]:
        return {
            "positions": f"each, from the {self.radius} letters on either side",
            "genes": "not known" if self.genes is None else self.genes.source,
            "ambiguous letters": "positions with N or another ambiguity code are not scored",
        }

    def running(self) -> AbstractContextManager[None]:
        return self.run()

    def default_threshold(self, options: ScanOptions) -> float:
        """That of the card, or the lowest at which a precision is to be expected.

        Raises `ConfigError` for a precision that no threshold reaches, a species that was not measured, and a
        card that says nothing of it.
        """
        genes = self.genes is not None
        if options.precision is None:
            if options.species is not None:
                self._expected_for(options.species, genes)
            return self.threshold
        expected = self._expected_for(options.species, genes)
        found = expected.threshold_for(options.precision, genes, options.species)
        if found is None:
            highest = expected.highest_precision(genes, options.species)
            remedy = f"give a lower precision: the highest is {highest:.2f}"
            if options.species is None and len({table.species for table in expected.tables}) > 1:
                remedy += ", the median over species"
                remedy += "; a species that was measured may reach more (species='NAME')"
            raise ConfigError(
                f"no threshold is expected to reach a precision of {options.precision:g} {_how(genes)}",
                remedy=remedy,
            )
        return found

    def _expected_for(self, species: str | None, genes: bool) -> ExpectedPrecision:
        """What the card says of a species. Raises `ConfigError` where it says nothing."""
        tables = self.expected.tables if self.expected else ()
        known = sorted({table.species for table in tables if table.genes == genes})
        if self.expected is None or not known:
            raise ConfigError(
                f"the model's card states no precision {_how(genes)}",
                remedy="give a threshold or calls per kb",
            )
        if species is None or species in known:
            return self.expected
        alike = [name for name in known if species.casefold() in name.casefold()]
        raise ConfigError(
            f"the precision of '{species}' was not measured {_how(genes)}",
            remedy=f"did you mean '{alike[0]}'?" if alike else f"measured were {', '.join(known)}",
        )


def _how(genes: bool) -> str:
    return "with genes" if genes else "without genes"


def position_detector(model: TrainedModel, dtype: Dtype, genes: GeneSource | None) -> PositionDetector:
    """The detector of a locator. Raises `ConfigError` for gene tracks that are not known."""
    card, scorer = model.card, StrandScorer(model, dtype)
    tracks = tuple(track_rows(card.model.tracks))
    without = card.locator.get("threshold_without_genes", card.threshold)
    before, after = card.locator.get("extent", (0, 0))
    return PositionDetector(
        scorer=scorer.chunks,
        run=scorer.running,
        radius=max(network.radius for network in model.locators),
        tracks=tracks,
        spans=(int(before), int(after)),
        expected=ExpectedPrecision.from_mapping(card.locator) if "expected" in card.locator else None,
        genes=genes if tracks else None,
        threshold=float(card.threshold if genes is not None and tracks else without),
        label=card.positive,
        alphabet=model.alphabet,
    )


# --- A classifier that is moved along a sequence, window by window


@dataclass(frozen=True, kw_only=True)
class WindowDetector(Detector):
    """A classifier of windows of fixed length.

    Attributes
    ----------
    score
        Codes (N, W) to probabilities of the positive class (N,).
    window
        Letters per window [W].
    site
        Index of the site within the window; None for the middle.
    prefilter
        Codes of a strand to what the prefilter answers; None for a model without one.
    cutoffs
        Threshold to what windows must reach there to be read further.
    cascade
        Cutoffs to what scores like `score`, but gives windows up, see `cascade_log_odds`.
    missed
        Share of the windows at or above a threshold that may be skipped.
    """

    score: Scorer
    window: int
    site: int | None
    prefilter: StrandAnswers | None = None
    cutoffs: Callable[[float], Cutoffs] | None = None
    cascade: Callable[[Cutoffs], Scorer] | None = None
    missed: float = 0.0

    refused_options = frozenset({"genes", "codon_table", "per_kb", "precision", "species"})
    null_mb = 1.0
    halo = 2
    min_distance = MIN_DISTANCE_OF_WINDOWS
    unit = "windows"

    @property
    def anchor(self) -> int:
        """Index of the site within the window; the middle where the model has none."""
        return self.window // 2 if self.site is None else self.site

    @property
    def extent(self) -> tuple[int, int]:
        return self.anchor, self.window - 1 - self.anchor

    def rule(self, options: ScanOptions) -> WindowRule:
        cutoffs = self._cutoffs(options)
        stride = options.stride or (STRIDE if cutoffs is None else 1)
        return WindowRule(
            self.window, self.anchor, stride, options.max_ambiguous, self.alphabet.unknown, cutoffs
        )

    def _cutoffs(self, options: ScanOptions) -> Cutoffs | None:
        """Those at the lowest threshold; None where too many windows would pass."""
        if self.cutoffs is None or options.prefilter == "none" or options.stride is not None:
            return None
        found = self.cutoffs(options.lowest_threshold(self.default_threshold(options)))
        return found if found.is_selective else None

    def open(
        self,
        codes: Codes,
        rule: WindowRule,
        genes: tuple[Gene, ...] | None = None,
        *,
        circular: bool = False,
        parts: Intervals | None = None,
        masked: Intervals | None = None,
    ) -> ContigWindows:
        score = self.cascade(rule.cutoffs) if self.cascade and rule.cutoffs else self.score
        return ContigWindows(
            codes, rule, score, self.prefilter, circular=circular, parts=parts, masked=masked
        )

    def facts(self, options: ScanOptions) -> dict[str, str]:
        site = f"index {self.anchor} of the window of {self.window}, 0-based"
        rule = self.rule(options)
        windows = f"{self.window} letters, stride {rule.stride}"
        if rule.cutoffs is None:
            windows += ", refined at stride 1" if rule.stride > 1 else ""
        else:
            windows += "; the prefilter skips those that can hardly reach the threshold, and misses about "
            windows += f"{self.missed:.2g} of those that do"
        return {
            "windows": windows,
            "site": site if self.site is not None else f"{site}: its middle, since the model names no site",
            "ambiguous letters": f"windows with more than {options.max_ambiguous:.3g} of them are not scored",
        }


def window_detector(model: TrainedModel, batch_size: BatchSize, dtype: Dtype) -> WindowDetector:
    """The detector of a classifier of sequences. Raises `ConfigError` for a model that reads others."""
    model.check_reads_sequences()
    positive = model.card.positive_index

    def score(codes: Codes) -> Floats:
        return score_codes(model, codes, batch_size=batch_size, dtype=dtype)[:, positive]

    def cascade(cutoffs: Cutoffs) -> Scorer:
        def score(codes: Codes) -> Floats:
            answers = cascade_log_odds(
                model, codes, cutoffs.members, second=cutoffs.second, batch_size=batch_size, dtype=dtype
            )
            return logistic(answers[:, -1])

        return score

    domain = Domain.of(model.card)
    return WindowDetector(
        score=score,
        cascade=cascade,
        window=model.card.window,
        site=model.card.site,
        prefilter=partial(prefilter_log_odds, model) if model.prefilter else None,
        cutoffs=partial(Cutoffs.at, model.card.prefilter) if model.prefilter else None,
        missed=model.card.prefilter.get("lost", 0.0),
        threshold=model.card.scan_threshold,
        label=model.card.positive,
        alphabet=model.alphabet,
        out_of_domain=domain.out_of_domain if domain else None,
    )


# --- The detector of a model, and the options that it takes


def make_detector(
    model: TrainedModel,
    *,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
    genes: GeneSource | None = None,
) -> Detector:
    """Make the detector of a model: of positions for a locator, else of windows.

    Raises `InputError` for a protein model, because proteins have no strands.

    Parameters
    ----------
    model
        Over nucleotides.
    batch_size, dtype
        As in `seqray.inference.predict_records`.
    genes
        For a locator; None where they are not known.
    """
    if not model.alphabet.is_nucleotide:
        raise InputError(
            f"the model '{model.card.name}' reads {model.alphabet.name}",
            remedy="scan takes DNA or RNA models",
        )
    if model.is_locator:
        return position_detector(model, dtype, genes)
    return window_detector(model, batch_size, dtype)


def check_scan_options(card: Card, given: Iterable[str]) -> None:
    """Refuse options that this kind of model does not take.

    Parameters
    ----------
    card
        Of the model.
    given
        Names of fields (``per_kb``), or of options (``--per-kb``); an error repeats them.

    Raises
    ------
    ConfigError
        For the first such option.
    """
    is_locator = card.model.kind == "locator"
    own, other = (PositionDetector, "models of windows") if is_locator else (WindowDetector, "locators")
    for option in given:
        if option.removeprefix("--").replace("-", "_") in own.refused_options:
            name = option if option.startswith("--") else f"'{option}'"
            kind = "a locator" if is_locator else "a model of windows"
            raise ConfigError(f"{name} is for {other}, and '{card.name}' is {kind}")
