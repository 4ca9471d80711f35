"""Where a training keeps its state, and with what it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from seqray.core import OnProgress, RunConfig
from seqray.training.side_by_side import plan_processes


@dataclass(frozen=True)
class RunOptions:
    """Where a training keeps its state, and with what it runs.

    Attributes
    ----------
    work_dir
        Folder for checkpoints and logs. A network that is finished there is not trained again; one that was
        interrupted resumes after its last epoch and ends with the same weights.
    resume
        False removes what ``work_dir`` holds of an earlier run.
    restart_if_changed
        Whether an earlier run with other settings or data is removed, too; else it is an error.
    progress
        True shows a bar for each epoch on standard error; a function is called after each step.
    threads
        Threads for PyTorch; its own choice by default. Results are the same for the same seed and threads.
    side_by_side
        Train several networks at once where that is faster, see `plan_processes`: the threads are shared out,
        and each network has the same weights as if it were trained alone with its share of the threads.
    """

    work_dir: Path
    resume: bool = True
    restart_if_changed: bool = False
    progress: bool | OnProgress = False
    threads: int | None = None
    side_by_side: bool = False

    def use_threads(self) -> int:
        """Set the threads of PyTorch, and return their number."""
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        return torch.get_num_threads()

    def plan(self, config: RunConfig, networks: int, letters: int) -> tuple[int, int]:
        """How many networks to train at once, and how many threads each gets.

        ``letters`` are those of the training part.
        """
        threads = torch.get_num_threads()
        return plan_processes(config, networks, threads, letters) if self.side_by_side else (1, threads)

    @property
    def on_progress(self) -> OnProgress | None:
        """The function to call after each step."""
        return None if isinstance(self.progress, bool) else self.progress
