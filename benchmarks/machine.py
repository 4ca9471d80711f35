"""What a benchmark's figures depend on: versions, commit, processor; and the cost of a command."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


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
    """Return the lines that head a results file; of paths only the last part is told."""
    packages = ", ".join(f"{name} {version(name)}" for name in ("seqray", "torch", "numpy", "scikit-learn"))
    shown = " ".join(part if part.startswith("-") else Path(part).name for part in command)
    return [
        f"command: python benchmarks/{shown}",
        f"versions: {packages}, Python {platform.python_version()}, commit {commit()}",
        f"machine: {processor()}, {cores()} cores, {platform.system()}",
    ]
