"""Settings of a scan, with their defaults; nothing heavy is loaded to read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from seqray.core.arrays import MIN_CALL_SCORE
from seqray.core.errors import ConfigError, field_name, require, require_number, use_python_numbers

if TYPE_CHECKING:
    from collections.abc import Callable

    from seqray.core.card import Card
    from seqray.core.errors import OnProgress
    from seqray.core.records import Region, SequenceRecord
    from seqray.core.results import SkippedRecord
    from seqray.scanning.contigs import ScoreProfile

STRANDS = {"both": ("+", "-"), "plus": ("+",), "minus": ("-",)}
# With an FDR, calls are collected at and above this, or the model's threshold if that is lower.
FDR_SEARCH_THRESHOLD = 0.5
STRIDE = 10
UPSTREAM, DOWNSTREAM = 60, 20  # of a site in FASTA, as many models of windows read: 81 bases
ONLY_FOR = {
    **dict.fromkeys(("stride", "prefilter", "fdr", "max_ambiguous"), "sequences"),
    **dict.fromkeys(("genes", "codon_table", "per_kb", "precision", "trust", "species"), "genomes"),
}
"""What a model reads that takes an option of a scan; any model takes the others."""


def other_kind(card: Card) -> tuple[str, str]:
    """What this model does not read, and what to say of an option of `ONLY_FOR` that is for it."""
    if card.model.is_locator:
        return "sequences", f"is for models of windows, and '{card.name}' is a model for genomes"
    return "genomes", f"is for models for genomes, and '{card.name}' is a model of windows"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """How to scan.

    Attributes
    ----------
    stride
        Letters between the starts of neighboring windows before refinement. None is 1 with a prefilter, and
        else 10.
    prefilter
        ``auto``: a model that has a prefilter scores only the windows that it lets pass, unless a stride is
        given or the threshold is so low that too many would pass; ``none``: the prefilter is not used.
    strand
        ``both``, ``plus`` or ``minus``.
    threshold
        Probability at and above which a peak is called; None takes the model's, unless ``fdr``,
        ``precision``, ``trust`` or ``per_kb`` is given.
    fdr
        Choose the lowest threshold at which expected false calls make up at most this share of all calls.
    precision
        Choose the lowest threshold at which calls are expected to be right in this share, by the card of a
        locator: measured on ``species``, or the median over those that its training left out.
    trust
        ``high`` or ``medium``: call what has this trust or more, see `TRUST`.
    species
        The one of the card whose precision is expected; None for the one that the input is like.
    per_kb
        Call that many of the best peaks per thousand positions.
    min_distance
        Smallest distance between the sites of two calls on one strand; None is 50 for models of windows, and
        25 for locators, which tell starts apart that are near each other.
    margin
        Log-odds units, per letter between the windows scored so far, by which a peak's score may still rise
        in refinement. With 0.3 and a stride of 10, a promoter scanner found 95 % of the calls of a scan at
        stride 1 and needed 1.3 windows per window of the grid, at one call per kb.
    circular, circular_ids
        Treat all contigs, or those named, as circular; those marked in their file always are.
    max_ambiguous
        Windows with a larger share of ambiguous letters aren't scored.
    skip_soft_masked
        Leave out windows whose site is a lower-case letter.
    regions
        Call sites within these parts only; None for everything. Windows reach beyond the parts.
    null_mb
        Most millions of letters of shuffled sequence to scan for the expected false calls; 0 for none. None
        is 1 for models of windows, and 0 for locators.
    seed
        Of the shuffles.
    piece
        Letters whose window starts are in memory at a time.

    Examples
    --------
    >>> options = ScanOptions(strand="plus", fdr=0.1)
    >>> options.strands, options.lowest_threshold(0.9)
    (('+',), 0.5)
    """

    stride: int | None = None
    prefilter: Literal["auto", "none"] = "auto"
    strand: Literal["both", "plus", "minus"] = "both"
    threshold: float | None = None
    fdr: float | None = None
    per_kb: float | None = None
    precision: float | None = None
    trust: Literal["high", "medium"] | None = None
    species: str | None = None
    min_distance: int | None = None
    margin: float = 0.3
    circular: bool = False
    circular_ids: tuple[str, ...] = ()
    max_ambiguous: float = 0.1
    skip_soft_masked: bool = False
    regions: tuple[Region, ...] | None = None
    null_mb: float | None = None
    seed: int = 0
    piece: int = 1 << 17  # whole chunks of a locator, as many on each core

    def __post_init__(self) -> None:
        use_python_numbers(self)
        for name, least in (("stride", 1), ("min_distance", 1), ("seed", 0), ("piece", 1)):
            require_number(getattr(self, name), name, whole=True, least=least)
        for name in ("threshold", "fdr", "precision", "per_kb", "null_mb", "margin", "max_ambiguous"):
            require_number(getattr(self, name), name)
        within, either = "must lie between 0 and 1", "must be True or False"
        shuffled = f"needs shuffled sequence, so {field_name('null_mb')} above 0"
        per_kb, null_mb = self.per_kb, self.null_mb
        for name, holds, rule in (
            ("prefilter", self.prefilter in ("auto", "none"), "must be auto or none"),
            ("strand", self.strand in STRANDS, "must be both, plus or minus"),
            ("threshold", self.threshold is None or 0 <= self.threshold <= 1, within),
            ("fdr", self.fdr is None or 0 < self.fdr < 1, within),
            ("precision", self.precision is None or 0 < self.precision <= 1, within),
            ("trust", self.trust in (None, "high", "medium"), "must be high or medium"),
            ("per_kb", per_kb is None or 0 < per_kb <= 2000, "must be above 0 and at most 2000"),
            ("margin", self.margin >= 0, "must be 0 or more"),
            ("circular", self.circular in (True, False), f"{either}; 'circular_ids' takes names"),
            ("skip_soft_masked", self.skip_soft_masked in (True, False), either),
            ("circular_ids", not isinstance(self.circular_ids, str), "must be a tuple of names"),
            ("max_ambiguous", 0 <= self.max_ambiguous <= 1, within),
            ("null_mb", null_mb is None or 0 <= null_mb <= 1e6, "must lie between 0 and 1,000,000"),
            ("fdr", self.fdr is None or null_mb != 0, shuffled),
        ):
            require(holds, name, rule)
        rules = ("threshold", "fdr", "precision", "trust", "per_kb")
        given = [field_name(name) for name in rules if getattr(self, name) is not None]
        if len(given) > 1:
            raise ConfigError(f"{given[0]} and {given[1]} can't both be given", remedy="give one of them")
        if self.regions:
            from seqray.core.records import Region, parse_region

            several = (self.regions,) if isinstance(self.regions, str | Region) else self.regions
            regions = tuple(parse_region(one) if isinstance(one, str) else one for one in several)
            known = all(isinstance(region, Region) for region in regions)
            require(known, "regions", "must be texts such as chr1:1-500")
            object.__setattr__(self, "regions", regions)

    @property
    def strands(self) -> tuple[str, ...]:
        """``+``, ``-`` or both."""
        return STRANDS[self.strand]

    def is_circular(self, record: SequenceRecord) -> bool:
        """Whether a contig is marked in its file, or named here."""
        return self.circular or record.circular or record.id in self.circular_ids

    def most_calls(self, positions: int) -> int:
        """Calls that ``per_kb`` allows among so many positions: whole ones, and one at least."""
        return max(round((self.per_kb or 0) * positions / 1000), 1)

    def lowest_threshold(self, default: float) -> float:
        """Threshold down to which peaks are collected, given the model's own."""
        if self.fdr is not None:
            return min(default, FDR_SEARCH_THRESHOLD)
        if self.per_kb is not None or self.trust is not None:
            return min(default, MIN_CALL_SCORE)
        return default if self.threshold is None else self.threshold


@dataclass(frozen=True, slots=True)
class ShardNumber:
    """Which part of a scan: ``number`` (from 1) of ``total``."""

    number: int = 1
    total: int = 1

    def __post_init__(self) -> None:
        require(1 <= self.number <= self.total, "shard", "must be I/N with I from 1 to N")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanCallbacks:
    """Called while a scan runs.

    ``on_skip`` gets contigs that can't be scanned (None: an error), ``on_profile`` scores by piece,
    ``on_progress`` letters so far, of shuffled sequence also in all.
    """

    on_skip: Callable[[SkippedRecord], None] | None = None
    on_contig: Callable[[str, int], None] | None = None
    on_profile: Callable[[ScoreProfile], None] | None = None
    on_progress: OnProgress | None = None
