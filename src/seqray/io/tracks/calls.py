"""Calls of a scan as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seqray.core.results import Call
from seqray.io.tables import write_table

CALL_COLUMNS = ("id", "contig", "start", "end", "strand", "site", "score", "label")


def call_ids(calls: Iterable[Call]) -> Iterator[tuple[str, Call]]:
    """Number calls from 1 in their order: ``promoter_1`` ..; the same in every format of one run."""
    for number, call in enumerate(calls, start=1):
        yield f"{'_'.join(call.label.split())}_{number}", call


def write_calls_tsv(path: str | Path, calls: Iterable[Call], provenance: Sequence[str] = ()) -> int:
    """Write calls as a table, 0-based and half-open, and return how many.

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    calls
        An ``end`` beyond the length of a circular contig is kept.
    """
    rows = (
        (name, c.contig, c.start, c.end, c.strand, c.site, float(c.score), c.label)
        for name, c in call_ids(calls)
    )
    return write_table(path, CALL_COLUMNS, rows, provenance)
