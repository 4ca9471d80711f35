"""Scan each genome with a model that has not seen its genus, and compare the calls with mapped starts.

    python data/prepare_genomes.py --out GENOMES
    python benchmarks/train_folds.py --sheet TRAIN.tsv --config CONFIG --out runs/folds --run
    python benchmarks/scan_species.py --genomes GENOMES/genomes.tsv --models runs/folds/folds.tsv

Writes ``scan_species.tsv``: recall and precision at 0.5, 1 and 2 calls per kb, within 25 and within 5
letters, for each genome and method. A method with fewer calls is taken with all of them (``calls``).

Truth: distinct starts of full weight count for the recall (the best sources of a genome, see
``data/README.md``), and any mapped start makes a call right. ``genes``: starts at most 500 letters before a
gene; ``all``: all of them; ``kuo``: starts before genes that the tables of the Promoter Architecture Scanner
list, whatever their weight, where a genome has at least 50 of them. For *H. pylori* also the 1,907 starts of
the data set that Promotech was trained on (``1907``), and those of them before genes. Unmapped starts count
as false: precision is a lower bound.

Methods:

- the model of ``--models``, with predicted genes, those that the sheet names (``--genes given``) or without;
- the models of ``--also``, shipped ones for example, with the first of ``--genes``;
- ``no letters``: 45 nt (``--upstream``) before each gene, predicted or given, ranked by the gap before it;
- ``Promotech``: its published scans of three genomes, placed by their letters; as published, and thinned as
  the peaks of a scan are. That of *B. subtilis* is of strain 168; windows that differ in YB886 are lost.

The rows ``mean`` average over bacteria whose starts are mapped well (weight .5 or more in the sheet), and
``mean of genera`` over their genera, so that several strains of one weigh as one; others are listed, with
``counted`` 0, and genomes without usable starts are named in the header. ``--domain`` names other genomes to
average over, ``--part`` measures one part of each split. ``auprc`` is of the first 2 calls per kb. Intervals:
95 %, bootstrap over 10-kb blocks; that of a mean resamples blocks within each genome, not genomes. ``above``
is the recall less that of *no letters* on the same blocks.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import numpy as np

import machine
from evaluation import TOLERANCES, Measured, Section, measure_depths, with_interval
from gene_context import UPSTREAM, no_letters
from genome_truth import KnownGenome, end_to_end, read_genome, read_promotech
from matching import Calls, rank_calls, thin
from scan_ecoli import write_rows
from scan_models import Scan, plan_scans, read_calls
from seqray.core.arrays import MIN_DISTANCE_OF_LOCATORS
from seqray.core.records import SequenceRecord
from seqray.genome.find import predict_all, read_genes

PER_KB = (0.5, 1.0, 2.0)
MIN_WEIGHT = 0.5
FULL_WEIGHT = 1.0
MEAN, MEAN_OF_GENERA = "mean", "mean of genera"
PROMOTECH = {
    "ecoli": "NC_000913.3_genome_predictions.csv.gz",
    "hpylori": "H_pylori_genome_predictions.csv.gz",
    "bsubtilis": "B_subtilits_genome_predictions.csv.gz",
}
DATA_SETS = {"hpylori": ("promotech/HPYLORI", "1907")}
"""Source of the starts of one data set, and the name of the truth that they make."""
LISTED, MIN_LISTED = "kuo", 50
"""Source of starts before genes that were chosen alike in all species, and how many make a truth."""
METHODS = ("models", "no-letters", "promotech")
NO_LETTERS = "no letters"
OTHERS = "*"
"""In the table of models: genera that are not listed."""

Row = dict[str, str | float | int]
Key = tuple[str, int, str, float]
"""Method, tolerance, truth and calls per kb."""


def parse_arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = machine.script_parser(__doc__, "scan_species.tsv")
    parser.add_argument("--genomes", type=Path, required=True, help="sheet of data/prepare_genomes.py")
    parser.add_argument("--models", type=Path, help="TSV with the columns 'genus' and 'model'")
    parser.add_argument(
        "--genes", nargs="+", default=["predict"], help="of the scans: predict, given, none, or several"
    )
    parser.add_argument("--also", nargs="+", default=[], metavar="MODEL", help="further models to scan with")
    parser.add_argument("--domain", default="bacteria", help="of the sheet, that the means count")
    parser.add_argument("--part", default="", help="of the splits: dev or test; all by default")
    parser.add_argument("--tolerances", nargs="+", type=int, default=TOLERANCES, help="letters")
    parser.add_argument(
        "--upstream", type=int, default=UPSTREAM, help="letters, of the method without letters"
    )
    machine.add_data(parser, required=False)
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--only", nargs="+", help="names of genomes")
    parser.add_argument(
        "--calls", type=Path, help="folder that keeps the calls of the models, and serves again"
    )
    parser.add_argument("--stride", type=int, default=10, help="of window models")
    parser.add_argument("--threads", type=int, default=machine.cores())
    parser.add_argument("--replicates", type=int, default=1000, help="of the bootstrap")
    args = parser.parse_args(argv)
    if "models" in args.methods and args.models is None and not args.also:
        parser.error("name models with --models or --also, or the other methods with --methods")
    if "promotech" in args.methods and args.data is None:
        parser.error("name the folder of the public files with --data or SEQRAY_DATA")
    return args


def read_models(path: Path) -> dict[str, str]:
    """Read which model has not seen a genus; paths are relative to the table, shipped models have a name."""
    return {
        row["genus"]: str(path.parent / row["model"]) if Path(row["model"]).suffix else row["model"]
        for row in machine.read_table(path)
    }


def make_section(genome: KnownGenome) -> Section:
    """Return a whole genome with the starts that recall counts, and those that make a call right."""
    every = genome.select()
    kept = {
        "genes": genome.select(lambda start: start.weight >= FULL_WEIGHT and start.upstream),
        "all": genome.select(lambda start: start.weight >= FULL_WEIGHT),
        LISTED: genome.select(lambda start: LISTED in start.sources and start.upstream),
    }
    if len(kept[LISTED]) < MIN_LISTED:
        del kept[LISTED]
    pairs = {name: (starts, every) for name, starts in kept.items()}
    if genome.name in DATA_SETS:
        source, name = DATA_SETS[genome.name]
        listed = genome.select(lambda start: source in start.sources)
        before_genes = genome.select(lambda start: source in start.sources and start.upstream)
        pairs |= {name: (listed, listed), f"{name} genes": (before_genes, listed)}
    letters = sum(last - first for first, last in genome.measured)
    return Section(genome.name, (0, letters), None, pairs)


def no_letters_of(genome: KnownGenome, annotation: Path | None, upstream: int) -> Calls:
    """Call a start upstream of each gene of a genome; genes are predicted if no file names them."""
    records = [SequenceRecord(name, letters) for name, letters in genome.contigs.items()]
    genes = read_genes(annotation) if annotation else predict_all(records)
    calls = [
        (offset, no_letters(genes.of(name), len(genome.contigs[name]), upstream))
        for name, offset in end_to_end(genome.contigs).items()
    ]
    position = np.concatenate([offset + found.position for offset, found in calls])
    strand = np.where(np.concatenate([found.plus for _, found in calls]), "+", "-")
    score = np.concatenate([found.score for _, found in calls])
    return rank_calls(position.tolist(), strand.tolist(), score.tolist())


def model_calls(scan: Scan, genome: KnownGenome, path: Path, folder: Path | None) -> Calls:
    """Scan a genome, or read the calls of an earlier scan."""
    offsets = end_to_end(genome.contigs)
    with tempfile.TemporaryDirectory() as scratch:
        folder = folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / f"{genome.name}.{scan.name.replace(', ', '.').replace(' ', '-')}.tsv"
        if not kept.exists():
            contigs = genome.measured_contigs()
            if len(contigs) < len(genome.contigs):
                path = Path(scratch) / f"{genome.name}.fa"
                path.write_text("".join(f">{name}\n{genome.contigs[name]}\n" for name in contigs))
            scan.write_calls(path, kept)
        return read_calls(kept, offsets)


def methods_of(
    genome: KnownGenome,
    path: Path,
    annotation: str,
    models: Mapping[str, str],
    args: argparse.Namespace,
) -> tuple[dict[str, Calls], str]:
    """Return the calls of each method, and the model that has not seen the genus.

    Parameters
    ----------
    genome, path
        The genome, and its file.
    annotation
        The genes that the sheet names for it.
    models
        Model of each genus.
    args
        The command line.
    """
    found: dict[str, Calls] = {}
    model = models.get(genome.genus, models.get(OTHERS, ""))
    sources = [annotation if genes == "given" else genes for genes in args.genes]
    named = {"seqray": model} if model else {}
    for name, scanned in {**named, **{Path(other).stem: other for other in args.also}}.items():
        wanted = sources if name in named else sources[:1]
        for scan in plan_scans([scanned], wanted, args.stride, args.threads):
            method = f"{name}, no genes" if scan.genes == "none" else name
            found[method] = model_calls(scan, genome, path, args.calls)
    if "no-letters" in args.methods:
        given = Path(annotation) if "given" in args.genes else None
        found[NO_LETTERS] = no_letters_of(genome, given, args.upstream)
    if "promotech" in args.methods and genome.name in PROMOTECH:
        folder = args.data / "tss" / "promotech_predictions"
        found["Promotech"] = read_promotech(folder / PROMOTECH[genome.name], genome)
        found["Promotech, thinned"] = thin(found["Promotech"], MIN_DISTANCE_OF_LOCATORS)
    return {name: genome.cut(calls) for name, calls in found.items()}, Path(model).name


@dataclass(frozen=True)
class Result:
    """What the methods reach on a genome.

    Attributes
    ----------
    row
        Its row of the sheet.
    model
        The model that has not seen its genus; empty for none.
    starts
        Number of starts of each truth.
    recall, precision, auprc
        Of all blocks, and of every resample: (1 + replicates,).
    calls
        Number of calls.
    domain
        That the means count.
    """

    row: Mapping[str, str]
    model: str
    starts: Mapping[str, int]
    recall: Mapping[Key, np.ndarray]
    precision: Mapping[Key, np.ndarray]
    auprc: Mapping[Key, np.ndarray]
    calls: Mapping[Key, int]
    domain: str = "bacteria"

    @property
    def counted(self) -> bool:
        """Whether the means count it."""
        return self.row["domain"] == self.domain and float(self.row["weight"]) >= MIN_WEIGHT


def measure_genome(
    row: Mapping[str, str],
    genome: KnownGenome,
    methods: Mapping[str, Calls],
    model: str,
    replicates: int,
    tolerances: Sequence[int] = TOLERANCES,
    domain: str = "bacteria",
) -> Result:
    """Measure all methods on a genome, on the same resampled blocks.

    Parameters
    ----------
    row
        Of the sheet.
    genome
        With its starts.
    methods
        Calls of each method.
    model
        For the table.
    replicates
        Of the bootstrap.
    tolerances
        Most letters between a call and a start.
    domain
        That the means count.
    """
    section = make_section(genome)
    weights = section.weights(replicates, seed=0)
    found: dict[Key, tuple[Measured, str]] = {}
    for method, calls in methods.items():
        for tolerance in tolerances:
            for per_kb, measured in measure_depths(section, calls, weights, PER_KB, tolerance).items():
                found |= {(method, tolerance, truth, per_kb): (measured, truth) for truth in section.pairs}
    return Result(
        row=row,
        model=model,
        starts={name: len(pair[0]) for name, pair in section.pairs.items()},
        recall={key: measured.values[f"recall_{truth}"] for key, (measured, truth) in found.items()},
        precision={key: measured.values[f"precision_{truth}"] for key, (measured, truth) in found.items()},
        auprc={key: measured.values[f"auprc_{truth}"] for key, (measured, truth) in found.items()},
        calls={key: measured.calls for key, (measured, _) in found.items()},
        domain=domain,
    )


def genome_rows(result: Result) -> Iterator[Row]:
    """Yield the rows of a genome."""
    head: Row = {"genome": result.row["name"], "species": result.row["species"]}
    head |= {"genus": result.row["genus"], "counted": int(result.counted)}
    for key in result.recall:
        trained = result.model if key[0].startswith("seqray") else ""
        yield {**head, "model": trained, **figures(key, result.recall, result.precision, result.auprc)} | {
            "starts": result.starts[key[2]],
            "calls": result.calls[key],
        }


def mean_rows(results: Sequence[Result]) -> Iterator[Row]:
    """Yield for each truth the means over the genomes that count and have it, and over their genera.

    Methods that one of these genomes lacks have no mean.
    """
    for truth in ("genes", "all", LISTED):
        counted = [result for result in results if result.counted and truth in result.starts]
        sizes = Counter(result.row["genus"] for result in counted)
        by_genus = np.array([1 / sizes[result.row["genus"]] for result in counted])
        for name, what, shares in (
            (MEAN, f"{len(counted)} genomes", np.ones(len(counted))),
            (MEAN_OF_GENERA, f"{len(sizes)} genera", by_genus),
        ):
            if counted:
                head: Row = {"genome": name, "species": what}
                yield from _mean_rows(counted, shares / shares.sum(), truth, head)


def _mean_rows(counted: Sequence[Result], shares: np.ndarray, truth: str, head: Row) -> Iterator[Row]:
    keys = [key for key in counted[0].recall if key[2] == truth]
    keys = [key for key in keys if all(key in result.recall for result in counted)]
    recall = {key: shares @ np.stack([result.recall[key] for result in counted]) for key in keys}
    precision = {key: shares @ np.stack([result.precision[key] for result in counted]) for key in keys}
    auprc = {key: shares @ np.stack([result.auprc[key] for result in counted]) for key in keys}
    for key in keys:
        row = {**head, "genus": "", "counted": "", "model": "", **figures(key, recall, precision, auprc)}
        yield row | {
            "starts": sum(result.starts[truth] for result in counted),
            "calls": sum(result.calls[key] for result in counted),
        }


def figures(
    key: Key,
    recall: Mapping[Key, np.ndarray],
    precision: Mapping[Key, np.ndarray],
    auprc: Mapping[Key, np.ndarray],
) -> Row:
    """Return the cells of a method: its measures, and recall above *no letters*, with intervals."""
    method, tolerance, truth, per_kb = key
    row: Row = {"method": method, "truth": truth, "tolerance": tolerance, "calls_per_kb": f"{per_kb:g}"}
    row |= {"starts": 0, "calls": 0}
    measures = {"recall": recall[key], "precision": precision[key], "auprc": auprc[key]}
    other = (NO_LETTERS, *key[1:])
    missing = np.full_like(recall[key], np.nan)
    measures["above"] = recall[key] - recall[other] if other in recall else missing
    for name, values in measures.items():
        row |= {f"{name}{end}": value for end, value in with_interval(values).items()}
    return row


def print_rows(rows: Sequence[Row]) -> None:
    """Print recall, precision and area at the depths for a reader."""
    for row in rows:
        start = f"{row['genome']!s:15} {row['method']!s:17} {row['truth']!s:6} {row['tolerance']:>2} nt"
        shares = " ".join(f"{row[name]:.3f}" for name in ("recall", "precision", "auprc"))
        print(f"{start} {row['calls_per_kb']:>3} per kb: {shares}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    args = parse_arguments(argv)
    lines = machine.describe([Path(__file__).name, *(sys.argv[1:] if argv is None else argv)])
    models = read_models(args.models) if "models" in args.methods and args.models else {}
    results: list[Result] = []
    for row in machine.read_table(args.genomes):
        if args.only and row["name"] not in args.only:
            continue
        genome = read_genome(args.genomes.parent, row, args.part)
        if not genome.starts:
            lines.append(f"{row['species']}: no start of use")
            continue
        path = args.genomes.parent / row["genome"]
        methods, model = methods_of(genome, path, row["genes"], models, args)
        options = args.replicates, args.tolerances, args.domain
        results.append(measure_genome(row, genome, methods, model, *options))
        print(f"{row['species']}: {len(genome.starts)} starts, {', '.join(methods)}", file=sys.stderr)
    rows = [*mean_rows(results), *(one for result in results for one in genome_rows(result))]
    write_rows(args.out, rows, lines)
    print_rows(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
