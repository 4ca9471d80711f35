"""Where a locator's scan gets the genes of each contig from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from seqray.core.alphabet import DNA
from seqray.core.errors import ConfigError, InputError, NoRecordsError
from seqray.core.records import SequenceRecord
from seqray.genome.genes import Annotation, Gene, check_genes
from seqray.genome.predict import GenePredictor, can_predict_genes, check_predictable
from seqray.io.files import display_name
from seqray.io.records import Duplicates


@dataclass(frozen=True)
class GeneSource:
    """Gives the genes of one contig after the other.

    Attributes
    ----------
    source
        Where they are from, in words.
    find
        A contig, and whether it is circular, to its genes; None where they are not known.
    circular
        Contigs that the source calls circular.
    """

    source: str
    find: Callable[[SequenceRecord, bool], tuple[Gene, ...] | None]
    circular: Collection[str] = frozenset()


def choose_genes(
    genes: str | Path | Annotation,
    records: Callable[[], Iterable[SequenceRecord]],
    is_circular: Callable[[SequenceRecord], bool],
    *,
    table: int | None = None,
    genbank: str | Path | None = None,
    duplicates: Duplicates = "error",
    ahead: bool = False,
) -> tuple[GeneSource | None, str]:
    """Read or predict the genes that were asked for.

    Parameters
    ----------
    genes
        ``auto`` (those of a GenBank input, else predicted), ``predict``, ``none``, a GenBank or GFF3 file, or
        genes that were read.
    records
        All sequences, each time it is called.
    is_circular
        Tells how a contig is read.
    table
        Codon table of predicted genes; None chooses.
    genbank, duplicates
        The input if it is a GenBank file, and how its records are read.
    ahead
        Predict the genes of the first contig at once.

    Returns
    -------
    source, reason
        Where genes are from; None if none are used, and why ``auto`` found none.

    Raises
    ------
    ConfigError
        For a codon table where no genes are predicted; if Pyrodigal is needed and not installed.
    InputError
        For genes of a file that can't be read or belong to other sequences, and genes that were asked for and
        can't be predicted.
    """
    predicted = isinstance(genes, str) and genes in ("auto", "predict")
    if table is not None and not predicted:
        given = genes.source if isinstance(genes, Annotation) else genes
        raise ConfigError(
            f"codon_table={table} is for predicted genes, but genes='{given}' was given",
            remedy="give one of them",
        )
    if isinstance(genes, str) and genes == "none":
        return None, ""
    if isinstance(genes, Annotation):
        return genes_of_annotation(genes, records()), ""

    from seqray.genome.read import read_genes

    def read(path: str | Path, duplicates: Duplicates = "error") -> GeneSource | None:
        circles = {record.id: len(record) for record in records() if is_circular(record)}
        found = read_genes(path, circles, duplicates=duplicates)
        return genes_of_annotation(found, records()) if found.count or not predicted else None

    if not predicted:
        return read(genes), ""
    if genes == "auto" and genbank is not None and (own := _own_genes(lambda: read(genbank, duplicates))):
        if table is None:
            return own, ""
        raise ConfigError(
            f"codon_table={table} is for predicted genes, but {display_name(genbank)} names genes",
            remedy="give genes='predict', too",
        )
    needed = genes == "predict" or table is not None
    return _predict(records(), table, is_circular if ahead else None, needed=needed)


def _own_genes(read: Callable[[], GeneSource | None]) -> GeneSource | None:
    """Genes that a GenBank file names for its own sequences; None if it names none."""
    try:
        return read()
    except NoRecordsError:
        raise
    except InputError as error:
        remedy = "correct the genes, or give genes='predict'"
        raise InputError(error.what, where=error.where, remedy=remedy) from None


def _predict(
    records: Iterable[SequenceRecord],
    table: int | None,
    is_circular: Callable[[SequenceRecord], bool] | None,
    *,
    needed: bool,
) -> tuple[GeneSource | None, str]:
    """Genes, or why there are none: a genome that is too large is scanned nevertheless."""
    if not needed and not can_predict_genes():
        return None, "give genes=..., or pip install 'seqray[genes]' to predict them"
    try:
        return predicted_genes(records, table, is_circular=is_circular), ""
    except NoRecordsError:
        raise
    except InputError as error:
        if needed:
            raise
        return None, str(error)


def genes_of_annotation(annotation: Annotation, records: Iterable[SequenceRecord]) -> GeneSource:
    """Genes that were read, after a look at all sequences.

    Raises `InputError` for genes that can't be those of the sequences: of other names or lengths, beyond an
    end, or without start codons.

    Parameters
    ----------
    annotation
        As read. The genes of a contig that it does not name are not known.
    records
        All sequences, to compare.
    """
    check_genes(annotation, ((record.id, DNA.encode(_dna(record))) for record in records))

    def find(record: SequenceRecord, circular: bool) -> tuple[Gene, ...] | None:
        return annotation.genes.get(record.id)

    return GeneSource(annotation.source, find, annotation.circular)


def predicted_genes(
    records: Iterable[SequenceRecord],
    table: int | None = None,
    *,
    is_circular: Callable[[SequenceRecord], bool] | None = None,
) -> GeneSource:
    """Genes that are predicted, contig by contig, by what is learned from all sequences.

    Raises `InputError` for a contig that is too long for a bacterium.

    Parameters
    ----------
    records
        All sequences.
    table
        Codon table; None chooses.
    is_circular
        Tells how a contig will be asked for: the genes of the first are then predicted at once.
    """
    seen = iter(records)
    head = list(islice(seen, 1))
    sequences = (
        check_predictable(_dna(record), where=f"record '{record.id}'") for record in chain(head, seen)
    )
    predictor = GenePredictor.train(sequences, table)
    for _ in sequences:  # training reads a part; too long a contig is refused before the scan
        pass

    def find(record: SequenceRecord, circular: bool) -> tuple[Gene, ...]:
        known = ready.get((record.id, circular))
        return predict(record, circular) if known is None else known

    def predict(record: SequenceRecord, circular: bool) -> tuple[Gene, ...]:
        return predictor.genes_of(_dna(record), circular=circular, name=record.id)

    asked = [] if is_circular is None else [(record, is_circular(record)) for record in head]
    ready = {(record.id, circular): predict(record, circular) for record, circular in asked}
    return GeneSource(predictor.source, find)


def _dna(record: SequenceRecord) -> str:
    return record.sequence.replace("U", "T")
