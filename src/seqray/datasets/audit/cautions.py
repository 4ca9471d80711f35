"""Findings that call for a look: contradicting labels, repeats, shares, order, odd records; and the floor."""

from __future__ import annotations

import math
from collections.abc import Iterator

from seqray.core.results import Finding
from seqray.datasets.audit.lookup import (
    EVERYTHING,
    Lookup,
    baseline_name,
    of_class,
    percent,
    plural,
    with_interval,
)

ORDER_Z = -6.0
SHIFT = 0.1  # difference of the share of a class between training and held-out
AMBIGUOUS = 0.01
PLACES = {
    "grouped": "on folds that keep relatives together",
    "unrelated": "on held-out sequences without relatives in training",
    "given": "on the split as given",
}


def cautions(look: Lookup, skipped: int) -> Iterator[Finding]:
    """All findings of this file."""
    yield from _contradictions(look)
    yield from _repeats(look)
    yield from _empty(skipped)
    yield from _shares(look)
    yield from _ambiguous(look)
    yield from _order(look)


def _contradictions(look: Lookup) -> Iterator[Finding]:
    count = look.value("copies", "all", "contradicted")
    if count > 0:
        rows = look.value("copies", "all", "contradicted_rows")
        yield Finding(
            "caution",
            "contradicting_labels",
            f"{count:.0f} {plural(count, 'sequence', 'sequences')} (on either strand) in {rows:.0f} rows "
            f"{plural(count, 'carries', 'carry')} more than one label",
            "no model can be right on all of them; in training they pull both ways",
            "drop them, or decide on one label",
        )


def _repeats(look: Lookup) -> Iterator[Finding]:
    same = {f.split: f.value for f in look.named("copies", "duplicates") if _within(f.split, f.label)}
    turned = {
        f.split: f.value for f in look.named("copies", "strand_duplicates") if _within(f.split, f.label)
    }
    parts = [split for split in same if same[split] + turned[split] > 0]
    if parts:
        shown = "; ".join(
            f"{same[split]:.0f}{'' if split == 'all' else f' in {split}'}"
            + (f" and {turned[split]:.0f} on the other strand" if turned[split] else "")
            for split in parts
        )
        yield Finding(
            "caution",
            "copies_within",
            f"rows that repeat another of their split: {shown}",
            "random folds put copies on both sides; there are fewer examples than rows",
            "drop repeats, or let 'seqray split' keep them together",
        )


def _within(split: str, label: str) -> bool:
    return label == EVERYTHING and " to " not in split


def _empty(skipped: int) -> Iterator[Finding]:
    if skipped:
        yield Finding(
            "caution",
            "empty_records",
            f"{skipped} {plural(skipped, 'record has', 'records have')} no letters and "
            f"{plural(skipped, 'was', 'were')} left out",
            "counts differ from those of others who kept them",
            "remove them from the files",
        )


def _shares(look: Lookup) -> Iterator[Finding]:
    for f in look.named("counts", "share"):
        learnt = look.value("counts", "train", "share", f.label)
        measured = f.split in ("test", "validation") and f.label != EVERYTHING
        if measured and abs(f.value - learnt) >= SHIFT:
            yield Finding(
                "note",
                "class_shares",
                f"class '{f.label}' is {percent(learnt)} of training and {percent(f.value)} of {f.split}",
                "thresholds, precision and MCC depend on the share of a class",
                "weigh probabilities by the share expected in use ('seqray predict --prior')",
            )


def _ambiguous(look: Lookup) -> Iterator[Finding]:
    for f in look.named("ambiguity", "with_ambiguous"):
        if f.label == EVERYTHING and f.value >= AMBIGUOUS:
            where = "" if f.split == "all" else f" of {f.split}"
            yield Finding(
                "note",
                "ambiguous_letters",
                f"{percent(f.value)} of the sequences{where} hold ambiguous letters",
                "they are read as unknown, so these sequences say less",
                "compare the classes under 'ambiguity' in the table",
            )


def _order(look: Lookup) -> Iterator[Finding]:
    for f in look.named("order", "z"):
        if f.value <= ORDER_Z:
            runs, expected = (look.value("order", f.split, q) for q in ("runs", "expected_runs"))
            where = "rows" if f.split == "all" else f"rows of {f.split}"
            yield Finding(
                "note",
                "row_order",
                f"{where} come in blocks of one class: {runs:.0f} stretches, by chance {expected:.0f}",
                "folds cut from the file without shuffling hold too few classes",
                "shuffle before any cut; seqray does",
            )


def floor(look: Lookup) -> Iterator[Finding]:
    """Tell what a model has to beat, on the most honest figures there are, beside the split as given."""
    found = look.ending("baselines", "_mcc")
    for split, place in PLACES.items():
        best = max((f for f in found if f.split == split), key=lambda f: f.value, default=None)
        if best is None:
            continue
        auroc = look.value("baselines", split, best.quantity.removesuffix("mcc") + "auroc", best.label)
        given = look.get("baselines", "given", best.quantity, best.label)
        beside = ""
        if given and split != "given" and not math.isnan(given.value):
            beside = f"; MCC {with_interval(given)} {PLACES['given']}"
        yield Finding(
            "note",
            "floor",
            f"{baseline_name(best.quantity)}{of_class(best.label)} scores MCC {with_interval(best)} and "
            f"AUROC {auroc:.3f} {place}{beside}",
            "this much comes from words and positions by seconds of work",
            "report it beside your model's score; a model that scores no more adds nothing",
        )
        return
