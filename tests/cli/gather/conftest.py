"""A genome to scan in shards."""

from __future__ import annotations

import pytest

from tables import letters


@pytest.fixture(scope="module")
def genome(tmp_path_factory):
    """Contigs of two pieces, of one, of too few letters, of unknown letters, and a repeat of equal scores."""
    path = tmp_path_factory.mktemp("genome") / "genome.fa"
    contigs = {
        "long": letters(60_000) + "ACGT" * 12_000 + letters(12_345, seed=1),
        "tiny": "ACGT",
        "ring": letters(1501, seed=2),
        "gaps": letters(300, seed=3) + "N" * 100 + letters(300, seed=4),
    }
    path.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in contigs.items()))
    return path
