"""From positives and recipes to negatives: deal the positives out, make a negative of each, group all."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from seqray.core import Alphabet, Codes, ConfigError, InputError, LabelledSequence, reverse_complement
from seqray.datasets.negatives.cut import Cutter, Made
from seqray.datasets.negatives.derived import shuffled, substituted
from seqray.datasets.negatives.draw import Taken
from seqray.datasets.negatives.groups import Member, assign_groups
from seqray.datasets.negatives.occurrences import Occurrences
from seqray.datasets.negatives.options import NegativeOptions
from seqray.datasets.negatives.recipes import RECIPES, allot
from seqray.datasets.negatives.settings import Ground, NegativeSet

MOST = 1000  # negatives of one positive; more would only repeat themselves
TRIES = 20  # shuffles of one positive before it is given up: a run of one letter has no other order


def make_negatives(
    positives: Sequence[LabelledSequence],
    options: NegativeOptions,
    alphabet: Alphabet,
    ground: Ground | None = None,
) -> NegativeSet:
    """Make negatives for positives.

    Each positive is the model of as many negatives as any other (but for one, where the ratio is no whole
    number), dealt to the recipes at random. Where there are too few windows, fewer are made.

    Parameters
    ----------
    positives
        Examples with unique ids.
    options
        What to make.
    alphabet
        Of the positives.
    ground
        Needed by recipes that cut windows from a genome.

    Raises
    ------
    InputError
        Where there is no positive.
    ConfigError
        For a recipe that lacks its genome or annotation, or settings that don't go together.
    """
    if not positives:
        raise InputError("there is no positive to make negatives for")
    _check(options, alphabet, ground)
    codes = [alphabet.encode(example.sequence) for example in positives]
    wanted = allot(math.floor(options.ratio * len(positives) + Fraction(1, 2)), options.mix)
    models = deal(len(positives), wanted, np.random.default_rng(options.seed))
    taken = Taken(options.max_overlap, {example.sequence for example in positives})
    cut = None if ground is None else Cutter(positives, codes, options, ground, taken)
    made: list[Made] = []
    counts: dict[str, int] = {}
    for name, rows in models.items():
        rng = np.random.default_rng([options.seed, 1 + list(RECIPES).index(name)])
        new = cut(name, rows, rng) if RECIPES[name].genome and cut else []
        if not RECIPES[name].genome:
            new = _derive(name, rows, positives, codes, options, alphabet, taken, rng)
        made, counts[name] = made + new, len(new)
    occurrences = cut.occurrences if cut else None
    examples = _grouped(positives, made, options, alphabet, ground, occurrences)
    n = len(positives)
    placed = None if occurrences is None else int((occurrences.places >= 0).sum())
    return NegativeSet(tuple(examples[:n]), tuple(examples[n:]), wanted, counts, placed)


def _check(options: NegativeOptions, alphabet: Alphabet, ground: Ground | None) -> None:
    for name in options.mix:
        if RECIPES[name].genome and not alphabet.is_nucleotide:
            raise ConfigError(f"recipe '{name}' cuts windows from a genome", remedy="protein has none")
        if RECIPES[name].genome and ground is None:
            raise ConfigError(f"recipe '{name}' needs a genome", remedy="give --genome FILE")
        if RECIPES[name].annotation and (ground is None or ground.annotation is None):
            raise ConfigError(f"recipe '{name}' needs to know the genes", remedy="give --annotation FILE")
    if options.ratio <= 0:
        raise ConfigError(f"{options.ratio} negatives per positive", remedy="give a ratio above 0")
    if options.ratio > MOST:
        raise ConfigError(f"{options.ratio} negatives per positive", remedy=f"give at most {MOST}")


def deal(n: int, counts: Mapping[str, int], rng: np.random.Generator) -> dict[str, list[int]]:
    """Deal n positives to recipes, each as often as any other or once more: their numbers, ascending."""
    total = sum(counts.values())
    pack = np.concatenate((np.tile(np.arange(n), total // n), rng.permutation(n)[: total % n]))
    pack = rng.permutation(pack)
    edges = np.cumsum([0, *counts.values()])
    return {name: sorted(pack[edges[i] : edges[i + 1]].tolist()) for i, name in enumerate(counts)}


def _derive(
    recipe: str,
    rows: Sequence[int],
    positives: Sequence[LabelledSequence],
    codes: Sequence[Codes],
    options: NegativeOptions,
    alphabet: Alphabet,
    taken: Taken,
    rng: np.random.Generator,
) -> list[Made]:
    """Make a negative out of each positive; one that has no other order of letters is left out."""
    for row in rows:
        if recipe == "substitution" and len(codes[row]) < options.segments:
            raise InputError(
                f"has {len(codes[row])} letters, which {options.segments} segments can't share",
                where=positives[row].where,
                remedy="give fewer --segments",
            )
    change = _change(recipe, options, alphabet, rng)
    made: list[Made] = []
    number: Counter[int] = Counter()
    for row in rows:
        fresh = (alphabet.decode(change(codes[row])) for _ in range(TRIES))
        letters = next((text for text in fresh if _is_new(text, alphabet, taken)), None)
        if letters is not None:
            taken.sequences.add(letters)
            number[row] += 1
            made.append(Made(letters, row, f"{recipe}:{positives[row].id}:{number[row]}"))
    return made


def _change(
    recipe: str, options: NegativeOptions, alphabet: Alphabet, rng: np.random.Generator
) -> Callable[[Codes], Codes]:
    """What a recipe does to the codes of a positive."""
    if recipe == "substitution":
        letters = len(alphabet.letters)
        return lambda codes: substituted(codes, rng, letters, options.segments, options.keep)[0]
    words = options.shuffle_words or (2 if alphabet.is_nucleotide else 1)
    return lambda codes: shuffled(codes, rng, words)


def _is_new(letters: str, alphabet: Alphabet, taken: Taken) -> bool:
    other = reverse_complement(letters, alphabet) if alphabet.is_nucleotide else letters
    return letters not in taken.sequences and other not in taken.sequences


def _grouped(
    positives: Sequence[LabelledSequence],
    made: Sequence[Made],
    options: NegativeOptions,
    alphabet: Alphabet,
    ground: Ground | None,
    occurrences: Occurrences | None,
) -> list[LabelledSequence]:
    """Positives, then negatives, with their groups; a negative has the split of its positive."""
    places = occurrences.places if occurrences else np.full(len(positives), -1, dtype=np.int64)
    if any(example.split for example in positives):
        # The table split them without regard to where they lie; windows then have blocks of their own.
        places = np.full(len(positives), -1, dtype=np.int64)
    members = [_member(e, place, ground) for e, place in zip(positives, places.tolist(), strict=True)]
    for m in made:
        parent = m.positive if m.contig is None else None
        members.append(Member(m.sequence, None, parent, m.contig, m.start))
    groups = assign_groups(members, options.block, alphabet)
    models = [positives[m.positive] for m in made]
    negatives = [
        LabelledSequence(m.sequence, options.label, m.name, None, p.split, p.context)
        for m, p in zip(made, models, strict=True)
    ]
    return [
        LabelledSequence(e.sequence, e.label, e.id, group, e.split, e.context)
        for e, group in zip([*positives, *negatives], groups, strict=True)
    ]


def _member(example: LabelledSequence, place: int, ground: Ground | None) -> Member:
    if place < 0 or ground is None:
        return Member(example.sequence, example.group)
    contig, position = ground.genome.locate(place)
    return Member(example.sequence, example.group, None, contig, position)
