"""Make training inputs for a locator, which scores every position of a genome, from mapped starts.

    python data/prepare_genomes.py --out runs/data/genomes

The genomes and the tables of each are named in ``data/genomes.tsv``. What is written is described in
``data/README.md``: a sheet of the genomes, and for each genome its sites, its split and its masks; letters
around starts of species without a genome; and how good the starts of each source are.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

from genome_sources import ECOLI, EUKARYOTES, FUNGI, PROTOZOA, Genome, Listed, load, read_list
from genome_splits import held_out_words, masked_rows, split_regions
from loci import Place
from machine import add_data
from seqray.core.alphabet import DNA
from seqray.homology.kmers import KmerSet
from start_classes import classify
from start_quality import AFTER, BEFORE, Quality, measure, measure_places
from starts import Context, Start, read_contexts
from training_sheet import ENTERICS, Row, genome_rows, training_rows, write_table

ALL = "all"
CURATED = "eukaryotes/"
"""Sources that are taken as they are: their starts have no -10 box to be measured by."""
PREDICTED, PREDICTED_SHARE = "regulondb-predicted", 0.5
"""Predicted starts have boxes by construction: their measured weight is cut to this share."""


# --------------------------------------------------------------------------------------------- sites


def measure_sources(genome: Genome) -> dict[tuple[str, str], Quality]:
    """Measure the starts of each source of a genome, all and by class of site; eukaryotes have no boxes."""
    if genome.row["domain"] in EUKARYOTES:
        return {}
    places: dict[tuple[str, str], set[Place]] = defaultdict(set)
    for start in genome.starts:
        places[start.source, ALL].add(start.place)
        places[start.source, classify(genome.genes, start.place).site].add(start.place)
    measured = {key: measure_places(genome.contigs, found) for key, found in sorted(places.items())}
    return {key: quality for key, quality in measured.items() if quality}


def weight_of(source: str, site: str, measured: Mapping[tuple[str, str], Quality]) -> float:
    """Return the weight of a source's starts of one class; a class too small has that of the whole source."""
    if source.startswith(CURATED):
        return 1.0
    quality = measured.get((source, site)) or measured.get((source, ALL))
    weight = quality.weight if quality else 0.0
    return weight * PREDICTED_SHARE if source == PREDICTED else weight


def site_rows(genome: Genome, measured: Mapping[tuple[str, str], Quality]) -> Iterator[Row]:
    """Yield one row per distinct start."""
    merged: dict[Place, list[Start]] = defaultdict(list)
    for start in genome.starts:
        merged[start.place].append(start)
    best = genome_weight(measured) or 1.0
    for place, starts in sorted(merged.items()):
        contig, position, strand = place
        found = classify(genome.genes, place)
        sources = sorted({start.source for start in starts})
        weight = max(weight_of(source, found.site, measured) for source in sources) / best
        yield {
            "contig": contig,
            "position": position + 1,
            "strand": strand,
            "site": found.site,
            "weight": f"{weight:.2f}",
            "source": ";".join(sources),
            "part": ";".join(sorted({start.part for start in starts if start.part})),
            "strong": int(any(start.strong for start in starts)),
            "distance": "" if found.distance is None else found.distance,
            "inside": found.inside,
        }


def genome_weight(measured: Mapping[tuple[str, str], Quality]) -> float:
    """Return the weight of a genome: that of its best source."""
    return max((quality.weight for quality in measured.values()), default=0.0)


# --------------------------------------------------------------------------------------------- output


def write_bed(path: Path, rows: Iterable[tuple[str, int, int, str]]) -> None:
    """Write regions with their names."""
    path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def write_genome(genome: Genome, data: Path, out: Path) -> tuple[Row, list[Row]]:
    """Write sites and split of a genome; return its row of the sheet and its rows of the quality table."""
    measured = measure_sources(genome)
    sites = f"{genome.name}.sites.tsv"
    write_table(out / sites, site_rows(genome, measured))
    split = [(*region, part) for part, found in split_regions(genome).items() for region in found]
    write_bed(out / f"{genome.name}.split.bed", split)
    write_bed(out / f"{genome.name}.held_out.bed", split if genome.name == ECOLI else [])
    row = genome.row
    sheet = {
        "species": row["species"],
        "genus": row["genus"],
        "genome": str((data / row["genome"]).resolve()),
        "genes": str(genome.annotation.resolve()) if genome.annotation else "",
        "sites": sites,
        "weight": 1.0 if row["domain"] in EUKARYOTES else genome_weight(measured),
        "domain": row["domain"],
        "name": genome.name,
        "note": row["note"],
    }
    return sheet, [
        quality_row(row["species"], source, site, genome.listed.get(source) if site == ALL else None, found)
        for (source, site), found in measured.items()
    ]


def quality_row(species: str, source: str, site: str, listed: Listed | None, quality: Quality) -> Row:
    """Return a row of the quality table."""
    counts: Row = dict.fromkeys(("listed", "found", "stated"), "")
    if listed:
        counts = asdict(listed)
    figures = {name: round(value, 3) for name, value in asdict(quality).items()}
    return {"species": species, "source": source, "site": site, **counts, **figures, "weight": quality.weight}


def write_contexts(data: Path, out: Path, words: Mapping[str, KmerSet]) -> list[Row]:
    """Write the contexts of all species of Kuo et al.; return their rows of the quality table."""
    rows, qualities = [], []
    for path in sorted((data / "tss/kuo").glob("*.tsv.gz")):
        contexts = read_contexts(path)
        quality = measure(context.around(BEFORE, AFTER) for context in contexts)
        if quality:
            qualities.append(quality_row(contexts[0].species, "contexts", ALL, None, quality))
        for context in contexts:
            codes = DNA.encode(context.letters)
            shares = [name for name, found in words.items() if found.marks(codes).any()]
            rows.append(context_row(context, quality.weight if quality else 0.0, shares))
    write_table(out / "contexts.tsv.gz", rows)
    return qualities


def context_row(context: Context, weight: float, shares: Sequence[str]) -> Row:
    """Return a row of the table of contexts; ``shares`` are the held-out parts that it shares a word with."""
    return {
        "species": context.species,
        "genus": context.genus,
        "sequence": context.letters,
        "index": context.index,
        "type": context.type,
        "distance": context.distance,
        "coordinate": context.coordinate,
        "strand": context.strand,
        "weight": weight,
        "shares": ",".join(shares),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = parser.parse_args()
    data, out = args.data, args.out
    out.mkdir(parents=True, exist_ok=True)
    genomes = [load(data, row, out) for row in read_list()]
    written = [write_genome(genome, data, out) for genome in genomes]
    write_table(out / "genomes.tsv", [sheet for sheet, _ in written])
    words = held_out_words(genomes)
    for genome in genomes:
        write_bed(out / f"{genome.name}.masked.bed", masked_rows(genome, words))
    of_bacteria = held_out_words([genome for genome in genomes if genome.row["domain"] == "bacteria"])
    quality = [row for _, rows in written for row in rows] + write_contexts(data, out, of_bacteria)
    write_table(out / "quality.tsv", quality)
    rows = list(training_rows(out))
    write_table(out / "train.tsv", rows)
    write_table(out / "enterics.tsv", [row for row in rows if row["group"] in ENTERICS])
    for domain in ("archaea", FUNGI, PROTOZOA):
        write_table(out / f"{domain}.tsv", genome_rows(out, domain))
    print((out / "quality.tsv").read_text(), end="")


if __name__ == "__main__":
    main()
