"""How a score depends on the negatives: σ70 promoters of E. coli against negatives of every recipe.

    SEQRAY_DATA=... python benchmarks/negatives.py --out benchmarks/results/negatives.tsv

Each recipe makes one negative per promoter of the CNNProm set, as far as there are any. Classifiers are
trained on one kind of negative and tested on each: GC content alone (logistic regression on one
feature), and k-mer and positional logistic regression. Folds are common to all sets and keep whole what
lies in one block of the genome, shares a word of 40 letters, or was made from one promoter; figures are
pooled over the test folds, with 95 % intervals from a bootstrap over these groups.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression

from machine import add_data, describe, script_parser
from seqray.core.alphabet import DNA
from seqray.core.records import LabeledSequence
from seqray.datasets.negatives.genome import (
    GeneIntervals,
    GenomeContext,
    JoinedGenome,
    find_occurrences,
    near_starts,
)
from seqray.datasets.negatives.make import Member, assign_groups, make_negatives
from seqray.datasets.negatives.recipes import RECIPES, NegativeOptions
from seqray.homology.split import grouped_folds
from seqray.io.features import read_features, select_features
from seqray.io.records import read_fasta
from seqray.io.tables import write_table
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.metrics.classification import mcc_and_auroc

SETS: Mapping[str, tuple[str, int]] = {
    **{name: (name, 20) for name in RECIPES},
    "antisense, length only": ("antisense", 0),
}
PUBLISHED = "published (antisense coding)"
POSITIVE, FOLDS, BLOCK, DISTANCE, SEED, RESAMPLES = "promoter", 5, 10_000, 200, 0, 200

Fit = Callable[[Sequence[str], np.ndarray], Callable[[Sequence[str]], np.ndarray]]


@dataclass(frozen=True)
class Pool:
    """Promoters and negatives of all kinds: ``kind`` names the set, ``fold`` the test fold of each."""

    sequences: np.ndarray
    kind: np.ndarray
    group: np.ndarray
    fold: np.ndarray


def read_genome_context(data: Path) -> GenomeContext:
    """Read the genome, its genes, and the letters near a gene's start."""
    folder = data / "ecoli_genome"
    genome = JoinedGenome.of(read_fasta(folder / "GCF_000005845.2_ASM584v2_genomic.fna.gz", DNA), DNA)
    features = read_features(folder / "GCF_000005845.2_ASM584v2_genomic.gff.gz").features
    starts = select_features(features, ("gene", "pseudogene"), "GFF3")
    return GenomeContext(genome, GeneIntervals.of(features, genome), near_starts(starts, genome, DISTANCE))


def read_set(path: Path, label: str) -> list[LabeledSequence]:
    """Read a published set; copies of a sequence, its empty record and odd lengths are left out."""
    records = list(read_fasta(path, DNA, duplicates="rename", on_skip=lambda _: None))
    usual = len(records[0].sequence)
    once = {r.sequence: r for r in records if len(r.sequence) == usual}
    return [LabeledSequence(r.sequence, label, r.id) for r in once.values()]


def make_sets(
    positives: Sequence[LabeledSequence], context: GenomeContext, published: Sequence[LabeledSequence]
) -> dict[str, list[LabeledSequence]]:
    """Make one set of negatives by each recipe; the published one is thinned to the number of positives."""
    sets = {}
    for name, (recipe, bins) in SETS.items():
        options = NegativeOptions({recipe: Fraction(1)}, seed=SEED, gc_bins=bins, block=BLOCK)
        sets[name] = list(make_negatives(positives, options, DNA, context).negatives)
    drawn = np.random.default_rng(SEED).permutation(len(published))[: len(positives)]
    return sets | {PUBLISHED: [published[i] for i in sorted(drawn.tolist())]}


def pool(
    positives: Sequence[LabeledSequence], sets: Mapping[str, list[LabeledSequence]], genome: JoinedGenome
) -> Pool:
    """Put all sets together, with common groups and folds."""
    kinds = [POSITIVE] * len(positives) + [name for name, rows in sets.items() for _ in rows]
    rows = [*positives, *(row for rows in sets.values() for row in rows)]
    places = find_occurrences([row.sequence for row in rows], genome)[1].tolist()
    number = {row.id: i for i, row in enumerate(positives)}
    members = []
    for row, place in zip(rows, places, strict=True):
        parent = number.get(row.id.partition(":")[2].rpartition(":")[0])
        contig, position = genome.locate(place) if place >= 0 else (None, 0)
        members.append(Member(row.sequence, None, parent, contig, position))
    group = np.array(assign_groups(members, BLOCK, DNA))
    fold = grouped_folds(kinds, group, FOLDS, SEED)
    return Pool(np.array([row.sequence for row in rows]), np.array(kinds), group, fold)


def gc(sequences: Sequence[str]) -> np.ndarray:
    """Share of G and C: (N, 1)."""
    return np.array([[(s.count("G") + s.count("C")) / len(s)] for s in sequences])


def fit_gc(sequences: Sequence[str], labels: np.ndarray) -> Callable[[Sequence[str]], np.ndarray]:
    """Fit logistic regression to GC content alone; returns a function to probabilities."""
    model = LogisticRegression(C=1e6).fit(gc(sequences), labels)
    return lambda test: model.predict_proba(gc(test))[:, 1]


def fit_kmer(sequences: Sequence[str], labels: np.ndarray) -> Callable[[Sequence[str]], np.ndarray]:
    """Fit k-mer and positional logistic regression; returns a function to probabilities."""
    model = KmerPositionalBaseline().fit(sequences, labels)
    return lambda test: model.predict_proba(test)[:, 1]


MODELS: Mapping[str, Fit] = {"GC content": fit_gc, "k-mers and positions": fit_kmer}


def scores_of(data: Pool, fit: Fit, trained_on: str) -> np.ndarray:
    """Score every example by the model of its fold, trained on the others with one kind of negative."""
    scores = np.full(len(data.kind), np.nan)
    chosen = np.isin(data.kind, (POSITIVE, trained_on))
    for fold in range(FOLDS):
        train = chosen & (data.fold != fold)
        model = fit(data.sequences[train].tolist(), (data.kind[train] == POSITIVE).astype(int))
        test = data.fold == fold
        scores[test] = model(data.sequences[test].tolist())
    return scores


def figures(data: Pool, scores: np.ndarray, tested_on: str) -> list[str]:
    """Cells of one row: numbers of examples, AUROC and MCC (at one half), each with its interval."""
    rows = np.isin(data.kind, (POSITIVE, tested_on))
    labels, given = data.kind[rows] == POSITIVE, scores[rows]
    found = mcc_and_auroc(labels, given, given >= 0.5, data.group[rows], RESAMPLES)
    cells = [str(int(labels.sum())), str(int((~labels).sum()))]
    for one in (found["auroc"], found["mcc"]):
        cells += [f"{value:.3f}" for value in (one.value, one.low, one.high)]
    return cells


def main() -> None:
    parser = script_parser(__doc__)
    add_data(parser)
    parser.add_argument("--out", required=True, help="TSV")
    args = parser.parse_args()
    context = read_genome_context(args.data)
    folder = args.data / "umarov2017"
    positives = read_set(folder / "Ecoli_prom.fa.gz", POSITIVE)
    sets = make_sets(positives, context, read_set(folder / "Ecoli_non_prom.fa.gz", PUBLISHED))
    data = pool(positives, sets, context.genome)
    columns = ["model", "trained_on", "tested_on", "positives", "negatives"]
    columns += [f"{name}{side}" for name in ("auroc", "mcc") for side in ("", "_low", "_high")]
    groups = len(set(data.group))
    notes = [*describe(sys.argv), f"folds {FOLDS} by group, seed {SEED}, {groups} groups"]
    rows: list[list[str]] = []
    for model, fit in MODELS.items():
        for trained_on in sets:
            scores = scores_of(data, fit, trained_on)
            rows += [[model, trained_on, t, *figures(data, scores, t)] for t in sets]
            print(model, trained_on, file=sys.stderr)
    write_table(args.out, columns, rows, notes)


if __name__ == "__main__":
    main()
