"""From figures to findings, the worst first.

Every finding is drawn from figures alone, which are all in the table of the audit. The limits are at the top
of this file, of `leaks` and of `shortcuts`, and in docs/concepts/audit.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from seqray.core.results import SEVERITIES, AuditFigure, Finding
from seqray.datasets.audit.dataset import EVERY_CLASS
from seqray.datasets.audit.figure_table import (
    FigureTable,
    baseline_name,
    of_class,
    percent,
    place_of_given,
    plural,
    with_interval,
)
from seqray.datasets.audit.leaks import leaks
from seqray.datasets.audit.shortcuts import shortcuts

ORDER_Z = -6.0
SHIFT = 0.1  # difference of the share of a class between training and held-out
AMBIGUOUS = 0.01
PLACES = {
    "grouped": "on folds that keep relatives together",
    "unrelated": "on held-out sequences without relatives in training",
}


def draw_findings(
    figures: Sequence[AuditFigure], settings: Mapping[str, str], skipped: int = 0
) -> list[Finding]:
    """Draw findings from figures.

    Parameters
    ----------
    settings
        ``word`` (length of the k-mers that relatives share), ``held_out`` (name of the test split, empty if
        there is none), ``alphabet`` and ``chance_word``, the shortest k-mer that is not shared by chance.
    skipped
        Records without letters that were left out.

    Returns
    -------
    list of Finding
        In the order of `SEVERITIES`, the most certain of one severity first.
    """
    table = FigureTable(figures)
    found = [
        *leaks(table, settings),
        *shortcuts(table, settings),
        *_contradictions(table, settings),
        *_repeats(table),
        *_empty(skipped),
        *_class_shares(table),
        *_ambiguous(table),
        *_order(table),
        *_floor(table, settings),
    ]
    return sorted(found, key=lambda finding: SEVERITIES.index(finding.severity))


def _contradictions(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    count = table.value("copies", "all", "contradicted")
    if count > 0:
        rows = table.value("copies", "all", "contradicted_rows")
        strands = "" if settings["alphabet"] == "protein" else " (on either strand)"
        yield Finding(
            "caution",
            "contradicting_labels",
            f"{count:.0f} {plural(count, 'sequence', 'sequences')}{strands} in {rows:.0f} rows "
            f"{plural(count, 'carries', 'carry')} more than one label",
            "no model can classify all of them correctly, and they disturb training",
            "remove them, or decide on one label",
        )


def _repeats(table: FigureTable) -> Iterator[Finding]:
    same, reverse = (
        {
            f.split: f.value
            for f in table.named("copies", q)
            if f.label == EVERY_CLASS and " to " not in f.split
        }
        for q in ("duplicates", "strand_duplicates")
    )
    parts = [split for split in same if same[split] + reverse[split] > 0]
    if parts:
        shown = "; ".join(
            f"{same[split]:.0f}{'' if split == 'all' else f' in {split}'}"
            + (f" and {reverse[split]:.0f} on the other strand" if reverse[split] else "")
            for split in parts
        )
        yield Finding(
            "caution",
            "copies_within",
            f"rows that repeat another of their split: {shown}",
            "random folds put copies on both sides; there are fewer examples than rows",
            "remove repeats, or keep them together with 'seqray split'",
        )


def _empty(skipped: int) -> Iterator[Finding]:
    if skipped:
        yield Finding(
            "caution",
            "empty_records",
            f"{skipped} {plural(skipped, 'record has', 'records have')} no letters and "
            f"{plural(skipped, 'was', 'were')} left out",
            "counts differ from those of studies that kept them",
            "remove them from the files",
        )


def _class_shares(table: FigureTable) -> Iterator[Finding]:
    for f in table.named("counts", "share"):
        trained = table.value("counts", "train", "share", f.label)
        measured = f.split in ("test", "validation") and f.label != EVERY_CLASS
        if measured and abs(f.value - trained) >= SHIFT:
            yield Finding(
                "note",
                "class_shares",
                f"class '{f.label}' is {percent(trained)} of training and {percent(f.value)} of {f.split}",
                "thresholds, precision and MCC depend on the share of a class",
                "adjust probabilities to the share expected in use ('seqray predict --prior')",
            )


def _ambiguous(table: FigureTable) -> Iterator[Finding]:
    for f in table.named("ambiguity", "with_ambiguous"):
        if f.label == EVERY_CLASS and f.value >= AMBIGUOUS:
            where = "" if f.split == "all" else f" of {f.split}"
            yield Finding(
                "note",
                "ambiguous_letters",
                f"{percent(f.value)} of the sequences{where} contain ambiguous letters",
                "they are read as unknown letters, so these sequences carry less information",
                "compare the classes in section 'ambiguity' of the table",
            )


def _order(table: FigureTable) -> Iterator[Finding]:
    for f in table.named("order", "z"):
        if f.value <= ORDER_Z:
            runs, expected = (table.value("order", f.split, q) for q in ("runs", "expected_runs"))
            where = "rows" if f.split == "all" else f"rows of {f.split}"
            yield Finding(
                "note",
                "row_order",
                f"{where} are sorted by class: {runs:.0f} blocks, {expected:.0f} expected in random order",
                "folds taken from the file without shuffling contain too few classes",
                "shuffle before splitting; seqray does",
            )


def _floor(table: FigureTable, settings: Mapping[str, str]) -> Iterator[Finding]:
    """The best baseline on the strictest test available, and on the given split or on random folds."""
    given_place = place_of_given(settings)
    found = [f for f in table.ending("baselines", "_mcc") if not math.isnan(f.value)]
    for split, place in (PLACES | {"given": given_place}).items():
        best = max((f for f in found if f.split == split), key=lambda f: f.value, default=None)
        if best is None:
            continue
        auroc = table.value("baselines", split, best.quantity.removesuffix("mcc") + "auroc", best.label)
        given = table.get("baselines", "given", best.quantity, best.label)
        beside = ""
        if given and split != "given" and not math.isnan(given.value):
            beside = f"; MCC {with_interval(given)} {given_place}"
        each = [f for f in found if (f.split, f.quantity) == (split, best.quantity)]
        class_named = ""
        if len(each) > 1:
            class_named = f" for{of_class(best.label)} against the rest"
            lowest = min(each, key=lambda f: f.value)
            mean = sum(f.value for f in each) / len(each)
            beside += (
                f"; over {len(each)} classes the mean MCC is {mean:.3f} and the lowest {lowest.value:.3f}"
                f" ('{lowest.label}')"
            )
        yield Finding(
            "note",
            "floor",
            f"{baseline_name(best.quantity)}{class_named} scores MCC {with_interval(best)} and "
            f"AUROC {auroc:.3f} {place}{beside}",
            "this is the score of simple k-mer counts and positions",
            "report it beside the score of your model; a model that does not exceed it adds nothing",
        )
        return
