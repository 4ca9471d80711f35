"""Scores of explanations along contigs, as a track."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from seqray.core.results import Explanation
from seqray.io.tracks.scores import TrackWriter

Values = dict[str, tuple[int, dict[int, float]]]
"""By contig: its length, and the score of each position."""


class ScoreTrack:
    """Scores of one method along contigs, collected from explanations and written at the end.

    A record without a location is a contig of its own. If calls overlap, a position keeps the highest score.
    """

    def __init__(self) -> None:
        self._strands: dict[str, Values] = {"+": {}, "-": {}}

    def add(self, explanation: Explanation) -> None:
        """Add the scores of one explanation."""
        place, size = explanation.place, len(explanation.sequence)
        contig, length = (place.contig, place.length) if place else (explanation.id, size)
        positions = place.positions().tolist() if place else range(length)
        for values in self._strands.values():
            values.setdefault(contig, (length, {}))
        _, known = self._strands[place.strand if place else "+"][contig]
        for position, score in zip(positions, explanation.scores.tolist(), strict=True):
            if position >= 0 and math.isfinite(score):  # within the contig, and read
                known[position] = max(score, known.get(position, score))

    def write(
        self,
        path: str | Path,
        provenance: Sequence[str],
        name: str,
        place: Callable[[Path], str | Path] = Path,
    ) -> None:
        """Write one file per strand.

        Parameters
        ----------
        path, provenance, name, place
            See `TrackWriter`.
        """
        with TrackWriter(path, provenance, name, place) as track:
            for contig, (length, _) in self._strands["+"].items():
                track.begin(contig, length)
                for strand, contigs in self._strands.items():
                    for start, values in _runs(contigs[contig][1]):
                        track.add(contig, strand, start, values)


def _runs(scores: Mapping[int, float]) -> Iterator[tuple[int, list[float]]]:
    """Runs of adjacent positions: start and values."""
    run: list[float] = []
    first = 0
    for position in sorted(scores):
        if run and position != first + len(run):
            yield first, run
            run = []
        if not run:
            first = position
        run.append(scores[position])
    if run:
        yield first, run
