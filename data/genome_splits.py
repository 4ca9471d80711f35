"""Which parts of genomes are held out, and what elsewhere shares a locus with them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from ecoli_split import DEV, TEST
from genome_sources import ECOLI, Genome
from grouping import SHARED_WORD
from loci import Interval, cut, intervals
from seqray.core.alphabet import DNA
from seqray.homology.kmers import KmerSet

REGIONS = {
    "scerevisiae": {"dev": ("XI",), "test": ("IX", "XIV"), "mask": ("IV", "XV")},
    "spombe": {
        "dev": (("I", 4_700_000, 5_579_133),),
        "test": (("II", 3_400_000, 4_539_804),),
        "mask": ("III", "MT", "MTR", "AB325691"),
    },
    "pfalciparum": {"dev": ("MAL12",), "test": ("MAL10",), "mask": ("MAL13", "MAL14")},
}
"""Whole chromosomes and parts of eukaryotes; the tables name no start of those that are masked."""
DEV_SHARE, TEST_SHARE = (0.40, 0.55), (0.55, 0.70)
"""Development and test region of a genome, as shares of its contigs laid end to end."""


def split_regions(genome: Genome) -> dict[str, list[Interval]]:
    """Return the development and the test region of a genome; those of E. coli are the benchmark's."""
    if parts := REGIONS.get(genome.name):
        return {part: [whole(genome, region) for region in regions] for part, regions in parts.items()}
    if genome.name == ECOLI:
        (contig,) = genome.contigs
        return {"dev": [(contig, *DEV)], "test": [(contig, *TEST)]}
    lengths = {contig: len(letters) for contig, letters in genome.contigs.items()}
    return {"dev": stretch(lengths, *DEV_SHARE), "test": stretch(lengths, *TEST_SHARE)}


def whole(genome: Genome, region: str | Interval) -> Interval:
    """Return a region, or all of a chromosome."""
    return (region, 0, len(genome.contigs[region])) if isinstance(region, str) else region


def stretch(lengths: Mapping[str, int], first: float, last: float) -> list[Interval]:
    """Return the regions between two shares of contigs laid end to end."""
    total = sum(lengths.values())
    low, high = int(first * total), int(last * total)
    found, offset = [], 0
    for contig, length in lengths.items():
        start, end = max(low - offset, 0), min(high - offset, length)
        if start < end:
            found.append((contig, start, end))
        offset += length
    return found


def held_out_words(genomes: Sequence[Genome]) -> dict[str, KmerSet]:
    """Return the words of what is held out: the regions of E. coli, and those of all genomes."""
    ecoli = [genome for genome in genomes if genome.name == ECOLI]
    return {
        **{f"ecoli-{part}": region_words(ecoli, part) for part in ("test", "dev")},
        **{part: region_words(genomes, part) for part in ("test", "dev")},
    }


def region_words(genomes: Iterable[Genome], part: str) -> KmerSet:
    """Return the words of one part of genomes."""
    texts = (text for genome in genomes for text in cut(genome.contigs, split_regions(genome)[part]))
    return KmerSet(map(DNA.encode, texts), SHARED_WORD)


def masked_rows(genome: Genome, words: Mapping[str, KmerSet]) -> Iterator[tuple[str, int, int, str]]:
    """Yield what shares a word with a held-out part, and lies outside that part of the genome itself."""
    own = split_regions(genome)
    for name, found in words.items():
        part = name.removeprefix("ecoli-")
        regions = own[part] if name == part or genome.name == ECOLI else []
        for contig, letters in genome.contigs.items():
            marks = found.marks(DNA.encode(letters))
            for region, start, end in regions:
                if region == contig:
                    marks[start:end] = False
            yield from ((contig, start, end, name) for start, end in intervals(marks))
