"""All members of a model: trained one after the other, or side by side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from seqray.modelfile import Network
from seqray.training.run_options import RunOptions
from seqray.training.side_by_side import WorkerPool
from seqray.training.workdir import WorkDir

Member = tuple[Network, dict[str, Any]]
"""A network, and the result of `seqray.training.member.fit_member`."""


def train_members(
    train_member: Callable[..., Member],
    calls: Sequence[Mapping[str, Any]],
    shared: Mapping[str, Any],
    folder: WorkDir,
    run: RunOptions,
    *,
    letters: int,
) -> list[Member]:
    """Train the members that ``folder`` lacks, and load all of them.

    Parameters
    ----------
    train_member
        A function of a module, called as ``train_member(**call, **shared, folder=folder, progress=...)``.
    calls
        For each member its ``config``, its ``number`` and what else differs between members.
    shared
        What all members are called with.
    letters
        Of the training part, see `plan_processes`.
    """
    before = torch.get_num_threads()
    try:
        processes, threads = run.plan(calls[0]["config"], len(calls), letters)
        torch.set_num_threads(threads)
        missing = [call for call in calls if folder.result(call["number"]) is None]
        if processes > 1 and len(missing) > 1:
            folder = replace(folder, resume=True)  # what was there before is gone
            given = {**shared, "folder": folder}
            with WorkerPool(
                train_member, given, processes=processes, threads=threads, on_progress=run.on_progress
            ) as pool:
                pool.run(missing, "train members")
        return [train_member(**call, **shared, folder=folder, progress=run.progress) for call in calls]
    finally:
        torch.set_num_threads(before)
