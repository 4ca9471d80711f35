"""Read Clustal alignments: a header, then blocks with a line for each row, its name and some of its letters.

Below a block there may be a line of ``*``, ``:`` and ``.`` that shows how well its columns agree, and at the
end of a line the number of letters so far; both are ignored. Another header begins another alignment.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field

from seqray.core import InputError
from seqray.io.alignments.aligned_text import AlignedText, decode, numbered_lines

HEADERS = (b"CLUSTAL", b"PROBCONS", b"MUSCLE", b"MSAPROBS", b"Kalign")
_AGREEMENT = b"*:. \t"


def parse_clustal(handle: io.BufferedReader, where: str) -> Iterator[AlignedText]:
    """Yield the alignments of a file; one that is cut off behind its header has no rows.

    Raises `InputError` with the line if there is no header, a line isn't a name and letters, or a block has
    other rows than the first one.
    """
    blocks: _Blocks | None = None
    number = 0
    for number, line in numbered_lines(handle):
        place = f"{where}, line {number}"
        if line.startswith(HEADERS):
            if blocks is not None:
                yield blocks.text(place)
            blocks = _Blocks()
        elif not line.strip(_AGREEMENT):  # a blank line, or one of agreement
            if blocks is not None:
                blocks.end(place)
        elif blocks is not None:
            blocks.add(line, place)
        elif not line.startswith((b"#", b";")):
            raise _damaged("comes before the header, which begins with CLUSTAL", place)
    if blocks is not None:
        yield blocks.text(f"{where}, line {number}")


@dataclass(slots=True)
class _Blocks:
    """A partial alignment: the pieces of each row, and the next row of the block."""

    names: list[str] = field(default_factory=list)
    pieces: list[list[bytes]] = field(default_factory=list)
    next_row: int = 0
    in_first: bool = True

    def add(self, line: bytes, place: str) -> None:
        name, letters = _name_and_letters(line, place)
        if self.in_first:
            self.names.append(name)
            self.pieces.append([])
        elif self.next_row == len(self.names):
            raise _damaged(f"a block has more than the {len(self.names)} rows of the first one", place)
        elif self.names[self.next_row] != name:
            raise _damaged(f"has row {name!r}, where {self.names[self.next_row]!r} comes next", place)
        self.pieces[self.next_row].append(letters)
        self.next_row += 1

    def end(self, place: str) -> None:
        """A block is over, unless none has begun."""
        if 0 < self.next_row < len(self.names):
            raise _damaged(f"a block ends before row {self.names[self.next_row]!r}", place)
        self.in_first = self.in_first and self.next_row == 0
        self.next_row = 0

    def text(self, place: str) -> AlignedText:
        self.end(place)
        return AlignedText(self.names, [b"".join(parts) for parts in self.pieces])


def _name_and_letters(line: bytes, place: str) -> tuple[str, bytes]:
    words = line.split()
    if line[:1].isspace() or len(words) not in (2, 3) or (len(words) == 3 and not words[2].isdigit()):
        raise _damaged("is not a name, letters and at most a number", place)
    return decode(words[0]), words[1]


def _damaged(what: str, place: str) -> InputError:
    return InputError(what, where=place, remedy="fetch or make the file again")
