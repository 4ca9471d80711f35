"""How often input is flagged out-of-domain: held out, of other species, shuffled, random.

    SEQRAY_DATA=... python benchmarks/domain.py

Three descriptions of training data, each from four fifths of its relatives' groups (shared 40-mers): the
*Escherichia coli* and *Bacillus subtilis* sets of iPro-MP (81 letters, promoters and two kinds of other
sequence) and the *Arabidopsis* promoters and other sequences of Umarov and Solovyev 2017 (251 letters). The
rule ``composition`` looks at letters and three-letter words alone, as cards without a chain do, each limit at
99.5 % of training; the rule ``chain`` adds a Markov chain of order 5, each limit at 99.7 %. A row a training
set, rule and input: the share flagged and its 95 % Wilson interval.
"""

from __future__ import annotations

import csv
import gzip
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from machine import add_data, describe, read_table, script_parser, with_decimals
from seqray.calibration.domain import fit_domain, out_of_domain
from seqray.core.alphabet import DNA, dinucleotide_shuffle
from seqray.homology.kmers import kmer_groups
from seqray.homology.split import grouped_folds
from seqray.io.records import read_fasta
from seqray.io.tables import write_table

SEED, MAX_SEQUENCES = 1, 2000  # sequences of one kind that are judged
ECOLI, SUBTILIS = "10", "23"
COLUMNS = ("training", "rule", "input", "n", "flagged", "low", "high")
Codes = np.ndarray
Input = tuple[str, Codes]


def fasta(path: Path, length: int) -> Codes:
    """Codes of the records of that length (N, length)."""
    records = read_fasta(path, DNA, duplicates="keep", on_skip=lambda record: None)
    return np.stack([DNA.encode(r.sequence) for r in records if len(r) == length])


def species(data: Path) -> dict[str, str]:
    """Number and name of each species of iPro-MP, strains of one named once."""
    rows = read_table(data / "ipromp" / "species.tsv")
    names = {row["id"]: " ".join(row["species"].split()[:2]) for row in rows}
    return {number: name for number, name in names.items() if number not in ("04", "05", "06")}


def some(codes: Codes, rng: np.random.Generator) -> Codes:
    return codes[rng.permutation(len(codes))[:MAX_SEQUENCES]]


def windows(codes: Codes, length: int, rng: np.random.Generator) -> Codes:
    """Random windows of one sequence."""
    starts = rng.integers(0, len(codes) - length + 1, MAX_SEQUENCES)
    return codes[starts[:, None] + np.arange(length)]


def human(data: Path, length: int) -> Codes:
    """The middle of human promoters and backgrounds of 300 letters."""
    with gzip.open(data / "gue_prom" / "prom_300_notata_test.csv.gz", "rt") as handle:
        texts = [row["sequence"] for row in csv.DictReader(handle)]
    begin = (300 - length) // 2
    return np.stack([DNA.encode(DNA.normalize(t))[begin : begin + length] for t in texts if len(t) == 300])


def made(held_out: Codes, rng: np.random.Generator) -> Iterator[Input]:
    """Sequence that no genome holds."""
    yield "letters shuffled", rng.permuted(held_out, axis=1)
    yield "dinucleotides shuffled", np.stack([dinucleotide_shuffle(codes, rng) for codes in held_out])
    yield "uniform letters", rng.integers(0, 4, held_out.shape).astype(np.uint8)


def foreign(data: Path, length: int, rng: np.random.Generator) -> Iterator[Input]:
    """Sequence of other organisms."""
    [phage] = read_fasta(data / "lambda_genome" / "lambda_virus.fa.gz", DNA)
    yield "phage lambda", windows(DNA.encode(phage.sequence), length, rng)
    yield "Homo sapiens, promoters and others", some(human(data, length), rng)
    if length == 251:
        yield "Mus musculus, promoters", fasta(data / "umarov2017" / "Mouse_tata.fa.gz", 251)
        genome = next(
            iter(read_fasta(data / "ecoli_genome" / "GCF_000005845.2_ASM584v2_genomic.fna.gz", DNA))
        )
        yield "Escherichia coli, genome", windows(DNA.encode(genome.sequence), length, rng)
        return
    for number, name in species(data).items():
        yield name, some(fasta(data / "ipromp" / f"{number}_test.txt.gz", 81), rng)


def training_sets(data: Path) -> Iterator[Input]:
    """What the descriptions are made of."""
    names = species(data)
    for number in (ECOLI, SUBTILIS):
        yield names[number], fasta(data / "ipromp" / f"{number}_train.txt.gz", 81)
    files = ("Arabidopsis_tata", "Arabidopsis_non_tata", "Arabidopsis_non_prom_big")
    folder = data / "umarov2017"
    yield "Arabidopsis thaliana", np.concatenate([fasta(folder / f"{f}.fa.gz", 251) for f in files])


def rows_of(name: str, codes: Codes, data: Path) -> Iterator[tuple[str, str, str, int, int]]:
    """Training set, rule, input, number judged and number flagged."""
    rng = np.random.default_rng(SEED)
    groups = kmer_groups([DNA.decode(c) for c in codes], 40)
    held = grouped_folds(np.zeros(len(codes)), groups, 5, SEED) == 0
    domain = fit_domain(codes[~held], DNA)
    composition = replace(fit_domain(codes[~held], DNA, quantile=0.995), chain=None)
    held_out = some(codes[held], rng)
    inputs = [("the same, held out", held_out), *made(held_out, rng)]
    inputs += [pair for pair in foreign(data, codes.shape[1], rng) if pair[0] != name]
    for rule, judge in (("composition", composition), ("chain", domain)):
        for what, judged in inputs:
            yield name, rule, what, len(judged), int(out_of_domain(judge, judged).sum())


def main() -> None:
    parser = script_parser(__doc__, "domain.tsv")
    add_data(parser)
    args = parser.parse_args()
    notes, rows = describe(sys.argv), []
    for name, codes in training_sets(args.data):
        for training, rule, what, n, flagged in rows_of(name, codes, args.data):
            low, high = binomtest(flagged, n).proportion_ci(method="wilson")
            rows.append(with_decimals((training, rule, what, n, flagged / n, low, high)))
    write_table(args.out, COLUMNS, rows, notes)


if __name__ == "__main__":
    main()
