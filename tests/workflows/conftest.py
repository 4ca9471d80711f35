"""Snakemake, for tests of workflows."""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from forking import Forks

Snakemake = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def snakemake(snakemake_forks: Forks) -> Snakemake:
    """Run Snakemake: ``snakemake(snakefile, folder, *words, commands=FOLDER, **environment)``.

    Jobs find ``seqray`` in the folder of commands, or beside the interpreter.
    """

    def run(
        snakefile: Path, folder: Path, *words: str, commands: Path | None = None, **more: str
    ) -> subprocess.CompletedProcess[str]:
        found = commands or Path(sys.executable).parent
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(found), os.environ["PATH"]]),
            "XDG_CACHE_HOME": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
            **more,
        }
        command = [snakemake_forks.folder / "snakemake", "--snakefile", snakefile, "--directory", folder]
        return subprocess.run(
            [*map(str, command), *words], capture_output=True, text=True, env=environment, timeout=3600
        )

    return run


@pytest.fixture(scope="module")
def run(request: pytest.FixtureRequest, snakemake: Snakemake) -> Snakemake:
    """Run the workflow that a file of tests names, ``SNAKEFILE``, in a folder."""
    return partial(snakemake, request.module.SNAKEFILE)
