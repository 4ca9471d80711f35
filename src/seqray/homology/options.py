"""Settings of the search for relatives and of the division, with their defaults; nothing heavy is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PARTS = ("train", "validation", "test")


@dataclass(frozen=True)
class RelationOptions:
    """What counts as related.

    Attributes
    ----------
    identity
        Sequences of at least this identity; 0 asks for no alignment.
    word
        Sequences that share a word of so many letters; 0 asks for none.
    both_strands
        Whether the reverse complement counts too.
    tool
        What finds pairs of that identity.
    threads
        Of the tool.
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
        Of train, validation and test; without meaning where ``folds`` is given.
    folds
        Number of folds; 0 for three parts.
    keep
        Parts whose examples stay as the data say.
    relatives
        What becomes of other examples that are related to kept ones: left out, or joined to their part.
    seed
        Of the dealing.
    """

    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    folds: int = 0
    keep: tuple[str, ...] = ()
    relatives: Literal["drop", "join"] = "drop"
    seed: int = 0
