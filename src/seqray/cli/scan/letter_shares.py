"""What each letter around a call adds to its score, for the page of a scan."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from seqray.core import Floats
from seqray.explanations import ExplainOptions, cut_stretches, explain_calls
from seqray.kinds import tracks_reader
from seqray.report.svg import STRIP_END, STRIP_START

if TYPE_CHECKING:
    from seqray.cli.scan.arguments import ScanRequest
    from seqray.core import SequenceRecord
    from seqray.modelfile import TrainedModel
    from seqray.scanning import ScanResult


def letter_shares(
    request: ScanRequest, model: TrainedModel, result: ScanResult, shown: Sequence[int]
) -> dict[int, Floats]:
    """Gradient times input of the letters around calls, from ``STRIP_START`` to ``STRIP_END``.

    The input is read again. The result is by index of the call, empty for a model of windows.
    """
    if not model.is_locator or not shown:
        return {}
    radius = model.locators[0].radius
    if radius < -STRIP_START:
        return {}
    calls = [result.calls[i] for i in shown]
    genes = result.genes.genes if result.genes else {}
    tracks = tracks_reader(model, lambda contig, _: genes.get(contig.id))
    circular = result.calls.circular
    stretches = cut_stretches(model, _records(request, model), calls, tracks, circular=circular)
    options = ExplainOptions(methods=("input-x-gradient",), shuffles=0, effects=False)
    found = explain_calls(model, stretches, options)
    around = slice(radius + STRIP_START, radius + STRIP_END)
    return {i: explanation.scores[around] for i, explanation in zip(shown, found, strict=True)}


def _records(request: ScanRequest, model: TrainedModel) -> Iterator[SequenceRecord]:
    from seqray.io.sequences import read_sequences

    duplicates = request.records.duplicates
    return read_sequences(request.input, model.alphabet, duplicates=duplicates, on_skip=lambda record: None)
