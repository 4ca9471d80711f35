"""Fuzz all targets in turn, and write what came out.

    make fuzz MINUTES=60 JOBS=2
    PYTHONPATH=tests:benchmarks python -m fuzz.campaign --minutes 60 --out benchmarks/results/fuzz.tsv

Every target gets its own process of atheris for the same time, in rounds, several targets at once. The
corpus stays in the folder, and so do the figures of earlier calls: a second call goes on. Ends with 1 if
there are findings: for each, an input (``.bin``) and where it failed (``.txt``), in the folder ``findings``.
"""

import argparse
import hashlib
import importlib
import json
import os
import pkgutil
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import asdict, dataclass
from io import StringIO
from itertools import cycle
from pathlib import Path
from typing import Any, NoReturn

from fuzz.mutation import mutate_json
from machine import describe

FILES = ("sequences", "alignments", "tables", "tracks", "settings", "models", "shards")
READERS = ("seqray.core", "seqray.io", "seqray.genome")  # beside what the targets import
COLUMNS = ("target", "executions", "cpu_seconds", "edges_seeds", "edges_half", "edges", "last_new_edge")
COLUMNS += ("corpus", "findings")
SECONDS = 60.0
"""Time that a target gets in a round, or less if there is no time for a round."""
MOST_BYTES = 65536


@dataclass(frozen=True)
class Slice:
    """What one process of atheris did on one target."""

    executions: int
    cpu_seconds: float
    curve: list[tuple[int, int]]  # after how many inputs how many edges had been reached, when it was more
    corpus: int  # inputs that reach them


def import_targets() -> dict[str, Any]:
    """Every target by its name; all readers are imported, also those that are imported only when used."""
    for package in map(importlib.import_module, READERS):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    modules = [importlib.import_module(f"fuzz.{file}") for file in FILES]
    return {target.name: target for module in modules for target in module.TARGETS}


def plant(target: Any, folder: Path) -> None:
    """Write the seeds of a target, and the words for the mutator."""
    corpus = folder / "corpus" / target.name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.seeds():
        (corpus / f"seed-{hashlib.sha256(seed).hexdigest()[:16]}").write_bytes(seed)
    words = ("".join(f"\\x{byte:02x}" for byte in word) for word in (*target.tokens, b"0"))
    (folder / f"{target.name}.dict").write_text("".join(f'"{word}"\n' for word in words))


def start(atheris: Any, target: Any, folder: Path, seconds: float) -> int:
    """Fuzz one target in a process of its own, which shares what was imported; gives its number."""
    process = os.fork()
    if not process:
        _fuzz_here(atheris, target, folder, seconds)
    return process


def wait(running: dict[int, str], folder: Path) -> tuple[str, Slice]:
    """Wait for the process that ends first, no longer among those that run; its target and what it did."""
    process, status, usage = os.wait4(-1, 0)
    name = running.pop(process)
    text = (folder / f"{name}.log").read_text(errors="replace")
    if code := os.waitstatus_to_exitcode(status):
        died = folder / "findings" / f"{name}-process.txt"
        died.write_text(f"the process ended with {code}\n\n{text[-4000:]}")
    return name, parse_log(text, usage.ru_utime + usage.ru_stime)


def _fuzz_here(atheris: Any, target: Any, folder: Path, seconds: float) -> NoReturn:
    """Fuzz until libFuzzer ends the process; each new finding is two files in the folder ``findings``."""
    from fuzz.target import examine

    handle = os.open(folder / f"{target.name}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    path = folder / "work" / target.name / f"input{target.suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)

    def one(data: bytes) -> None:
        finding = examine(target, data, path)
        if finding is None:
            return
        base = folder / "findings" / f"{target.name}-{finding.signature}"
        if not base.with_suffix(".txt").exists():
            base.with_suffix(".bin").write_bytes(data)
            base.with_suffix(".txt").write_text(f"{finding.what}\n\n{finding.trace}", errors="replace")

    def mutate(data: bytes, limit: int, seed: int) -> bytes:
        return mutate_json(data, seed, limit) if seed % 8 else atheris.Mutate(data, limit)

    words = [target.name, "-rss_limit_mb=4096", f"-max_len={MOST_BYTES}", "-len_control=20"]
    words += ["-timeout=300", "-report_slow_units=300"]  # of the clock; `examine` counts processor time
    words += [f"-max_total_time={max(1, round(seconds))}", f"-dict={folder / target.name}.dict"]
    words += [f"-artifact_prefix={folder}/findings/{target.name}-", str(folder / "corpus" / target.name)]
    atheris.Setup(words, one, **({"custom_mutator": mutate} if target.is_json else {}))
    atheris.Fuzz()
    os._exit(0)


def parse_log(text: str, cpu_seconds: float) -> Slice:
    """What libFuzzer says: ``#1234  DONE   cov: 56 ft: 78 corp: 9/10b ...``."""
    found = re.findall(r"^#(\d+)\s.*?cov: (\d+) .*?corp: (\d+)/", text, flags=re.MULTILINE)
    lines = [tuple(map(int, one)) for one in found] or [(0, 0, 0)]
    curve: list[tuple[int, int]] = []
    for executions, edges, _ in lines:
        if not curve or edges > curve[-1][1]:
            curve.append((executions, edges))
    return Slice(lines[-1][0], round(cpu_seconds, 1), curve, lines[-1][2])


def row(done: Sequence[Slice], findings: int) -> tuple[int, ...]:
    """The figures of a target in the order of `COLUMNS`, of its slices in their order."""
    before, curve = 0, [done[0].curve[0]]
    for one in done:
        curve += [(before + executions, edges) for executions, edges in one.curve if edges > curve[-1][1]]
        before += one.executions
    half = max(edges for executions, edges in curve if executions <= max(before / 2, curve[0][0]))
    cpu = round(sum(one.cpu_seconds for one in done))
    return before, cpu, curve[0][1], half, curve[-1][1], curve[-1][0], done[-1].corpus, findings


def table(slices: dict[str, list[Slice]], folder: Path) -> Iterator[tuple[object, ...]]:
    """A line for each target, and one for all; ``last_new_edge`` is the number of an input."""
    made = []
    for name, done in slices.items():
        found = {path.stem for path in (folder / "findings").glob(f"{name}-*")}
        made.append(row(done, len(found)))
        yield name, *made[-1]
    yield "all", *map(sum, zip(*made, strict=True))


def write_table(path: Path, slices: dict[str, list[Slice]], folder: Path) -> None:
    """Write the figures, with what they depend on."""
    _, *machine = describe([])
    command = f"command: python -m fuzz.campaign {' '.join(sys.argv[1:])}"
    lines = [f"# {line}" for line in (command, *machine, "sums over all calls on the folder")]
    lines += ["\t".join(COLUMNS), *("\t".join(map(str, cells)) for cells in table(slices, folder))]
    path.write_text("\n".join(lines) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Fuzz for some minutes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10, help="for all targets together (default: 10)")
    parser.add_argument("--folder", type=Path, default=Path(".fuzz"), help="corpus, logs and findings")
    parser.add_argument("--out", type=Path, help="table of figures to write")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once (default: 1)")
    parser.add_argument("--target", action="append", help="only this one; may be repeated")
    args = parser.parse_args(argv)
    folder = args.folder.resolve()
    (folder / "findings").mkdir(parents=True, exist_ok=True)
    atheris: Any = importlib.import_module("atheris")  # which only `make fuzz` installs
    with redirect_stderr(StringIO()), atheris.instrument_imports(include=["seqray"]):
        known = import_targets()
    chosen = [known[name] for name in args.target or known]
    for target in chosen:
        plant(target, folder)
    state, slices = folder / "figures.json", dict[str, list[Slice]]()
    if state.exists():
        slices = {
            name: [Slice(**one) for one in done] for name, done in json.loads(state.read_text()).items()
        }
    for name, done in _campaign(atheris, chosen, folder, args.minutes, args.jobs):
        slices.setdefault(name, []).append(done)
        state.write_text(json.dumps({name: [asdict(one) for one in ones] for name, ones in slices.items()}))
        print(f"{name}: {done.executions} inputs, {done.curve[-1][1]} edges", flush=True)
        if args.out:
            write_table(args.out, slices, folder)
    print(*("\t".join(map(str, cells)) for cells in (COLUMNS, *table(slices, folder))), sep="\n")
    findings = sorted(path.name for path in (folder / "findings").iterdir())
    print(f"{len(findings)} files in {folder / 'findings'}")
    return int(bool(findings))


def _campaign(
    atheris: Any, chosen: Sequence[Any], folder: Path, minutes: float, jobs: int
) -> Iterator[tuple[str, Slice]]:
    """Fuzz all targets, again and again while there is time, and at least once; yield what each did."""
    seconds = min(SECONDS, 60 * minutes * jobs / len(chosen))
    running, end = dict[int, str](), time.monotonic() + 60 * minutes
    for number, target in enumerate(cycle(chosen)):
        if number >= len(chosen) and time.monotonic() > end:
            break
        while len(running) == jobs or target.name in running.values():
            yield wait(running, folder)
        running[start(atheris, target, folder, seconds)] = target.name
    while running:
        yield wait(running, folder)


if __name__ == "__main__":
    sys.exit(main())
