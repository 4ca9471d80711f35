"""Findings about relatives: test sequences with relatives in training, now or after a random split."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from seqray.core.results import AuditFigure, Finding
from seqray.datasets.audit.dataset import EVERY_CLASS
from seqray.datasets.audit.figure_table import (
    FigureTable,
    baseline_name,
    of_class,
    part,
    percent,
    place_of_given,
    plural,
    with_interval,
)

LEAK = 0.01  # share of held-out sequences with a copy, a relative or a group in training
SIMILAR = 0.8  # identity to the most similar training sequence
SIMILAR_LENGTH = {True: 40, False: 25}  # nucleotides, residues: shorter ones are similar by chance
OVERLAP_LEAK = 0.10  # share of the sequences of a class with a relative in it, if no split is given
OVERLAP_CAUTION = 0.01
GAP = 0.02  # MCC
STANDARD_ERRORS = 3.0  # of a difference between other sequences: one of 700 by chance
_WIDTH = 3.92  # of a 95 % interval, in standard errors
_RELATIVES = (
    ("copies", "duplicates"),
    ("copies", "strand_duplicates"),
    ("groups", "on_both_sides"),
    ("relatives", "sharing"),
)


def _split_command(settings: Mapping[str, str]) -> str:
    """The command that splits again, with the relations of this audit."""
    return f"split the data again with 'seqray split --identity {SIMILAR:g} --word {settings['word']}'"


def leaks(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Findings about relatives, the most certain first."""
    yield from _copies(table, settings)
    yield from _groups(table, settings)
    yield from _related(table, settings)
    yield from _similar(table, settings)
    yield from _gap(table, settings)
    yield from _overlap(table, settings)


def _severity(shares: Iterable[float]) -> str:
    """Severity by the largest share of held-out sequences with something in training: one limit for all."""
    return "leak" if max(shares) >= LEAK else "caution"


def _severity_of_match(table: FigureTable, settings: Mapping[str, str], shares: Iterable[float]) -> str:
    """The same for equal letters; sequences so short that they match by chance are no leak."""
    lengths = [f.value for f in table.named("length", "q25") if f.label == EVERY_CLASS]
    by_chance = min(lengths, default=0.0) < float(settings["chance_word"])
    return "caution" if by_chance else _severity(shares)


def _copies(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    kinds = {
        "duplicates": ("copies_across", ""),
        "strand_duplicates": ("strand_copies_across", " on the other strand"),
    }
    for quantity, (kind, how) in kinds.items():
        found = table.counts_across("copies", quantity)
        if found:
            pairs = "; ".join(
                f"{part(count, size)} of {one} also{how} in {other}" for one, other, count, size in found
            )
            yield Finding(
                _severity_of_match(table, settings, (count / size for *_, count, size in found)),
                kind,
                f"exact copies across the split: {pairs}",
                "a model that has memorized the training data gets them right, so the score is too high",
                f"drop the copies from training, or {_split_command(settings)}",
            )


def _groups(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    found = [
        (one, other, count, table.value("groups", f"{one} to {other}", "sequences"), size)
        for one, other, count, size in table.counts_across("groups", "on_both_sides")
    ]
    if found:
        pairs = "; ".join(
            f"{count:.0f} of {other} with {sequences:.0f} sequences of {one}"
            for one, other, count, sequences, _ in found
        )
        yield Finding(
            _severity(sequences / size for *_, sequences, size in found),
            "groups_across",
            f"named groups on both sides of the split: {pairs}",
            "the same group is trained on and tested on, so the score is too high",
            "split the data again by whole groups with 'seqray split --group-by group'",
        )
    between = table.value("groups", "all", "sharing_between")
    if between > 0:
        yield Finding(
            "caution",
            "groups_related",
            f"{between:.0f} {plural(between, 'sequence shares', 'sequences share')} a k-mer with a sequence "
            "of another named group",
            "folds that keep the named groups whole still leak",
            f"{_split_command(settings)} and '--group-by group'",
        )


def _related(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    found = table.counts_across("relatives", "sharing")
    if not found:
        return
    pairs = "; ".join(f"{part(count, size)} of {one} with {other}" for one, other, count, size in found)
    yield Finding(
        _severity_of_match(table, settings, (count / size for *_, count, size in found)),
        "relatives_across",
        f"sequences that share a {settings['word']}-mer across the split: {pairs}",
        "these test sequences were seen in training, at least in part, so the score is too high",
        f"{_split_command(settings)}, or also report the score without them",
    )


def _similar(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Similar by alignment; reported besides shared k-mers, because either may miss the other's pairs."""
    pair = f"{settings['held_out']} to train"
    share = table.value("identity", pair, f"at_least_{SIMILAR:g}")
    least = SIMILAR_LENGTH[settings["alphabet"] != "protein"]
    if settings["held_out"] and share >= LEAK and table.value("length", "train", "q25") >= least:
        yield Finding(
            "leak",
            "similar_across",
            f"{percent(share)} of {settings['held_out']} sequences are {100 * SIMILAR:.0f} % identical or "
            "more to a training sequence",
            "the score on them says little about sequences that differ from training",
            _split_command(settings),
        )


def _gap(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """The same baseline on the given split and on sequences without relatives in training."""
    if not _has_relatives(table, settings):
        return
    lower = {"unrelated": _is_lower_in_part, "grouped": _is_lower_elsewhere}
    for given in table.ending("baselines", "_mcc"):
        if given.split != "given":
            continue
        others = [table.get("baselines", split, given.quantity, given.label) for split in lower]
        clear = [f for f in others if f is not None and lower[f.split](given, f)]
        if clear:
            lowest = min(clear, key=lambda f: f.value)
            where = {"unrelated": "the held-out sequences without relatives in training"}
            yield Finding(
                "leak",
                "score_gap",
                f"{baseline_name(given.quantity)}{of_class(given.label)} scores MCC {with_interval(given)} "
                f"{place_of_given(settings)}, {with_interval(lowest)} on "
                f"{where.get(lowest.split, 'folds that keep relatives together')}",
                f"about {given.value - lowest.value:.2f} of the MCC may come from relatives in training",
                f"{_split_command(settings)}, and compare models on that split",
            )


def _has_relatives(table: FigureTable, settings: Mapping[str, str]) -> bool:
    """Whether relatives can be on both sides, without which a gap is chance."""
    if not settings["held_out"]:
        return table.value("counts", "all", "groups") < table.value("counts", "all", "sequences")
    similar = table.value("identity", f"{settings['held_out']} to train", f"at_least_{SIMILAR:g}")
    return similar > 0 or any(table.counts_across(*kind) for kind in _RELATIVES)


def _is_lower_in_part(given: AuditFigure, other: AuditFigure) -> bool:
    """Whether a figure is lower on a part of the same sequences."""
    return given.value - other.value > GAP and given.low > other.value and given.value > other.high


def _is_lower_elsewhere(given: AuditFigure, other: AuditFigure) -> bool:
    """Whether a figure is lower on other folds; errors of the two are taken as independent."""
    error = math.hypot(given.high - given.low, other.high - other.low) / _WIDTH
    return given.value - other.value > max(GAP, STANDARD_ERRORS * error)


def _overlap(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Relatives within a class: they leak in a random split."""
    split = "train" if settings["held_out"] else "all"
    found = [
        f
        for f in table.named("relatives", "sharing_share")
        if f.split == split and f.label != EVERY_CLASS and f.value >= OVERLAP_CAUTION
    ]
    if not found:
        return
    shares = "; ".join(
        part(
            table.value("relatives", split, "sharing", f.label),
            table.value("counts", split, "sequences", f.label),
        )
        + f" of '{f.label}'"
        for f in sorted(found, key=lambda f: -f.value)[:8]
    )
    of_train = " of train" if settings["held_out"] else ""
    undivided = not settings["held_out"] and max(f.value for f in found) >= OVERLAP_LEAK
    yield Finding(
        "leak" if undivided else "caution",
        "overlap_within_class",
        f"sequences{of_train} that share a {settings['word']}-mer with another of their class: {shares}",
        f"random folds{of_train} put relatives on both sides, so cross-validation may be too optimistic; "
        "there are fewer independent examples than rows",
        _split_command(settings),
    )
