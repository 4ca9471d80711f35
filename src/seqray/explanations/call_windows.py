"""The windows of calls in a genome, cut out as the model read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from seqray.core import Alphabet, InputError, SequenceRecord, reverse_complement
from seqray.core.results import Call, Place
from seqray.io.tracks import call_ids

Cut = TypeVar("Cut")


def extract_call_windows(
    contigs: Iterable[SequenceRecord],
    calls: Sequence[Call],
    alphabet: Alphabet,
    window: int,
    source: str = "",
    best: int | None = None,
) -> tuple[list[SequenceRecord], list[Place]]:
    """Cut the window of each call out of its contig, read on the call's strand.

    Parameters
    ----------
    contigs
        The sequences that were scanned; read once, one at a time.
    calls
        In any order.
    alphabet
        Of the model.
    window
        Letters that the model reads.
    source
        Name of the file of calls, for errors.
    best
        Take the calls of highest score only, at most so many; of equal scores the first ones.

    Returns
    -------
    records, places
        In the order of the calls, or with ``best`` from the highest score down; a record bears the name of
        the call, see `best_calls`.

    Raises
    ------
    InputError
        For a call of another length, on a contig that isn't there, or beyond its end.
    """
    named = best_calls(calls, best)
    for name, call in named:
        check_length(name, call, window, window, source)
    pairs = cut_from_contigs(
        contigs, named, lambda contig, name, call: _cut(contig, name, call, alphabet), source
    )
    return [record for record, _ in pairs], [place for _, place in pairs]


def best_calls(calls: Sequence[Call], best: int | None) -> list[tuple[str, Call]]:
    """Calls with their names, all in their order, or the ``best`` from the highest score down.

    A call that was read keeps its name, unless two have the same: then all are numbered.
    """
    names = [call.id for call in calls]
    unique = all(names) and len(set(names)) == len(names)
    named = list(zip(names, calls, strict=True)) if unique else list(call_ids(calls))
    return named if best is None else sorted(named, key=lambda pair: -pair[1].score)[:best]


def check_length(name: str, call: Call, fewest: int, most: int, source: str) -> None:
    """Refuse a call that another model has made, one of another length, with an InputError."""
    if not fewest <= call.end - call.start <= most:
        raise InputError(
            f"call '{name}' has {call.end - call.start} letters, but those of the model have {most}",
            where=source,
            remedy="give the model that made the calls",
        )


def cut_from_contigs(
    contigs: Iterable[SequenceRecord],
    named: Sequence[tuple[str, Call]],
    cut: Callable[[SequenceRecord, str, Call], Cut],
    source: str,
) -> list[Cut]:
    """Cut something for each call out of its contig, in the order of the calls.

    The contigs are read once, one at a time, and ``cut`` is called contig by contig. InputError is raised for
    a call without a strand, beyond the end of its contig, or on a contig that isn't there.
    """
    wanted: dict[str, list[tuple[str, Call]]] = {}
    for name, call in named:
        wanted.setdefault(call.contig, []).append((name, call))
    found: dict[str, Cut] = {}
    for contig in contigs:
        for name, call in wanted.get(contig.id, ()):
            _check_place(contig, name, call, source)
            found[name] = cut(contig, name, call)
    for name, call in named:
        if name not in found:
            raise InputError(
                f"call '{name}' lies on '{call.contig}', which is not among the sequences", where=source
            )
    return [found[name] for name, _ in named]


def _check_place(contig: SequenceRecord, name: str, call: Call, source: str) -> None:
    if call.strand not in ("+", "-"):
        raise InputError(f"call '{name}' has the strand '{call.strand}'", where=source, remedy="use + or -")
    if not 0 <= call.start < len(contig) or call.end > 2 * len(contig):
        where = f"{call.start + 1}-{call.end}"
        raise InputError(
            f"call '{name}' at {where} lies beyond the end of '{contig.id}' ({len(contig)})", where=source
        )


def _cut(contig: SequenceRecord, name: str, call: Call, alphabet: Alphabet) -> tuple[SequenceRecord, Place]:
    letters = contig.sequence
    piece = letters[call.start : call.end]
    piece += letters[: max(0, call.end - len(letters))]  # across the origin of a circle
    if call.strand == "-":
        piece = reverse_complement(piece, alphabet)
    place = Place(contig.id, call.start, call.end, call.strand, len(letters))
    return SequenceRecord(name, piece), place
