"""Read Stockholm alignments (Pfam, Rfam), any number in one file, one in memory at a time.

Rows may be written in one line or in blocks. Annotations of the file (``#=GF``) become metadata and the
consensus structure (``#=GC SS_cons``) is kept; annotations of single rows (``#=GS``, ``#=GR``) are ignored.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

from seqray.core import InputError
from seqray.io.alignments.aligned_text import AlignedText, decode, numbered_lines

_HEADER = b"# STOCKHOLM 1."


def parse_stockholm(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the alignments of a file.

    Raises `InputError` if the header or the last ``//`` is missing, a line is not part of the format, or a
    name occurs twice in a block.
    """
    reader: _Reader | None = None
    number = 0
    for number, line in numbered_lines(handle):
        if reader is None:
            if not line.strip():
                continue
            if not line.startswith(_HEADER):
                raise InputError(
                    f"line {number} begins no alignment",
                    where=where,
                    remedy="Stockholm begins with '# STOCKHOLM 1.0'",
                )
            reader = _Reader(where)
        elif line.rstrip() == b"//":
            yield reader.finish()
            reader = None
        else:
            reader.take(number, line)
    if reader is not None:
        raise InputError(
            f"ends in line {number} without '//', so part of it is missing",
            where=where,
            remedy="fetch or make the file again",
        )


class _Reader:
    """Collects the lines of one alignment."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._pieces: dict[bytes, list[bytes]] = {}
        self._notes: dict[str, list[str]] = {}
        self._structure: list[bytes] = []
        self._block: set[bytes] = set()

    def take(self, number: int, line: bytes) -> None:
        if not line.strip():
            self._block.clear()
        elif line.startswith(b"#=GF"):
            self._note(line)
        elif line.startswith(b"#=GC"):
            words = line.split()
            if len(words) == 3 and words[1] == b"SS_cons":
                self._structure.append(words[2])
        elif not line.startswith(b"#"):
            self._row(number, line)

    def _note(self, line: bytes) -> None:
        words = line.split(None, 2)
        if len(words) > 1:
            value = decode(words[2]).strip() if len(words) > 2 else ""
            self._notes.setdefault(decode(words[1]), []).append(value)

    def _row(self, number: int, line: bytes) -> None:
        words = line.split()
        if len(words) != 2:
            raise InputError(
                f"line {number} is no row",
                where=self._where,
                remedy="a row is a name and its letters, with white space between them only",
            )
        name, letters = words
        if name in self._block:
            raise InputError(
                f"line {number}: the name {decode(name)!r} occurs twice in one block",
                where=self._where,
                remedy="give each row a name of its own",
            )
        self._block.add(name)
        self._pieces.setdefault(name, []).append(letters)

    def finish(self) -> AlignedText:
        return AlignedText(
            [decode(name) for name in self._pieces],
            [b"".join(pieces) for pieces in self._pieces.values()],
            {key: "\n".join(lines) for key, lines in self._notes.items()},
            decode(b"".join(self._structure)) if self._structure else None,
        )
