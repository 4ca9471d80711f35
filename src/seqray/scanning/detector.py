"""What is moved along a sequence: anything that scores windows of fixed length."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from seqray.calibration import Domain
from seqray.core import Alphabet, Bools, Card, Codes, ConfigError, InputError
from seqray.inference import score_codes
from seqray.modelfile import TrainedModel
from seqray.scanning.windows import Scorer


@dataclass(frozen=True, slots=True, kw_only=True)
class Detector:
    """A classifier of windows of fixed length.

    Attributes
    ----------
    score
        Codes (N, W) to probabilities of the positive class (N,).
    window
        Letters per window [W].
    site
        Index of the site within the window; None for the middle.
    threshold
        Probability at and above which a window is called.
    label
        Name of the positive class.
    alphabet
        Of the codes.
    outlying
        Codes (N, W) to booleans (N,): which windows differ from its training data; None if unknown.
    """

    score: Scorer
    window: int
    site: int | None
    threshold: float
    label: str
    alphabet: Alphabet
    outlying: Callable[[Codes], Bools] | None = None

    @property
    def anchor(self) -> int:
        """Index of the site within the window; the middle where the model has none."""
        return self.window // 2 if self.site is None else self.site


def _scan_threshold(card: Card) -> float:
    """The card's ``scan_threshold``, or the one for single windows if it has none.

    Sites are far more frequent in training windows than in a genome: their best threshold calls too many.
    """
    threshold = card.info.get("scan_threshold", card.threshold)
    if not isinstance(threshold, int | float) or not 0 < threshold < 1:
        raise ConfigError(f"the card's 'scan_threshold' is {threshold!r}", remedy="give --threshold")
    return float(threshold)


def make_detector(
    model: TrainedModel,
    *,
    batch_size: int | Literal["auto"] = "auto",
    precision: Literal["fp32", "bf16"] = "fp32",
) -> Detector:
    """Make a detector of a model.

    Raises `InputError` for a protein model, because proteins have no strands.

    Parameters
    ----------
    model
        Of fixed windows over nucleotides.
    batch_size, precision
        As in `seqray.inference.predict_records`.
    """
    if not model.alphabet.is_nucleotide:
        raise InputError(
            f"the model '{model.card.name}' reads {model.alphabet.name}",
            remedy="scan takes DNA or RNA models",
        )
    positive = model.card.positive_index

    def score(codes: Codes) -> npt.NDArray[np.floating]:
        return score_codes(model, codes, batch_size=batch_size, precision=precision)[:, positive]

    domain = Domain.from_mapping(model.card.domain) if model.card.domain else None
    return Detector(
        score=score,
        window=model.card.window,
        site=model.card.site,
        threshold=_scan_threshold(model.card),
        label=model.card.positive,
        alphabet=model.alphabet,
        outlying=domain.outlying if domain else None,
    )
