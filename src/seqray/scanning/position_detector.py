"""A locator, which scores every position of a sequence."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from seqray.annotation import Gene, gene_tracks, track_rows
from seqray.calibration import ExpectedPrecision
from seqray.core import MIN_DISTANCE_OF_LOCATORS, Codes, ConfigError, Intervals
from seqray.inference import Dtype, Strand, StrandScorer
from seqray.modelfile import TrainedModel
from seqray.scanning.calls import LETTERS_AFTER, LETTERS_BEFORE
from seqray.scanning.detector import Detector
from seqray.scanning.genes import GeneSource
from seqray.scanning.options import ScanOptions
from seqray.scanning.positions import ChunkScorer, ContigPositions
from seqray.scanning.windows import WindowRule


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
