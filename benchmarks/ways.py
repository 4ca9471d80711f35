"""How many files and functions of seqray five runs pass, and how often they open their input.

    python benchmarks/ways.py --write benchmarks/results/ways.tsv

Each run is a process of its own with a tracer that sees every call, in all threads:

- *files* of ``src/seqray`` of which a function is called; what an import runs does not count;
- *functions*: those called, without lambdas, comprehensions and the bodies of modules and classes;
- *frame* of the network: frames of seqray on the stack, `main` and ``forward`` included, when a ``forward``
  of ``seqray/models`` is first called; 0 where none is;
- *opens* of the input by Python; a handle that is rewound is not opened again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = str(ROOT / "src" / "seqray") + os.sep
NETWORKS = PACKAGE + "models" + os.sep
IN_A_FUNCTION = 1  # CO_OPTIMIZED: a code object that is neither a module's nor a class's


@dataclass(frozen=True)
class Way:
    """What a run passes, in the order of the table."""

    files: int
    functions: int
    frame: int
    opens: int


# --- the runs: how the input is made, and the words of the command line ---------------------------------


def _letters(count: int, seed: int) -> str:
    return "".join(random.Random(seed).choices("ACGT", k=count))


def _records(folder: Path) -> Path:
    path = folder / "input.fa"
    path.write_text("".join(f">r{i}\n{_letters(81, i)}\n" for i in range(4)))
    return path


def _table(folder: Path) -> Path:
    path, parts = folder / "input.tsv", ("train", "validation", "test")
    rows = (f"r{i}\t{_letters(80, i)}\t{'ab'[i % 2]}\t{parts[i % 3]}" for i in range(120))
    path.write_text("\n".join(["id\tsequence\tlabel\tsplit", *rows, ""]))
    (folder / "tiny.yaml").write_text(
        "name: tiny\nmodel: {d_model: 16, heads: 2, layers: 1, d_ff: 16, max_length: 80}\nmembers: 1\n"
        "data: {window: 80, positive: a}\ntrainer: {max_epochs: 1}\n"
    )
    return path


def _rows(folder: Path) -> Path:
    path, one = folder / "input.sto", _letters(60, 0)
    rows = "".join(f"r{i} {one[:i]}{_letters(3, i)}{one[i + 3 :]}\n" for i in range(0, 24, 3))
    path.write_text(f"# STOCKHOLM 1.0\n#=GF AC RF00001\n{rows}//\n")
    return path


RUNS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "predict": (_records, "predict INPUT --model ecoli-promoter --out out.tsv"),
    "scan with a page": (
        lambda _: ROOT / "data" / "example" / "stretch.gb",
        "scan INPUT --model bacteria-genome --out out.gff3 --out out.tsv --html page.html",
    ),
    "train": (_table, "train --config tiny.yaml --train INPUT --threads 1 --out tiny.safetensors"),
    "explain of an alignment": (_rows, "explain INPUT --model rna-family-type --out o.tsv --html o.html"),
    "audit": (_table, "audit INPUT --out out.tsv"),
}

# --- one run, in a process of its own -------------------------------------------------------------------


def _is_counted(code: CodeType) -> bool:
    return code.co_filename.startswith(PACKAGE) and bool(code.co_flags & IN_A_FUNCTION)


def _stack(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _is_import(frame: FrameType) -> bool:
    path, name = frame.f_code.co_filename, frame.f_code.co_name
    return path.startswith(PACKAGE) and name == "<module>" and frame.f_globals["__name__"] != "__main__"


def _trace(place: Path, source: str, words: list[str]) -> None:
    """Run the command line, and write what it passed to a file."""
    seen: dict[int, CodeType] = {}  # by identity: a code object hashes all of its constants
    frames: list[int] = []
    opens: list[str] = []

    def watch(frame: FrameType, _: str, __: object) -> None:
        code = frame.f_code
        if id(code) in seen or not _is_counted(code) or any(map(_is_import, _stack(frame))):
            return
        seen[id(code)] = code
        if code.co_name == "forward" and code.co_filename.startswith(NETWORKS):
            frames.append(sum(_is_counted(f.f_code) for f in _stack(frame)))

    def hear(event: str, arguments: tuple[object, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str | bytes | os.PathLike):
            opens.append(os.path.realpath(os.fsdecode(arguments[0])))

    sys.argv = ["seqray", *words]
    sys.addaudithook(hear)
    # A tracer that returns nothing sees calls of Python functions only; a profiler also sees those of C.
    threading.settrace(watch)
    sys.settrace(watch)
    try:
        runpy.run_module("seqray", run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    sys.settrace(None)
    codes = [code for code in seen.values() if not code.co_name.startswith("<")]
    way = Way(len({c.co_filename for c in codes}), len(codes), next(iter(frames), 0), opens.count(source))
    names = sorted(f"{c.co_filename.removeprefix(PACKAGE)}:{c.co_firstlineno} {c.co_name}" for c in codes)
    place.write_text(json.dumps([asdict(way), names]))


def trace(run: str) -> tuple[Way, list[str]]:
    """Return what a run of `RUNS` passes, and the functions as ``file:line name``."""
    with tempfile.TemporaryDirectory() as folder:
        source = str(RUNS[run][0](Path(folder)).resolve())
        words = [source if word == "INPUT" else word for word in RUNS[run][1].split()]
        command = [sys.executable, str(Path(__file__).resolve()), "--one", "way.json", source, *words]
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
        if done.returncode:
            raise RuntimeError(f"seqray {' '.join(words)} failed:\n{done.stderr}")
        way, functions = json.loads((Path(folder) / "way.json").read_text())
    return Way(**way), functions


def measure(run: str) -> Way:
    """Return what a run of `RUNS` passes."""
    return trace(run)[0]


def main() -> None:
    """Trace the runs, print a row for each, and write them."""
    if sys.argv[1:2] == ["--one"]:
        _trace(Path(sys.argv[2]), sys.argv[3], sys.argv[4:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=RUNS, default=list(RUNS), metavar="RUN")
    parser.add_argument("--functions", action="store_true", help="print the functions, too")
    parser.add_argument("--write", type=Path, metavar="TSV", help="write the rows to this file")
    arguments = parser.parse_args()
    lines = ["\t".join(("run", *Way.__annotations__))]
    for run in arguments.only:
        way, functions = trace(run)
        lines.append("\t".join([run, *map(str, asdict(way).values())]))
        print(*(functions if arguments.functions else ()), lines[-1], sep="\n", flush=True)
    if arguments.write:
        arguments.write.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
