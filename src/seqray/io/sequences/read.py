"""Read sequences from FASTA or GenBank, whichever the file holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seqray.core import Alphabet, SequenceRecord
from seqray.io.files import display_name, open_input
from seqray.io.sequences.fasta import OnSkip, parse_fasta
from seqray.io.sequences.genbank import parse_genbank
from seqray.io.sequences.identifiers import Duplicates
from seqray.io.sequences.sniff import GENBANK, name_format


def read_sequences(
    path: str | Path,
    alphabet: Alphabet,
    *,
    duplicates: Duplicates = "error",
    soft_masks: bool = False,
    on_skip: OnSkip | None = None,
) -> Iterator[SequenceRecord]:
    """Read records as `read_fasta` or `read_genbank` does; the content of the file decides, not its name.

    Parameters
    ----------
    path, alphabet, duplicates, soft_masks, on_skip
        As `seqray.io.sequences.read_fasta`.

    Raises
    ------
    InputError
        As the two readers; a file that is neither format is told from FASTA.
    """
    where = display_name(path)
    with open_input(path) as handle:
        if name_format(handle.peek(1)) == GENBANK:
            yield from parse_genbank(handle, alphabet, where=where, duplicates=duplicates, on_skip=on_skip)
            return
        yield from parse_fasta(
            handle,
            alphabet,
            where=where,
            duplicates=duplicates,
            soft_masks=soft_masks,
            on_skip=on_skip,
        )
