"""Calls of a scan as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from seqray.core.results import Call
from seqray.io.tables import write_table
from seqray.io.tracks.contexts import CONTEXT_COLUMNS, context_cells

CALL_COLUMNS = ("id", "contig", "start", "end", "strand", "site", "score", "label")


def call_ids(calls: Iterable[Call]) -> Iterator[tuple[str, Call]]:
    """Number calls from 1 in their order: ``promoter_1`` ..; the same in every format of one run."""
    for number, call in enumerate(calls, start=1):
        yield f"{'_'.join(call.label.split())}_{number}", call


def write_calls_tsv(
    path: str | Path, calls: Iterable[Call], provenance: Sequence[str] = (), *, described: bool = False
) -> int:
    """Write calls as a table, 0-based and half-open, and return how many.

    Parameters
    ----------
    path, provenance
        See `seqray.io.tables.open_table`.
    calls
        An ``end`` beyond the length of a circular contig is kept.
    described
        Whether to append `CONTEXT_COLUMNS`.
    """
    columns = (*CALL_COLUMNS, *CONTEXT_COLUMNS) if described else CALL_COLUMNS
    return write_table(path, columns, call_rows(calls, described=described), provenance)


def call_rows(calls: Iterable[Call], *, described: bool = False) -> Iterator[tuple[object, ...]]:
    """Cells of `CALL_COLUMNS`, and of `CONTEXT_COLUMNS` for calls of a locator."""
    for name, c in call_ids(calls):
        more = context_cells(c.context) if described else ()
        yield name, c.contig, c.start, c.end, c.strand, c.site, float(c.score), c.label, *more
