"""Stretches around the calls of a locator: all letters and genes that can change the score of the site."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from seqray.core import Codes, ConfigError, InputError, SequenceRecord, cut_stretch, reverse_complement_codes
from seqray.core.results import Call, Place
from seqray.explanations.call_windows import best_calls, check_length, cut_from_contigs
from seqray.modelfile import TrainedModel

Tracks = npt.NDArray[np.uint8]
TracksOf = Callable[[SequenceRecord, str, bool], Tracks | None]
"""A contig, a strand of it and whether it is circular to the tracks (T, L) that the model names, in reading
direction; None where the genes are not known."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Letters around a call, in reading direction.

    Attributes
    ----------
    id, label, place
        Of the call: its name, its class, and where the stretch lies.
    codes
        (n,) letter codes; unknown beyond the ends of a contig. The site is in the middle.
    tracks
        (T, n) gene tracks; None where no genes are known.
    phase
        Place of the first letter within a token of the strand.
    """

    id: str
    label: str
    place: Place
    codes: Codes
    tracks: Tracks | None
    phase: int


def cut_stretches(
    model: TrainedModel,
    contigs: Iterable[SequenceRecord],
    calls: Sequence[Call],
    tracks_of: TracksOf,
    *,
    circular: Collection[str] = (),
    source: str = "",
    best: int | None = None,
) -> list[Stretch]:
    """Cut the stretch around the site of each call.

    Parameters
    ----------
    model
        A locator.
    contigs, calls, source, best
        As in `extract_call_windows`.
    tracks_of
        The genes.
    circular
        Names of contigs that are circular beside those that are marked so.

    Returns
    -------
    list of Stretch
        In the order of the calls, or with ``best`` from the highest score down.

    Raises
    ------
    ConfigError
        For a model that is no locator.
    InputError
        For a call of another model, on a contig that isn't there, or beyond its end.
    """
    named = best_calls(calls, best)
    before, after = model.card.locator.get("extent", (0, 0))
    for name, call in named:
        check_length(name, call, 1, before + 1 + after, source)  # fewer at the end of a contig
        if call.label not in model.card.classes:
            known = ", ".join(model.card.classes)
            raise InputError(f"call '{name}' is a {call.label}; the model knows {known}", where=source)
    cutter = _Cutter(model, tracks_of, circular, source)
    return cut_from_contigs(contigs, named, cutter.cut, source)


class _Cutter:
    """Cuts stretches; keeps what one contig needs."""

    def __init__(
        self, model: TrainedModel, tracks_of: TracksOf, circular: Collection[str], source: str
    ) -> None:
        self._source = source
        self._alphabet, self._network = model.alphabet, model.locators[0]
        self._tracks_of, self._circular = tracks_of, circular
        self._contig, self._strands = "", dict[str, tuple[Codes, Tracks | None]]()

    def cut(self, contig: SequenceRecord, name: str, call: Call) -> Stretch:
        circular = contig.circular or contig.id in self._circular
        codes, tracks = self._strand(contig, call.strand, circular)
        radius, length = self._network.radius, len(codes)
        if not 0 <= call.site < length:
            raise InputError(
                f"call '{name}' has its site at {call.site + 1}, beyond the end of '{contig.id}' ({length})",
                where=self._source,
            )
        site = call.site if call.strand == "+" else length - 1 - call.site
        span = site - radius, site + radius + 1
        return Stretch(
            name,
            call.label,
            _place(contig.id, call, radius, length, circular),
            cut_stretch(codes, *span, self._alphabet.unknown, circular=circular),
            None if tracks is None else cut_stretch(tracks, *span, 0, circular=circular),
            span[0] % self._network.stem.stride,
        )

    def _strand(self, contig: SequenceRecord, strand: str, circular: bool) -> tuple[Codes, Tracks | None]:
        if self._contig != contig.id:
            self._contig, self._strands = contig.id, {}
        if strand not in self._strands:
            codes = self._alphabet.encode(contig.sequence)
            codes = codes if strand == "+" else reverse_complement_codes(codes)
            self._strands[strand] = codes, self._tracks_of(contig, strand, circular)
        return self._strands[strand]


def _place(contig: str, call: Call, radius: int, length: int, circular: bool) -> Place:
    start = call.site - radius
    start = start % length if circular else start
    return Place(contig, start, start + 2 * radius + 1, call.strand, length, circular)


def check_explained_calls(path: str | None) -> str:
    """Return the file of calls; a locator explains nothing else. Raises ConfigError without one."""
    if path is None:
        raise ConfigError(
            "a locator is explained by its calls",
            remedy="write them by 'seqray scan --out calls.gff3' and name them by --calls",
        )
    return path
