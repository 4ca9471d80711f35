"""Records that are skipped: counted, the first ones named, all of them written to a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NoReturn, Self

from seqray.core import InputError, NoRecordsError

if TYPE_CHECKING:
    from seqray.core.results import SkippedRecord

MAX_SHOWN_SKIPS = 3  # the rest are counted, and all of them are in --skipped


class SkipLog:
    """Counts the records that are not used, names the first on standard error and writes all to a file.

    To be used in ``with``, and given to a reader as ``on_skip``.

    Parameters
    ----------
    path
        Where to write them; None for nowhere.
    lines
        Provenance of the file.
    quiet
        Name none of them.
    """

    def __init__(self, path: str | Path | None, lines: Iterable[str], *, quiet: bool) -> None:
        self.count, self._first = 0, ""
        self._path, self._lines, self._quiet = path, list(lines), quiet
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        from seqray.io.tables import open_skipped

        self._write = self._stack.enter_context(open_skipped(self._path, self._lines)) if self._path else None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        hidden = self.count - MAX_SHOWN_SKIPS
        if error is None and hidden > 0 and not self._quiet:
            print(f"seqray: skipped {hidden} more", file=sys.stderr)
        return self._stack.__exit__(kind, error, trace)

    def __call__(self, record: SkippedRecord) -> None:
        self.count += 1
        self._first = self._first or f"'{record.id}': {record.reason}"
        if self._write:
            self._write(record)
        if self.count <= MAX_SHOWN_SKIPS and not self._quiet:
            print(f"seqray: skipped record '{record.id}': {record.reason}", file=sys.stderr)

    def check_some_left(self, used: int, source: str) -> None:
        """Raise `NoRecordsError` if all records of a file were skipped.

        Parameters
        ----------
        used
            Number of records that were not skipped.
        source
            The file.
        """
        if self.count and not used:
            from seqray.io import display_name

            many = f"all {self.count} records were skipped, such as"
            raise NoRecordsError(
                f"{many if self.count > 1 else 'the only record was skipped,'} {self._first}",
                where=display_name(source),
                remedy="--allow-empty gives an empty output instead",
            )


def refuse_skipped(source: str, record: SkippedRecord) -> NoReturn:
    """Raise `InputError` for a record of a file that would be skipped: under ``--strict``."""
    from seqray.io import display_name
    from seqray.io.sequences import describe_record

    where = describe_record(display_name(source), record.id)
    raise InputError(record.reason, where=where, remedy="remove it, or don't use --strict")
