"""Batches computed at the same time, each in one thread.

Kernels divide their sums among threads, and the last digits follow from how. A batch that one thread computes
has the same bits however many batches are computed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import torch

    from seqray.inference.predictions import Dtype

Part = TypeVar("Part")
Result = TypeVar("Result")


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Let torch compute in one thread, on the CPU."""
    import torch

    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def map_batches(
    compute: Callable[[Part], Result], parts: Sequence[Part], device: torch.device
) -> list[Result]:
    """Results of all parts, in their order; on the CPU, as many at a time as torch has threads.

    Parameters
    ----------
    compute
        Called for each part, in any thread. It enters what it needs of torch itself, such as
        `seqray.inference.compute_precision`.
    parts
        Of the work.
    device
        Where it is computed.
    """
    import torch

    workers = torch.get_num_threads() if device.type == "cpu" else 1
    with one_thread(device):
        return map_threads(compute, parts, workers, partial(torch.set_num_threads, 1))


def map_threads(
    compute: Callable[[Part], Result],
    parts: Sequence[Part],
    threads: int,
    initializer: Callable[[], object] | None = None,
) -> list[Result]:
    """Results of all parts, in their order, computed by so many threads.

    ``initializer`` is called once in each thread.
    """
    workers = min(threads, len(parts))
    if workers <= 1:
        return [compute(part) for part in parts]
    with ThreadPoolExecutor(workers, initializer=initializer) as pool:
        return list(pool.map(compute, parts))


@contextmanager
def compute_precision(device: torch.device, dtype: Dtype) -> Iterator[None]:
    """Let torch compute in bf16, or in float32 that is float32; in one thread on the CPU.

    A GPU's convolutions would round to TF32 by default.
    """
    import torch

    from seqray.models import keep_freed_memory

    if device.type == "cpu":
        keep_freed_memory()
    with ExitStack() as stack:
        stack.enter_context(one_thread(device))
        if dtype == "bf16":
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
        elif device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
        yield
