"""A classifier that is moved along a sequence, window by window."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from seqray.annotation import Gene
from seqray.calibration import Domain
from seqray.core import MIN_DISTANCE_OF_WINDOWS, Codes, Floats, Intervals, logistic
from seqray.inference import BatchSize, Dtype, cascade_log_odds, prefilter_log_odds, score_codes
from seqray.modelfile import TrainedModel
from seqray.scanning.cutoffs import Cutoffs
from seqray.scanning.detector import Detector
from seqray.scanning.options import STRIDE, ScanOptions
from seqray.scanning.windows import ContigWindows, Scorer, StrandAnswers, WindowRule


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
