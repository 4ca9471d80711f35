"""The recipes by name: what each needs, what a model learns from it, and how many negatives each makes."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from seqray.core import ConfigError


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to make negatives.

    ``teaches`` says what a model can learn from the negatives besides the signal. With ``genome`` they are
    windows of a genome (else made from positives), with ``annotation`` the recipe needs the genes.
    """

    makes: str
    teaches: str
    genome: bool = False
    annotation: bool = False


RECIPES: Mapping[str, Recipe] = {
    "shuffle": Recipe(
        "positives with their letters shuffled, counts of k-mers kept (by default pairs; protein: letters)",
        "real sequence against shuffled, as well as the signal: longer k-mers can differ, too",
    ),
    "genome": Recipe(
        "windows of the genome away from known starts",
        "the signal against the rest of the genome, which for bacteria is mostly coding; unknown starts "
        "among them count as errors",
        genome=True,
    ),
    "antisense": Recipe(
        "fragments of coding sequence read on the other strand",
        "not coding against coding: codon periodicity, and GC content unless it is matched",
        genome=True,
        annotation=True,
    ),
    "convergent": Recipe(
        "windows between two genes that point at each other",
        "start against end of transcription: terminators, and intergenic on both sides",
        genome=True,
        annotation=True,
    ),
    "coding": Recipe(
        "fragments of coding sequence on the sense strand",
        "not coding against coding: codon periodicity, and GC content unless it is matched",
        genome=True,
        annotation=True,
    ),
    "substitution": Recipe(
        "positives with most segments replaced by random letters",
        "random letters against real ones: GC content near one half, and the borders of segments; those "
        "kept may hold the signal",
    ),
}


def parse_mix(words: Sequence[str]) -> dict[str, Fraction]:
    """Read ``NAME`` or ``NAME=SHARE`` words into shares that sum to 1, in the order given.

    Parameters
    ----------
    words
        Either all of them name a share or none does. Shares are relative: 1 and 3 are 25 % and 75 %.

    Raises
    ------
    ConfigError
        For an unknown or repeated name, a share that is no positive number, or shares for some only.
    """
    parts = [word.partition("=") for word in words]
    weights: dict[str, Fraction] = {}
    for name, _, text in parts:
        if name not in RECIPES:
            near = difflib.get_close_matches(name, RECIPES, n=1)
            remedy = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(RECIPES)}"
            raise ConfigError(f"unknown recipe '{name}'", remedy=remedy)
        if name in weights:
            raise ConfigError(f"recipe '{name}' is given twice", remedy="add its shares up")
        weights[name] = _weight(name, text)
    if len({bool(equals) for _, equals, _ in parts}) > 1:
        raise ConfigError("some recipes have a share and some have none", remedy="write NAME=SHARE for each")
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def _weight(name: str, text: str) -> Fraction:
    try:
        weight = Fraction(text or "1")
    except (ValueError, ZeroDivisionError):
        weight = Fraction(0)
    if weight <= 0:
        raise ConfigError(f"the share of '{name}' is '{text}'", remedy="give a number above 0")
    return weight


def allot(total: int, shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Divide ``total`` by shares that sum to 1, none more than one off; largest remainders are rounded up."""
    exact = {name: total * share for name, share in shares.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])  # stable: ties in order given
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts
