"""The genes that a locator reads: of a file, of a GenBank input, or predicted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from seqray.cli.common.argument_types import PositiveInt
from seqray.cli.common.arguments import Options, option
from seqray.cli.common.inputs import RecordOptions
from seqray.core import ConfigError, InputError, NoRecordsError

if TYPE_CHECKING:
    from seqray.core import Alphabet, SequenceRecord
    from seqray.io.sequences import Duplicates
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
    ConfigError
        For a codon table where no genes are predicted.
    InputError
        For genes of a file that can't be read, and genes that were asked for and can't be predicted.
    """
    from seqray.annotation import can_predict_genes, read_genes
    from seqray.io.sequences import is_genbank
    from seqray.scanning import genes_of_annotation

    chosen, table = options.genes, options.codon_table
    if table is not None and chosen not in (None, "predict"):
        raise ConfigError(
            f"--codon-table is for predicted genes, but --genes is {chosen}", remedy="give one of them"
        )

    def records() -> Iterator[SequenceRecord]:
        from seqray.io.sequences import read_sequences

        unique, skip = reading.duplicates, (lambda record: None)
        return read_sequences(path, alphabet, duplicates=unique, on_skip=skip)

    def circles() -> dict[str, int]:
        return {record.id: len(record) for record in records() if is_circular(record)}

    try:
        if chosen not in (None, "predict", "none"):
            return genes_of_annotation(read_genes(chosen, circles()), records()), []
        if chosen == "none":
            return None, []
        if (
            chosen is None
            and is_genbank(path)
            and (own := _genes_of_input(path, circles(), records(), table, reading.duplicates))
        ):
            return own, []
        if chosen is None and not can_predict_genes():
            return None, ["no genes: give --genes FILE, or pip install 'seqray[genes]' to predict them"]
        return _predict(records(), table, is_circular if ahead else None, asked=chosen is not None)
    except NoRecordsError:
        return None, []  # the scan says so, or takes it where --allow-empty is given


def _genes_of_input(
    path: str,
    circles: Mapping[str, int],
    records: Iterator[SequenceRecord],
    table: int | None,
    duplicates: Duplicates,
) -> GeneSource | None:
    """Genes that a GenBank file names for its own sequences."""
    from seqray.annotation import read_genes
    from seqray.scanning import genes_of_annotation

    try:
        annotation = read_genes(path, circles, duplicates=duplicates)
        source = genes_of_annotation(annotation, records) if annotation.count else None
    except NoRecordsError:
        raise
    except InputError as error:
        remedy = "correct the genes, or give --genes predict"
        raise InputError(error.what, where=error.where, remedy=remedy) from None
    if source and table is not None:
        raise ConfigError(
            f"--codon-table is for predicted genes, but {path} names genes",
            remedy="give --genes predict, too",
        )
    return source


def _predict(
    records: Iterator[SequenceRecord],
    table: int | None,
    is_circular: Callable[[SequenceRecord], bool] | None,
    *,
    asked: bool,
) -> tuple[GeneSource | None, list[str]]:
    """Genes, or why there are none: without ``--genes`` a genome too large is scanned nevertheless."""
    from seqray.scanning import predicted_genes

    try:
        return predicted_genes(records, table, is_circular=is_circular), []
    except NoRecordsError:
        raise
    except InputError as error:
        if asked:
            raise
        return None, [f"no genes: {error}"]
