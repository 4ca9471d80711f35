"""Settings of the search for relatives and of the division, with their defaults; nothing heavy is loaded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from seqray.core.errors import ConfigError, field_name, require, require_number, use_python_numbers

BLOCK = 10_000  # letters of a genome that stay together
SIMILAR = 0.8  # identity to a training sequence, by which another one is like it
LEAK = 0.01  # share of held-out sequences with a copy, a relative or a group in training
MIN_SIMILAR_LENGTH = 40  # nucleotides: shorter ones are similar by chance
MIN_SIMILAR_RESIDUES = 25
PARTS = ("train", "validation", "test")
INSEPARABLE = (
    "no split can separate mutants of one sequence, and figures hold for further mutants of it alone"
)


@dataclass(frozen=True)
class RelationOptions:
    """Which sequences count as related: by ``identity`` (0 to 1), or a shared k-mer of ``word`` letters."""

    identity: float = SIMILAR
    word: int = 40
    both_strands: bool = True

    def __post_init__(self) -> None:
        use_python_numbers(self)
        require_number(self.identity, "identity", least=0)
        require_number(self.word, "word", whole=True, least=0)


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

    def __post_init__(self) -> None:
        use_python_numbers(self)
        for name in ("folds", "seed"):
            require_number(getattr(self, name), name, whole=True, least=0)
        require(self.relatives in ("drop", "join"), "relatives", "must be drop or join")
        object.__setattr__(self, "shares", shares_of_parts(self.shares))


def shares_of_parts(given: Iterable[float]) -> tuple[float, float, float]:
    """Shares of train, validation and test; whole numbers are ratios, others sum to 1 or to 100."""
    numbers = [float(number) for number in given]
    if len(numbers) == 2:
        numbers.insert(1, 0.0)
    total, shown = sum(numbers), ",".join(f"{number:g}" for number in numbers)
    sums = min(abs(total - 1), abs(total / 100 - 1)) <= 1e-6
    fits = sums or all(number.is_integer() for number in numbers)
    if len(numbers) != 3 or min(numbers) < 0 or numbers[0] == 0 or not fits:
        what, remedy = f"is {shown}, which sums to {total:g}", "give shares that sum to 1, or ratios as 8,1,1"
        raise ConfigError(f"{field_name('shares')} {what}", remedy=remedy)
    train, validation, test = (number / total for number in numbers)
    return train, validation, test
