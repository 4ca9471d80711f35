"""How much less often a call is right where no gene begins ahead, at the same score, in genera left out.

    python benchmarks/train_folds.py --sheet TRAIN.tsv --config configs/bacteria-genome.yaml \\
        --set model.locator.no_gene_ahead=[] --out FOLDS --run
    python benchmarks/scan_species.py --genomes GENOMES/genomes.tsv --models FOLDS/folds.tsv --calls CALLS
    python benchmarks/gene_ahead.py --genomes GENOMES/genomes.tsv --calls CALLS

Logistic regression of right calls (any mapped start within 25 letters) on the logit and on whether no gene of
the strand begins within 500 letters ahead, on the best four calls per kb of each genome that
``scan_species.py`` counts. Genera weigh alike. Each row leaves one genus out. ``correction`` is the second
coefficient divided by the first: the value of ``model.locator.no_gene_ahead``.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

import machine
from genome_truth import end_to_end, read_genome
from matching import claim, rank_calls
from scan_species import MIN_WEIGHT
from seqray.io.tables import write_table

MAX_CALLS_PER_KB, UPSTREAM = 4, 500  # calls per kb, and letters
COLUMNS = ("left_out", "calls", "logit", "no_gene_ahead", "correction")


def read_answers(genomes: Path, row: dict[str, str], calls: Path) -> tuple[np.ndarray, np.ndarray]:
    """Logit and whether no gene begins ahead (N, 2) of the best calls, and which of them are right (N,)."""
    genome = read_genome(genomes.parent, row)
    offsets = end_to_end(genome.contigs)
    deepest = int(MAX_CALLS_PER_KB * sum(map(len, genome.contigs.values())) / 1000)
    found = sorted(machine.read_table(calls), key=lambda call: -float(call["score"]))[:deepest]
    ranked = rank_calls(
        [offsets[call["contig"]] + int(call["site"]) for call in found],
        [call["strand"] for call in found],
        [float(call["score"]) for call in found],
    )
    right = claim(ranked, genome.select()) >= 0
    by_place = dict(zip(zip(ranked.position.tolist(), ranked.plus.tolist(), strict=True), right, strict=True))
    ahead = [call["distance"] != "." and int(call["distance"]) <= UPSTREAM for call in found]
    features = np.column_stack([logit([float(call["score"]) for call in found]), ~np.array(ahead)])
    places = [(offsets[call["contig"]] + int(call["site"]), call["strand"] == "+") for call in found]
    return features, np.array([by_place[place] for place in places])


def main(argv: Sequence[str] | None = None) -> int:
    """Fit without each genus in turn."""
    parser = machine.script_parser(__doc__, "gene_ahead.tsv")
    parser.add_argument("--genomes", type=Path, required=True, help="sheet of data/prepare_genomes.py")
    parser.add_argument("--calls", type=Path, required=True, help="folder of scan_species.py")
    args = parser.parse_args(argv)
    parts = [
        (row["genus"], *read_answers(args.genomes, row, path))
        for row in machine.read_table(args.genomes)
        if row["domain"] == "bacteria" and float(row["weight"]) >= MIN_WEIGHT
        for path in args.calls.glob(f"{row['name']}.*.tsv")
    ]
    strains = Counter(genus for genus, _, _ in parts)
    rows = []
    for genus in sorted(strains):
        kept = [part for part in parts if part[0] != genus]
        features, right = (np.concatenate([part[i] for part in kept]) for i in (1, 2))
        weights = np.concatenate([np.full(len(y), 1e4 / len(y) / strains[name]) for name, _, y in kept])
        slope, ahead = LogisticRegression(C=1e3, max_iter=500).fit(features, right, weights).coef_[0]
        rows.append([genus, len(right), f"{slope:.3f}", f"{ahead:.3f}", f"{ahead / slope:.3f}"])
    write_table(args.out, COLUMNS, rows, machine.describe(["gene_ahead.py", *sys.argv[1:]]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
