"""From genomes to what a run learns from, what it is validated on, and what is measured at the end."""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core.arrays import pick_evenly
from seqray.core.errors import InputError
from seqray.core.run_config import RunConfig
from seqray.training.genomes.evaluation import REGION, SPECIES
from seqray.training.genomes.sheet import DEV, LabeledGenome
from seqray.training.genomes.sources import Chunk, Source, held_out_kmers, make_strand, training_source
from seqray.training.genomes.strands import MASKED


@dataclass(frozen=True, eq=False)
class Prepared:
    """Genomes, divided.

    Attributes
    ----------
    sources, shares
        What chunks are drawn from, and how often.
    validation
        Chunks of the development regions, as many of each species.
    measured
        Genomes to measure at the end, and what of their species was held out.
    counts
        Sites to learn from by class, and letters.
    """

    sources: list[Source]
    shares: list[float]
    validation: list[Chunk]
    measured: list[tuple[LabeledGenome, str]]
    counts: dict[str, int]


def prepare(
    genomes: Sequence[LabeledGenome], classes: Sequence[str], hold_out: Sequence[str], config: RunConfig
) -> Prepared:
    """Divide genomes into what is learned from and what is not.

    Raises `InputError` for a name to hold out that no genome has, where a class has no site to learn from,
    where no region is left, and where no region has a site of the positive class.

    ``hold_out`` names the species and groups that are left out.
    """
    left_out = [bool({genome.row.species, genome.row.group} & set(hold_out)) for genome in genomes]
    _check_names(genomes, hold_out)
    held_out = held_out_kmers(genomes, left_out)
    sources: list[Source] = []
    shares: list[float] = []
    for genome, out in zip(genomes, left_out, strict=True):
        if out or not genome.row.weight:
            continue
        for source in training_source(genome, held_out, config.genomes.chunk):
            sources.append(source)
            shares.append(genome.row.weight * source.letters)
    counts = _count_sites(sources, classes)
    _check_counts(counts, classes)
    inside = [genome for genome, out in zip(genomes, left_out, strict=True) if not out]
    chunks = validation_chunks(inside, config)
    _check_validation_sites(chunks, classes, config)
    measured = [(g, SPECIES if out else REGION) for g, out in zip(genomes, left_out, strict=True)]
    if not any(_has_measured_site(genome, classes.index(config.data.positive)) for genome in genomes):
        raise InputError(
            f"no site of class {config.data.positive} lies in a development region, to measure on",
            remedy="give more sites, or regions that have some (column 'held_out' of a --sheet)",
        )
    return Prepared(sources, [share / sum(shares) for share in shares], chunks, measured, counts)


def _check_counts(counts: Mapping[str, int], classes: Sequence[str]) -> None:
    """Refuse a class without a site: the model would state scores for what it has never seen."""
    missing = [name for name in classes if not counts[name]]
    if len(missing) == len(classes):
        raise InputError(
            "no site is left to learn from", remedy="hold out less, or give sites of weight above 0"
        )
    if missing:
        raise InputError(
            f"no site of class '{missing[0]}' is left to learn from",
            remedy="hold out less, give its sites, or leave it out of 'genomes.classes'",
        )


def _has_measured_site(genome: LabeledGenome, positive: int) -> bool:
    return any(
        start <= position < end
        for contig in genome.contigs
        for start, end, name in contig.regions
        for position, _, kind, weight in contig.sites
        if name == DEV and kind == positive and weight > 0
    )


def _check_validation_sites(chunks: Sequence[Chunk], classes: Sequence[str], config: RunConfig) -> None:
    """Refuse to choose the epoch by the average precision where there is no site to find."""
    name, positive = config.data.positive, classes.index(config.data.positive)
    if config.stopping.monitor != "auprc":
        return
    for strand, start in chunks:
        sites = strand.sites.between(start, start + config.genomes.chunk)
        countable = (sites.kind == positive) & (sites.weight > 0) & (strand.level[sites.position] != MASKED)
        if countable.any():
            return
    raise InputError(
        f"no site of class {name} lies in the {len(chunks)} stretches that choose the epoch",
        remedy="give more sites or more 'genomes.validation_chunks', or --set stopping.monitor=loss",
    )


def _check_names(genomes: Sequence[LabeledGenome], hold_out: Sequence[str]) -> None:
    known = {name for genome in genomes for name in (genome.row.species, genome.row.group) if name}
    for name in hold_out:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1) or sorted(known)
            raise InputError(
                f"no genome has the species or group '{name}' to hold out",
                remedy=f"did you mean '{near[0]}'?",
            )


def _count_sites(sources: Sequence[Source], classes: Sequence[str]) -> dict[str, int]:
    counts = dict.fromkeys(classes, 0) | {"letters": 0}
    for source in sources:
        counts["letters"] += source.letters
        for strand in source.strands:
            sites = strand.sites
            learned = (sites.weight > 0) & (strand.level[sites.position] > 0)
            for kind, name in enumerate(classes):
                counts[name] += int(np.sum(learned & (sites.kind == kind)))
    return counts


def validation_chunks(genomes: Sequence[LabeledGenome], config: RunConfig) -> list[Chunk]:
    """Chunks of the development regions, spread evenly; as many of each species as there are."""
    chunk = config.genomes.chunk
    by_species: dict[str, list[Chunk]] = defaultdict(list)
    for genome in genomes:
        for contig in genome.contigs:
            regions = [(start, end) for start, end, name in contig.regions if name == DEV]
            if not regions or not genome.row.weight:
                continue
            nowhere = ~contig.covered(DEV)
            for name in "+-":
                strand = make_strand(genome, contig, name, nowhere)
                length = len(strand)
                for start, end in regions:
                    low, high = (start, end) if name == "+" else (length - end, length - start)
                    by_species[genome.row.species] += [Chunk(strand, at) for at in range(low, high, chunk)]
    if not by_species:
        raise InputError(
            "no region is named 'dev' to validate on",
            remedy="give 'held_out', or a genome with longer contigs",
        )
    most = max(1, config.genomes.validation_chunks // len(by_species))
    return [one for chunks in by_species.values() for one in pick_evenly(chunks, most)]
