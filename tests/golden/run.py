"""Golden outputs: run a fixed set of commands with two versions of the source, and compare byte for byte.

The folders of two versions are made on one machine, by the commands and inputs of one checkout::

    git worktree add ../before COMMIT
    python tests/golden/run.py make ../golden-before --source ../before/src
    python tests/golden/run.py make ../golden-after
    python tests/golden/run.py compare ../golden-before ../golden-after

``make`` writes the inputs, and a folder for each command with its outputs and the files stdout, stderr and
status; ``--only 'train-*'`` runs some of them again. ``compare`` prints a line for each command, and exits
with 1 if something differs that `EXCEPTIONS` does not name. `commands` reads the table `commands.txt`,
`inputs` makes what they read, `verbs` calls the functions of ``import seqray``, and `contents` says how files
are read, and what is left out. Nothing here needs more than the command line and the public names of seqray.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from pkgutil import walk_packages

from contents import lines_of
from goldens import Command, commands
from inputs import make_inputs

SOURCE = Path(__file__).resolve().parents[2] / "src"
STREAMS = ("stdout", "stderr")
LIBRARIES = ("torch", "pandas", "jinja2", "scipy.stats", "sklearn.linear_model", "lightning.pytorch")
# Differences that are meant: patterns of the command and of the file, and the reason.
EXCEPTIONS: tuple[tuple[str, str, str], ...] = (
    ("explain-alignments", "e.html", "the map and the list of pairs of columns are gone with --pairs"),
    ("help-train", "stdout", "--budget is gone"),
    ("export", "m.onnx", "settings without a use are gone from cards"),
    ("scan-*shard-*", "c.shard", "settings without a use are gone from cards"),
    *(
        (f"error-{name}", "stdout", "an input whose first records are refused leaves no header")
        for name in ("empty", "fastq", "genbank", "length", "protein", "ragged")
    ),
    ("help-explain", "stdout", "--pairs and its options are gone"),
)


def make(folder: Path, source: Path, only: str) -> int:
    """Run the commands in a process that knows the source alone."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEQRAY", "PYTHON"))}
    settings = {"PYTHONPATH": str(source.resolve()), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    settings |= {
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "80",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "HF_HUB_OFFLINE": "1",
    }
    words = [sys.executable, __file__, "work", str(folder.resolve()), "--only", only]
    return subprocess.run(words, env=kept | settings, stdin=subprocess.DEVNULL).returncode


def work(folder: Path, only: str) -> int:
    """Load the libraries and seqray once, and run each command in a fork."""
    if only == "*":
        shutil.rmtree(folder / "inputs", ignore_errors=True)
    if not (folder / "inputs").exists():
        in_fork(lambda: make_inputs(folder / "inputs"))
    for name in LIBRARIES:
        import_module(name)
    for module in walk_packages(import_module("seqray").__path__, "seqray."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    began = time.monotonic()
    for command in commands():
        if fnmatch(command.name, only) and not lacks(command, folder):
            started = time.monotonic()
            status = run(command, folder / command.name)
            print(f"{command.name:22} status {status:3} {time.monotonic() - started:6.1f} s", flush=True)
    print(f"seqray of {import_module('seqray').__file__}: {time.monotonic() - began:.0f} s")
    return 0


def lacks(command: Command, folder: Path) -> bool:
    """Whether an optional library that a command needs is not installed."""
    engine = {"onnx": "onnxruntime", "openvino": "openvino"}
    needed = [package for word, package in engine.items() if word in command.words]
    without = "backbone" in command.name and not (folder / "inputs" / "backbone").exists()
    return without or any(find_spec(package) is None for package in needed)


def run(command: Command, folder: Path) -> int:
    """Run a command in its folder, emptied before; gives the exit status, which is kept there, too."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()

    def act() -> int | None:
        os.chdir(folder)
        os.dup2(os.open(command.stdin or os.devnull, os.O_RDONLY), 0)
        for number, name in enumerate(STREAMS, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
        if command.name.startswith("python-"):
            return getattr(import_module("verbs"), command.words[0])()
        if command.name.startswith("process-"):
            os.execv(sys.executable, [sys.executable, "-m", "seqray", *command.words])
        sys.argv = ["seqray", *command.words]
        main = import_module("seqray.cli").main  # of version 0.2 a function, then a module
        return getattr(main, "main", main)(list(command.words))

    status = in_fork(act)
    (folder / "status").write_text(f"{status}\n")
    return status


def in_fork(act: Callable[[], int | None]) -> int:
    """Call a function in a fork, and give the exit status."""
    sys.stdout.flush()
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    status = 1
    try:
        status = act() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(status)


def compare(old: Path, new: Path) -> int:
    """Print what differs, a line for each command; gives 1 if that was not meant."""
    counts = dict.fromkeys(("same", "differs", "meant", "not run"), 0)
    for name in ("inputs", *(command.name for command in commands())):
        differences = differing(old / name, new / name)
        reasons = [reason_of(name, file) for file in differences]
        state = "same" if not differences else "meant" if all(reasons) else "differs"
        if not (old / name).exists() and not (new / name).exists():
            state = "not run"
        counts[state] += 1
        print(f"{name:22} {state}")
        for (file, told), reason in zip(differences.items(), reasons, strict=True):
            print(f"    {file}: {told}" + (f" (meant: {reason})" if reason else ""))
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    return int(counts["differs"] > 0)


def reason_of(name: str, file: str) -> str:
    """Why a file of a command is meant to differ; empty if it is not."""
    return next((why for one, other, why in EXCEPTIONS if fnmatch(name, one) and fnmatch(file, other)), "")


def differing(old: Path, new: Path) -> dict[str, str]:
    """The files of a command that differ, and how."""
    files = {
        path.relative_to(root).as_posix() for root in (old, new) for path in root.rglob("*") if path.is_file()
    }
    return {file: told for file in sorted(files) if (told := difference(file, old, new))}


def difference(file: str, old: Path, new: Path) -> str:
    """How a file differs: its first differing line; empty if it does not."""
    if missing := [root for root in (old, new) if not (root / file).exists()]:
        return f"not in {missing[0].parent}"
    if (old / file).read_bytes() == (new / file).read_bytes():
        return ""
    before, after = (lines_of(root.resolve() / file, root.parent.resolve()) for root in (old, new))
    for number, (a, b) in enumerate(zip_longest(before, after, fillvalue="(end)"), 1):
        if a != b:
            same = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), 0)
            start = max(0, same - 40)
            return f"line {number}\n      - {a[start : start + 150]}\n      + {b[start : start + 150]}"
    return ""


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Golden outputs of seqray.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("make", "work"):
        one = verbs.add_parser(verb)
        one.add_argument("folder", type=Path)
        one.add_argument(
            "--source", type=Path, default=SOURCE, help="folder src of the version (default: this one)"
        )
        one.add_argument("--only", default="*", help="pattern of names of commands (default: all)")
    other = verbs.add_parser("compare")
    other.add_argument("old", type=Path)
    other.add_argument("new", type=Path)
    given = parser.parse_args()
    if given.verb == "compare":
        return compare(given.old, given.new)
    if given.verb == "work":
        return work(given.folder, given.only)
    return make(given.folder, given.source, given.only)


if __name__ == "__main__":
    sys.exit(main())
