"""The explainer of each kind of model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqray.cli.explain.alignments import AlignmentExplainer
from seqray.cli.explain.explainer import Explainer
from seqray.cli.explain.locators import LocatorExplainer
from seqray.cli.explain.sequences import SequenceExplainer

EXPLAINERS: Mapping[str, type[Explainer[Any, Any, Any]]] = {
    "sequence": SequenceExplainer,
    "backbone": SequenceExplainer,
    "alignment": AlignmentExplainer,
    "locator": LocatorExplainer,
}
"""By the kind of model that a card names, as `seqray.kinds.table`."""
