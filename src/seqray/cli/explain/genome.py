"""Genes and topology of the genome whose calls a locator explains."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seqray.cli.common import find_genes
from seqray.core import ConfigError
from seqray.io import keep_pipes
from seqray.io.tracks import read_circular

if TYPE_CHECKING:
    from seqray.cli.explain.arguments import ExplainRequest
    from seqray.modelfile import TrainedModel
    from seqray.scanning import GeneSource


@dataclass(frozen=True)
class Genome:
    """What is known of a genome beside its letters; nothing for models that read letters alone.

    Attributes
    ----------
    genes
        Where its genes are from; None where they are not known.
    circular
        Contigs that the calls or this source call circular.
    """

    genes: GeneSource | None = None
    circular: Collection[str] = frozenset()


def find_genome(request: ExplainRequest, model: TrainedModel) -> Genome:
    """Find the genes that a locator reads beside the letters."""
    source, *others = request.input
    if others:
        raise ConfigError("a locator explains the calls of one file", remedy="give one genome at a time")
    keep_pipes(source)
    calls = request.target.calls
    circular = read_circular(calls) if calls else frozenset[str]()
    genes, notes = find_genes(
        request.genes,
        request.records,
        source,
        model.alphabet,
        lambda record: record.circular or record.id in circular,
    )
    request.note(*notes)
    return Genome(genes, circular.union(genes.circular if genes else ()))
