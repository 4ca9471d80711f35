"""The page of alignments explained: verdicts, then each alignment with its profiles and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Card, describe, headline
from seqray.core.results import AlignmentExplanation, AlignmentScores, Faithfulness
from seqray.explanations.attribution import PairTable
from seqray.report.explanation import alignment_grid, pair_map
from seqray.report.explanation.alignment_grid import MOST_ROWS, alignment_panel, colour_key, line_width
from seqray.report.explanation.overview import check_table, curve_figures, verdicts
from seqray.report.explanation.records import ranking
from seqray.report.html import count, document, escape, fixed, name, number, table
from seqray.report.svg import BAR_DEFINITIONS

MOST_CLASSES = 8
_UNCHECKED = (
    "The rankings on this page are unchecked (--no-check): nothing here tells whether the columns ranked "
    "first matter to the model any more than columns drawn at random."
)
_CUE = (
    "A ranking is worth reading if hiding the columns it ranks first changes the model's output more than "
    "hiding random ones, and about as much as hiding them in the order of occlusion, which asks the model "
    "column by column. That says what is associated with the model's output. It does not show what the cell "
    "does."
)
_LEGEND = (
    "Bars above the columns and beside the rows are scores; a high one is associated with the model's output "
    "for this alignment. They fill their space in every alignment, so compare shapes between alignments, and "
    "numbers in the tables. The stronger a letter's colour, the more relevance its cell has (by its square "
    "root); where no method scores cells, the column's counts. Positions are those of the query, the first "
    "row, from 1; hold the pointer over a column for its number in the file. A small grey mark above two "
    "columns says that others stand between them in the file, which the model didn't read."
)
_DEEDS = {
    "deletion": "columns hidden, highest rank first",
    "insertion": "columns shown, highest rank first",
}
_NOTES = {
    "rollout": "shares of attention followed back from the query's CLS to each cell: unsigned, and the same "
    "for every class",
    "grad-rollout": "the same with the positive part of gradient times attention, for the class explained: "
    "unsigned",
    "occlusion": "fall of the log-odds of the class explained when the column is masked in all rows, or when "
    "the row is left out: above 0 it speaks for the class, below 0 against it; the query can't be left out",
}


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentReport:
    """All that stands on the page.

    Attributes
    ----------
    title
        Heading of the page.
    shown
        Explanations with their pairs.
    card
        Of the model explained.
    provenance
        Lines that say how the page came about.
    faithfulness
        Checks of the rankings; None if there were none.
    omitted
        Alignments left out of the page because there are too many.
    """

    title: str
    shown: Sequence[tuple[AlignmentExplanation, PairTable]]
    card: Card
    provenance: Sequence[str]
    faithfulness: Faithfulness | None = None
    omitted: int = 0


def render_alignments(report: AlignmentReport) -> str:
    """Write the page: one text of HTML that refers to nothing outside itself and runs nothing."""
    body = verdicts(report.faithfulness, _CUE, _UNCHECKED)
    sections = {"verdict": ("Are the rankings worth believing?", body)}
    found = report.faithfulness
    if found is not None and found.checks:
        figures = curve_figures(found.curves, _DEEDS) + check_table(found.checks)
        sections["set"] = ("The whole set", figures)
    if report.shown:
        sections["reading"] = ("How to read the alignments", _reading(report))
    width = line_width(max((len(e.columns) for e, _ in report.shown), default=1))
    for number_, (explanation, pairs) in enumerate(report.shown):
        sections[f"r{number_}"] = (name(explanation.id), _alignment(explanation, pairs, report.card, width))
    card = "\n".join(escape(line) for line in describe(report.card))
    sections["card"] = ("Model card", f"<pre>{card}</pre>")
    style = alignment_grid.STYLE + pair_map.STYLE
    return document(report.title, style, sections, _facts(report), report.provenance)


def _facts(report: AlignmentReport) -> dict[str, str]:
    methods = dict.fromkeys(found.method for e, _ in report.shown for found in e.scores)
    left = f"; {count(report.omitted, 'alignment is', 'alignments are')} left out" if report.omitted else ""
    card = report.card
    return {
        "Model": f"<b>{name(card.name)}</b>" + (f": {escape(card.summary)}" if card.summary else ""),
        **({"Measured": escape(headline(card))} if headline(card) != "-" else {}),
        "Alignments": f"{count(len(report.shown), 'alignment')} on this page{left}",
        "Class explained": ", ".join(dict.fromkeys(escape(e.target) for e, _ in report.shown)) or "none",
        "Methods": ", ".join(escape(method) for method in methods) or "none",
    }


def _reading(report: AlignmentReport) -> str:
    methods = dict.fromkeys(found.method for e, _ in report.shown for found in e.scores)
    notes = "".join(f"<dt>{escape(m)}<dd>{escape(_NOTES.get(m, ''))}" for m in methods)
    key = colour_key(report.shown[0][0].alignment.alphabet)
    return f"<div class=reading><p class=lead>{_LEGEND}</p><dl>{notes}</dl>{key}</div>{BAR_DEFINITIONS}"


def _alignment(e: AlignmentExplanation, pairs: PairTable, card: Card, width: int) -> str:
    parts = (
        f"<p class=facts>{' <span class=dot>·</span> '.join(_told(e))}</p>",
        alignment_panel(e, width),
        _rest(e),
        f"<div class=ranks>{_probabilities(e, card)}{''.join(_ranks(e, found) for found in e.scores)}"
        f"{pair_map.pair_ranks(e, pairs)}</div>",
        pair_map.pair_map(e, pairs),
    )
    return f"<article>{''.join(parts)}</article>"


def _told(e: AlignmentExplanation) -> list[str]:
    facts = [
        f"called <b>{escape(e.label)}</b>",
        f"explained: {escape(e.target)}, probability {_bar(e.probability)}",
    ]
    described = e.alignment.metadata.get("DE") or e.alignment.metadata.get("ID")
    facts += [escape(" ".join(described.split()))] if described else []
    size = f"{count(e.alignment.rows, 'row')}, {count(e.alignment.columns, 'column')}"
    read = f"read {len(e.rows)} \N{MULTIPLICATION SIGN} {len(e.columns)}"
    return [*facts, size, read, f"query of {count(len(e.alignment.query()), 'letter')}"]


def _probabilities(e: AlignmentExplanation, card: Card) -> str:
    """Probability of each class, the highest first, and what is left of those that aren't shown."""
    order = np.argsort(-np.array(e.probabilities), kind="stable").tolist()
    rows = [[escape(card.classes[i]), _bar(e.probabilities[i])] for i in order[:MOST_CLASSES]]
    rest = sum(e.probabilities[i] for i in order[MOST_CLASSES:])
    rows += [["all others", _bar(rest)]] if len(order) > MOST_CLASSES else []
    return table(["class", "probability"], rows, "", "classes")


def _bar(share: float) -> str:
    long = 60 * min(1.0, max(0.0, share))
    return (
        f'<svg class=prob width=62 height=8 aria-hidden=true><path class=base d="M1 4h60"/>'
        f'<path class=part d="M1 4h{long:.0f}"/></svg> {fixed(share, 3)}'
    )


def _rest(e: AlignmentExplanation) -> str:
    """What the grid leaves out."""
    notes = []
    if len(e.rows) > MOST_ROWS:
        notes.append(f"{count(len(e.rows) - MOST_ROWS, 'more row')} that the model read")
    if len(e.rows) < e.alignment.rows:
        notes.append(f"{count(e.alignment.rows - len(e.rows), 'row')} of the file that it didn't read")
    if len(e.columns) < e.alignment.columns:
        left = e.alignment.columns - len(e.columns)
        notes.append(f"{count(left, 'column')} of the file that it didn't read")
    return f"<p class=note>Not drawn: {'; '.join(notes)}.</p>" if notes else ""


def _ranks(e: AlignmentExplanation, found: AlignmentScores) -> str:
    places, letters = e.alignment.query_positions(), e.alignment.text(0)
    rows = []
    for rank, index in enumerate(ranking(found.columns), start=1):
        column = int(e.columns[index])
        query = str(places[column] + 1) if places[column] >= 0 else pair_map.NO_PLACE
        score = number(float(found.columns[index]))
        rows.append([str(rank), str(column + 1), query, escape(letters[column]), score])
    return table(["rank", "column", "query", "letter", "score"], rows, "", escape(found.method))
