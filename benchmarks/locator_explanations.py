"""Do rankings of letters around calls of a locator beat random ones? Deletion and insertion on E. coli.

    python benchmarks/locator_explanations.py --model bacteria-genome --data "$SEQRAY_DATA"

The best calls in the development region of NC_000913.3 are explained by each method. Letters are replaced
by those of shuffled copies in the order of the ranks (deletion), and put back in that order (insertion), see
`seqray.explanations.checks`. A gain is the area between the curve of the method and that of another one for
the same call, in log-odds: above 0 the method is better. ``nearness`` ranks letters by their distance from
the site and reads nothing. Intervals: 95 %, bootstrap over calls.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import ecoli_tables as tables
from ecoli_split import CONTIG
from machine import add_data, describe, script_parser, with_decimals, write_and_show
from pointing import Floats, mean_with_interval
from seqray.core.alphabet import DNA
from seqray.core.records import SequenceRecord
from seqray.explanations.calls import Stretch, best_calls, cut_stretches
from seqray.explanations.checks import RANDOM_RANKINGS, areas, curves, random_ranks, ranks_of
from seqray.explanations.methods import METHODS, member_scores
from seqray.explanations.options import MethodSettings
from seqray.explanations.targets import LocatorTarget, ensemble_score
from seqray.genome.find import predict_all, read_genes
from seqray.genome.genes import TRACKS, Annotation, Tracks, gene_tracks
from seqray.io.gff3 import read_called
from seqray.io.sequences import read_sequences
from seqray.modelfile.file import load_model
from seqray.modelfile.model import TrainedModel

REGION = (2_000_000, 2_300_000)
COLUMNS = ("method", "measure", "against", "calls", "value", "low", "high")
RANDOM, NEARNESS = "random", "nearness"
Areas = dict[tuple[str, str], list[float]]
"""(method, deletion or insertion) to the area under the curve of each call."""


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = script_parser(__doc__, "locator_explanations.tsv")
    add_data(parser)
    parser.add_argument("--model", required=True, help="a locator: a shipped one, or a file")
    parser.add_argument("--genes", default="predict", help="predict, none or a file")
    parser.add_argument("--calls", type=int, default=200, help="the best calls of the region")
    methods = ["rollout", "value-rollout", "grad-rollout", "input-x-gradient"]
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=methods)
    return parser.parse_args(argv)


def best_stretches(model: TrainedModel, args: argparse.Namespace) -> list[Stretch]:
    """Scan the region, and cut out what the network reads around its best calls."""
    genome = args.data / tables.GENOME
    [linear] = read_sequences(genome, DNA)
    contig = replace(linear, circular=True)
    annotation = genes_of(contig, args.genes)

    def tracks_of(record: SequenceRecord, strand: str, circular: bool) -> Tracks | None:
        settings = model.card.model.locator
        if annotation is None or settings is None:
            return None
        tracks = gene_tracks(annotation.of(record.id), len(record), strand, circular=circular)
        return tracks[[TRACKS.index(name) for name in settings.tracks]]

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.gff3"
        region = f"{CONTIG}:{REGION[0] + 1}-{REGION[1]}"
        words = ["scan", genome, "--model", args.model, "--genes", args.genes, "--region", region]
        words += ["--circular", "--per-kb", "2", "--quiet", "--out", out]
        subprocess.run([sys.executable, "-m", "seqray", *map(str, words)], check=True)
        calls = read_called(out).calls
    return cut_stretches(model, [contig], best_calls(calls, args.calls), tracks_of)


def genes_of(contig: SequenceRecord, chosen: str) -> Annotation | None:
    """The genes that the scan has used."""
    if chosen == "none":
        return None
    return predict_all([contig]) if chosen == "predict" else read_genes(chosen)


def measure(model: TrainedModel, stretch: Stretch, methods: Sequence[str]) -> Mapping[tuple[str, str], float]:
    """Areas under the curves of one call, by each method and by chance."""
    index, codes = model.card.classes.index(stretch.label), stretch.codes[None]
    targets = [LocatorTarget(model, net, index, stretch.tracks, stretch.phase) for net in model.locators]
    scores = {m: member_scores(targets, codes, m, MethodSettings()).mean(axis=0) for m in methods}
    scores[NEARNESS] = -np.abs(np.arange(codes.shape[1]) - codes.shape[1] // 2)[None].astype(float)
    found: dict[tuple[str, str], float] = {}
    for method, one in scores.items():
        for kind, values in curves(codes, ranks_of(one), lambda c: ensemble_score(targets, c)).items():
            found[method, kind] = float(areas(values)[0])
    chance = [
        curves(codes, random_ranks(codes, draw), lambda c: ensemble_score(targets, c))
        for draw in range(RANDOM_RANKINGS)
    ]
    for kind in chance[0]:
        found[RANDOM, kind] = float(np.mean([areas(one[kind])[0] for one in chance]))
    return found


def gain(by_call: Areas, method: str, other: str, kind: str) -> Floats:
    """How much better a method is than another on each call."""
    difference = np.array(by_call[method, kind]) - np.array(by_call[other, kind])
    return difference if kind == "insertion" else -difference


def table(by_call: Areas, methods: Sequence[str]) -> list[tuple[str | int | float, ...]]:
    """Gains of all methods over random orders, and over nearness."""
    rows: list[tuple[str | int | float, ...]] = []
    for method in (*methods, NEARNESS):
        for other in (RANDOM, *([] if method == NEARNESS else [NEARNESS])):
            for kind in ("deletion", "insertion"):
                gains = gain(by_call, method, other, kind)
                rows.append((method, f"{kind} gain", other, len(gains), *mean_with_interval(gains)))
    return rows


def main(argv: Sequence[str] | None = None) -> int:
    """Scan, explain, measure, write."""
    args = parse_arguments(argv)
    model = load_model(args.model)
    by_call: Areas = {}
    for stretch in best_stretches(model, args):
        for key, area in measure(model, stretch, args.methods).items():
            by_call.setdefault(key, []).append(area)
    rows = table(by_call, args.methods)
    notes = [
        f"model: {model.card.name} sha256:{model.sha256}; genes: {Path(args.genes).name}",
        f"calls: the best {args.calls} of {CONTIG}:{REGION[0] + 1}-{REGION[1]}",
        *describe([Path(__file__).name, *(argv or sys.argv[1:])]),
    ]
    write_and_show(args.out, COLUMNS, map(with_decimals, rows), notes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
