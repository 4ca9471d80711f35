"""Figures over all calls: where they lie, how far from the next gene, and how high they score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from markupsafe import Markup

from seqray.core.results import CallContext
from seqray.report.html import wide_table
from seqray.report.svg import Frame, number_ticks, round_ticks

PLACES = (
    "upstream of a gene, between genes",
    "at the first letter of a gene",
    "upstream of a gene, inside another gene",
    "inside a gene, on its strand",
    "inside a gene, antisense",
    "between genes, no gene follows",
)


def place_index(context: CallContext) -> int:
    """Which of `PLACES` a call lies in."""
    if context.gene:
        if context.distance == 0:
            return 1
        return 2 if context.within else 0
    if context.within:
        return 3 if context.within_strand == "same" else 4
    return 5


def places_table(contexts: Sequence[CallContext]) -> Markup:
    """Number and share of calls in each place, with bars."""
    counts = np.bincount([place_index(context) for context in contexts], minlength=len(PLACES)).tolist()
    rows = []
    for place, many in zip(PLACES, counts, strict=True):
        share = 100 * many / len(contexts)
        drawn = f"<path d='M0 6h{round(1.6 * share)}'/>"
        bar = f"<td><svg class=part width=160 height=12 aria-hidden=true>{drawn}</svg>"
        figures = (f"<td class=n>{many:,}", f"<td class=n>{share:.0f} %", bar)
        rows.append([place, *map(Markup, figures)])
    return wide_table(("place", "calls", "share", ""), rows, "places")


def distance_plot(distances: Sequence[int]) -> Markup:
    """Histogram of the letters from a call to the first letter of the gene that it drives."""
    edges = np.arange(0, 501, 10)
    counts = np.histogram(np.clip(distances, 0, 500), bins=edges)[0]
    return _histogram(
        edges.tolist(),
        counts.tolist(),
        {float(place): str(place) for place in range(0, 501, 100)},
        "letters from the call to the gene",
    )


def score_plot(scores: Sequence[float]) -> Markup:
    """Histogram of the scores of all calls."""
    edges = np.linspace(0, 1, 41)
    counts = np.histogram(scores, bins=edges)[0]
    return _histogram(edges.tolist(), counts.tolist(), number_ticks(0.0, 1.0), "score of the call")


def _histogram(
    edges: Sequence[float], counts: Sequence[int], ticks: Mapping[float, str], title: str
) -> Markup:
    top = float(max(1, *counts))
    frame = Frame(edges[0], edges[-1], 0.0, top, 430, 210)
    whole = {tick: str(int(tick)) for tick in round_ticks(0.0, top, 4) if tick == int(tick)}
    body = frame.ticks_y(whole) + frame.bars("bin", edges, counts) + frame.ticks_x(ticks)
    return frame.drawing(body, title, "calls", f"Number of calls by {title}")
