"""Run the commands that the pages show, and write what they print below them.

    python docs/rerun.py

A block marked ``console run`` holds commands behind ``$`` and their standard output. All commands of a
block run in one folder that holds nothing but the project's ``data`` and ``configs``. ``tests/test_docs.py``
runs the same and compares.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import subprocess
import sys
import tempfile
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from itertools import zip_longest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for pattern in (
        "*.md",
        "docs/**/*.md",
        "workflows/**/*.md",
        "data/*.md",
        "packaging/*.md",
        "benchmarks/*.md",
    )
    for page in ROOT.glob(pattern)
)
SESSION = re.compile(r"(?<=^```console run\n)(.*?)(?=^```$)", flags=re.MULTILINE | re.DOTALL)


def sessions(text: str) -> list[list[tuple[str, str]]]:
    """Find the commands of each ``console run`` block, and the output shown below each."""
    return [commands(block[1]) for block in SESSION.finditer(text)]


def commands(block: str) -> list[tuple[str, str]]:
    """Take one block apart."""
    parts = (part.partition("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:])
    return [(command, output) for command, _, output in parts]


def run(command: str, folder: Path, commands: Path = Path(sys.executable).parent) -> str:
    """Run a command in a folder and return its standard output. ``seqray`` is that of the folder of commands.

    Raises
    ------
    RuntimeError
        With what it said, where it failed.
    """
    for name in ("data", "configs"):
        if not (folder / name).exists():
            (folder / name).symlink_to(ROOT / name)
    path = os.pathsep.join([str(commands), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"$ {command}\n{done.stderr}")
    return done.stdout


def same(printed: str, shown: str) -> bool:
    """Compare word by word; numbers within a thousandth, since their last digits depend on the processor."""

    def close(a: str, b: str) -> bool:
        with contextlib.suppress(ValueError):
            return math.isclose(float(a), float(b), rel_tol=1e-3, abs_tol=1e-3)
        return a == b

    pairs = zip_longest(printed.splitlines(), shown.splitlines(), fillvalue="")
    lines = [(a.split(), b.split()) for a, b in pairs]
    return all(len(a) == len(b) and all(map(close, a, b)) for a, b in lines)


def rerun(text: str) -> str:
    """Return a page with the outputs of its commands written anew."""

    def block(found: re.Match[str]) -> str:
        with tempfile.TemporaryDirectory() as folder:
            runs = [(command, run(command, Path(folder))) for command, _ in commands(found[1])]
        return "".join(f"$ {command}\n{output}" for command, output in runs)

    return SESSION.sub(block, text)


def main() -> None:
    for name in PAGES:
        page = ROOT / name
        before = page.read_text(encoding="utf-8")
        after = rerun(before)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    ArgumentParser(description=__doc__, formatter_class=RawDescriptionHelpFormatter).parse_args()
    main()
