"""How many processor threads a run takes, and how threads without work wait."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

SLEEP = {
    "OMP_WAIT_POLICY": "passive",  # GNU's OpenMP, of torch's wheels for Linux, reads it
    "KMP_BLOCKTIME": "0",  # LLVM's and Intel's, of torch for macOS and of conda
}
_SPIN = (*SLEEP, "GOMP_SPINCOUNT")
_COUNT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def let_waiting_threads_sleep() -> None:
    """Make OpenMP's threads sleep while they wait, not spin; what the user has set stays.

    A thread that spins takes the processor from another program, whose work this program then waits for. The
    runtime reads the policy when torch is loaded, so call this before.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in _SPIN):
        os.environ.update(SLEEP)


def use_threads(asked: int | None) -> int:
    """Compute with that many threads; return their number.

    Where no number is asked for, take those of ``OMP_NUM_THREADS``, else torch's default, but no more than
    `free_processors`.
    """
    import torch

    default = torch.get_num_threads()
    if not any(os.environ.get(name) for name in _COUNT):
        default = min(default, free_processors())
    torch.set_num_threads(asked or default)
    return asked or default


def count_threads(asked: int | None) -> int:
    """Return the number of threads of a run that does not load torch, by the same rule."""
    named = (os.environ.get(name, "").split(",")[0].strip() for name in _COUNT)
    return asked or next((int(n) for n in named if n.isdecimal() and int(n)), free_processors())


def has_gpu_device(root: Path = Path("/")) -> bool:
    """Whether the machine may have a GPU that torch can use; found without torch, by its device files."""
    devices = root / "dev"  # NVIDIA's, AMD's and those of WSL
    return any(devices.glob("nvidia*")) or (devices / "kfd").exists() or (devices / "dxg").exists()


def free_processors(root: Path = Path("/")) -> int:
    """Number of processors that this process may use: its affinity, and the CPU quota of its cgroups.

    A quota is rounded down, because threads beyond it are paused together with the others.
    """
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, int(min([own, *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """CPU quotas, in processors, of the cgroups of this process and of those that hold them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        mount = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        inner = mount / path.strip("/")
        for folder in (inner, *inner.parents):  # inside a container some of them can't be seen
            if not folder.is_relative_to(mount):
                break
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us") if controllers else ("cpu.max",)
            words = " ".join(_text(folder / name) for name in files).split()  # quota and period
            if len(words) == 2 and all(map(str.isdigit, words)) and int(words[1]):
                yield int(words[0]) / int(words[1])


def _text(path: Path) -> str:
    """What a file holds; nothing where it can't be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
