"""Axial attention: time and memory of a column and a row step, beside other ways to attend over an alignment.

    python benchmarks/axial.py --threads 2          # all shapes
    python benchmarks/axial.py --threads 2 --quick  # some of them, within minutes

One alignment of R rows and C columns, width 64, four heads, float32, no gradients, random weights; each
method makes its own projections, so each does a column step and a row step from (1, R, C, 64) to the same:

- full: one attention over all R·C cells, by torch's fused kernel, as far as ``--full`` cells;
- seqray tied, seqray untied: `seqray.models.axial`, as ``seqray predict`` runs it;
- fair-esm: ColumnSelfAttention and RowSelfAttention (tied), as the MSA Transformer has them;
- axial-attention: AxialAttention of that package (untied), one axis after the other; it is no dependency of
  anything here: ``pip install axial-attention==0.6.1``.

Each measurement is a process of its own, in which the C library keeps freed memory, as in ``seqray predict``.
Methods take turns on a shape, and rounds go over all shapes again. Seconds are medians over all calls, of
wall and of CPU time; a busy machine disturbs the latter less. Memory is the largest resident size during the
calls over that before them: the output counts, the input doesn't.
``by_rows`` and ``by_columns`` are the exponents of seconds ~ R^a C^b, ``by_cells`` that of memory ~ (R·C)^c,
by least squares over the shapes of at least 4096 cells.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np

from machine import describe, script_parser, write_and_show

WIDTH, HEADS = 64, 4
METHODS = ("full", "seqray tied", "seqray untied", "fair-esm", "axial-attention")
ROWS, COLUMNS = (16, 32, 64, 128, 256, 512), (64, 128, 256, 512, 1024)
HEADER = ("method", "rows", "columns", "wall_s", "cpu_s", "peak_mb")
HEADER += ("times_faster_than_full", "times_faster_than_fair_esm", "memory_of_fair_esm")
QUICK = ((16, 256), (32, 512), (64, 64), (64, 256), (128, 512))
MIN_FIT_CELLS = 4096  # cells; below, fixed costs bend the line


@dataclass(frozen=True)
class Row:
    """One method on one shape: medians, and the largest memory seen."""

    method: str
    rows: int
    columns: int
    wall: float
    cpu: float
    peak_mb: float


# --- the measured process --------------------------------------------------------------------------------


def make(method: str) -> Callable:
    """Return the method as a function of (1, R, C, D)."""
    import torch
    from esm.axial_attention import ColumnSelfAttention, RowSelfAttention

    from seqray.models.attention import MultiHeadAttention
    from seqray.models.axial import ColumnAttention, RowAttention

    torch.manual_seed(0)
    if method == "full":
        full = MultiHeadAttention(WIDTH, HEADS)
        return lambda x: full(x.flatten(1, 2))[0]
    if method.startswith("seqray"):
        column, row = ColumnAttention(WIDTH, HEADS), RowAttention(WIDTH, HEADS, method.endswith(" tied"))
        return lambda x: row(column(x)[0])[0]
    if method == "fair-esm":
        theirs = ColumnSelfAttention(WIDTH, HEADS).eval(), RowSelfAttention(WIDTH, HEADS).eval()
        return lambda x: theirs[1](theirs[0](x.permute(1, 2, 0, 3))[0])[0]
    package = import_module("axial_attention")
    return package.AxialAttention(WIDTH, 2, HEADS, dim_index=3, sum_axial_out=False).eval()


def resident_kb(key: str) -> int:
    """Return VmRSS or VmHWM of this process; where the system has no /proc, its largest size so far."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(key))


def measure_here(method: str, rows: int, columns: int, calls: int, threads: int) -> None:
    """Measure one method on one shape and print what was found."""
    import torch

    from seqray.models.attention import keep_freed_memory

    torch.set_num_threads(threads)
    keep_freed_memory()
    work, x = make(method), torch.randn(1, rows, columns, WIDTH)
    found: dict = {"wall": [], "cpu": []}
    with torch.inference_mode():
        work(torch.randn(1, 4, 8, WIDTH))  # libraries set themselves up
        before = resident_kb("VmRSS")
        clear = Path("/proc/self/clear_refs")
        if clear.exists():
            clear.write_text("5")  # the largest size starts anew, see proc(5)
        for _ in range(calls + 1):
            start, cpu = time.perf_counter(), time.process_time()
            work(x)
            found["wall"].append(time.perf_counter() - start)
            found["cpu"].append(time.process_time() - cpu)
    found["peak_mb"] = (resident_kb("VmHWM") - before) * 1024 / 1e6
    print(json.dumps({**found, "wall": found["wall"][1:], "cpu": found["cpu"][1:]}))


# --- the table -------------------------------------------------------------------------------------------


def ask(method: str, shape: tuple[int, int], calls: int, threads: int) -> dict:
    """Run one measurement in a process of its own."""
    arguments = [method, *map(str, (*shape, calls, threads))]
    command = [sys.executable, __file__, "--one", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def measure(arguments: argparse.Namespace) -> list[Row]:
    """Go over all shapes and methods, in rounds."""
    shapes = QUICK if arguments.quick else [(r, c) for r in ROWS for c in COLUMNS]
    found: dict[tuple[str, int, int], list[dict]] = {}
    for _ in range(arguments.rounds):
        for shape in shapes:
            for method in arguments.methods:
                cells = math.prod(shape)
                if method != "full" or cells <= arguments.full:
                    calls = 1 if method == "full" and cells > MIN_FIT_CELLS else arguments.calls
                    found.setdefault((method, *shape), []).append(
                        ask(method, shape, calls, arguments.threads)
                    )
    return [
        Row(
            *key,
            statistics.median(second for one in runs for second in one["wall"]),
            statistics.median(second for one in runs for second in one["cpu"]),
            max(one["peak_mb"] for one in runs),
        )
        for key, runs in found.items()
    ]


def exponents(rows: list[Row]) -> str:
    """Fit seconds ~ R^a C^b and memory ~ (R·C)^c."""
    rows = [row for row in rows if row.rows * row.columns >= MIN_FIT_CELLS]
    logs = np.log([[row.rows, row.columns] for row in rows])
    if len(rows) < 3 or np.linalg.matrix_rank(logs - logs.mean(axis=0)) < 2:
        return "too few shapes for exponents"
    design = np.column_stack([logs, np.ones(len(rows))])
    by_rows, by_columns, _ = np.linalg.lstsq(design, np.log([row.cpu for row in rows]), rcond=None)[0]
    by_cells, _ = np.polyfit(logs.sum(axis=1), np.log([row.peak_mb for row in rows]), 1)
    return f"by_rows {by_rows:.2f}, by_columns {by_columns:.2f}, by_cells {by_cells:.2f}"


def cells(rows: list[Row]) -> Iterator[list[object]]:
    """Lay the rows out, with how they compare to fair-esm and to full attention."""
    at = {(row.method, row.rows, row.columns): row for row in rows}
    for row in sorted(rows, key=lambda r: (r.rows, r.columns, METHODS.index(r.method))):
        shape = row.rows, row.columns
        full, esm = at.get(("full", *shape)), at["fair-esm", *shape]
        ratio = [f"{full.cpu / row.cpu:.1f}" if full else "", f"{esm.cpu / row.cpu:.2f}"]
        ratio.append(f"{row.peak_mb / esm.peak_mb:.2f}")
        figures = [f"{value:.4g}" for value in (row.wall, row.cpu, row.peak_mb)]
        yield [row.method, *shape, *figures, *ratio]


def main() -> None:
    """Measure and write the table."""
    parser = script_parser(__doc__, "axial.tsv")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3, help="turns over all shapes (1 with --quick)")
    parser.add_argument("--calls", type=int, default=5, help="calls a measurement")
    parser.add_argument("--full", type=int, default=1 << 16, help="most cells of full attention")
    parser.add_argument("--quick", action="store_true", help="few shapes, one round, full to 16384 cells")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS, help="fair-esm among them")
    parser.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        method, *numbers = arguments.one
        measure_here(method, *map(int, numbers))
        return
    if arguments.quick:
        arguments.rounds, arguments.full = 1, min(arguments.full, 1 << 14)
    rows = measure(arguments)
    others = ", ".join(f"{name} {version(name)}" for name in METHODS[-2:] if name in arguments.methods)
    notes = [
        *describe(["axial.py", *sys.argv[1:]]),
        f"beside: {others}",
        f"threads: {arguments.threads}; medians of {arguments.rounds} rounds of {arguments.calls} calls; "
        "ratios and exponents of time are those of cpu_s",
        *(f"{m}: {exponents([row for row in rows if row.method == m])}" for m in METHODS),
    ]
    write_and_show(arguments.out, HEADER, cells(rows), notes)


if __name__ == "__main__":
    main()
