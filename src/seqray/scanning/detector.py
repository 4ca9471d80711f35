"""What is moved along a sequence: a model of windows, or one that scores every position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from seqray.annotation import TRACKS, Gene, gene_tracks
from seqray.calibration import Domain, ExpectedPrecision
from seqray.core import Alphabet, Bools, Card, Codes, ConfigError, Floats, InputError, Intervals
from seqray.inference import Strand, StrandScorer, log_odds_in_turn, prefilter_log_odds, score_codes
from seqray.modelfile import TrainedModel
from seqray.scanning.calls import LETTERS_AFTER, LETTERS_BEFORE
from seqray.scanning.cutoffs import Cutoffs
from seqray.scanning.genes import GeneSource
from seqray.scanning.options import STRIDE, ScanOptions
from seqray.scanning.positions import ChunkScorer, ContigPositions
from seqray.scanning.windows import (
    ContigWindows,
    ScoredGrid,
    Scorer,
    StrandAnswers,
    WindowRule,
    to_probabilities,
)


@dataclass(frozen=True, kw_only=True)
class Detector(ABC):
    """A model that finds sites along contigs.

    Attributes
    ----------
    threshold
        Probability at and above which a site is called.
    label
        Name of the positive class.
    alphabet
        Of the codes.
    genes
        Where genes are from; None where none are known, or the model reads none.
    outlying
        Codes (N, W) to booleans (N,): which windows differ from its training data; None if unknown.
    """

    threshold: float
    label: str
    alphabet: Alphabet
    genes: GeneSource | None = None
    outlying: Callable[[Codes], Bools] | None = None

    foreign_options: ClassVar[frozenset[str]]
    null_mb: ClassVar[float]
    halo: ClassVar[int]  # smallest distances scored around a part, from where peaks may be suppressed
    unit: ClassVar[str]
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
            As of `ScoredGrid`.
        """

    def default_threshold(self, options: ScanOptions) -> float:
        """Threshold where the options give none."""
        return self.threshold

    @abstractmethod
    def facts(self, options: ScanOptions) -> dict[str, str]:
        """What is scored, for the header of every output."""

    def running(self) -> AbstractContextManager[None]:
        """What is needed while contigs are scored."""
        return nullcontext()


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
    in_turn
        Cutoffs of the members to what scores like `score`, but gives windows up, see `log_odds_in_turn`.
    missed
        Share of the windows at or above a threshold that may be skipped.
    """

    score: Scorer
    window: int
    site: int | None
    prefilter: StrandAnswers | None = None
    cutoffs: Callable[[float], Cutoffs] | None = None
    in_turn: Callable[[Sequence[float]], Scorer] | None = None
    missed: float = 0.0

    foreign_options = frozenset({"--genes", "--codon-table", "--per-kb", "--precision", "--species"})
    null_mb = 1.0
    halo = 2
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
        return found if found.pay else None

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
        members = rule.cutoffs.members if rule.cutoffs else ()
        score = self.in_turn(members) if self.in_turn and members else self.score
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


@dataclass(frozen=True, kw_only=True)
class PositionDetector(Detector):
    """A locator, which scores every position.

    Attributes
    ----------
    scorer
        Computes the probabilities.
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

    foreign_options = frozenset({"--stride", "--prefilter", "--fdr", "--max-ambiguous"})
    null_mb = 0.0
    halo = 20
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
            "ambiguous letters": "are not scored",
        }

    def running(self) -> AbstractContextManager[None]:
        return self.run()

    def default_threshold(self, options: ScanOptions) -> float:
        """That of the card, or the lowest at which a precision is to be expected.

        Raises `ConfigError` for a precision that no threshold reaches, a species that was not measured, and a
        card that says nothing of it.
        """
        if options.precision is None:
            return self.threshold
        genes = self.genes is not None
        how = "with genes" if genes else "without genes"
        known = (
            [table.species for table in self.expected.tables if table.genes == genes] if self.expected else []
        )
        if self.expected is None or not known:
            raise ConfigError(
                f"the model's card states no precision {how}", remedy="give --threshold or --per-kb"
            )
        if options.species is not None and options.species not in known:
            alike = [name for name in known if options.species.casefold() in name.casefold()]
            raise ConfigError(
                f"the precision of '{options.species}' was not measured {how}",
                remedy=f"did you mean '{alike[0]}'?"
                if alike
                else f"measured were {', '.join(sorted(set(known)))}",
            )
        found = self.expected.threshold_for(options.precision, genes, options.species)
        if found is None:
            highest = self.expected.highest_precision(genes, options.species)
            raise ConfigError(
                f"no threshold is expected to reach a precision of {options.precision:g} {how}",
                remedy=f"give a lower --precision: the highest is {highest:.2f}",
            )
        return found


def make_detector(
    model: TrainedModel,
    *,
    batch_size: int | Literal["auto"] = "auto",
    dtype: Literal["fp32", "bf16"] = "fp32",
    genes: GeneSource | None = None,
) -> Detector:
    """Make the detector of a model: of positions for a locator, else of windows.

    Raises `InputError` for a protein model, because proteins have no strands.

    Parameters
    ----------
    model
        Over nucleotides.
    batch_size, dtype
        As ``batch_size`` and ``precision`` in `seqray.inference.predict_records`.
    genes
        For a locator; None where they are not known.
    """
    if not model.alphabet.is_nucleotide:
        raise InputError(
            f"the model '{model.card.name}' reads {model.alphabet.name}",
            remedy="scan takes DNA or RNA models",
        )
    if model.is_locator:
        return _position_detector(model, dtype, genes)
    model.check_reads_sequences()
    positive = model.card.positive_index

    def score(codes: Codes) -> Floats:
        return score_codes(model, codes, batch_size=batch_size, precision=dtype)[:, positive]

    def in_turn(cutoffs: Sequence[float]) -> Scorer:
        def score(codes: Codes) -> Floats:
            answers = log_odds_in_turn(model, codes, cutoffs, batch_size=batch_size, precision=dtype)
            return to_probabilities(answers[:, -1])

        return score

    domain = Domain.from_mapping(model.card.domain) if model.card.domain else None
    return WindowDetector(
        score=score,
        in_turn=in_turn,
        window=model.card.window,
        site=model.card.site,
        prefilter=partial(prefilter_log_odds, model) if model.prefilter else None,
        cutoffs=partial(Cutoffs.at, model.card.prefilter) if model.prefilter else None,
        missed=model.card.prefilter.get("lost", 0.0),
        threshold=model.card.scan_threshold,
        label=model.card.positive,
        alphabet=model.alphabet,
        outlying=domain.outlying if domain else None,
    )


def _position_detector(
    model: TrainedModel, dtype: Literal["fp32", "bf16"], genes: GeneSource | None
) -> PositionDetector:
    card, scorer = model.card, StrandScorer(model, dtype)
    named = card.model.locator.tracks if card.model.locator else ()
    if unknown := [name for name in named if name not in TRACKS]:
        raise ConfigError(f"the model '{card.name}' reads a gene track '{unknown[0]}', which is unknown")
    without = card.locator.get("threshold_without_genes", card.threshold)
    before, after = card.locator.get("extent", (0, 0))
    return PositionDetector(
        scorer=scorer.chunks,
        run=scorer.running,
        radius=max(network.radius for network in model.locators),
        tracks=tuple(TRACKS.index(name) for name in named),
        spans=(int(before), int(after)),
        expected=ExpectedPrecision.from_mapping(card.locator) if "expected" in card.locator else None,
        genes=genes if named else None,
        threshold=float(card.threshold if genes is not None and named else without),
        label=card.positive,
        alphabet=model.alphabet,
    )


def check_scan_options(card: Card, given: Iterable[str]) -> None:
    """Refuse options of the command line that this kind of model does not take.

    Raises
    ------
    ConfigError
        For the first such option.
    """
    is_locator = card.model.kind == "locator"
    own, other = (PositionDetector, "models of windows") if is_locator else (WindowDetector, "locators")
    for option in given:
        if option in own.foreign_options:
            kind = "a locator" if is_locator else "a model of windows"
            raise ConfigError(f"{option} is for {other}, and '{card.name}' is {kind}")
