"""Negatives of several kinds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Ints
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import LabeledSequence
from seqray.core.text import counted
from seqray.datasets.negatives.genome import NegativeOptions, Occurrences
from seqray.datasets.negatives.regions import RECIPES, GenomeContext, allot
from seqray.datasets.negatives.sampling import Negative, OccupiedIntervals, SequenceDeriver, WindowSampler
from seqray.homology.kmers import kmer_groups, merge_groups, position_groups

# --- Groups that a split keeps whole: a positive and the negatives made from it, and neighbors on the gen

SHARED_WORD = 40


@dataclass(frozen=True, slots=True)
class Member:
    """An example and what relates it to others.

    Attributes
    ----------
    sequence, given
        Its letters, and the group in the user's table.
    parent
        Number of the example that it was made from.
    contig, position
        Its position on the genome, if known.
    """

    sequence: str
    given: str | None = None
    parent: int | None = None
    contig: str | None = None
    position: int = 0


def assign_groups(members: Sequence[Member], block: int, alphabet: Alphabet) -> list[str]:
    """Name the group of each example.

    An example is grouped with the one that it was made from. One without a given group is also grouped with
    those in its block of the genome, with windows that overlap it, and with those that share a k-mer of 40
    letters with it on either strand.

    Parameters
    ----------
    members
        N examples; a ``parent`` is the number of another.
    block
        Letters of the genome that stay together.
    alphabet
        Of the sequences.

    Returns
    -------
    list of str
        The given name if there is one, else ``g1``, ``g2`` .. in order of appearance.
    """
    families = np.array([i if m.parent is None else m.parent for i, m in enumerate(members)], dtype=np.int64)
    kmers, blocks = (np.full(len(members), -1, dtype=np.int64) for _ in range(2))
    rows = [i for i, member in enumerate(members) if member.given is None]
    kmers[rows] = kmer_groups([members[i].sequence for i in rows], SHARED_WORD, alphabet=alphabet)
    placed = [i for i in rows if members[i].contig is not None]
    if placed:
        longest = max(len(members[i].sequence) for i in placed)
        contigs = [members[i].contig or "" for i in placed]
        blocks[placed] = position_groups(contigs, [members[i].position for i in placed], block, longest)
    return _names(members, merge_groups(families, kmers, blocks))


def _names(members: Sequence[Member], groups: Ints) -> list[str]:
    """Name groups after their given name, or by numbers that no given name uses."""
    numbers = groups.tolist()
    names = {g: m.given for g, m in zip(numbers, members, strict=True) if m.given is not None}
    used = {member.given for member in members}
    free = (name for n in range(1, 2 * len(members) + 2) if (name := f"g{n}") not in used)
    for group in numbers:
        if group not in names:
            names[group] = next(free)
    return [m.given or names[g] for g, m in zip(numbers, members, strict=True)]


# --- From positives and recipes to negatives: assign positives to recipes, make the negatives, group all

MAX_RATIO = 1000  # negatives of one positive; more would only repeat themselves


@dataclass(frozen=True)
class NegativeSet:
    """Positives and the negatives made for them, in groups.

    Attributes
    ----------
    positives, negatives
        Examples; the negatives recipe by recipe, in the order of their positives.
    wanted, made
        Negatives by recipe.
    placed
        Positives that were found in the genome; None without a genome.
    """

    positives: tuple[LabeledSequence, ...]
    negatives: tuple[LabeledSequence, ...]
    wanted: Mapping[str, int]
    made: Mapping[str, int]
    placed: int | None


def make_negatives(
    positives: Sequence[LabeledSequence],
    options: NegativeOptions,
    alphabet: Alphabet,
    context: GenomeContext | None = None,
) -> NegativeSet:
    """Make negatives for positives.

    Each positive gets the same number of negatives (within one, if the ratio is not a whole number), assigned
    to the recipes at random. If there are too few windows, fewer are made.

    Parameters
    ----------
    positives
        Examples with unique ids.
    options
        What to make.
    alphabet
        Of the positives.
    context
        The genome; needed by recipes that take windows from it.

    Raises
    ------
    InputError
        If there is no positive.
    ConfigError
        For a recipe without its genome or annotation, or settings that contradict each other.

    Examples
    --------
    >>> from seqray.core.alphabet import DNA
    >>> positives = [LabeledSequence("TTGACAATTAATCATCGGCTCG", "promoter", "lac")]
    >>> found = make_negatives(positives, NegativeOptions({"shuffle": Fraction(1)}), DNA)
    >>> [negative.id for negative in found.negatives]
    ['shuffle:lac:1']
    >>> sorted(found.negatives[0].sequence) == sorted(positives[0].sequence)
    True
    """
    if not positives:
        raise InputError("there are no positives to make negatives for")
    _check(options, alphabet, context)
    codes = [alphabet.encode(example.sequence) for example in positives]
    count = math.floor(options.ratio * len(positives) + Fraction(1, 2))
    if not count:
        what = (
            f"a ratio of {float(options.ratio):g} makes no negative of {counted(len(positives), 'positive')}"
        )
        raise ConfigError(what, remedy="give a larger one")
    wanted = allot(count, options.mix)
    rows_of = assign_recipes(len(positives), wanted, np.random.default_rng(options.seed))
    occupied = OccupiedIntervals(options.max_overlap, {example.sequence for example in positives})
    deriver = SequenceDeriver(positives, options, alphabet, occupied)
    sampler = None if context is None else WindowSampler(positives, codes, options, context, occupied)
    made: list[Negative] = []
    counts: dict[str, int] = {}
    for name, rows in rows_of.items():
        rng = np.random.default_rng([options.seed, 1 + list(RECIPES).index(name)])
        new = (sampler if sampler and RECIPES[name].genome else deriver)(name, rows, rng)
        made, counts[name] = made + new, len(new)
    occurrences = sampler.occurrences if sampler else None
    examples = _grouped(positives, made, options, alphabet, context, occurrences)
    n = len(positives)
    placed = None if occurrences is None else int((occurrences.places >= 0).sum())
    return NegativeSet(tuple(examples[:n]), tuple(examples[n:]), wanted, counts, placed)


def _check(options: NegativeOptions, alphabet: Alphabet, context: GenomeContext | None) -> None:
    for name in options.mix:
        if RECIPES[name].genome and not alphabet.is_nucleotide:
            raise ConfigError(f"recipe '{name}' cuts windows from a genome", remedy="protein has none")
        if RECIPES[name].genome and context is None:
            raise ConfigError(f"recipe '{name}' needs a genome", remedy="give --genome FILE")
        if RECIPES[name].annotation and (context is None or context.annotation is None):
            raise ConfigError(f"recipe '{name}' requires the genes", remedy="give --annotation FILE")
    if options.ratio <= 0:
        raise ConfigError(f"{options.ratio} negatives per positive", remedy="give a ratio above 0")
    if options.ratio > MAX_RATIO:
        raise ConfigError(f"{options.ratio} negatives per positive", remedy=f"give at most {MAX_RATIO}")


def assign_recipes(n: int, counts: Mapping[str, int], rng: np.random.Generator) -> dict[str, list[int]]:
    """Assign n positives to recipes, each equally often or once more: their numbers, ascending."""
    total = sum(counts.values())
    shuffled = np.concatenate((np.tile(np.arange(n), total // n), rng.permutation(n)[: total % n]))
    shuffled = rng.permutation(shuffled)
    edges = np.cumsum([0, *counts.values()])
    return {name: sorted(shuffled[edges[i] : edges[i + 1]].tolist()) for i, name in enumerate(counts)}


def _grouped(
    positives: Sequence[LabeledSequence],
    made: Sequence[Negative],
    options: NegativeOptions,
    alphabet: Alphabet,
    context: GenomeContext | None,
    occurrences: Occurrences | None,
) -> list[LabeledSequence]:
    """Positives, then negatives, with their groups; a negative has the split of its positive."""
    places = occurrences.places if occurrences else np.full(len(positives), -1, dtype=np.int64)
    if any(example.split for example in positives):
        # The table was split regardless of positions; windows then have blocks of their own.
        places = np.full(len(positives), -1, dtype=np.int64)
    members = [_member(e, place, context) for e, place in zip(positives, places.tolist(), strict=True)]
    for m in made:
        parent = m.positive if m.contig is None else None
        members.append(Member(m.sequence, None, parent, m.contig, m.start))
    groups = assign_groups(members, options.block, alphabet)
    models = [positives[m.positive] for m in made]
    negatives = [
        LabeledSequence(m.sequence, options.label, m.name, None, p.split, p.context, m.recipe)
        for m, p in zip(made, models, strict=True)
    ]
    return [replace(e, group=group) for e, group in zip([*positives, *negatives], groups, strict=True)]


def _member(example: LabeledSequence, place: int, context: GenomeContext | None) -> Member:
    if place < 0 or context is None:
        return Member(example.sequence, example.group)
    contig, position = context.genome.locate(place)
    return Member(example.sequence, example.group, None, contig, position)
