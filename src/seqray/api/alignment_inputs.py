"""Alignments as people hold them in Python: read from a file, or Biopython's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from Bio.Align import MultipleSeqAlignment

from seqray.core import Alignment, Alphabet, InputError
from seqray.io.alignments import AlignedText, read_alignments, to_alignment

_ACCEPTED = "a path, alignments of seqray or Biopython, or a mapping of ids to them"


def as_alignments(alignments: Any, alphabet: Alphabet) -> Iterator[Alignment]:
    """Turn whatever holds alignments into checked ones, one at a time.

    Parameters
    ----------
    alignments
        The path of a file, see `seqray.io.alignments.read_alignments`; a `seqray.core.Alignment` or a
        `Bio.Align.MultipleSeqAlignment`, an iterable of them, or a mapping of id to them. Without an id,
        Biopython's are called ``alignment_1``, ``alignment_2``, ... by their place.
    alphabet
        Validates and folds the letters.

    Raises
    ------
    InputError
        For a thing of another kind, an alignment of another alphabet, and what `read_alignments` refuses.

    Examples
    --------
    >>> from Bio.Align import MultipleSeqAlignment
    >>> from Bio.Seq import Seq
    >>> from Bio.SeqRecord import SeqRecord
    >>> from seqray.core.alphabet import RNA
    >>> rows = [SeqRecord(Seq("acg-u"), id="x"), SeqRecord(Seq("AC-GU"), id="y")]
    >>> [alignment] = as_alignments(MultipleSeqAlignment(rows), RNA)
    >>> alignment.id, alignment.names, alignment.text(0)
    ('alignment_1', ('x', 'y'), 'ACG-U')
    """
    if isinstance(alignments, str | Path):
        return read_alignments(alignments, alphabet)
    if isinstance(alignments, Alignment | MultipleSeqAlignment):
        alignments = [alignments]
    if isinstance(alignments, Mapping):
        return (_alignment(str(name), alignments[name], alphabet) for name in alignments)
    if not isinstance(alignments, Iterable):
        raise InputError(
            f"a {type(alignments).__name__} was given, no alignments", remedy=f"give {_ACCEPTED}"
        )
    return (_alignment(f"alignment_{i}", one, alphabet) for i, one in enumerate(alignments, start=1))


def _alignment(name: str, thing: Any, alphabet: Alphabet) -> Alignment:
    if isinstance(thing, Alignment):
        if thing.alphabet.name != alphabet.name:
            raise InputError(
                f"is an alignment of {thing.alphabet.name}, and the model reads {alphabet.name}",
                where=f"alignment '{thing.id}'",
            )
        return thing
    if isinstance(thing, MultipleSeqAlignment):
        rows = list(thing)
        text = AlignedText([str(row.id) for row in rows], [str(row.seq).encode() for row in rows])
        return to_alignment(text, name, alphabet, "alignments")
    raise InputError(
        f"a {type(thing).__name__} was given, no alignment", where=name, remedy=f"give {_ACCEPTED}"
    )
