"""Intervals of a gene of several parts.

Parts that follow each other within 50 letters (a frameshift of the ribosome, an intron too short to hold a
promoter) are one interval, read in the frame of its first codon. Parts farther apart (exons, trans-splicing,
a pseudogene with an insertion) are pieces of their own, each on its strand; each begins with a whole codon.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from seqray.io.tracks import Part

MAX_GAP = 50


class Piece(NamedTuple):
    """An interval of a gene, and whether the gene begins or ends elsewhere."""

    start: int
    end: int
    strand: str
    partial_start: bool
    partial_end: bool


def pieces_of(parts: Sequence[Part], length: int | None, offset: int | None) -> list[Piece]:
    """Join the parts of a gene that belong together; parts and pieces are in the order of transcription.

    ``length`` is that of the contig if it is circular, else None; ``offset`` counts the letters before the
    first whole codon of the first part, None if nothing is translated. A piece that is nothing but the rest
    of a codon is left out.
    """
    groups: list[list[Part]] = []
    for part in parts:
        if groups and (shifted := _following(groups[-1][-1], part, length)):
            groups[-1].append(shifted)
        else:
            groups.append([part])
    pieces, read = [], -(offset or 0)
    for number, group in enumerate(groups):
        skip = 0 if offset is None else -read % 3
        read += sum(part.end - part.start for part in group)
        piece = _piece(group, skip, (number > 0, number + 1 < len(groups)), length)
        pieces += [piece] if piece.start < piece.end else []
    return pieces


def _following(last: Part, part: Part, length: int | None) -> Part | None:
    """A part that continues another, moved by a round if it lies across the origin; None if it doesn't."""
    if part.strand != last.strand:
        return None
    for shift in (0, length, -length) if length else (0,):
        moved = Part(part.start + shift, part.end + shift, part.strand)
        gap = moved.start - last.end if part.strand == "+" else last.start - moved.end
        if -MAX_GAP <= gap <= MAX_GAP:
            return moved
    return None


def _piece(group: list[Part], skip: int, partial: tuple[bool, bool], length: int | None) -> Piece:
    start, end, strand = min(p.start for p in group), max(p.end for p in group), group[0].strand
    if strand == "-":
        end -= skip
    else:
        start += skip
    turns = start // length * length if length else 0
    return Piece(start - turns, end - turns, strand, *partial)
