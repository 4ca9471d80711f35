"""What the genomes of a run are made of, so that a scan can tell whether its genome is like one of them."""

from __future__ import annotations

from collections.abc import Sequence

from seqray.calibration import Domain
from seqray.core import DNA, Codes, pick_evenly
from seqray.training.genomes.genome import LabeledGenome

PIECE = 1000
"""Letters of a piece."""
PIECES = 300
"""Most pieces of a species: 300,000 words of four letters give their shares to within a few percent."""


def species_domain(genomes: Sequence[LabeledGenome]) -> Domain | None:
    """Words of four letters of each species, from pieces spread evenly over its contigs.

    Species of which only short contigs are known are left out, because those lie around the sites, and
    other parts of the genome are made of other words. None where that leaves nothing.
    """
    pieces: list[Codes] = []
    species: list[str] = []
    for name in sorted({genome.row.species for genome in genomes}):
        of_species = [p for genome in genomes if genome.row.species == name for p in _pieces(genome)]
        chosen = pick_evenly(of_species, PIECES)
        pieces += chosen
        species += [name] * len(chosen)
    return Domain.fit(pieces, DNA, contexts=species) if pieces else None


def _pieces(genome: LabeledGenome) -> list[Codes]:
    return [
        contig.codes[start : start + PIECE]
        for contig in genome.contigs
        for start in range(0, len(contig.codes) - PIECE + 1, PIECE)
    ]
