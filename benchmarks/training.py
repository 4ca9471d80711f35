"""Speed of `seqray train`, beside that of an earlier commit, in one run.

    SEQRAY_DATA=... python data/prepare.py ecoli --out runs/data/ecoli.tsv.gz   (and arabidopsis, amp)
    python benchmarks/training.py --against bfb25fb

Each shipped configuration trains two networks for some epochs, and for three more. The difference is three
epochs, without start, calibration and the writing of the model. ``loss`` and ``auprc`` are those of the
second model on validation. The other commit runs from its own files, with its own configuration, in the same
environment.
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import NamedTuple

import yaml

from machine import ROOT, describe, read_table, run, script_parser
from seqray.io.tables import write_table
from seqray.modelfile.file import load_model

SETS = {
    "ecoli-promoter": ("ecoli", 1),
    "arabidopsis-promoter": ("arabidopsis", 1),
    "antimicrobial-peptide": ("amp", 16),
}
"""The table of each configuration, and the epochs of the short training: with so many, networks train side by
side as they do in the whole training."""
MORE, MEMBERS = 3, 2
COLUMNS = ("configuration", "code", "precision", "sequences_per_s", "times_faster", "loss", "auprc")


class Training(NamedTuple):
    """What the long training took beyond the short one, and how good its model is."""

    wall: float
    loss: float
    auprc: float


def unpack(commit: str, folder: Path) -> Path:
    """Write the files of a commit."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, "src", "configs"], capture_output=True, check=True
    )
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def train(code: Path, name: str, table: Path, precision: str | None, threads: int) -> Training:
    """Train by the code in a folder, twice."""
    costs, first = [], SETS[name][1]
    with tempfile.TemporaryDirectory() as folder:
        for epochs in (first, first + MORE):
            config = yaml.safe_load((code / "configs" / f"{name}.yaml").read_text())
            config["trainer"]["max_epochs"] = epochs
            config["members"] = MEMBERS
            config["stopping"]["patience"] = 1000  # each epoch counts
            if precision is not None:
                config["trainer"]["precision"] = precision
            settings, model = Path(folder, f"{epochs}.yaml"), Path(folder, f"{epochs}.safetensors")
            settings.write_text(yaml.safe_dump(config))
            words = ["env", f"PYTHONPATH={code / 'src'}", sys.executable, "-m", "seqray", "train", "--quiet"]
            words += ["--config", str(settings), "--train", str(table), "--out", str(model)]
            words += ["--work-dir", f"{folder}/{epochs}", "--threads", str(threads)]
            costs.append(run(words))
        figures = load_model(model).card.training["validation"]
    short, long = costs
    return Training(long.wall - short.wall, figures["loss"], figures["auprc"])


def count_trained(table: Path, name: str) -> int:
    """Rows that a network of the configuration learns from in an epoch, to a group."""
    splits = [row.get("split", "train") or "train" for row in read_table(table)]
    share = yaml.safe_load((ROOT / "configs" / f"{name}.yaml").read_text())["data"].get("validation", 0)
    return round(splits.count("train") * (1 if "validation" in splits else 1 - share))


def main() -> None:
    """Measure all, and write the table."""
    parser = script_parser(__doc__, "training.tsv")
    parser.add_argument("--against", help="commit to compare with")
    parser.add_argument("--data", type=Path, default=ROOT / "runs" / "data")
    parser.add_argument(
        "--name", action="append", choices=SETS, help="only this configuration; may be repeated"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    arguments = parser.parse_args()
    about = f"{MEMBERS} networks, {arguments.threads} threads"
    about += f"; medians of {arguments.rounds} interleaved rounds"
    notes, rows = [*describe(["training.py", *sys.argv[1:]]), about], []
    with tempfile.TemporaryDirectory() as folder:
        ways: dict[tuple[str, str], tuple[Path, str | None]] = {}
        if arguments.against:
            ways[arguments.against, "default"] = unpack(arguments.against, Path(folder)), None
        ways |= {("now", "32-true"): (ROOT, "32-true"), ("now", "default"): (ROOT, None)}
        for name in arguments.name or SETS:
            table = arguments.data / f"{SETS[name][0]}.tsv.gz"
            count = MEMBERS * MORE * count_trained(table, name)
            found: dict[tuple[str, str], list[Training]] = {way: [] for way in ways}
            for _ in range(arguments.rounds):
                for way, (code, precision) in ways.items():
                    found[way].append(train(code, name, table, precision, arguments.threads))
            walls = {way: statistics.median(one.wall for one in done) for way, done in found.items()}
            first = next(iter(walls.values()))
            for way, done in found.items():
                speed = f"{count / walls[way]:.0f}", f"{first / walls[way]:.2f}"
                rows.append((name, *way, *speed, f"{done[0].loss:.4f}", f"{done[0].auprc:.4f}"))
                print(*rows[-1], sep="\t", flush=True)
    write_table(arguments.out, COLUMNS, rows, notes)


if __name__ == "__main__":
    main()
