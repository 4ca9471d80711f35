"""Relatives within a class and across splits: shared k-mers, identities, and named groups that leak."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from seqray.core import Alphabet, Bools, Floats, Ints
from seqray.core.results import AuditFigure, Histogram
from seqray.datasets.audit.composition import histogram, letter_counts
from seqray.datasets.audit.dataset import WHOLE, AuditSet
from seqray.datasets.audit.validation import Validation
from seqray.homology import KmerTable, best_matches, homology_groups, merge_groups, named_groups

SECTION = "relatives"
MAX_NUCLEOTIDE_KMER = 40
MAX_PROTEIN_KMER = 10
MAX_SHARED_BY_CHANCE = 0.001  # expected number of k-mers that a sequence shares with all the others
IDENTITY = 0.8
MAX_ALIGNED_LETTERS = 4_000_000  # in about a minute; the time grows with the square
LEVELS = (0.8, 0.9, 0.99)
QUANTILES = {"median": 0.5, "q90": 0.9, "q99": 0.99, "max": 1.0}
MAX_ALIGNED_SEQUENCES = 2000  # of the test part, with training
MAX_ALIGNMENT_CELLS = 1e8  # for all of them; of longer sequences fewer are sampled
MIN_ALIGNED_SEQUENCES = 50


# ------------------------------------------------------------------------------------- length of k-mers


def word_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Choose the length of the k-mers that relatives share.

    Half the lower quartile of the lengths, at most 40 nucleotides or 10 residues; but never so short that
    more than 1 sequence in 1000 would share a k-mer with any other by chance. Chance follows from the
    composition: if two letters are equal with probability q, k-mers are equal with q**k.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    half = int(np.quantile(lengths, 0.25, method="lower")) // 2
    longest = MAX_NUCLEOTIDE_KMER if alphabet.is_nucleotide else MAX_PROTEIN_KMER
    return max(min(half, longest), chance_length(sequences, alphabet), 1)


def chance_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Shortest k-mer of which a sequence shares at most `MAX_SHARED_BY_CHANCE` with all the others."""
    counts = letter_counts(sequences, alphabet).sum(axis=0).astype(np.float64)
    total = counts.sum()
    match = float(((counts / total) ** 2).sum()) if total else 1.0
    if match >= 1:  # a single letter: every k-mer of it is shared, whatever its length
        return 1
    strands = 2 if alphabet.is_nucleotide else 1
    pairs = strands * total * total / len(sequences)  # k-mers of one sequence times k-mers of all
    return max(1, math.ceil(math.log(max(pairs, 1.0) / MAX_SHARED_BY_CHANCE) / -math.log(match)))


# ----------------------------------------------------------------------------------------------- groups


def relative_groups(data: AuditSet, table: KmerTable) -> Ints:
    """Group relatives, directly or through others: int64 (N,).

    Relatives share a k-mer of the table, are at least `IDENTITY` identical by alignment, or belong to one
    named group. Above `MAX_ALIGNED_LETTERS` nothing is aligned.
    """
    groupings = [table.groups(), named_groups(data.groups)]
    if _is_aligned(data):
        groupings.append(homology_groups(data.sequences, IDENTITY, data.alphabet))
    return merge_groups(*groupings)


def describe_relatives(data: AuditSet, k: int) -> str:
    """What `relative_groups` keeps together, in words."""
    alike = [f"{100 * IDENTITY:.0f} % identity"] if _is_aligned(data) else []
    named = ["a named group"] if any(group is not None for group in data.groups) else []
    return " or ".join([f"a shared {k}-mer", *alike, *named])


def _is_aligned(data: AuditSet) -> bool:
    return sum(map(len, data.sequences)) <= MAX_ALIGNED_LETTERS


# ---------------------------------------------------------------------------------------------- figures


def relative_figures(data: AuditSet, table: KmerTable) -> Iterator[AuditFigure]:
    """Count sequences that share a k-mer within a split or class, across splits, and between named groups."""
    for split in data.parts:
        rows = data.rows(split)
        in_class = table.sharing_within(rows, data.labels)
        for label, name in data.labels_and_all():
            found = table.sharing_within(rows) if label is None else in_class[data.labels[rows] == label]
            yield from _sharing(split, name, found)
    for one, other in data.pairs_of_parts():
        rows = data.rows(one)
        found = table.sharing_across(rows, data.rows(other))
        for label, name in data.labels_and_all():
            chosen = found if label is None else found[data.labels[rows] == label]
            yield from _sharing(f"{one} to {other}", name, chosen)
    yield from _named_group_figures(data, table)


def _sharing(split: str, name: str, found: Bools) -> Iterator[AuditFigure]:
    yield AuditFigure(SECTION, split, name, "sharing", int(found.sum()))
    yield AuditFigure(SECTION, split, name, "sharing_share", found.sum() / max(len(found), 1))


def _named_group_figures(data: AuditSet, table: KmerTable) -> Iterator[AuditFigure]:
    """Named groups on both sides of a split, and sequences that share a k-mer with another named group."""
    named = named_groups(data.groups)
    if named.max(initial=-1) < 0:
        return
    yield AuditFigure("groups", "all", "*", "groups", int(named.max()) + 1)
    for one, other in data.pairs_of_parts():
        mine, theirs = named[data.rows(one)], named[data.rows(other)]
        both = np.isin(mine, theirs) & (mine >= 0)
        pair = f"{one} to {other}"
        yield AuditFigure("groups", pair, "*", "on_both_sides", len(np.unique(mine[both])))
        yield AuditFigure("groups", pair, "*", "sequences", int(both.sum()))
    yield AuditFigure("groups", "all", "*", "sharing_between", int(table.sharing_between(named).sum()))


def identity_figures(
    data: AuditSet, validation: Validation | None, seed: int
) -> tuple[list[AuditFigure], list[Histogram]]:
    """Identity of test sequences to the most similar training sequence.

    The first pair of training and test rows is measured. ``seed`` is that of the sample, if there are too
    many test rows.
    """
    if validation is None:
        return [], []
    train, rows = validation.pairs[0]
    rows = _sampled_rows(data, rows, seed)
    best, _ = best_matches(data.take(train), data.take(rows), data.alphabet)
    pair = f"{data.held_out} to train" if data.held_out else f"{WHOLE}, random fold to the others"
    figures = [AuditFigure("identity", pair, "*", "aligned", len(rows))]
    for label, name in data.labels_and_all():
        values = best if label is None else best[data.labels[rows] == label]
        figures += _identity_summary(pair, name, values)
    edges = np.linspace(0.0, 1.0, 21)
    histograms = [
        histogram("identity", pair, name, best[data.labels[rows] == label], edges)
        for label, name in data.largest_classes()
    ]
    return figures, histograms


def _sampled_rows(data: AuditSet, rows: Ints, seed: int) -> Ints:
    """At most as many rows as can be aligned in reasonable time."""
    longest = max(len(data.sequences[row]) for row in rows.tolist())
    most = min(MAX_ALIGNED_SEQUENCES, max(MIN_ALIGNED_SEQUENCES, int(MAX_ALIGNMENT_CELLS / longest**2)))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _identity_summary(pair: str, name: str, values: Floats) -> Iterator[AuditFigure]:
    if len(values):
        for quantity, p in QUANTILES.items():
            yield AuditFigure("identity", pair, name, quantity, float(np.quantile(values, p)))
        for level in LEVELS:
            share = float(np.mean(values >= level))
            yield AuditFigure("identity", pair, name, f"at_least_{level:g}", share)
