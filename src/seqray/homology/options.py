"""Settings of the search for relatives and of the division, with their defaults; nothing heavy is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BLOCK = 10_000  # letters of a genome that stay together
PARTS = ("train", "validation", "test")
INSEPARABLE = (
    "no split can separate mutants of one sequence, and figures hold for further mutants of it alone"
)


@dataclass(frozen=True)
class RelationOptions:
    """Which sequences count as related: by ``identity`` (0 to 1), or a shared k-mer of ``word`` letters."""

    identity: float = 0.8
    word: int = 40
    both_strands: bool = True


@dataclass(frozen=True)
class SplitOptions:
    """How examples are divided: by shares of the parts, or into so many ``folds``.

    Parts to ``keep`` stay; their relatives elsewhere are left out (``drop``), or move there.
    """

    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    folds: int = 0
    keep: tuple[str, ...] = ()
    relatives: Literal["drop", "join"] = "drop"
    seed: int = 0
