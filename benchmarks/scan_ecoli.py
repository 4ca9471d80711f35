"""Scan part of the E. coli genome that no model saw, and compare the calls with known transcription starts.

    python benchmarks/scan_ecoli.py --data "$SEQRAY_DATA" --model ecoli-promoter

Writes two tables beside ``--out``: recall and precision at 0.1 to 2 calls per kb with the area under the
curve for every method (``scan_ecoli.tsv``), and differences of each two methods (``scan_ecoli_paired.tsv``).

Truth (``ecoli_truth.py``), a call within the tolerance (25 or 5 nt) on the right strand, each start claimed
once:

- ``strong``: recall counts RegulonDB's Strong and Confirmed promoters; precision accepts a start of any
  evidence in RegulonDB or EcoCyc, or of the dRNA-seq table. RegulonDB's computational promoters are in
  large part the published predictions themselves, so this precision flatters those.
- ``experimental``: both count starts with an experiment behind them (RegulonDB or dRNA-seq).

Methods (``--methods``; a model's row has its name):

- ``no letters``: 45 nt upstream of each predicted gene, ranked by the gap before the gene. It has fewer calls
  than 1 per kb; the row ``all`` has them all.
- ``window + gene prior``: the calls of ``--window-model``, ranked by their log-odds and a logistic prior of
  the distance to genes, fitted outside the test and the development region.
- ``Promotech``: the scan that its authors published; also thinned as the peaks of a scan are.
- ``published``: promoter predictions of RegulonDB; ``linear``: linear models on windows; ``random``.

Sections: ``region`` is the whole test region. The published predictions lie only upstream of genes, and
almost only of genes without a well-established promoter; ``upstream`` is cut down to their regions (250 nt
upstream of the first letter of each gene that they name, on its strand), which is the fair comparison with
them. There, calls per kb still counts kb of the whole region. Intervals: 95 %, bootstrap over 10-kb blocks of
the genome; differences are taken on the same blocks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import ecoli_tables as tables
import machine
from comparators import (
    kmer_logistic,
    published,
    random_calls,
    read_promotech,
    scan_with,
    training_windows,
    weight_matrix,
    within,
)
from ecoli_split import CONTIG, DEV, LENGTH, TEST
from ecoli_truth import Placed, Truth, in_region, load_truth, merge_starts
from evaluation import (
    TOLERANCES,
    Section,
    depth_rows,
    difference_rows,
    restrict,
    upstream_masks,
)
from gene_context import ContextPrior, GeneContext, no_letters, with_prior
from matching import Calls, Starts, make_starts, thin
from prepare import ecoli
from scan_models import Scan, plan_scans
from seqray.core.alphabet import DNA
from seqray.core.arrays import MIN_DISTANCE_OF_LOCATORS
from seqray.core.records import LabeledSequence
from seqray.core.text import format_number
from seqray.genome.find import GenePredictor
from seqray.io.sequences import read_labeled_table
from seqray.io.tables import write_table

REGIONS = {"test": TEST, "dev": DEV}
REACH = 250
"""The published predictions lie 0 to 238 nt upstream of the gene that they name."""
PROMOTECH = "tss/promotech_predictions/NC_000913.3_genome_predictions.csv.gz"
METHODS = ("models", "no-letters", "window-prior", "promotech", "published", "linear", "random")
RANDOM_CALLS_PER_KB = 10

Row = Mapping[str, str | float | int]


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = machine.script_parser(__doc__)
    machine.add_data(parser)
    parser.add_argument("--model", nargs="+", default=["ecoli-promoter"], help="shipped models, or files")
    parser.add_argument(
        "--genes",
        nargs="+",
        default=["predict"],
        help="for locators: predict, none or a file; may be several",
    )
    parser.add_argument("--window-model", default="ecoli-promoter", help="for 'window + gene prior'")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--train", type=Path, help="table of `data/prepare.py ecoli`, to save making it")
    parser.add_argument("--stride", type=int, default=10)
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--region", choices=REGIONS, default="test", help="dev: for choosing settings")
    parser.add_argument("--replicates", type=int, default=1000, help="of the bootstrap")
    parser.add_argument("--out", type=Path, help="table; results/scan_ecoli.tsv, or scan_ecoli_dev.tsv")
    args = parser.parse_args(argv)
    name = "scan_ecoli.tsv" if args.region == "test" else f"scan_ecoli_{args.region}.tsv"
    args.out = args.out or machine.RESULTS / name
    return args


def scan_region(scan: Scan, args: argparse.Namespace, region: tuple[int, int]) -> Calls:
    """Scan a region and return the ranked calls."""
    return scan.calls(args.data / tables.GENOME, ["--region", f"{CONTIG}:{region[0] + 1}-{region[1]}"])


def scanned(
    scans: Sequence[Scan], args: argparse.Namespace, truth: Truth, region: tuple[int, int]
) -> dict[str, Calls]:
    """Return the calls of the models, and of the methods that read genes."""
    found = {scan.name: scan_region(scan, args, region) for scan in scans}
    if {"no-letters", "window-prior"}.isdisjoint(args.methods):
        return found
    genes = GenePredictor.train([truth.genome]).genes_of(truth.genome, circular=True)
    if "no-letters" in args.methods:
        found["no letters"] = within(no_letters(genes, LENGTH), region)
    if "window-prior" in args.methods:
        (window,) = plan_scans([args.window_model], [], args.stride, args.threads)
        calls = found[window.name] if window.name in found else scan_region(window, args, region)
        prior = ContextPrior(GeneContext(genes, LENGTH), *training_starts(truth))
        found["window + gene prior"] = with_prior(calls, prior)
    return found


def training_starts(truth: Truth) -> tuple[Starts, list[tuple[int, int]]]:
    """Return the supported starts outside the test and the development region, and where that is."""
    regions = [(0, DEV[0]), (TEST[1], LENGTH)]
    rows = [row for region in regions for row in in_region(truth.supported(), region)]
    return make_starts(merge_starts(rows)), regions


def published_methods(truth: Truth, region: tuple[int, int]) -> dict[str, Calls]:
    """Return the published predictions in four forms."""
    rows = truth.predictions()
    return {
        "published": published(rows, region, None, None),
        "published, thinned": published(rows, region, None, MIN_DISTANCE_OF_LOCATORS),
        "published sigma70": published(rows, region, "Sigma70", None),
        "published sigma70, thinned": published(rows, region, "Sigma70", MIN_DISTANCE_OF_LOCATORS),
    }


def linear_methods(
    args: argparse.Namespace, truth: Truth, region: tuple[int, int]
) -> tuple[dict[str, Calls], str]:
    """Return linear models fitted to the windows of a model, and a line on their training."""
    windows, labels = training_windows(training_examples(args))
    matrix, logistic = weight_matrix(windows, labels), kmer_logistic(windows, labels)
    promoters = labels.count("promoter")
    note = f"linear models: {promoters} promoters and {len(labels) - promoters} other windows, stride 1"
    return {
        "position weight matrix": scan_with(matrix, truth.genome, region, MIN_DISTANCE_OF_LOCATORS),
        "k-mer logistic regression": scan_with(logistic, truth.genome, region, MIN_DISTANCE_OF_LOCATORS),
    }, note


def compared_methods(
    args: argparse.Namespace, truth: Truth, region: tuple[int, int]
) -> tuple[dict[str, Calls], list[str]]:
    """Return the methods that no model of ours is part of, and lines on them."""
    found: dict[str, Calls] = {}
    lines = [
        f"calls of one strand lie at least {MIN_DISTANCE_OF_LOCATORS} nt apart, those of models of windows "
        "50; those of 'no letters' and as published may lie nearer"
    ]
    if "promotech" in args.methods:
        found["Promotech"] = read_promotech(args.data / PROMOTECH, region)
        found["Promotech, thinned"] = thin(found["Promotech"], MIN_DISTANCE_OF_LOCATORS)
    if "linear" in args.methods:
        linear, note = linear_methods(args, truth, region)
        found |= linear
        lines.append(note)
    if "random" in args.methods:
        count = round(RANDOM_CALLS_PER_KB * (region[1] - region[0]) / 1000)
        found["random"] = random_calls(region, count, MIN_DISTANCE_OF_LOCATORS)
    return found, lines


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


def write_rows(path: Path, rows: Sequence[Row], lines: Sequence[str]) -> None:
    """Write rows of equal keys as TSV under comment lines; a number that is not known is ``nan``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cells = ([format_number(c) if isinstance(c, float) else c for c in row.values()] for row in rows)
    write_table(path, list(rows[0]), cells, lines)
    print(f"wrote {path}")


def print_depths(rows: Sequence[Row]) -> None:
    """Print the table of recall and precision for a reader."""
    columns = f"{'section':9} {'method':27} {'nt':>2} {'per kb':>6} {'calls':>5}"
    print(f"{columns}   recall/precision strong   experimental")
    for row in rows:
        start = f"{row['section']!s:9} {row['method']!s:27} {row['tolerance']:>2}"
        start += f" {row['calls_per_kb']!s:>6} {row['calls']:>5}"
        pairs = (f"{row[f'recall_{p}']:.3f} {row[f'precision_{p}']:.3f}" for p in ("strong", "experimental"))
        print(start + "   " + "               ".join(pairs))


def write_comparison(
    stem: Path,
    sections: Sequence[Section],
    methods: Mapping[str, Calls],
    theirs: Mapping[str, Calls],
    args: argparse.Namespace,
    lines: Sequence[str],
) -> None:
    """Write and print what the methods reach, and their differences.

    Parameters
    ----------
    stem
        Path of the tables without suffix.
    sections
        Parts of the genome; differences are those of the first.
    methods
        Our methods first.
    theirs
        The published predictions.
    args
        The command line.
    lines
        Comments at the head of each table.
    """
    depths: list[Row] = []
    paired: list[Row] = []
    for section in sections:
        weights = section.weights(args.replicates, seed=0)
        for tolerance in TOLERANCES:
            for method, calls in {**methods, **theirs}.items():
                depths += depth_rows(section, method, calls, weights, tolerance)
            if section is sections[0]:
                paired += difference_rows(section, methods, weights, tolerance)
    for suffix, rows in (("", depths), ("_paired", paired)):
        if rows:
            write_rows(Path(f"{stem}{suffix}.tsv"), rows, lines)
    print_depths(depths)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    args = parse_arguments(argv)
    lines = machine.describe([Path(__file__).name, *(sys.argv[1:] if argv is None else argv)])
    stem = args.out.with_suffix("")
    models = args.model if "models" in args.methods else []
    scans = plan_scans(models, args.genes, args.stride, args.threads)
    region = REGIONS[args.region]
    truth = load_truth(args.data)
    ours = scanned(scans, args, truth, region)
    others, notes = compared_methods(args, truth, region)
    theirs = published_methods(truth, region) if "published" in args.methods else {}
    sections = make_sections(truth, region)
    lines += [
        f"region: {CONTIG} {region[0]}-{region[1]}, 0-based half-open",
        *describe_truth(sections),
        *notes,
    ]
    write_comparison(stem, sections, ours | others, theirs, args, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
