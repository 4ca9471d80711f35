"""The scan workflow beside single commands on the same cores, on the E. coli genome and on two short files.

    python benchmarks/scan_workflow.py --cores 2 --shards 1 --fasta lambda.fa.gz data/example/regions.fa

Seconds of the workflow (shards, gathering, summary and the explanations of the best calls), of a second run
that finds nothing to do, and of ``seqray scan`` alone, one file after the other; and whether the calls are
the same bytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from machine import ROOT, add_data, describe, script_parser, with_decimals
from seqray.io.tables import write_table

WORKFLOW = ROOT / "workflows" / "scan"
GENOME = "ecoli_genome/GCF_000005845.2_ASM584v2_genomic.fna.gz"
JOBS = re.compile(r"^total\s+([0-9]+)", re.MULTILINE)


def timed(command: list[str], folder: Path) -> tuple[float, str]:
    """Run a command to its end: seconds, and what it told."""
    began = time.monotonic()
    done = subprocess.run(
        command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}")
    return time.monotonic() - began, done.stdout


def main() -> None:
    parser = script_parser(__doc__, "scan_workflow_small.tsv")
    add = parser.add_argument
    add_data(parser, required=False)
    add("--fasta", type=Path, nargs="+", help="default: the genome of E. coli")
    add("--model", default="ecoli-promoter")
    add("--cores", type=int, default=os.cpu_count() or 1)
    add("--shards", type=int, default=4)
    args = parser.parse_args()
    if args.data is None and not args.fasta:
        parser.error("name the folder of the public files with --data or SEQRAY_DATA, or files with --fasta")
    files = [path.resolve() for path in args.fasta or [(args.data or ROOT) / GENOME]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(WORKFLOW / "config", folder / "config")
        samples = {f"s{number}": path for number, path in enumerate(files, start=1)}
        rows = "".join(f"{name}\t{path}\n" for name, path in samples.items())
        (folder / "config" / "samples.tsv").write_text(f"sample\tfasta\n{rows}")
        settings = yaml.safe_load((folder / "config" / "config.yaml").read_text())
        settings["models"], settings["scan"]["shards"] = [args.model], args.shards
        if args.shards > 1:
            settings["resources"]["threads"] = 1  # as many shards run as there are cores
        (folder / "config" / "config.yaml").write_text(yaml.safe_dump(settings))
        snakefile = str(WORKFLOW / "workflow" / "Snakefile")
        command = ["snakemake", "--snakefile", snakefile, "--cores", str(args.cores)]
        first, told = timed(command, folder)
        again, rest = timed(command, folder)
        jobs = JOBS.search(told)
        single, same = 0.0, True
        for sample, path in samples.items():
            alone = ["seqray", "scan", str(path), "--model", args.model, "--out", "calls.gff3", "--quiet"]
            single += timed([*alone, "--threads", str(args.cores)], folder)[0]
            calls = folder / "results" / sample / args.model / "calls.gff3"
            same &= body(calls) == body(folder / "calls.gff3")
        rows = [
            ("workflow", first, jobs[1] if jobs else "?", same),
            ("workflow again", again, "0" if "Nothing to be done" in rest else "?", None),
            ("seqray scan", single, len(files), None),
        ]
    about = f"cores: {args.cores}, shards: {args.shards}; model: {args.model}; "
    about += ", ".join(path.name for path in files)
    columns = ("run", "seconds", "jobs", "calls_as_of_seqray_scan")
    cells = [with_decimals(row, 1) for row in rows]
    write_table(args.out, columns, cells, [*describe(sys.argv), about])


def body(path: Path) -> bytes:
    """Calls without the line that names the command, which differs."""
    return b"\n".join(line for line in path.read_bytes().split(b"\n") if not line.startswith(b"# command"))


if __name__ == "__main__":
    main()
