"""Read sequences from FASTA or GenBank as a stream of validated records, one in memory at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Unpack

from seqray.core import DNA, Alphabet, SequenceRecord
from seqray.io.files import open_input
from seqray.io.pipes import display_name
from seqray.io.sequences.fasta import split_fasta
from seqray.io.sequences.records import RawRecord, ReadOptions, validate_records
from seqray.io.sequences.sniff import GENBANK, detect_format


def read_sequences(
    path: str | Path, alphabet: Alphabet, **options: Unpack[ReadOptions]
) -> Iterator[SequenceRecord]:
    """Read the records of a FASTA or GenBank file in order; the content decides on the format, not the name.

    Raises `InputError` if the file can't be read, has another format, is cut off, contains no records
    (`NoRecordsError`) or NUL bytes, or if a record has no id, an id that occurred before, no letters or
    letters outside the alphabet.

    Parameters
    ----------
    path
        The file, plain or compressed; ``-`` is standard input. FASTA may have any line ends, wrapped or
        single lines, and comments (``;`` or ``#``) and blank lines before the first header. The id of a
        GenBank record is its VERSION (accession.version); annotated features are ignored.
    alphabet
        Validates and folds the letters.
    **options
        See `ReadOptions`.
    """
    with open_input(path) as handle:
        genbank = detect_format(handle.peek(1)) == GENBANK
        split = _split_genbank if genbank else split_fasta
        yield from _validated(split, handle, path, alphabet, options)


def read_fasta(
    path: str | Path, alphabet: Alphabet = DNA, **options: Unpack[ReadOptions]
) -> Iterator[SequenceRecord]:
    """Read the records of a FASTA file in order, with their lower-case intervals.

    Parameters
    ----------
    path, alphabet, **options
        As in `read_sequences`, but ``soft_masks`` is True by default: records in Python can be scanned with
        ``skip_soft_masked`` long after the case of their letters was folded.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.fa")
    ...     _ = path.write_text(">a first\\nACgt\\n>b\\nNNA\\n")
    ...     for record in read_fasta(path):
    ...         print(record.id, record.sequence, record.soft_masked)
    a ACGT ((2, 4),)
    b NNA ()
    """
    options.setdefault("soft_masks", True)
    with open_input(path) as handle:
        yield from _validated(split_fasta, handle, path, alphabet, options)


def read_genbank(
    path: str | Path, alphabet: Alphabet = DNA, **options: Unpack[ReadOptions]
) -> Iterator[SequenceRecord]:
    """Read the records of a GenBank flat file in order.

    Parameters
    ----------
    path, alphabet, **options
        As in `read_sequences`.
    """
    with open_input(path) as handle:
        yield from _validated(_split_genbank, handle, path, alphabet, options)


def _split_genbank(handle: io.BufferedReader, where: str) -> Iterator[RawRecord]:
    from seqray.io.sequences.genbank import split_genbank  # and Biopython, which FASTA does without

    return split_genbank(handle, where)


def _validated(
    split: Callable[[io.BufferedReader, str], Iterator[RawRecord]],
    handle: io.BufferedReader,
    path: str | Path,
    alphabet: Alphabet,
    options: ReadOptions,
) -> Iterator[SequenceRecord]:
    where = display_name(path)
    return validate_records(split(handle, where), alphabet, where, **options)


def is_genbank(path: str | Path) -> bool:
    """Whether a file is GenBank, by its first block."""
    with open_input(path) as handle:
        return detect_format(handle.peek(1)) == GENBANK
