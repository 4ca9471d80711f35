"""Recipes of negatives by name, what each teaches, and the options of all; loads nothing heavy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from seqray.core.errors import ConfigError
from seqray.core.text import did_you_mean


@dataclass(frozen=True)
class NegativeOptions:
    """What to make."""

    mix: Mapping[str, Fraction]  # share of each recipe, see `parse_mix`
    ratio: Fraction = Fraction(1)  # negatives per positive
    seed: int = 0
    label: str = "background"  # of the negatives
    segments: int = 20  # of a substitution: segments of a positive, and how many of them stay
    keep: int = 8
    gc_bins: int = 20  # in which windows match positives; 0: they match in length alone
    max_overlap: int = 0  # letters that two windows may share
    block: int = 10_000  # letters of the genome that stay in one group


@dataclass(frozen=True)
class GenomeSource:
    """Where windows are cut from, and the starts that they keep away from."""

    genome: str | None = None
    annotation: str | None = None
    starts: str | None = None  # a file or ``none``
    feature: str = "gene,pseudogene,mRNA,transcript,promoter,TSS"  # that count as starts
    distance: int = 200  # letters between a window and a start


@dataclass(frozen=True, slots=True)
class Recipe:
    """One way to make negatives, and what it teaches; some need a genome, and some of these its genes."""

    makes: str
    teaches: str
    genome: bool = False
    annotation: bool = False


_TEACHES_CODING = "not coding against coding: codon periodicity, and GC content unless it is matched"
RECIPES: Mapping[str, Recipe] = {
    "shuffle": Recipe(
        "positives in shuffled order, counts of neighbor pairs kept (protein: of residues)",
        "real sequence against shuffled, as well as the signal: longer k-mers can differ, too",
    ),
    "genome": Recipe(
        "windows of the genome away from known starts",
        "the signal against the rest of the genome, which for bacteria is mostly coding; unknown starts "
        "among them count as errors",
        genome=True,
    ),
    "antisense": Recipe(
        "fragments of coding sequence read on the other strand", _TEACHES_CODING, genome=True, annotation=True
    ),
    "convergent": Recipe(
        "windows between two genes that point at each other",
        "start against end of transcription: terminators, and intergenic on both sides",
        genome=True,
        annotation=True,
    ),
    "coding": Recipe(
        "fragments of coding sequence on the sense strand", _TEACHES_CODING, genome=True, annotation=True
    ),
    "substitution": Recipe(
        "positives with most segments replaced by random bases or residues",
        "random sequence against real sequence: GC content near one half, and the borders of segments; those "
        "kept may hold the signal",
    ),
}


def parse_mix(words: Sequence[str]) -> dict[str, Fraction]:
    """Read ``NAME`` words, or ``NAME=SHARE`` words, into shares that sum to 1, in the order given."""
    weights: dict[str, Fraction] = {}
    for name, _, text in (word.partition("=") for word in words):
        if name not in RECIPES:
            remedy = did_you_mean(name, RECIPES)
            raise ConfigError(f"unknown recipe '{name}'", remedy=remedy)
        if name in weights:
            raise ConfigError(f"recipe '{name}' is given twice", remedy="add its shares up")
        try:
            weights[name] = Fraction(text or "1")
        except (ValueError, ZeroDivisionError):
            weights[name] = Fraction(0)
        if weights[name] <= 0:
            raise ConfigError(f"the share of '{name}' is '{text}'", remedy="give a number above 0")
    if len({"=" in word for word in words}) > 1:
        raise ConfigError("some recipes have a share and some have none", remedy="write NAME=SHARE for each")
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def allot(total: int, shares: Mapping[str, Fraction]) -> dict[str, int]:
    """Divide ``total`` by shares that sum to 1, none more than one off; largest remainders are rounded up."""
    exact = {name: total * share for name, share in shares.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])  # stable: ties in order given
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts
