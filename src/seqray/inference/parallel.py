"""Batches computed at the same time, each in one thread.

Kernels divide their sums among threads, and the last digits follow from how. A batch that one thread computes
has the same bits however many batches are computed beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

import torch

Part = TypeVar("Part")
Result = TypeVar("Result")


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Let torch compute in one thread, on the CPU."""
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
    workers = min(torch.get_num_threads(), len(parts)) if device.type == "cpu" else 1
    if workers <= 1:
        return [compute(part) for part in parts]
    with (
        one_thread(device),
        ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,)) as pool,
    ):
        return list(pool.map(compute, parts))
