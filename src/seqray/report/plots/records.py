"""Explanations of records: letters by their effects, and a track for each method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from seqray.core import Alphabet, Floats
from seqray.core.results import Explanation
from seqray.report.plots.letters import draw_logo, letter_colours
from seqray.report.plots.style import (
    BLUE,
    GAP_INCHES,
    GREY,
    HEAD_INCHES,
    LEFT_INCHES,
    LETTER_INCHES,
    LONGEST_INCHES,
    MOST_RECORDS,
    RIGHT_INCHES,
    VERMILION,
    Panel,
    check_figure_path,
    limits,
    save,
    stack,
    with_title,
)


def plot_explanations(
    path: str | Path, explanations: Sequence[Explanation], alphabet: Alphabet, site: int | None = None
) -> None:
    """Draw each record's letters by their effects and one track for each method.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``.
    explanations
        Of any methods and members, in any order; those of a record are drawn together. At most 20 records
        are drawn, and the figure says how many are left out.
    site
        Index in the record that is numbered 0 on the axis, such as the transcription start; index 0 if
        None.

    Raises
    ------
    ConfigError
        For another ending.
    InputError
        Where the file can't be written.
    """
    kind = check_figure_path(path)
    records: dict[int, list[Explanation]] = {}
    for explanation in explanations:
        records.setdefault(explanation.record, []).append(explanation)
    shown = list(records.values())[:MOST_RECORDS]
    panels = [panel for group in shown for panel in _record_panels(group, alphabet, site)]
    longest = max((len(group[0].sequence) for group in shown), default=20)
    width = min(LONGEST_INCHES, max(6.0, LEFT_INCHES + RIGHT_INCHES + LETTER_INCHES * longest))
    figure = stack(panels, width)
    left_out = len(records) - len(shown)
    if left_out:
        text = f"{left_out} more {'record is' if left_out == 1 else 'records are'} not shown"
        figure.text(0.99, 0.002, text, ha="right", va="bottom", fontsize=8)
    save(figure, path, kind)


def _record_panels(group: Sequence[Explanation], alphabet: Alphabet, site: int | None) -> list[Panel]:
    first, last = group[0], group[-1]
    origin = -(site or 0)
    draws: list[tuple[float, Callable[[Axes], None]]] = []
    effects = next((e.effects for e in group if e.effects is not None), None)
    if effects is not None:
        logo = letter_contributions(first.sequence, effects, alphabet)
        draws.append((0.8, lambda axes: _draw_effects(axes, logo, alphabet, origin)))
    draws += [(0.5, lambda axes, e=e: _draw_track(axes, e, origin, labels=e is last)) for e in group]
    panels = [Panel(GAP_INCHES, height, draw) for height, draw in draws]
    title = f"{first.id}   {first.target} {first.probability:.3f}"
    panels[0] = panels[0]._replace(above=HEAD_INCHES, draw=with_title(panels[0].draw, title))
    return panels


def letter_contributions(sequence: str, effects: Floats, alphabet: Alphabet) -> Floats:
    """(n, A): at the letter that stands there, minus the mean effect of putting another; 0 elsewhere."""
    codes = alphabet.encode(sequence)
    others = len(alphabet.letters) - 1  # the effect of the letter itself is 0
    logo = np.zeros(effects.shape)
    known = np.flatnonzero(codes < alphabet.unknown)
    logo[known, codes[known]] = -np.nan_to_num(effects[known]).sum(axis=1) / others
    return logo


def _draw_effects(axes: Axes, logo: Floats, alphabet: Alphabet, origin: int) -> None:
    draw_logo(axes, logo, alphabet.letters, letter_colours(alphabet.name), origin)
    axes.axhline(0, color=GREY, linewidth=0.5)
    axes.set_ylim(*limits(logo.sum(axis=1)))
    axes.set_ylabel("effect, log-odds", fontsize=7, rotation=0, ha="right", va="center")
    _place_axis(axes, origin, len(logo))
    axes.tick_params(labelbottom=False)


def _draw_track(axes: Axes, explanation: Explanation, origin: int, labels: bool) -> None:
    left = np.arange(len(explanation.scores)) + origin - 0.45
    zero = np.zeros(len(left))
    corners = [(left, zero), (left, explanation.scores), (left + 0.9, explanation.scores), (left + 0.9, zero)]
    bars = np.array(corners).transpose(2, 0, 1)  # one collection: a patch for each bar takes seconds
    colours = np.where(explanation.scores < 0, VERMILION, BLUE)
    axes.add_collection(PolyCollection(list(bars), facecolors=list(colours), linewidths=0))
    axes.axhline(0, color=GREY, linewidth=0.5)
    low, high = limits(explanation.scores)
    axes.set_ylim(low, high)
    member = "" if explanation.member == "mean" else f" ({explanation.member})"
    axes.set_ylabel(explanation.method + member, fontsize=7, rotation=0, ha="right", va="center")
    _place_axis(axes, origin, len(left))
    axes.tick_params(labelbottom=labels)


def _place_axis(axes: Axes, origin: int, length: int) -> None:
    axes.set_xlim(origin - 0.6, origin + length - 0.4)
    step = 10 if length <= 300 else 50 if length <= 1500 else 500
    start = int(np.ceil(origin / step)) * step
    axes.set_xticks(np.arange(start, origin + length, step))
    if origin:
        axes.axvline(0, color=GREY, linewidth=0.5, linestyle=":")
