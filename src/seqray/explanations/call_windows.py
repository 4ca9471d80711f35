"""The windows of calls in a genome, cut out as the model read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seqray.core import Alphabet, InputError, SequenceRecord, reverse_complement
from seqray.core.results import Call, Place
from seqray.io.tracks import call_ids


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
        In the order of the calls, or with ``best`` from the highest score down; a record bears the name that
        `seqray scan` gives the call.

    Raises
    ------
    InputError
        For a call of another length, on a contig that isn't there, or beyond its end.
    """
    named = list(call_ids(calls))
    if best is not None:
        named = sorted(named, key=lambda pair: -pair[1].score)[:best]
    for name, call in named:
        if call.end - call.start != window:
            raise InputError(
                f"call '{name}' has {call.end - call.start} letters, but the model reads {window}",
                where=source,
                remedy="give the model that made the calls",
            )
    wanted: dict[str, list[tuple[str, Call]]] = {}
    for name, call in named:
        wanted.setdefault(call.contig, []).append((name, call))
    found: dict[str, tuple[SequenceRecord, Place]] = {}
    for contig in contigs:
        for name, call in wanted.get(contig.id, ()):
            found[name] = _cut(contig, name, call, alphabet, source)
    for name, call in named:
        if name not in found:
            raise InputError(
                f"call '{name}' lies on '{call.contig}', which is not among the sequences", where=source
            )
    pairs = [found[name] for name, _ in named]
    return [record for record, _ in pairs], [place for _, place in pairs]


def _cut(
    contig: SequenceRecord, name: str, call: Call, alphabet: Alphabet, source: str
) -> tuple[SequenceRecord, Place]:
    letters = contig.sequence
    if call.strand not in ("+", "-"):
        raise InputError(f"call '{name}' has the strand '{call.strand}'", where=source, remedy="use + or -")
    if not 0 <= call.start < len(letters) or call.end > 2 * len(letters):
        where = f"{call.start + 1}-{call.end}"
        raise InputError(
            f"call '{name}' at {where} lies beyond the end of '{contig.id}' ({len(letters)})", where=source
        )
    piece = letters[call.start : call.end]
    piece += letters[: max(0, call.end - len(letters))]  # across the origin of a circle
    if call.strand == "-":
        piece = reverse_complement(piece, alphabet)
    place = Place(contig.id, call.start, call.end, call.strand, len(letters))
    return SequenceRecord(name, piece), place
