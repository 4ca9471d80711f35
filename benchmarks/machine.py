"""What benchmarks share: what figures depend on, what a command or a function costs, tables, ``--data``."""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from seqray.core.version import __version__
from seqray.io.tables import write_table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
Key = TypeVar("Key", bound=Hashable)

# --- cost ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall and CPU seconds of a command, and its largest resident memory in MB (10**6 bytes)."""

    wall: float
    cpu: float
    peak_mb: float


def run(command: Sequence[str]) -> Cost:
    """Run a command to its end and measure it.

    Raises
    ------
    subprocess.CalledProcessError
        It failed.

    Notes
    -----
    Linux counts what the parent held before the child's program began, so call this from a process that is
    smaller than the command.
    """
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    unit = 1 if platform.system() == "Darwin" else 1024
    return Cost(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6)


def take_turns(
    turns: Mapping[Key, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] = time.process_time,
) -> dict[Key, list[float]]:
    """Let several works take turns, in another order each round, after one call of each that is not counted.

    Parameters
    ----------
    turns
        Works by name.
    rounds
        How often each is called.
    clock
        Seconds: of the processor, all threads together, which other programs change little; or
        `time.perf_counter`.

    Returns
    -------
    dict
        Seconds of each work in each round.
    """
    for work in turns.values():
        work()
    seconds: dict[Key, list[float]] = {key: [] for key in turns}
    order, shuffle = list(turns), random.Random(0)
    for _ in range(rounds):
        shuffle.shuffle(order)
        for key in order:
            start = clock()
            turns[key]()
            seconds[key].append(clock() - start)
    return seconds


# --- what figures depend on ------------------------------------------------------------------------------


def commit() -> str:
    """Return the short commit of the checkout, with ``+changes`` where files differ, or ``unknown``."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(ROOT), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        return git("rev-parse", "--short", "HEAD") + ("+changes" if git("status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def processor() -> str:
    """Return the name of the CPU."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(command: Sequence[str]) -> list[str]:
    """Return the lines that head a results file; paths are shortened to the file name."""
    used = {"seqray": __version__, **{name: version(name) for name in ("torch", "numpy", "scikit-learn")}}
    packages = ", ".join(f"{name} {number}" for name, number in used.items())
    shown = " ".join(part if part.startswith("-") else Path(part).name for part in command)
    return [
        f"command: python benchmarks/{shown}",
        f"versions: {packages}, Python {platform.python_version()}, commit {commit()}",
        f"machine: {processor()}, {cores()} cores, {platform.system()}",
    ]


# --- the command line and tables -------------------------------------------------------------------------


def script_parser(doc: str | None, table: str = "") -> argparse.ArgumentParser:
    """Return a parser with the docstring of a script as help, and ``--out`` for its table in ``results/``."""
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=doc, formatter_class=form)
    if table:
        parser.add_argument("--out", type=Path, default=RESULTS / table, help=f"default: results/{table}")
    return parser


def add_data(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the option ``--data``.

    Parameters
    ----------
    parser
        Of the script.
    required
        Whether the script can do nothing without the folder.
    """
    folder = os.environ.get("SEQRAY_DATA") or None
    about = "folder of the public files (default: $SEQRAY_DATA)"
    needed = required and folder is None
    parser.add_argument("--data", type=Path, default=folder, required=needed, help=about)


def read_table(path: str | Path) -> list[dict[str, str]]:
    """Read the rows of a TSV, compressed or not, as column to cell; ``#`` begins a comment."""
    opener = gzip.open if Path(path).suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="") as handle:
        return list(csv.DictReader((line for line in handle if line[0] != "#"), delimiter="\t"))


def add_row(path: Path, columns: Sequence[str], row: Sequence[object]) -> None:
    """Add a row to a table, whose comments say for all rows below them what their figures depend on."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    notes = [f"# {line}" for line in describe(sys.argv)]
    known = [line for line in text.splitlines() if line.startswith("#")][-len(notes) :]
    head = [] if known == notes else notes
    with open(path, "a", encoding="utf-8") as handle:
        lines = [*head, *([] if text else ["\t".join(columns)]), "\t".join(map(str, row))]
        handle.write("\n".join(lines) + "\n")


def keep_rows(
    path: str | Path, column: str, measured: Iterable[str]
) -> tuple[list[str], list[dict[str, str]]]:
    """Read what stays of a table where some rows are measured anew: its comment lines, and its other rows.

    Parameters
    ----------
    path
        Of the table; one that does not exist holds nothing.
    column, measured
        Rows with one of these cells in the column are left out.
    """
    if not Path(path).exists():
        return [], []
    measured = set(measured)
    lines = [line[2:] for line in Path(path).read_text(encoding="utf-8").splitlines() if line[0] == "#"]
    notes = [f"rows kept: {line.removeprefix('rows kept: ')}" for line in lines]
    return notes, [row for row in read_table(path) if row[column] not in measured]


def with_decimals(cells: Iterable[object], digits: int = 4) -> list[object]:
    """Return the cells of a row with floats as text of so many decimals."""
    return [f"{cell:.{digits}f}" if isinstance(cell, float) else cell for cell in cells]


def write_and_show(
    path: str | Path, columns: Sequence[str], rows: Iterable[Sequence[object]], notes: Sequence[str]
) -> None:
    """Write a table as `seqray.io.tables.write_table` does, and print it, too."""
    rows = list(rows)
    for place in (path, "-"):
        write_table(place, columns, rows, notes)
