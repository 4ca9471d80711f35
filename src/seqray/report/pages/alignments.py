"""The page of explained alignments: verdicts, then each alignment with its profiles and pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from seqray.core import Card, counted
from seqray.core.results import AlignmentExplanation, AlignmentScores
from seqray.explanations.attribution import PairTable
from seqray.report.html import document, name, number, table, templates
from seqray.report.pages.alignment_grid import (
    MAX_LINE_COLUMNS,
    MAX_ROWS,
    MIN_LINE_COLUMNS,
    alignment_panel,
    color_key,
)
from seqray.report.pages.explained import (
    ModelText,
    Report,
    card_section,
    checks,
    facts,
    ranking,
    verdict_section,
)
from seqray.report.pages.pair_map import NO_POSITION, pair_map, pair_ranks
from seqray.report.svg import BAR_DEFINITIONS, line_width

_MAX_CLASSES = 8


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AlignmentReport(Report):
    """What the page shows: explanations with their pairs."""

    shown: Sequence[tuple[AlignmentExplanation, PairTable]]


def render_alignments(report: AlignmentReport) -> str:
    """Write the page as HTML that runs nothing."""
    explanations = [e for e, _ in report.shown]
    methods = list(dict.fromkeys(found.method for e in explanations for found in e.scores))
    longest = max((len(e.columns) for e in explanations), default=1)
    width = line_width(longest, MIN_LINE_COLUMNS, MAX_LINE_COLUMNS)
    reading = ""
    if explanations:
        key = color_key(explanations[0].alignment.alphabet)
        reading = templates("alignments.html").reading(methods, key) + BAR_DEFINITIONS
    alignments = {
        f"r{i}": (name(e.id), _alignment(e, pairs, report.card, width))
        for i, (e, pairs) in enumerate(report.shown)
    }
    return document(
        report.title,
        facts(report, len(explanations), "alignment", (e.target for e in explanations), methods),
        {
            "verdict": verdict_section(report, "column"),
            "set": ("All alignments together", checks(report.faithfulness, "column")),
            "reading": ("How to read the alignments", reading),
            **alignments,
            "card": card_section(ModelText.of(report.card)),
        },
        report.provenance,
    )


def _alignment(e: AlignmentExplanation, pairs: PairTable, card: Card, width: int) -> Markup:
    ranks = (_classes(e, card), *(_ranks(e, found) for found in e.scores), pair_ranks(e, pairs))
    panel, figure = alignment_panel(e, width), pair_map(e, pairs)
    return templates("alignments.html").alignment(e, panel, list(_omitted(e)), Markup().join(ranks), figure)


def _classes(e: AlignmentExplanation, card: Card) -> Markup:
    """Probability of each class, the highest first, and the sum of those that are not shown."""
    share = templates("explained.html").share
    order = np.argsort(-np.array(e.probabilities), kind="stable").tolist()
    rows = [[card.classes[i], share(e.probabilities[i])] for i in order[:_MAX_CLASSES]]
    rest = sum(e.probabilities[i] for i in order[_MAX_CLASSES:])
    rows += [["all others", share(rest)]] if len(order) > _MAX_CLASSES else []
    return table(["class", "probability"], rows, caption="classes")


def _omitted(e: AlignmentExplanation) -> Iterator[str]:
    """What the grid leaves out."""
    if len(e.rows) > MAX_ROWS:
        yield f"{counted(len(e.rows) - MAX_ROWS, 'more row')} that the model read"
    for read, all_, one in ((e.rows, e.alignment.rows, "row"), (e.columns, e.alignment.columns, "column")):
        if len(read) < all_:
            yield f"{counted(all_ - len(read), one)} of the file that the model did not read"


def _ranks(e: AlignmentExplanation, found: AlignmentScores) -> Markup:
    positions, letters = e.alignment.query_positions(), e.alignment.text(0)
    rows = []
    for rank, index in enumerate(ranking(found.columns), start=1):
        column = int(e.columns[index])
        query = str(positions[column] + 1) if positions[column] >= 0 else NO_POSITION
        rows.append([str(rank), str(column + 1), query, letters[column], number(float(found.columns[index]))])
    return table(["rank", "column", "query", "letter", "score"], rows, caption=found.method)
