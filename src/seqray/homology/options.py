"""Settings of the search for relatives and of the division, with their defaults; nothing heavy is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class RelationOptions:
    """Which sequences count as related.

    Attributes
    ----------
    identity
        Those of at least this identity, from 0 to 1; 0 means no alignment.
    word
        Those that share a k-mer of so many letters; 0 means none.
    both_strands
        Whether the reverse complement counts too.
    tool
        Program that finds pairs of that identity.
    threads
        Of mmseqs.
    """

    identity: float = 0.8
    word: int = 40
    both_strands: bool = True
    tool: Literal["seqray", "mmseqs"] = "seqray"
    threads: int = 1


@dataclass(frozen=True)
class SplitOptions:
    """How examples are divided.

    Attributes
    ----------
    shares
        Of train, validation and test; without effect if ``folds`` is given.
    folds
        Number of folds; 0 for three parts.
    keep
        Parts whose examples stay as in the data.
    relatives
        What happens to other examples that are related to kept ones: left out, or moved to their part.
    seed
        Of the division.
    """

    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    folds: int = 0
    keep: tuple[str, ...] = ()
    relatives: Literal["drop", "join"] = "drop"
    seed: int = 0
