"""Does a file of sequences show that its species, or genus, was not trained on?

    SEQRAY_DATA=... python benchmarks/signature.py

The signature (`seqray.calibration`) is fitted to the training sequences of the 20 species of the set
``bacteria``. For each species, test sequences are drawn as files of 150, 400 and 1500 windows, and compared
twice: with all species, and with those of other genera (Escherichia and Shigella count as one), as if the
genus had not been trained on. A row per species and size: the median distance over the draws to the nearest
context in either case, the share of the draws told as foreign, and the share whose own genus came first; of
the first draw also the distance to the nearest mixture of two contexts of other genera. ``read_right`` and
``read_wrong`` are the shares of the draws that ``--context auto`` would read as their own context and as
another; the rest as none. Then pieces of the *Escherichia coli* genome, coding or not, and other sets, 1500
sequences of each: one of *E. coli* by other authors, and sets of other organisms.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from accuracy import table_of
from held_out_genera import genus
from machine import add_data, describe, script_parser, with_decimals
from seqray.calibration.signature import KmerCounter, Signature, fit_signature
from seqray.core.alphabet import DNA, stack_sequences
from seqray.core.records import LabeledSequence
from seqray.io.tables import write_table

SIZES, DRAWS, SEED = (150, 400, 1500), 20, 1
PIECES = (20_000, 100_000, 1_000_000)
OTHERS = ("ecoli", "ecoli-cnnprom", "arabidopsis", "human-core-all", "human-nontata", "mouse-tata")
ECOLI = "Escherichia coli K-12 MG1655"
GENOME = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.fna.gz"
COLUMNS = (
    *("input", "size", "draws", "distance", "foreign", "genus_first"),
    *("distance_without_genus", "foreign_without_genus", "pair_without_genus", "read_right", "read_wrong"),
)
Row = tuple[str, int, int, float, float, *tuple[float | str, ...]]


def fitted(examples: Sequence[LabeledSequence]) -> Signature:
    """Describe the training sequences."""
    stack = stack_sequences([e.sequence for e in examples], DNA)
    entries = fit_signature(stack, np.array([e.label for e in examples]), [e.context for e in examples])
    assert entries is not None
    return Signature(entries)


def counts(sequences: Sequence[str]) -> np.ndarray:
    tally = KmerCounter(DNA)
    for sequence in sequences:
        tally.add(sequence)
    return tally.counts


def without(signature: Signature, name: str) -> Signature:
    """The signature of all genera but one."""
    return Signature([entry for entry in signature.entries if genus_of(entry.context) != name])


def genus_of(context: str | None) -> str:
    return genus(LabeledSequence("", "", "", context=context))


def readings(homes: Sequence[str | None], own: str) -> tuple[float, float]:
    """Shares that are read as their own context, and as another."""
    return float(np.mean([h == own for h in homes])), float(np.mean([h not in (None, own) for h in homes]))


def species_rows(signature: Signature, test: Sequence[LabeledSequence]) -> Iterator[Row]:
    rng = np.random.default_rng(SEED)
    for name in sorted({e.context for e in test if e.context}):
        own = [e.sequence for e in test if e.context == name]
        others = without(signature, genus_of(name))
        for size in SIZES:
            if size > len(own):
                continue
            drawn = [counts([own[i] for i in rng.permutation(len(own))[:size]]) for _ in range(DRAWS)]
            known = [signature.compare(c)[0] for c in drawn]
            homes = [signature.nearest_context(c) for c in drawn]
            unknown = [others.compare(c)[0] for c in drawn]
            yield (
                name,
                size,
                DRAWS,
                float(np.median([k.distance for k in known])),
                float(np.mean([k.is_foreign for k in known])),
                float(np.mean([genus_of(k.context) == genus_of(name) for k in known])),
                float(np.median([u.distance for u in unknown])),
                float(np.mean([u.is_foreign for u in unknown])),
                pair[0].distance if (pair := others.closest_pair(drawn[0])) else "",
                *readings(homes, name),
            )


def genome_rows(signature: Signature, path: Path) -> Iterator[Row]:
    rng = np.random.default_rng(SEED)
    with gzip.open(path, "rt") as handle:
        letters = "".join(line.strip() for line in handle if not line.startswith(">"))
    for size in PIECES:
        starts = rng.integers(0, len(letters) - size, DRAWS)
        pieces = [counts([letters[s : s + size]]) for s in starts]
        found = [signature.compare(piece)[0] for piece in pieces]
        first = float(np.mean([genus_of(f.context) == "Escherichia" for f in found]))
        distance = float(np.median([f.distance for f in found]))
        yield (
            "E. coli genome, pieces",
            size,
            DRAWS,
            distance,
            float(np.mean([f.is_foreign for f in found])),
            first,
            *[""] * 3,
            *readings([signature.nearest_context(piece) for piece in pieces], ECOLI),
        )


def other_rows(signature: Signature) -> Iterator[Row]:
    rng = np.random.default_rng(SEED)
    for name in OTHERS:
        data = table_of(name)
        chosen = [data[i].sequence for i in rng.permutation(len(data))[: max(SIZES)]]
        counted = counts(chosen)
        nearest = signature.compare(counted)[0]
        yield (
            f"the set {name}",
            len(chosen),
            1,
            nearest.distance,
            float(nearest.is_foreign),
            *[""] * 4,
            *readings([signature.nearest_context(counted)], ECOLI if name.startswith("ecoli") else ""),
        )


def main() -> None:
    parser = script_parser(__doc__, "signature.tsv")
    add_data(parser)
    args = parser.parse_args()
    data = table_of("bacteria")
    signature = fitted([e for e in data if e.split != "test"])
    rows = [*species_rows(signature, [e for e in data if e.split == "test"])]
    rows += genome_rows(signature, args.data / GENOME)
    rows += other_rows(signature)
    write_table(args.out, COLUMNS, map(with_decimals, rows), describe(sys.argv))


if __name__ == "__main__":
    main()
