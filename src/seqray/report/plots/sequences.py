"""Figures of explained sequences: letters by their effects, and a track for each method."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from seqray.core import Alphabet, Floats
from seqray.core.results import Explanation
from seqray.report.html import offset, offset_ticks
from seqray.report.palette import Color
from seqray.report.plots.figure import (
    GAP_INCHES,
    HEAD_INCHES,
    MAX_RECORDS,
    Panel,
    draw_track,
    draw_zero,
    name_row,
    omitted_text,
    write_figure,
)
from seqray.report.plots.logo import draw_logo
from seqray.report.svg import letter_effects

_LETTER_INCHES = 0.11
_LOGO_INCHES, _TRACK_INCHES = 0.8, 0.5


def plot_explanations(
    path: str | Path, explanations: Sequence[Explanation], alphabet: Alphabet, site: int | None = None
) -> None:
    """Draw each record's letters by their effects and one track for each method.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``; a `ConfigError` for another ending.
    explanations
        Of any methods and members, in any order; those of a record are drawn together. At most 20 records
        are drawn, and the figure says how many are left out.
    alphabet
        Its letters are the columns of the effects.
    site
        Index in the record that is numbered +1 on the axis, such as the transcription start; positions are
        indices if None.
    """
    records: dict[int, list[Explanation]] = {}
    for explanation in explanations:
        records.setdefault(explanation.record, []).append(explanation)
    shown = list(records.values())[:MAX_RECORDS]
    panels = [panel for group in shown for panel in _record_panels(group, alphabet, -(site or 0))]
    longest = max((len(group[0].sequence) for group in shown), default=20)
    omitted = omitted_text(len(records) - len(shown), "record")
    write_figure(path, panels, _LETTER_INCHES * longest, omitted)


def _record_panels(group: Sequence[Explanation], alphabet: Alphabet, first: int) -> list[Panel]:
    panels = [
        Panel(GAP_INCHES, _TRACK_INCHES, lambda axes, e=e: _draw_scores(axes, e, first, e is group[-1]))
        for e in group
    ]
    effects = next((e.effects for e in group if e.effects is not None), None)
    if effects is not None:
        logo = letter_contributions(group[0].sequence, effects, alphabet)
        draw = lambda axes: _draw_effects(axes, logo, alphabet, first)  # noqa: E731
        panels.insert(0, Panel(GAP_INCHES, _LOGO_INCHES, draw))
    title = f"{group[0].id}   {group[0].target} {group[0].probability:.3f}"
    return [panels[0]._replace(above=HEAD_INCHES, title=title), *panels[1:]]


def letter_contributions(sequence: str, effects: Floats, alphabet: Alphabet) -> Floats:
    """(n, A): the contribution of each letter of the sequence in its column, 0 in the others.

    ``effects`` (n, A) are changes of the log-odds for each replacement.
    """
    codes = alphabet.encode(sequence)
    logo = np.zeros(effects.shape)
    known = np.flatnonzero(codes < alphabet.unknown)
    logo[known, codes[known]] = np.nan_to_num(letter_effects(effects)[known])
    return logo


def _draw_effects(axes: Axes, logo: Floats, alphabet: Alphabet, first: int) -> None:
    draw_logo(axes, logo, alphabet, first)
    draw_zero(axes, logo.sum(axis=1))
    name_row(axes, "effect, log-odds")
    _number_positions(axes, first, len(logo), labels=False)


def _draw_scores(axes: Axes, explanation: Explanation, first: int, labels: bool) -> None:
    member = "" if explanation.member == "mean" else f" ({explanation.member})"
    draw_track(axes, np.nan_to_num(explanation.scores), first, explanation.method + member)
    _number_positions(axes, first, len(explanation.scores), labels)


def _number_positions(axes: Axes, first: int, length: int, labels: bool) -> None:
    axes.set_xlim(first - 0.6, first + length - 0.4)
    step = 10 if length <= 300 else 50 if length <= 1500 else 500
    ticks = offset_ticks(first, first + length, step) if first else list(range(0, length, step))
    axes.set_xticks(ticks, [offset(tick) if first else str(tick) for tick in ticks])
    axes.tick_params(labelbottom=labels)
    if first:
        axes.axvline(0, color=Color.EDGE, linewidth=0.5, linestyle=":")
