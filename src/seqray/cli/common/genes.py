"""The genes that a locator reads: of a file, of a GenBank input, or predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from seqray.cli.common.argument_types import PositiveInt
from seqray.cli.common.arguments import Options, name_options, option
from seqray.cli.common.inputs import RecordOptions
from seqray.core import NoRecordsError

if TYPE_CHECKING:
    from seqray.core import Alphabet, SequenceRecord
    from seqray.scanning import GeneSource


class GeneOptions(Options, heading="genes, for a locator"):
    """Where genes are from."""

    genes: str | None = option(
        "--genes FILE|predict|none",
        "GenBank or GFF3 file; predict: genes are predicted; none: no genes are used (default: those of a "
        "GenBank input, else predicted where the extra 'genes' is installed)",
    )
    codon_table: PositiveInt | None = option(
        "--codon-table N", "of predicted genes (default: 11 or 4, whichever fits)"
    )


def find_genes(
    options: GeneOptions,
    reading: RecordOptions,
    path: str,
    alphabet: Alphabet,
    is_circular: Callable[[SequenceRecord], bool],
    *,
    ahead: bool = False,
) -> tuple[GeneSource | None, list[str]]:
    """Read or predict genes as the command line says.

    Parameters
    ----------
    options, reading
        Where genes are from, and which records are read.
    path
        The input, which is read more than once.
    alphabet
        Of the locator.
    is_circular
        Tells how a contig is read.
    ahead
        Predict the genes of the first contig at once.

    Returns
    -------
    source, notes
        Where genes are from, None for no genes; and what to tell the user.

    Raises
    ------
    ConfigError, InputError
        As `seqray.scanning.choose_genes`.
    """
    from seqray.io.sequences import is_genbank, read_sequences
    from seqray.scanning import choose_genes

    def records() -> Iterator[SequenceRecord]:
        unique, skip = reading.duplicates, (lambda record: None)
        return read_sequences(path, alphabet, duplicates=unique, on_skip=skip)

    genes = options.genes or "auto"
    try:
        source, reason = choose_genes(
            genes,
            records,
            is_circular,
            table=options.codon_table,
            genbank=path if genes == "auto" and is_genbank(path) else None,
            duplicates=reading.duplicates,
            ahead=ahead,
        )
    except NoRecordsError:
        return None, []  # the scan says so, or takes it where --allow-empty is given
    return source, [name_options(f"no genes: {reason}")] if reason else []
