"""CPU time, memory and calls of a scan with the default model: a phage, plasmids, and E. coli.

    python benchmarks/scan_genomes.py --data "$SEQRAY_DATA"

Each row is one run of ``seqray scan FILE --model bacteria-genome`` in a process of its own: what starts,
predicts genes where the file has none, and writes the calls as TSV. Plasmids are the contigs below 50 kb that
the FASTA files of whole genomes call plasmids, each scanned alone. CPU seconds are of all threads, and
say the same on a busy machine; wall time does not. Letters, calls and genes are those of the header.

    python benchmarks/scan_genomes.py --data "$SEQRAY_DATA" --whole 20

scans so many whole genomes of bacteria of ``data/genomes.tsv``, the smallest and the largest among them, as
the scan workflow does with one shard: calls as TSV and GFF3, and a page. ``scan_cost.tsv`` has what each
costs, in megabytes on disk too, and computes from the cost of a base what 10,000 genomes of the mean size
cost.
"""

from __future__ import annotations

import gzip
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "data"))

import numpy as np

from ecoli_tables import GENOME
from genome_sources import read_list
from machine import Cost, add_data, describe, run, script_parser, with_decimals
from seqray.io.tables import write_table

LAMBDA = "lambda_genome/lambda_virus.fa.gz"
ECOLI = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.gbff.gz"
MODEL = "bacteria-genome"
MAX_PLASMID_LETTERS = 50_000
COLUMNS = ("sequence", "genes", "letters", "cpu_s", "peak_mb", "calls", "per_kb", "genes_known")
COLUMNS += ("per_gene", "expected_precision")
MANY = 10_000
COST_COLUMNS = ("sequence", "genomes", "letters", "cpu_hours", "peak_mb", "disk_mb", "files")


@dataclass(frozen=True)
class Case:
    """A file to scan: its name in the table, where the genes are from, the file, and further options."""

    name: str
    genes: str
    path: Path
    options: tuple[str, ...] = ()


def plasmids(path: Path) -> Iterator[tuple[str, str]]:
    """Id and letters of the small plasmids of a FASTA file."""
    with gzip.open(path, "rt") as handle:
        for record in handle.read().split(">")[1:]:
            head, _, letters = record.partition("\n")
            if "plasmid" in head and len(letters.replace("\n", "")) < MAX_PLASMID_LETTERS:
                yield head.split()[0], letters


def cases(data: Path, folder: Path) -> Iterator[Case]:
    """All files to scan; plasmids are written to a folder."""
    yield Case("phage lambda", "predicted", data / LAMBDA)
    found = [one for path in sorted((data / "genomes").glob("*.fna.gz")) for one in plasmids(path)]
    for name, letters in sorted(found, key=lambda one: len(one[1])):
        path = folder / f"{name}.fa"
        path.write_text(f">{name}\n{letters}")
        yield Case(f"plasmid {name}", "predicted", path, ("--circular",))
    yield Case("E. coli NC_000913.3", "predicted", data / GENOME, ("--circular",))
    yield Case("E. coli NC_000913.3", "GenBank", data / ECOLI)


def measure(case: Case, out: Path) -> tuple[object, ...]:
    """Scan a file; the cells of its row."""
    command = [sys.executable, "-m", "seqray", "scan", str(case.path), "--model", MODEL, "--quiet"]
    cost = run([*command, "--out", str(out), *case.options])
    return table_row(case, cost, out.read_text(encoding="utf-8"))


def table_row(case: Case, cost: Cost, table: str) -> tuple[object, ...]:
    """Cells of `COLUMNS`, of what was measured and what the header of the calls states."""
    facts = dict(re.findall(r"^# ([^:\n]+): (.+)$", table, re.MULTILINE))
    letters = re.match(r"\d+ sequences?, (\d+) (?:bases|letters)", facts["scanned"])
    calls, *figures = facts["calls"].split(", ")
    per = {unit: figure for figure, _, unit in (text.partition(" per ") for text in figures)}
    return (
        *(case.name, case.genes, letters[1] if letters else None),
        *(f"{cost.cpu:.1f}", f"{cost.peak_mb:.0f}"),
        *(calls, per.get("kb"), facts.get("genes known", "0").split(",")[0], per.get("gene")),
        facts.get("expected precision", "").partition(":")[0] or None,
    )


def whole_genomes(data: Path, count: int) -> list[Case]:
    """Genomes of bacteria, evenly among all by the size of their files."""
    files = {row["species"]: data / row["genome"] for row in read_list() if row["domain"] == "bacteria"}
    names = sorted(files, key=lambda name: files[name].stat().st_size)
    chosen = [names[round(i * (len(names) - 1) / (count - 1))] for i in range(count)]
    return [Case(name, "predicted", files[name]) for name in dict.fromkeys(chosen)]


def measure_whole(case: Case, folder: Path) -> tuple[object, ...]:
    """Scan a genome into a folder; the cells of its row of `COST_COLUMNS`."""
    table = folder / "calls.tsv"
    outputs = ["--out", str(table), "--out", str(folder / "calls.gff3"), "--html", str(folder / "page.html")]
    command = [sys.executable, "-m", "seqray", "scan", str(case.path), "--model", MODEL, "--quiet"]
    cost = run([*command, *outputs])
    letters = table_row(case, cost, table.read_text(encoding="utf-8"))[COLUMNS.index("letters")]
    size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    return case.name, 1, letters, cost.cpu / 3600, cost.peak_mb, size, len(outputs) // 2


def many_genomes(rows: Sequence[tuple[object, ...]]) -> tuple[object, ...]:
    """The row of `MANY` genomes of the mean size, by the cost of a base of those that were scanned."""
    table = np.array([row[2:] for row in rows], dtype=float)
    factor = MANY / len(table)
    letters, cpu, _, disk, files = table.sum(axis=0) * factor
    return f"{MANY} such genomes", MANY, round(letters), cpu, table[:, 2].max(), disk, round(files)


def write_costs(data: Path, count: int, out: Path) -> None:
    """Scan whole genomes one after the other, and write what they and many of them cost."""
    rows = []
    for case in whole_genomes(data, count):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(measure_whole(case, Path(folder)))
        print(*rows[-1], sep="\t", flush=True)
    table = [with_decimals(row) for row in (*rows, many_genomes(rows))]
    write_table(out, COST_COLUMNS, table, describe(["scan_genomes.py", "--whole", str(count)]))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = script_parser(__doc__, "scan_genomes.tsv")
    add_data(parser)
    parser.add_argument("--whole", type=int, metavar="N", help="scan so many whole genomes of bacteria")
    args = parser.parse_args(arguments)
    if args.whole:
        write_costs(args.data, args.whole, args.out.with_name("scan_cost.tsv"))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = []
        for case in cases(args.data, Path(folder)):
            rows.append(measure(case, Path(folder) / "calls.tsv"))
            print(*rows[-1], sep="\t", flush=True)
    write_table(args.out, COLUMNS, rows, describe(["scan_genomes.py"]))


if __name__ == "__main__":
    main()
