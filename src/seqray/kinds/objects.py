"""Records and alignments from Python objects."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from Bio.Align import Alignment as BioAlignment, MultipleSeqAlignment
from Bio.Seq import MutableSeq, Seq, UndefinedSequenceError
from Bio.SeqRecord import SeqRecord

from seqray.core.alphabet import Alphabet
from seqray.core.errors import InputError
from seqray.core.records import MISSING_TEXTS, Alignment, SequenceRecord
from seqray.core.results import SkippedRecord
from seqray.io.alignments import from_biopython, read_alignments
from seqray.io.records import OnSkip, find_soft_masks, note_soft_masks
from seqray.io.sequences import is_genbank, read_sequences
from seqray.io.tables import Columns, column_places

# A text with one of these is no sequence: it must be meant as a path.
_OF_PATHS = re.compile(r"[./\\0-9_~]")
_ACCEPTED = {
    "sequence": "strings, Biopython records, pysam reads or FastaFile, a pandas Series or frame, a mapping "
    "of ids, or a path",
    "alignment": "a path, alignments of seqray or Biopython, a list of these, or a mapping of ids to them",
}
R = TypeVar("R", SequenceRecord, Alignment)
_SINGLE = {
    "sequence": (str, Seq, MutableSeq, SeqRecord, SequenceRecord),
    "alignment": (Alignment, MultipleSeqAlignment, BioAlignment),
}


def as_records(
    sequences: Any,
    alphabet: Alphabet,
    *,
    soft_masks: bool = False,
    on_skip: OnSkip | None = None,
    columns: Columns | None = None,
) -> Iterator[SequenceRecord]:
    """Turn whatever holds sequences into validated records, one at a time; ``columns`` are of tables."""
    if is_path(sequences):
        skips = {"on_skip": on_skip, "skip_unusable": on_skip is not None or None}
        return read_sequences(sequences, alphabet, soft_masks=soft_masks, columns=columns or {}, **skips)

    if _kind(sequences) == "pandas.DataFrame":
        header, remedy = list(map(str, sequences.columns)), "name the column of the sequences 'sequence'"
        at = column_places(header, ("sequence",), columns or {}, "the frame", remedy)
        names = sequences.iloc[:, at["id"]] if "id" in at else sequences.index
        sequences = sequences.iloc[:, at["sequence"]].set_axis(names)

    def read(name: str, thing: Any) -> list[SequenceRecord]:
        return [_record(name, thing, alphabet, soft_masks)]

    return _each(_named(sequences, "sequence"), read, on_skip)


def _each(
    named: Iterator[tuple[str, Any]], read: Callable[[str, Any], Iterable[R]], on_skip: OnSkip | None
) -> Iterator[R]:
    """What is read of each thing; ``on_skip`` gets one that can't be used, which else is an error."""
    for name, thing in named:
        try:
            yield from read(name, thing)
        except InputError as error:
            if on_skip is None:
                raise
            own = thing.id if isinstance(thing, (SeqRecord, SequenceRecord, Alignment)) else None
            on_skip(SkippedRecord(own or name, error.what))


def as_alignments(
    alignments: Any, alphabet: Alphabet, *, on_skip: OnSkip | None = None
) -> Iterator[Alignment]:
    """Turn whatever holds alignments into checked ones, one at a time."""
    if isinstance(alignments, str | Path):
        skips = {"on_skip": on_skip, "skip_unusable": on_skip is not None or None}
        return read_alignments(alignments, alphabet, **skips)
    return _each(_named(alignments, "alignment"), partial(_alignments, alphabet=alphabet), on_skip)


def is_path(sequences: Any) -> bool:
    """Whether what `as_records` takes is a path, not letters."""
    return isinstance(sequences, Path) or (isinstance(sequences, str) and bool(_OF_PATHS.search(sequences)))


def holds_genes(sequences: Any) -> bool:
    """Whether what `as_records` takes is the path of a GenBank file, which can be read a second time."""
    return is_path(sequences) and Path(sequences).is_file() and is_genbank(sequences)


def annotated_records(sequences: Any) -> list[SeqRecord]:
    """Records of Biopython with coding sequences, under the names that `as_records` gives them."""
    if not isinstance(sequences, SeqRecord | Mapping | list | tuple):
        return []
    found = []
    for name, thing in _named(sequences, "sequence"):
        if isinstance(thing, SeqRecord) and any(feature.type == "CDS" for feature in thing.features):
            found.append(copy(thing))
            found[-1].id = _name(thing, name)
    return found


def _named(things: Any, what: str) -> Iterator[tuple[str, Any]]:
    """Each thing with its key, or with a name made from its place."""
    kind = _kind(things)
    if kind == "pysam.FastaFile":
        return ((name, things.fetch(name)) for name in things.references)
    if kind == "pandas.DataFrame":
        raise InputError(f"a table was given, not {what}s", remedy="give the column that holds them")
    if kind == "pandas.Series":
        return ((str(key), thing) for key, thing in things.items())
    if isinstance(things, Mapping):
        return ((str(key), things[key]) for key in things)
    if isinstance(things, _SINGLE[what]) or kind in _READS:
        things = [things]
    flat = isinstance(things, Iterable) and getattr(things, "ndim", 1) == 1
    if isinstance(things, bytes) or not flat:
        raise InputError(f"got {type(things).__name__}, not {what}s", remedy=f"give {_ACCEPTED[what]}")
    return ((f"{what}_{place}", thing) for place, thing in enumerate(things, start=1))


_READS = ("pysam.AlignedSegment", "pysam.FastxRecord")


def _kind(thing: Any) -> str:
    """``package.Class`` of a thing, without importing the package: pandas and pysam take their time."""
    return f"{type(thing).__module__.split('.')[0]}.{type(thing).__name__}"


def _record(name: str, thing: Any, alphabet: Alphabet, soft_masks: bool) -> SequenceRecord:
    where, kind = f"record '{name}'", _kind(thing)
    _refuse_missing(thing, where)
    if isinstance(thing, SequenceRecord):
        thing = note_soft_masks(thing) if soft_masks else thing
        letters = alphabet.normalize(thing.sequence, where=f"record '{thing.id}'")
        return thing if letters == thing.sequence else replace(thing, sequence=letters)
    description, circular = "", False
    if isinstance(thing, SeqRecord):
        name = _name(thing, name)
        description = thing.description if thing.description != "<unknown description>" else ""
        circular = thing.annotations.get("topology") == "circular"
        letters = _text(thing.seq, f"record '{name}'")
    elif kind in _READS:
        name, letters = _read(thing, name)
    else:
        letters = _text(thing, where)
    return SequenceRecord(
        name,
        _normalize(letters, alphabet, f"record '{name}'"),
        description,
        find_soft_masks(letters.encode()) if soft_masks else (),
        circular,
    )


def _name(record: SeqRecord, other: str) -> str:
    return record.id if record.id not in (None, "", "<unknown id>") else other


def _refuse_missing(thing: Any, where: str) -> None:
    """Refuse None, NaN and NA, and the texts that a table makes of them."""
    if isinstance(thing, str) and thing.lower() in MISSING_TEXTS:
        what = f"is {thing!r}, which is the text of a missing value, not a sequence"
        remedy = "drop missing values first; if these are its letters, give a SequenceRecord"
        raise InputError(what, where=where, remedy=remedy)
    is_nan = isinstance(thing, Real) and math.isnan(thing)
    if thing is None or is_nan or _kind(thing) in ("pandas.NAType", "pandas.NaTType"):
        what = f"is {thing!r}, which is a missing value, not a sequence"
        raise InputError(what, where=where, remedy="drop missing values first")


def _normalize(letters: str, alphabet: Alphabet, where: str) -> str:
    try:
        return alphabet.normalize(letters, where)
    except InputError:
        if letters.startswith(">") or os.path.isfile(letters):
            what = "looks like FASTA text or a path, not a sequence"
            raise InputError(what, where=where, remedy="give one path instead of lines or a list") from None
        raise


def _read(read: Any, name: str) -> tuple[str, str]:
    """Name and letters of a read; an alignment keeps it on the strand of the reference."""
    if _kind(read) == "pysam.FastxRecord":
        return str(read.name), _text(read.sequence, f"record '{read.name}'")
    name = read.query_name or name
    return name, _text(read.get_forward_sequence(), f"read '{name}'")


def _text(thing: Any, where: str) -> str:
    try:
        if isinstance(thing, str | Seq | MutableSeq):
            return str(thing).strip()
    except UndefinedSequenceError:
        raise InputError("has a length but no letters", where=where) from None
    what = "has no sequence" if thing is None else f"got {type(thing).__name__}, not a sequence"
    raise InputError(what, where=where, remedy=f"give {_ACCEPTED['sequence']}")


def _alignments(name: str, thing: Any, alphabet: Alphabet) -> Iterable[Alignment]:
    if is_path(thing) or (isinstance(thing, str) and os.path.isfile(thing)):
        return read_alignments(thing, alphabet)
    return [_alignment(name, thing, alphabet)]


def _alignment(name: str, thing: Any, alphabet: Alphabet) -> Alignment:
    if isinstance(thing, Alignment):
        if thing.alphabet.name != alphabet.name:
            raise InputError(
                f"is an alignment of {thing.alphabet.name}, and the model reads {alphabet.name}",
                where=f"alignment '{thing.id}'",
            )
        return thing
    if not isinstance(thing, _SINGLE["alignment"]):
        what = f"got {type(thing).__name__}, not an alignment"
        raise InputError(what, where=name, remedy=f"give {_ACCEPTED['alignment']}")
    return from_biopython(thing, name, alphabet)
