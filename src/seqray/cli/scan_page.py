"""What a scan keeps for its page."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from seqray.cli.scan_facts import stated_precision
from seqray.core.alphabet import DNA
from seqray.core.arrays import Floats, Ints
from seqray.explanations.calls import cut_stretches, explain_calls
from seqray.explanations.options import ExplainOptions
from seqray.io.files import write_file
from seqray.kinds.kinds import tracks_reader
from seqray.report.pages.scan import Expected, ScannedContig, ScanReport, render_scan, shown_calls
from seqray.report.pages.sequences import ModelText
from seqray.report.svg.genome import CALL_REACH, STRIP_END, STRIP_START
from seqray.scanning.calls import LETTERS_BEFORE

if TYPE_CHECKING:
    from pathlib import Path

    from seqray.calibration.expected_precision import Expectation
    from seqray.cli.scan_options import ScanRequest
    from seqray.core.records import SequenceRecord
    from seqray.core.results import Call
    from seqray.modelfile.model import TrainedModel
    from seqray.scanning.calls import CallTable
    from seqray.scanning.options import ScanCallbacks
    from seqray.scanning.results import ScanResult, ScoreProfile


# --- What each letter around a call adds to its score, for the page of a scan


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


# --- The page of a scan: what it keeps while the scan runs, and its words

_MAX_PROFILE_LETTERS = 50_000_000  # above, scores are not kept, which would take 4 bytes a letter
_NO_PROFILES = f"curves of scores are left out for inputs above {_MAX_PROFILE_LETTERS // 10**6} Mb"


class ScanPage:
    """Keeps contigs and scores of a scan, and writes its page."""

    def __init__(self, path: str | Path, label: str) -> None:
        self._path = path
        self._label = label
        self._lengths: dict[str, int] = {}
        self._letters = 0
        self._scores: dict[tuple[str, str], np.ndarray] = {}

    def callbacks(self, others: ScanCallbacks) -> ScanCallbacks:
        """The same callbacks, with those that fill the page."""
        return replace(
            others,
            on_contig=_both(others.on_contig, self._begin),
            on_profile=_both(others.on_profile, self._keep),
        )

    def _begin(self, contig: str, length: int) -> None:
        self._lengths[contig] = length
        self._letters += length
        if self._letters > _MAX_PROFILE_LETTERS:
            self._scores.clear()

    def _keep(self, profile: ScoreProfile) -> None:
        """Keep a piece of a profile; each value holds up to the next site."""
        if self._letters > _MAX_PROFILE_LETTERS:
            return
        key = (profile.contig, profile.strand)
        if key not in self._scores:
            self._scores[key] = np.full(profile.length, np.nan, dtype=np.float16)
        scores = self._scores[key]
        for step in range(int(profile.gaps.max(initial=0))):
            held = profile.gaps > step
            scores[(profile.sites[held] + step) % profile.length] = profile.scores[held]

    def write(
        self,
        result: ScanResult,
        lines: Sequence[str],
        cautions: Sequence[str],
        model: ModelText,
        shares_of: Callable[[Sequence[int]], dict[int, Floats]] | None = None,
    ) -> None:
        """Write the page.

        ``shares_of`` maps indices of calls to what each letter of the strip adds to the score.
        """
        calls = result.calls
        shown = [i for group in shown_calls(calls.scores) for i in group]
        kept = self._letters <= _MAX_PROFILE_LETTERS
        around = {i: self._around(calls[i], calls.circular) for i in shown} if kept else {}
        parts = {name: found.pairs() for name, found in (result.parts or {}).items()}
        contigs = [
            ScannedContig(name, n, name in calls.circular, parts.get(name))
            for name, n in self._lengths.items()
        ]
        precision, note, expected = _expected(result)
        report = ScanReport(
            title=f"Scan for {self._label} in {'parts of ' if parts else ''}{_named(contigs)}",
            calls=calls,
            contigs=contigs,
            searched=result.positions,
            strand=result.strand,
            genes={} if result.genes is None else dict(result.genes.genes),
            gene_source="" if result.genes is None else _without_folders(result.genes.source),
            profiles=around,
            letters=_letters(calls, shown),
            shares=shares_of(shown) if shares_of else {},
            threshold=result.threshold,
            expected_precision=precision,
            expected_note=note,
            precision_of=_precision_of(result),
            expected=expected,
            cautions=[text.removeprefix("caution: ") for text in cautions],
            provenance=[*lines, *([] if kept else [_NO_PROFILES])],
            model=model,
        )
        write_file(self._path, render_scan(report))

    def _around(self, call: Call, circular: Collection[str]) -> tuple[Floats, Floats]:
        """Scores of both strands around a call; nan beyond the ends of a linear contig."""
        length = self._lengths[call.contig]
        places = np.arange(call.site - CALL_REACH, call.site + CALL_REACH + 1)
        beyond = np.zeros(len(places), dtype=bool)
        if call.contig not in circular:
            beyond = (places < 0) | (places >= length)
        plus, minus = (self._strand(call.contig, strand, places % length, beyond) for strand in "+-")
        return plus, minus

    def _strand(self, contig: str, strand: str, places: Ints, beyond: np.ndarray) -> Floats:
        scores = self._scores.get((contig, strand))
        if scores is None:  # a strand that was not scanned
            return np.full(len(places), np.nan)
        return np.where(beyond, np.nan, scores[places].astype(np.float64))


def _both(first: Callable[..., None] | None, second: Callable[..., None]) -> Callable[..., None]:
    """A callback that calls two."""
    if first is None:
        return second

    def call(*given: object) -> None:
        first(*given)
        second(*given)

    return call


def _letters(calls: CallTable, shown: Sequence[int]) -> dict[int, str]:
    """Letters around the calls that are shown; a scan of windows keeps none."""
    letters = calls.letters
    if letters.shape[1] == 0:
        return {}
    site = LETTERS_BEFORE
    return {i: DNA.decode(letters[i, site + STRIP_START : site + STRIP_END]) for i in shown}


def _without_folders(source: str) -> str:
    """Leave only the names of files, as headers of outputs do."""
    return " ".join(PurePath(word).name if "/" in word else word for word in source.split(" "))


def _named(contigs: Sequence[ScannedContig]) -> str:
    return contigs[0].name if len(contigs) == 1 else f"{len(contigs)} sequences"


def _expected(result: ScanResult) -> tuple[str, str, list[Expected]]:
    """Precision to expect, how it is known, and the figures behind it."""
    if result.expectation is not None and len(result.calls):
        rows = [Expected(row.species, row.held_out == "species", *row[2:]) for row in result.expectation.rows]
        return f"{result.expected_precision:.2f}", expected_spread(result.expectation, result.species), rows
    false = result.false_calls
    if result.lowest_measured is not None:
        return "", stated_precision(result), []
    if false is None or result.from_positions:
        return "", "", []
    found = f"this sequence gave {len(result.calls)}"
    return "", f"shuffled sequence of this length gives {false.expected:.3g} calls; {found}", []


def _precision_of(result: ScanResult) -> str:
    """In what the precision of a call was measured; empty if it is not known."""
    expectation = result.expectation
    if expectation is None:
        return ""
    if own := expectation.of(result.species):
        return f"in {own.species}"
    others = "species that training left out" if expectation.left_out else "species"
    return f"as the median of {len(expectation.spread)} {others}"


def expected_spread(expectation: Expectation, species: str | None) -> str:
    """Where the precision to expect was measured, and how far it may be off.

    ``species`` is None if the input is like none.
    """
    row = expectation.of(species) or (expectation.spread[0] if len(expectation.spread) == 1 else None)
    if row is not None:
        part = (
            "which training left out" if row.held_out == "species" else "on a region that training left out"
        )
        return f"{row.low:.2f} to {row.high:.2f} (95 % interval) in {row.species}, {part}"
    others = "species that training left out" if expectation.left_out else "species, on regions left out"
    spread = f"from {expectation.low:.2f} to {expectation.high:.2f}"
    return f"median of {len(expectation.spread)} {others}; they vary {spread}"
