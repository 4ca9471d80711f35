"""Findings about relatives: what training has seen of what is measured, or will once data are divided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from seqray.core.results import AuditFigure, Finding
from seqray.datasets.audit.lookup import (
    EVERYTHING,
    Lookup,
    baseline_name,
    of_class,
    part,
    percent,
    plural,
    with_interval,
)

RELATED_LEAK = 0.01  # share of held-out sequences with a relative in training
SIMILAR = 0.8  # identity to the most similar training sequence
SIMILAR_LENGTH = {True: 40, False: 25}  # nucleotides, residues: shorter ones are alike by chance
OVERLAP_LEAK = 0.10  # share of the sequences of a class with a relative in it, where no split is given
OVERLAP_CAUTION = 0.01
GAP = 0.02  # MCC


def _divide(settings: Mapping[str, str]) -> str:
    """The command that divides anew; in short sequences it looks for longer words unless told."""
    return f"divide the data anew with 'seqray split --word {settings['word']}'"


def leaks(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Everything about relatives, the surest first."""
    yield from _copies(look, settings)
    yield from _groups(look, settings)
    yield from _related(look, settings)
    yield from _similar(look, settings)
    yield from _gap(look, settings)
    yield from _overlap(look, settings)


def _leak_or_chance(look: Lookup, settings: Mapping[str, str]) -> str:
    """Short sequences meet by coincidence: what would be a leak is then a caution."""
    lengths = [f.value for f in look.named("length", "q25") if f.label == EVERYTHING]
    return "leak" if min(lengths, default=0.0) >= float(settings["chance_word"]) else "caution"


def _copies(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    kinds = {
        "duplicates": ("copies_across", ""),
        "strand_duplicates": ("strand_copies_across", " on the other strand"),
    }
    for quantity, (kind, how) in kinds.items():
        found = look.crossings("copies", quantity)
        if found:
            pairs = "; ".join(
                f"{part(count, size)} of {one} stand{how} in {other}" for one, other, count, size in found
            )
            yield Finding(
                _leak_or_chance(look, settings),
                kind,
                f"exact copies across the split: {pairs}",
                "a model that has memorised training is right on them, so the score is too high",
                f"drop the copies from training, or {_divide(settings)}",
            )


def _groups(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    found = look.crossings("groups", "on_both_sides")
    if found:
        pairs = "; ".join(
            f"{count:.0f} of {other} with {look.value('groups', f'{one} to {other}', 'sequences'):.0f} "
            f"sequences of {one}"
            for one, other, count, _ in found
        )
        yield Finding(
            "leak",
            "groups_across",
            f"named groups on both sides of the split: {pairs}",
            "what the data call one group is learnt from and measured on, so the score is too high",
            "divide the data anew by whole groups with 'seqray split --group-by group'",
        )
    between = look.value("groups", "all", "sharing_between")
    if between > 0:
        yield Finding(
            "caution",
            "groups_related",
            f"{between:.0f} {plural(between, 'sequence shares', 'sequences share')} a word with a sequence "
            "of another named group",
            "folds that keep the named groups whole still leak",
            f"{_divide(settings)} and '--group-by group'",
        )


def _related(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    found = look.crossings("relatives", "sharing")
    if not found:
        return
    pairs = "; ".join(f"{part(count, size)} of {one} with {other}" for one, other, count, size in found)
    yield Finding(
        _leak_or_chance(look, settings)
        if any(n / size >= RELATED_LEAK for *_, n, size in found)
        else "caution",
        "relatives_across",
        f"sequences that share a word of {settings['word']} letters across the split: {pairs}",
        "the score on them is that on sequences seen in training, at least in part",
        f"{_divide(settings)}, or report the score without them beside the other",
    )


def _similar(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Alike by alignment; with words this is told twice where both see it, and they see different things."""
    pair = f"{settings['held_out']} to train"
    share = look.value("identity", pair, f"at_least_{SIMILAR:g}")
    least = SIMILAR_LENGTH[settings["alphabet"] != "protein"]
    if settings["held_out"] and share >= RELATED_LEAK and look.value("length", "train", "q25") >= least:
        yield Finding(
            "leak",
            "similar_across",
            f"{percent(share)} of {settings['held_out']} sequences are {100 * SIMILAR:.0f} % identical or "
            "more to a training sequence",
            "the score on them says little about sequences unlike training",
            _divide(settings),
        )


def _gap(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    """The split as given against sequences without relatives in training: the same baseline."""
    for given in look.ending("baselines", "_mcc"):
        if given.split != "given":
            continue
        others = [
            look.get("baselines", split, given.quantity, given.label) for split in ("unrelated", "grouped")
        ]
        clear = [f for f in others if f is not None and _is_clear(given, f)]
        if clear:
            lowest = min(clear, key=lambda f: f.value)
            where = {"unrelated": "the held-out sequences without relatives in training"}
            yield Finding(
                "leak",
                "score_gap",
                f"{baseline_name(given.quantity)}{of_class(given.label)} scores MCC {with_interval(given)} "
                f"on the split as given, {with_interval(lowest)} on "
                f"{where.get(lowest.split, 'folds that keep relatives together')}",
                f"about {given.value - lowest.value:.2f} of the MCC may be recognition of relatives",
                f"{_divide(settings)}, and compare models there",
            )


def _is_clear(given: AuditFigure, other: AuditFigure) -> bool:
    return given.value - other.value > GAP and given.low > other.value and given.value > other.high


def _overlap(look: Lookup, settings: Mapping[str, str]) -> Iterator[Finding]:
    """Relatives within a class: they leak as soon as the data are divided at random."""
    split = "train" if settings["held_out"] else "all"
    found = [
        f
        for f in look.named("relatives", "sharing_share")
        if f.split == split and f.label != EVERYTHING and f.value >= OVERLAP_CAUTION
    ]
    if not found:
        return
    shares = "; ".join(
        part(
            look.value("relatives", split, "sharing", f.label),
            look.value("counts", split, "sequences", f.label),
        )
        + f" of '{f.label}'"
        for f in sorted(found, key=lambda f: -f.value)[:8]
    )
    undivided = not settings["held_out"] and max(f.value for f in found) >= OVERLAP_LEAK
    yield Finding(
        "leak" if undivided else "caution",
        "overlap_within_class",
        f"sequences that share a word of {settings['word']} letters with another of their class: {shares}",
        "random folds put relatives on both sides, so cross-validation may be too good; there are fewer "
        "independent examples than rows",
        _divide(settings),
    )
