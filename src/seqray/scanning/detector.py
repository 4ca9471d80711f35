"""What is moved along a sequence: a model of windows, or one that scores every position."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

from seqray.annotation import Gene
from seqray.core import Alphabet, Bools, Codes, Intervals
from seqray.scanning.genes import GeneSource
from seqray.scanning.options import ScanOptions
from seqray.scanning.windows import ScoredGrid, WindowRule


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
