"""From positives and recipes to negatives: windows sampled from a genome, or changed positives, in groups."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple, Unpack

import numpy as np

from seqray.core.alphabet import Alphabet, dinucleotide_shuffle, reverse_complement
from seqray.core.arrays import Codes, Ints
from seqray.core.errors import ConfigError, InputError, setting
from seqray.core.records import Intervals, LabeledSequence
from seqray.core.text import counted, describe_labels
from seqray.datasets.negatives.genome import (
    STRANDS,
    AllowedRegions,
    GenomeContext,
    JoinedGenome,
    allowed_regions,
    assign_blocks,
    find_occurrences,
)
from seqray.datasets.negatives.recipes import RECIPES, NegativeOptions, allot
from seqray.homology.kmers import kmer_groups, merge_groups, position_groups
from seqray.io.files import open_input
from seqray.io.records import ReadOptions, UniqueIds, detect_format
from seqray.io.sequences import OnUnread, read_labeled_table, read_sequences
from seqray.io.tables import Columns

# --- Positives: sequences, or the rows of labeled examples that have their label


def positives_in(
    path: str | Path,
    label: str,
    alphabet: Alphabet,
    others: Counter[str],
    on_unread: OnUnread | None = None,
    columns: Columns | None = None,
    **options: Unpack[ReadOptions],
) -> list[LabeledSequence]:
    """Read positives from FASTA or GenBank, or a labeled table; ``others`` counts rows of other labels."""
    with open_input(path) as handle:
        head = handle.peek(1)
    if not head.strip() or detect_format(head):
        records = read_sequences(path, alphabet, **options)
        return [LabeledSequence(one.sequence, label, one.id, file=str(path)) for one in records]
    rows = read_labeled_table(path, alphabet, on_unread=on_unread, columns=columns)
    ids = UniqueIds(options.get("duplicates", "error"), str(path))
    chosen = positives_among(rows, label, others, str(path))
    return [replace(row, id=ids.resolve(row.id)) for row in chosen]


def positives_among(
    rows: Sequence[LabeledSequence], label: str, others: Counter[str], where: str
) -> list[LabeledSequence]:
    """The examples of a label, of which there must be one; ``others`` counts those of other labels."""
    others.update(row.label for row in rows if row.label != label)
    if len(rows) == others.total():
        remedy = f"name one of its labels with {setting('positive')}: {', '.join(sorted(others))}"
        raise InputError(f"has no row labeled '{label}'", where=where, remedy=remedy)
    return [row for row in rows if row.label == label]


# --- Groups that a split keeps whole: a positive and the negatives made from it, and neighbors on the genome

SHARED_WORD = 40


@dataclass(frozen=True, slots=True)
class Member:
    """An example and what relates it to others: letters, a given group, the number of its parent, a place."""

    sequence: str
    given: str | None = None
    parent: int | None = None
    contig: str | None = None
    position: int = 0


def assign_groups(members: Sequence[Member], block: int, alphabet: Alphabet) -> list[str]:
    """Name the group of each of N examples: by its given name, else ``g1``, ``g2`` .. by appearance.

    Together are an example and what was made of it, overlapping windows, and those that share a 40-mer.
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
    numbers = merge_groups(families, kmers, blocks).tolist()
    names = {g: m.given for g, m in zip(numbers, members, strict=True) if m.given is not None}
    used = {member.given for member in members}
    free = (name for n in range(1, 2 * len(members) + 2) if (name := f"g{n}") not in used)
    for group in numbers:
        if group not in names:
            names[group] = next(free)
    return [m.given or names[g] for g, m in zip(numbers, members, strict=True)]


# --- Sample windows of a genome at random, each with the length and GC content of its positive

CHUNK = 1 << 13
MAX_CANDIDATES = 1 << 24  # examined for the windows of one length; all of them if there are no more


class Window(NamedTuple):
    """A piece of the genome: 0-based and half-open in its own coordinates, ``strand`` ``+`` or ``-``."""

    start: int
    end: int
    strand: str


@dataclass
class OccupiedIntervals:
    """Windows, which may share ``max_overlap`` letters, and sequences in use, not to be repeated."""

    max_overlap: int = 0
    sequences: set[str] = field(default_factory=set)
    _starts: list[tuple[int, int]] = field(default_factory=list)
    _longest: int = 0

    def is_free(self, start: int, end: int) -> bool:
        """Whether no window in use shares more letters with this one than allowed."""
        index = bisect_left(self._starts, (start - self._longest, 0))
        while index < len(self._starts) and self._starts[index][0] < end:
            first, last = self._starts[index]
            if min(last, end) - max(first, start) > self.max_overlap:
                return False
            index += 1
        return True

    def add(self, start: int, end: int) -> None:
        """Add a window."""
        insort(self._starts, (start, end))
        self._longest = max(self._longest, end - start)

    def take_letters(self, letters: str, alphabet: Alphabet) -> bool:
        """Add a sequence; False if it is in use."""
        turned = reverse_complement(letters, alphabet) if alphabet.is_nucleotide else letters
        if letters in self.sequences or turned in self.sequences:
            return False
        self.sequences.add(letters)
        return True


def gc_bins(codes: Codes, unknown: int, count: int) -> Ints:
    """Bin of the GC content of each row, of ``count`` over [0, 1], 0 for none: codes (N, L) to int64 (N,)."""
    if not count:
        return np.full(len(codes), -1, dtype=np.int64)
    canonical = np.maximum((codes < unknown).sum(axis=1), 1)
    gc = ((codes == 1) | (codes == 2)).sum(axis=1)
    return np.minimum(gc * count // canonical, count - 1)  # in whole numbers, hence exact


def sample_windows(
    genome: JoinedGenome,
    regions: Mapping[str, AllowedRegions],
    positives: Sequence[Codes],
    bins: int,
    occupied: OccupiedIntervals,
    rng: np.random.Generator,
) -> list[Window | None]:
    """Sample a new window for each positive, codes (n,), the long ones first; None if there is none left."""
    drawn: list[Window | None] = [None] * len(positives)
    unknown = genome.alphabet.unknown
    lengths = np.array([len(codes) for codes in positives], dtype=np.int64)
    for length in sorted({len(codes) for codes in positives}, reverse=True):
        rows = np.flatnonzero(lengths == length).tolist()
        keys = gc_bins(np.stack([positives[i] for i in rows]), unknown, bins).tolist()
        wanted = Counter(keys)
        windows: dict[int, list[Window]] = {key: [] for key in wanted}
        room = {strand: regions[strand].window_starts(length) for strand in STRANDS}
        for starts, minus in candidates(room, len(rows), rng):
            codes = genome.codes[starts[:, None] + np.arange(length)]  # (chunk, L)
            binned = gc_bins(codes, unknown, bins)
            open_bins = [key for key in wanted if len(windows[key]) < wanted[key]]
            good = (codes < unknown).all(axis=1) & np.isin(binned, open_bins)
            chosen = zip(starts[good].tolist(), minus[good].tolist(), binned[good].tolist(), strict=True)
            for start, is_minus, key in chosen:
                end, strand = start + length, STRANDS[is_minus]
                if len(windows[key]) >= wanted[key] or not occupied.is_free(start, end):
                    continue
                if occupied.take_letters(genome.letters(start, end, strand), genome.alphabet):
                    occupied.add(start, end)
                    windows[key].append(Window(start, end, strand))
            if all(len(windows[key]) == wanted[key] for key in wanted):
                break
        for i, key in zip(rows, keys, strict=True):
            drawn[i] = windows[key].pop() if windows[key] else None
    return drawn


def candidates(
    room: Mapping[str, Intervals], wanted: int, rng: np.random.Generator
) -> Iterator[tuple[Ints, np.ndarray]]:
    """Yield starts and strands (True: minus) of windows in chunks, uniformly at random."""
    sizes = np.concatenate([room[strand].ends - room[strand].starts for strand in STRANDS])
    first = np.concatenate([room[strand].starts for strand in STRANDS])
    edges = np.cumsum(sizes)
    total = int(edges[-1]) if len(edges) else 0

    def ranks(count: int) -> Iterator[Ints]:
        return (rng.integers(0, total, min(CHUNK, count - begin)) for begin in range(0, count, CHUNK))

    def every() -> Iterator[Ints]:
        yield from ranks(min(64 * wanted, total))
        if total > MAX_CANDIDATES:
            yield from ranks(MAX_CANDIDATES)
        elif total:
            order = rng.permutation(total)
            yield from (order[begin : begin + CHUNK] for begin in range(0, total, CHUNK))

    for rank in every():
        part = np.searchsorted(edges, rank, "right")
        yield first[part] + rank - (edges[part] - sizes[part]), part >= len(room["+"].starts)


# --- Change the letters of a positive: shuffle them, or replace most of its segments


def substitute_segments(
    codes: Codes, rng: np.random.Generator, letters: int, segments: int = 20, keep: int = 8
) -> tuple[Codes, np.ndarray]:
    """Keep some segments of codes (n,), fill the others with canonical letters, and say which stay.

    As in DeePromoter (Oubounyt et al. 2019, Front. Genet. 10:286), but with segments as even as possible.
    """
    if not 0 <= keep < segments:
        raise ConfigError(f"{keep} of {segments} segments are kept", remedy="keep fewer than there are")
    edges = np.arange(segments + 1) * len(codes) // segments
    stay = np.sort(rng.choice(segments, keep, replace=False))
    fresh = rng.integers(0, letters, len(codes)).astype(np.uint8)
    stays = np.repeat(np.isin(np.arange(segments), stay), np.diff(edges))
    return np.where(stays, codes, fresh), stay


# --- Assign positives to recipes, make the negatives, group all

MAX_RATIO = 1000  # negatives of one positive; more would only repeat themselves
MAX_SHUFFLES = 20  # of one positive before it is skipped: a run of one letter has no other order


@dataclass(frozen=True)
class NegativeSet:
    """Positives, grouped negatives made of them, counts by recipe, and how many positives were ``placed``."""

    positives: tuple[LabeledSequence, ...]
    negatives: tuple[LabeledSequence, ...]
    wanted: Mapping[str, int]
    made: Mapping[str, int]
    placed: int | None


def shortages(result: NegativeSet) -> list[str]:
    """A line for each recipe that gave fewer negatives than requested."""
    return [
        f"recipe '{name}' gave {count} of {result.wanted[name]} negatives, "
        + ("no more were found" if RECIPES[name].genome else "the positives assigned to it allow no more")
        for name, count in result.made.items()
        if count < result.wanted[name]
    ]


def cautions(result: NegativeSet, others: Counter[str]) -> list[str]:
    """What is to be known of negatives before they are used; ``others`` counts rows of other labels."""
    lines = shortages(result)
    if others:
        left_out = describe_labels(others)
        lines.append(f"rows of other labels than that of the positives are left out: {left_out}")
    n, placed = len(result.positives), result.placed
    if placed is not None and placed < n:
        lost = f"{n - placed} of {n} positives were not found in the genome"
        lines.append(f"{lost}, so a negative may overlap one of them")
    ambiguous = sum(bool(set(e.sequence) - set("ACGTU")) for e in result.positives)
    if placed is not None and ambiguous:
        lines.append(f"{ambiguous} positives contain ambiguous bases, which windows never do")
    return lines


def make_negatives(
    positives: Sequence[LabeledSequence],
    options: NegativeOptions,
    alphabet: Alphabet,
    context: GenomeContext | None = None,
) -> NegativeSet:
    """Make negatives, equally many for each positive (with a unique id), by recipes at random."""
    if not positives:
        raise InputError("there are no positives to make negatives for")
    _check(options, alphabet, context)
    n = len(positives)
    count = math.floor(options.ratio * n + Fraction(1, 2))
    if not count:
        what = f"a ratio of {float(options.ratio):g} makes no negative of {counted(n, 'positive')}"
        raise ConfigError(what, remedy="give a larger one")
    wanted = allot(count, options.mix)
    rows_of = assign_recipes(n, wanted, np.random.default_rng(options.seed))
    maker = _Maker(positives, options, alphabet, context)
    made: list[_Negative] = []
    counts: dict[str, int] = {}
    for name, rows in rows_of.items():
        rng = np.random.default_rng([options.seed, 1 + list(RECIPES).index(name)])
        fresh = (maker.windows if RECIPES[name].genome else maker.changed)(name, rows, rng)
        made, counts[name] = made + fresh, len(fresh)
    members = [Member(e.sequence, e.group) for e in positives]
    if context and not any(e.split for e in positives):
        # A table that is split already was split regardless of positions; windows have blocks of their own.
        for i in np.flatnonzero(maker.places >= 0).tolist():
            contig, position = context.genome.locate(int(maker.places[i]))
            members[i] = replace(members[i], contig=contig, position=position)
    groups = assign_groups([*members, *(m.member for m in made)], options.block, alphabet)
    examples = [replace(e, group=group) for e, group in zip(positives, groups[:n], strict=True)]
    negatives = [
        LabeledSequence(m.member.sequence, options.label, m.name, group, p.split, p.context, m.recipe)
        for m, group, p in zip(made, groups[n:], [positives[m.positive] for m in made], strict=True)
    ]
    placed = int((maker.places >= 0).sum()) if context else None
    return NegativeSet(tuple(examples), tuple(negatives), wanted, counts, placed)


def _check(options: NegativeOptions, alphabet: Alphabet, context: GenomeContext | None) -> None:
    for name in options.mix:
        if RECIPES[name].genome and not alphabet.is_nucleotide:
            raise ConfigError(f"recipe '{name}' cuts windows from a genome", remedy="protein has none")
        if RECIPES[name].genome and context is None:
            raise ConfigError(f"recipe '{name}' needs a genome", remedy="give --genome FILE")
        if RECIPES[name].annotation and (context is None or context.annotation is None):
            raise ConfigError(f"recipe '{name}' requires the genes", remedy="give --annotation FILE")
    if not 0 < options.ratio <= MAX_RATIO:
        limit = "a ratio above 0" if options.ratio <= 0 else f"at most {MAX_RATIO}"
        raise ConfigError(f"{options.ratio} negatives per positive", remedy=f"give {limit}")


def assign_recipes(n: int, counts: Mapping[str, int], rng: np.random.Generator) -> dict[str, list[int]]:
    """Assign n positives to recipes, each equally often or once more: their numbers, ascending."""
    total = sum(counts.values())
    shuffled = np.concatenate((np.tile(np.arange(n), total // n), rng.permutation(n)[: total % n]))
    shuffled = rng.permutation(shuffled)
    edges = np.cumsum([0, *counts.values()])
    return {name: sorted(shuffled[edges[i] : edges[i + 1]].tolist()) for i, name in enumerate(counts)}


class _Negative(NamedTuple):
    """A negative for the positive of a number; the first word of its name is its recipe."""

    positive: int
    name: str
    recipe: str
    member: Member


class _Maker:
    """Makes negatives that are neither a positive nor an earlier negative, nor overlap one."""

    def __init__(
        self,
        positives: Sequence[LabeledSequence],
        options: NegativeOptions,
        alphabet: Alphabet,
        context: GenomeContext | None,
    ) -> None:
        self._positives, self._options, self._alphabet = positives, options, alphabet
        sequences = [example.sequence for example in positives]
        self._occupied = OccupiedIntervals(options.max_overlap, set(sequences))
        if context is None:
            return
        self._context = context
        self._covered, self.places = find_occurrences(sequences, context.genome)
        named = Counter(example.split for example in positives if example.split)
        shares = {split: Fraction(count, named.total()) for split, count in sorted(named.items())}
        rng = np.random.default_rng([options.seed, 0])
        self._blocks = assign_blocks(context.genome, options.block, shares, rng) if named else {}

    def windows(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[_Negative]:
        """A window for each of the positives ``rows``, as far as available."""
        genome, covered = self._context.genome, self._covered.pairs()
        near = self._context.near_starts if recipe in self._context.avoiding else None
        avoid = Intervals.merge(covered + (near.pairs() if near else []))
        regions = allowed_regions(recipe, genome, avoid, self._context.annotation)
        rows_of_split: dict[str, list[int]] = {}
        for row in rows:
            rows_of_split.setdefault(self._positives[row].split or "", []).append(row)
        made: list[_Negative] = []
        for split, own in sorted(rows_of_split.items()):
            allowed = regions
            if split in self._blocks:
                allowed = {strand: part.clipped(self._blocks[split]) for strand, part in regions.items()}
            codes = [self._alphabet.encode(self._positives[row].sequence) for row in own]
            drawn = sample_windows(genome, allowed, codes, self._options.gc_bins, self._occupied, rng)
            for row, window in zip(own, drawn, strict=True):
                if window:
                    contig, start = genome.locate(window.start)
                    name = f"{recipe}:{contig}:{start}-{start + window.end - window.start}:{window.strand}"
                    member = Member(genome.letters(*window), contig=contig, position=start)
                    made.append(_Negative(row, name, recipe, member))
        return sorted(made, key=lambda m: m.positive)

    def changed(self, recipe: str, rows: Sequence[int], rng: np.random.Generator) -> list[_Negative]:
        """A negative from each of the positives ``rows``, but for those without another order of letters."""
        # A code for each ambiguity letter: if they became N or X, these would mark negatives. The codes of
        # the others stay, so that the same seed gives the same negatives.
        alphabet, options = self._alphabet, self._options
        others = alphabet.ambiguous.replace(alphabet.unknown_letter, "")
        every = Alphabet(alphabet.name, alphabet.letters + alphabet.unknown_letter + others, "")
        shuffle = (
            dinucleotide_shuffle if alphabet.is_nucleotide else (lambda codes, rng: rng.permutation(codes))
        )
        made: list[_Negative] = []
        number: Counter[int] = Counter()
        for row in rows:
            positive = self._positives[row]
            length = len(positive.sequence)
            if recipe == "substitution" and length < options.segments:
                what = f"has {length} letters, fewer than {options.segments} segments"
                raise InputError(what, where=positive.where, remedy="give fewer segments")
            codes = every.encode(positive.sequence)
            for _ in range(MAX_SHUFFLES):
                if recipe == "substitution":
                    size = len(alphabet.letters)
                    letters, _ = substitute_segments(codes, rng, size, options.segments, options.keep)
                else:
                    letters = shuffle(codes, rng)
                sequence = every.decode(letters)
                if self._occupied.take_letters(sequence, alphabet):
                    number[row] += 1
                    name = f"{recipe}:{positive.id}:{number[row]}"
                    made.append(_Negative(row, name, recipe, Member(sequence, parent=row)))
                    break
        return made
