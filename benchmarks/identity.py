"""Which share of its words of 21 letters does a genome have in common with the sketches of others?

    SEQRAY_DATA=... python benchmarks/identity.py

A scan with a locator says that its input is of a species if it shares a quarter of its words with the
genome of that species (`seqray.calibration.signature.MIN_SHARE`). For each genome of ``data/genomes.tsv``
and for others of the folder ``genomes``, the listed genome that shares most, by ``relation``: ``species``
(another strain), ``genus`` (by the first name) and ``other``; a row has the lowest and the highest of these
shares. Then pieces of 40 and 100 kb, 20 of each genome, and the contigs below 500 kb of genomes of several
contigs, such as plasmids: for how many the nearest genome is recognized, how many of these are of another
species, and how many are too short; with the sketch of their own genome and without it.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import numpy as np

import machine
from genome_sources import read_list
from seqray.calibration.signature import MIN_CHECKED, MIN_SHARE, GenomeSketcher, sketch_genome
from seqray.core.alphabet import DNA
from seqray.core.card_parts import Sketch
from seqray.io.sequences import read_sequences

PIECES, DRAWS, SEED, PLASMID = (40_000, 100_000), 20, 1, 500_000
SAME = {"Shigella flexneri": "Escherichia coli"}  # one species by identity
COLUMNS = ("input", "relation", "inputs", "lowest_share", "highest_share", "recognized", "wrong", "too_few")
RELATIONS = ("species", "genus", "other")


def species_of(name: str) -> str:
    """Without its strain."""
    pair = " ".join(name.split()[:2])
    return SAME.get(pair, pair)


def relation(one: str, other: str) -> str:
    """How two genomes are related, by their names."""
    if species_of(one) == species_of(other):
        return "species"
    return "genus" if species_of(one).split()[0] == species_of(other).split()[0] else "other"


def sketcher_of(contigs: Sequence[str], sketches: dict[str, Sketch]) -> GenomeSketcher:
    sketcher = GenomeSketcher(DNA, limit=max(sketch.limit for sketch in sketches.values()))
    for contig in contigs:
        sketcher.add(contig)
    return sketcher


def others(data: Path) -> dict[str, list[str]]:
    """Genomes of the folder that are not in the list, with names made of those of their files."""
    listed = {Path(row["genome"]).name for row in read_list()}
    paths = [path for path in sorted((data / "genomes").glob("*.fna.gz")) if path.name not in listed]
    return {
        path.name.removesuffix(".fna.gz").replace("_", " "): [r.sequence for r in read_sequences(path, DNA)]
        for path in paths
    }


def genome_rows(genomes: dict[str, list[str]], sketches: dict[str, Sketch]) -> Iterator[tuple[object, ...]]:
    """Shares of whole genomes, by relation."""
    shares: dict[str, list[float]] = {name: [] for name in RELATIONS}
    recognized: Counter[str] = Counter()
    for name, contigs in genomes.items():
        found = sketcher_of(contigs, sketches).compare(sketches)
        for kind in RELATIONS:
            of_kind = [
                words.share for other, words in found if other != name and relation(name, other) == kind
            ]
            shares[kind] += sorted(of_kind)[-1:]
            recognized[kind] += max(of_kind, default=0) >= MIN_SHARE
    for kind, values in shares.items():
        wrong = 0 if kind == "species" else recognized[kind]
        yield (
            *("genomes", kind, len(values), f"{min(values):.4f}", f"{max(values):.4f}"),
            *(recognized[kind], wrong, 0),
        )


def piece_rows(
    what: str, pieces: Sequence[tuple[str, str]], sketches: dict[str, Sketch]
) -> Iterator[tuple[object, ...]]:
    """Of pieces with the names of their genomes, how many are recognized, with their genome and without."""
    for own in (True, False):
        counts, best = Counter[str](), list[float]()
        for name, piece in pieces:
            known = {other: sketch for other, sketch in sketches.items() if own or other != name}
            nearest, words = sketcher_of([piece], known).compare(known)[0]
            if words.checked < MIN_CHECKED:
                counts["few"] += 1
                continue
            best.append(words.share)
            if words.share >= MIN_SHARE:
                counts["right" if relation(name, nearest) == "species" else "wrong"] += 1
        yield (
            *(what, "with_own" if own else "without_own", len(pieces), f"{min(best, default=0):.4f}"),
            *(f"{max(best, default=0):.4f}", counts["right"], counts["wrong"], counts["few"]),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table."""
    parser = machine.script_parser(__doc__, "identity.tsv")
    machine.add_data(parser)
    args = parser.parse_args(arguments)
    rng = np.random.default_rng(SEED)
    genomes = {
        row["species"]: [record.sequence.upper() for record in read_sequences(args.data / row["genome"], DNA)]
        for row in read_list()
    }
    sketches = {name: sketch_genome(contigs) for name, contigs in genomes.items()}
    rows = [*genome_rows(genomes | others(args.data), sketches)]
    for size in PIECES:
        pieces = []
        for name, contigs in genomes.items():
            longest = max(contigs, key=len)
            starts = rng.integers(0, len(longest) - size, DRAWS)
            pieces += [(name, longest[start : start + size]) for start in starts]
        rows += piece_rows(f"pieces of {size}", pieces, sketches)
    small = [
        (n, c) for n, contigs in genomes.items() for c in contigs if len(c) < PLASMID and len(contigs) > 1
    ]
    rows += piece_rows("contigs below 500000", small, sketches)
    machine.write_and_show(args.out, COLUMNS, rows, machine.describe(sys.argv))


if __name__ == "__main__":
    main()
