"""Where a locator's scan gets the genes of each contig from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from itertools import chain, islice

from seqray.annotation import Annotation, Gene, GenePredictor, check_genes, check_predictable
from seqray.core import DNA, SequenceRecord


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
