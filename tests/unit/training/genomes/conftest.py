"""Tiny genomes, and settings of small locators."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from seqray.core.alphabet import DNA
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping
from seqray.genome.genes import TRACKS, Annotation, Gene
from seqray.training.genomes.sheet import GenomeRow, LabeledContig, LabeledGenome


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def make_config() -> Callable[..., RunConfig]:
    """Settings of a small locator; keywords replace settings of sections."""

    def make(**sections: Any) -> RunConfig:
        base: dict[str, Any] = {
            "model": {
                "kind": "locator", "classes": 1, "d_model": 16, "heads": 2, "layers": 1, "d_ff": 32,
                "positions": "rotary", "locator": {"tracks": TRACKS, "window": 4, "stem": 8},
            },
            "data": {"positive": "promoter", "window": 1},
            "genomes": {"chunk": 256, "steps_per_epoch": 4, "validation_chunks": 20},
            "optimizer": {"batch_size": 4, "ema": 0.9},
            "stopping": {"monitor": "auprc"},
            "trainer": {"max_epochs": 2, "accelerator": "cpu", "precision": "32-true"},
        }  # fmt: skip
        for name, value in sections.items():
            base[name] = base.get(name, {}) | value if isinstance(value, dict) else value
        return from_mapping(RunConfig, base)

    return make


@pytest.fixture
def make_genome() -> Callable[..., LabeledGenome]:
    """A genome in memory: its contigs, with sites, regions and genes of each by name."""

    def make(
        contigs: dict[str, str],
        sites: dict[str, list[tuple[int, str, int, float]]] | None = None,
        regions: dict[str, list[tuple[int, int, str]]] | None = None,
        genes: dict[str, Sequence[Gene]] | None = None,
        *,
        circular: bool = False,
        **row: Any,
    ) -> LabeledGenome:
        found = [
            LabeledContig(
                name,
                DNA.encode(letters),
                circular,
                (sites or {}).get(name, []),
                (regions or {}).get(name, []),
            )
            for name, letters in contigs.items()
        ]
        known = None
        if genes is not None:
            known = Annotation({name: tuple(ones) for name, ones in genes.items()}, "test")
        settings = {"genome": "g.fa", "sites": "s.tsv", "species": "Toy"} | row
        return LabeledGenome(GenomeRow(**settings), found, known)

    return make


@pytest.fixture
def random_letters() -> Callable[[int, int], str]:
    """So many random letters of a seed."""

    def make(length: int, seed: int) -> str:
        return "".join(np.random.default_rng(seed).choice(list("ACGT"), length))

    return make


MOTIF = "TTGACAGTATAAT"


@pytest.fixture
def motif_files(tmp_path) -> Path:
    """A random genome whose sites lie two letters after a motif, as FASTA and TSV."""
    rng = np.random.default_rng(0)
    letters = rng.choice(list("ACGT"), 60_000)
    complement = dict(zip("ACGT", "TGCA", strict=True))
    rows = []
    for start in range(100, 59_900, 150):
        at, forward = start + int(rng.integers(60)), rng.random() < 0.5
        motif = list(MOTIF) if forward else [complement[one] for one in reversed(MOTIF)]
        letters[at : at + len(motif)] = motif
        site = at + len(MOTIF) + 1 if forward else at - 2
        rows.append(f"c\t{site + 1}\t{'+' if forward else '-'}\tpromoter\n")
    (tmp_path / "g.fa").write_text(">c\n" + "".join(letters) + "\n")
    (tmp_path / "s.tsv").write_text("contig\tposition\tstrand\tsite\n" + "".join(rows))
    return tmp_path
