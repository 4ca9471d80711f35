"""The detector of a model, and the options that it takes."""

from __future__ import annotations

from collections.abc import Iterable

from seqray.core import Card, ConfigError, InputError
from seqray.inference import BatchSize, Dtype
from seqray.modelfile import TrainedModel
from seqray.scanning.detector import Detector
from seqray.scanning.genes import GeneSource
from seqray.scanning.position_detector import PositionDetector, position_detector
from seqray.scanning.window_detector import WindowDetector, window_detector


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
