"""Scan part of the E. coli genome that no model saw, and compare the calls with known transcription starts.

    python benchmarks/scan_ecoli.py --data "$SEQRAY_DATA" --model ecoli-promoter

Writes three tables beside ``--out``: recall and precision at 0.1 to 2 calls per kb with the area under the
curve for every method (``scan_ecoli.tsv``), our precision at the recall of the published predictions
(``scan_ecoli_equal_recall.tsv``), and the cost of scanning the whole genome (``scan_ecoli_cost.tsv``).

Truth (``ecoli_truth.py``), a call within 25 nt on the right strand, each start claimed once:

- ``strong``: recall counts RegulonDB's Strong and Confirmed promoters; precision accepts a start of any
  evidence in RegulonDB or EcoCyc, or of the dRNA-seq table. RegulonDB's computational promoters are in
  large part the published predictions themselves, so this precision flatters those.
- ``experimental``: both count starts with an experiment behind them (RegulonDB or dRNA-seq).

Sections: ``region`` is the whole test region. The published predictions lie only upstream of genes, and
almost only of genes without a well-established promoter; ``upstream`` is cut down to their regions (250 nt
upstream of the first letter of each gene that they name, on its strand), which is the fair comparison with
them. There, calls per kb still counts kb of the whole region. Intervals: 95 %, bootstrap over 10-kb blocks of
the genome.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import ecoli_tables as tables
import machine
from comparators import kmer_logistic, published, random_calls, scan_with, training_windows, weight_matrix
from ecoli_split import CONTIG, DEV, TEST
from ecoli_truth import Placed, Truth, in_region, load_truth, merge_starts
from evaluation import Section, depth_rows, equal_recall_rows, restrict, upstream_masks
from matching import Calls, make_starts, rank_calls
from prepare import ecoli
from seqray.core import DNA, LabeledSequence, format_number
from seqray.io.tables import comment_lines, read_labeled_table
from seqray.scanning import ScanOptions

REGIONS = {"test": TEST, "dev": DEV}
REACH = 250
"""The published predictions lie 0 to 238 nt upstream of the gene that they name."""
LOWEST = 0.05
"""Threshold of the scan that is ranked: low enough for 2 calls per kb."""
RANDOM_CALLS_PER_KB = 10

Row = Mapping[str, str | float | int]


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    data = os.environ.get("SEQRAY_DATA")
    parser.add_argument("--data", type=Path, default=data, required=data is None, help="the data folder")
    parser.add_argument("--model", default="ecoli-promoter", help="name of a shipped model, or its file")
    parser.add_argument("--train", type=Path, help="table of `data/prepare.py ecoli`, to save making it")
    parser.add_argument("--stride", type=int, default=10)
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--region", choices=REGIONS, default="test", help="dev: for choosing settings")
    parser.add_argument("--replicates", type=int, default=1000, help="of the bootstrap")
    parser.add_argument("--no-cost", action="store_true", help="don't time the scan of the whole genome")
    parser.add_argument("--out", type=Path, help="table; results/scan_ecoli.tsv, or scan_ecoli_dev.tsv")
    args = parser.parse_args(argv)
    name = "scan_ecoli.tsv" if args.region == "test" else f"scan_ecoli_{args.region}.tsv"
    args.out = args.out or Path(__file__).parent / "results" / name
    return args


def scan_command(args: argparse.Namespace, out: Path, extra: Sequence[str]) -> list[str]:
    """Return the `seqray scan` command for the genome."""
    command = [sys.executable, "-m", "seqray", "scan", str(args.data / tables.GENOME)]
    command += ["--model", args.model, "--stride", str(args.stride), "--threads", str(args.threads)]
    return [*command, "--quiet", "--out", str(out), *extra]


def scan_region(args: argparse.Namespace, region: tuple[int, int]) -> Calls:
    """Scan a region down to a low threshold and return the ranked calls."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.tsv"
        where = f"{CONTIG}:{region[0] + 1}-{region[1]}"
        extra = ["--threshold", str(LOWEST), "--region", where, "--null-mb", "0"]
        subprocess.run(scan_command(args, out, extra), check=True)
        with out.open() as handle:
            rows = list(csv.DictReader((line for line in handle if line[0] != "#"), delimiter="\t"))
    site, strand = [int(row["site"]) for row in rows], [row["strand"] for row in rows]
    return rank_calls(site, strand, [float(row["score"]) for row in rows])


def measure_cost(args: argparse.Namespace) -> list[Row]:
    """Scan the whole genome as a user would, and return what it took."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "calls.gff3"
        cost = machine.run(scan_command(args, out, ["--circular"]))
        calls = sum(1 for line in out.open() if "\tpromoter\t" in line)
    row = {"what": "whole genome, both strands", "stride": args.stride, "threads": args.threads}
    row |= {"wall_seconds": cost.wall, "cpu_seconds": cost.cpu, "peak_mb": cost.peak_mb, "calls": calls}
    return [row]


def compared_methods(
    args: argparse.Namespace, truth: Truth, region: tuple[int, int]
) -> tuple[dict[str, Calls], dict[str, Calls], str]:
    """Return the published predictions in four forms, the other methods, and a line on their training."""
    distance = ScanOptions().min_distance
    rows = truth.predictions()
    theirs = {
        "published": published(rows, region, None, None),
        "published, thinned": published(rows, region, None, distance),
        "published sigma70": published(rows, region, "Sigma70", None),
        "published sigma70, thinned": published(rows, region, "Sigma70", distance),
    }
    windows, labels = training_windows(training_examples(args))
    kilobases = (region[1] - region[0]) / 1000
    matrix, logistic = weight_matrix(windows, labels), kmer_logistic(windows, labels)
    others = {
        "position weight matrix": scan_with(matrix, truth.genome, region, distance),
        "k-mer logistic regression": scan_with(logistic, truth.genome, region, distance),
        "random": random_calls(region, round(RANDOM_CALLS_PER_KB * kilobases), distance),
    }
    promoters = labels.count("promoter")
    told = f"linear models: {promoters} promoters and {len(labels) - promoters} other windows, stride 1; "
    told += f"calls of every method but the published ones as they are: at least {distance} nt apart"
    return theirs, others, told


def training_examples(args: argparse.Namespace) -> list[LabeledSequence]:
    """Return the examples that the shipped model was trained on: read from ``--train``, or made anew."""
    return read_labeled_table(args.train, DNA) if args.train else ecoli(args.data)


def gene_anchors(rows: Sequence[Placed], truth: Truth) -> dict[str, list[int]]:
    """Return the 0-based first letter of each gene that the published predictions name, per strand."""
    anchors: dict[str, set[int]] = {"+": set(), "-": set()}
    for row in rows:
        if row.site.gene is not None:
            first = row.site.gene.start if row.strand == "+" else row.site.gene.end
            lifted = truth.offsets.lift(first)
            anchors[row.strand] |= set() if lifted is None else {lifted - 1}
    return {strand: sorted(found) for strand, found in anchors.items()}


def make_sections(truth: Truth, region: tuple[int, int]) -> list[Section]:
    """Return the whole region, and the parts of it upstream of the genes of the published predictions."""
    sets = {
        name: make_starts(merge_starts(in_region(rows, region)))
        for name, rows in (
            ("strong", truth.strong()),
            ("supported", truth.supported()),
            ("experimental", truth.experimental()),
        )
    }
    pairs = {
        "strong": (sets["strong"], sets["supported"]),
        "experimental": (sets["experimental"], sets["experimental"]),
    }
    whole = Section("region", region, None, pairs)
    masks = upstream_masks(gene_anchors(truth.predictions(), truth), region, REACH)
    return [whole, restrict(whole, "upstream", masks)]


def describe_truth(sections: Sequence[Section]) -> list[str]:
    """Return a line per section: how many starts there are."""
    lines = []
    for section in sections:
        (strong, supported), (experimental, _) = section.pairs["strong"], section.pairs["experimental"]
        counts = f"{len(strong)} strong, {len(supported)} supported, {len(experimental)} experimental starts"
        lines.append(f"{section.name}: {counts}")
    return lines


def write_table(path: Path, rows: Sequence[Row], lines: Sequence[str]) -> None:
    """Write rows of equal keys as TSV under comment lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = comment_lines(lines).decode() + "\t".join(rows[0]) + "\n"
    for row in rows:
        cells = (format_number(cell) if isinstance(cell, float) else str(cell) for cell in row.values())
        text += "\t".join(cells) + "\n"
    path.write_text(text)
    print(f"wrote {path}")


def print_depths(rows: Sequence[Row]) -> None:
    """Print the table of recall and precision for a reader."""
    print(f"{'section':9} {'method':27} {'per kb':>6} {'calls':>5}   recall/precision strong   experimental")
    for row in rows:
        start = f"{row['section']!s:9} {row['method']!s:27} {row['calls_per_kb']!s:>6} {row['calls']:>5}"
        pairs = (f"{row[f'recall_{p}']:.3f} {row[f'precision_{p}']:.3f}" for p in ("strong", "experimental"))
        print(start + "   " + "               ".join(pairs))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    args = parse_arguments(argv)
    lines = machine.describe([Path(__file__).name, *(sys.argv[1:] if argv is None else argv)])
    stem = args.out.with_suffix("")
    if not args.no_cost:
        write_table(Path(f"{stem}_cost.tsv"), measure_cost(args), lines)
    region = REGIONS[args.region]
    ours = scan_region(args, region)
    truth = load_truth(args.data)
    theirs, others, told = compared_methods(args, truth, region)
    sections = make_sections(truth, region)
    lines += [f"region: {CONTIG} {region[0]}-{region[1]}, 0-based half-open", *describe_truth(sections), told]
    depths: list[Row] = []
    equal: list[Row] = []
    for section in sections:
        weights = section.weights(args.replicates, seed=0)
        for method, calls in {"seqray": ours, **theirs, **others}.items():
            depths += depth_rows(section, method, calls, weights)
        equal += equal_recall_rows(section, ours, theirs, weights)
    write_table(args.out, depths, lines)
    write_table(Path(f"{stem}_equal_recall.tsv"), equal, lines)
    print_depths(depths)
    return 0


if __name__ == "__main__":
    sys.exit(main())
