"""Scans of whole genomes or regions with `seqray scan`, as ranked calls."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import read_table
from matching import Calls, rank_calls
from seqray.modelfile.header import locate_model, read_card

MIN_THRESHOLDS = {"sequence": 0.05, "locator": 0.002}
"""Threshold of the scan that is ranked, by kind of model: low enough for 2 calls per kb."""


@dataclass(frozen=True, slots=True)
class Scan:
    """How a genome is scanned.

    Attributes
    ----------
    model
        Name of a shipped model, or its file.
    kind
        Kind of the model.
    genes
        Where a locator's genes come from (``predict``, ``none`` or a file); None for other kinds.
    stride
        Letters between windows; locators have none.
    threads
        Of the scan.
    """

    model: str
    kind: str
    genes: str | None
    stride: int
    threads: int

    @property
    def name(self) -> str:
        """Name of the method in tables."""
        name = Path(self.model).name.removesuffix(".safetensors")
        if self.genes in (None, "predict"):
            return name
        return f"{name}, no genes" if self.genes == "none" else f"{name}, genes of {Path(self.genes).name}"

    def command(self, genome: Path, out: Path, extra: Sequence[str] = ()) -> list[str]:
        """Return the command that scans a genome."""
        command = [sys.executable, "-m", "seqray", "scan", str(genome), "--model", self.model]
        command += ["--threads", str(self.threads), "--quiet", "--out", str(out)]
        command += ["--genes", self.genes] if self.genes else ["--stride", str(self.stride)]
        return [*command, *extra]

    def calls(
        self, genome: Path, extra: Sequence[str] = (), offsets: Mapping[str, int] | None = None
    ) -> Calls:
        """Scan down to a low threshold and rank the calls.

        Parameters
        ----------
        genome
            The file.
        extra
            Further options.
        offsets
            Where each contig begins when they are laid end to end; None for one contig.
        """
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "calls.tsv"
            self.write_calls(genome, out, extra)
            return read_calls(out, offsets)

    def write_calls(self, genome: Path, out: Path, extra: Sequence[str] = ()) -> None:
        """Write the calls down to a low threshold."""
        lowest = ["--threshold", str(MIN_THRESHOLDS[self.kind]), "--null-mb", "0"]
        subprocess.run(self.command(genome, out, [*lowest, *extra]), check=True)


def plan_scans(models: Sequence[str], genes: Sequence[str], stride: int, threads: int) -> list[Scan]:
    """Return a scan for each model; for locators, one for each source of genes."""
    scans = []
    for model in models:
        kind = read_card(locate_model(model)).model.kind
        sources = list(genes) if kind == "locator" else [None]
        scans += [Scan(model, kind, source, stride, threads) for source in sources]
    return scans


def read_calls(path: Path, offsets: Mapping[str, int] | None = None) -> Calls:
    """Rank the calls of a scan's TSV."""
    rows = read_table(path)
    site = [int(row["site"]) + (offsets[row["contig"]] if offsets else 0) for row in rows]
    return rank_calls(site, [row["strand"] for row in rows], [float(row["score"]) for row in rows])
