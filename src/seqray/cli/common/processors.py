"""How many threads a run takes, how threads without work wait, and limits under which none can work."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

from seqray.core import ConfigError, InputError

MIN_ADDRESS_SPACE = 600_000_000  # bytes; PyTorch for CPUs is loaded from 560 MB on
SLEEP = {
    "OMP_WAIT_POLICY": "passive",  # GNU's OpenMP, of torch's wheels for Linux, reads it
    "KMP_BLOCKTIME": "0",  # LLVM's and Intel's, of torch for macOS and of conda
}
KERNELS = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16384")
_SPIN = (*SLEEP, "GOMP_SPINCOUNT")
_COUNT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def let_waiting_threads_sleep() -> None:
    """Make OpenMP's threads sleep while they wait, not spin; what the user has set stays.

    A thread that spins takes the processor from another program, whose work this program then waits for. The
    runtime reads the policy when torch is loaded, so call this before.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in _SPIN):
        os.environ.update(SLEEP)


def keep_kernels() -> None:
    """Let oneDNN keep the kernels of more shapes than its 1,024; call this before torch is loaded.

    Batches of sequences of different lengths have more, and each kernel would be made anew.
    """
    os.environ.setdefault(*KERNELS)


def check_address_space() -> None:
    """Refuse a limit of the address space (``ulimit -v``) under which libraries abort while they are loaded.

    Raises `InputError`; the limit of the system is asked, nothing is tried.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if 0 <= limit < MIN_ADDRESS_SPACE:
        raise InputError(
            f"the address space is limited to {limit // 1_000_000} MB (ulimit -v)",
            remedy=f"allow {MIN_ADDRESS_SPACE // 1_000_000} MB or more",
        )


def use_threads(asked: int | None) -> int:
    """Compute with that many threads; return their number.

    Where no number is asked for, take those of ``OMP_NUM_THREADS``, else torch's default, but no more than
    `free_processors`. Raises `ConfigError` if so many can't be started.
    """
    import torch

    count = asked or torch.get_num_threads()
    if not asked and not any(os.environ.get(name) for name in _COUNT):
        count = min(count, free_processors())
    _try_threads(count)
    torch.set_num_threads(count)
    return count


def _try_threads(count: int) -> None:
    """Start so many threads and end them: OpenMP ends the process where one of its own can't start."""
    from threading import Event, Thread

    done, started = Event(), list[Thread]()
    try:
        for _ in range(count - 1):
            thread = Thread(target=done.wait)
            thread.start()
            started.append(thread)
    except RuntimeError:
        remedy = "give a smaller --threads or OMP_NUM_THREADS, or raise the limits (ulimit -u, -v)"
        raise ConfigError(f"can't start {count} threads", remedy=remedy) from None
    finally:
        done.set()
        for thread in started:
            thread.join()


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
