"""Figures of explanations, alignments, faithfulness and motifs, as PNG, SVG or PDF.

Figures are made without pyplot, so nothing global is changed and no display is needed. The same input gives
the same bytes with the same version of matplotlib.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from matplotlib.transforms import Affine2D

from seqray.alignment_results import AlignmentExplanation, AlignmentScores
from seqray.alphabet import Alphabet
from seqray.errors import ConfigError
from seqray.explanations.column_pairs import PairTable
from seqray.io.files import open_output
from seqray.results import Curve, Explanation, Faithfulness, Floats, Motif

ENDINGS = ("png", "svg", "pdf")
MOST_RECORDS = 20
_LETTER_INCHES = 0.11
_LEFT_INCHES, _RIGHT_INCHES, _FOOT_INCHES = 1.5, 0.2, 0.4
_HEAD_INCHES, _GAP_INCHES = 0.5, 0.08  # above a record, above a further track
_DOTS_PER_INCH = 150
_COLUMN_INCHES, _MAP_INCHES = 0.05, 4.0  # a column of an alignment, and a map of its pairs
_LONGEST_INCHES = 100.0  # wider, matplotlib's PNG exceeds 2^16 dots

# Okabe and Ito (2008): told apart with every common form of colour blindness.
BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
YELLOW, BLUE, VERMILION, PURPLE = "#F0E442", "#0072B2", "#D55E00", "#CC79A7"
_GREY = "#999999"
_LINES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
LETTER_COLOURS = {"A": GREEN, "C": BLUE, "G": ORANGE, "T": PURPLE, "U": PURPLE}
_CHEMISTRY = {
    "DE": VERMILION,  # acidic
    "KRH": BLUE,  # basic
    "STNQ": GREEN,  # polar
    "GPC": ORANGE,  # special
    "FWY": PURPLE,  # aromatic
    "AVLIM": BLACK,  # aliphatic
}
RESIDUE_COLOURS = {letter: colour for letters, colour in _CHEMISTRY.items() for letter in letters}


# ------------------------------------------------------------------------------------------------ files


def check_figure_path(path: str | Path) -> str:
    """The format that the end of a file's name stands for.

    Raises
    ------
    ConfigError
        For any but ``.png``, ``.svg`` and ``.pdf``.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ENDINGS:
        raise ConfigError(f"'{path}' names no format of figures by its end", remedy="use .png, .svg or .pdf")
    return ending


def _save(figure: Figure, path: str | Path, kind: str) -> None:
    # Dates and random identifiers would make each run's file differ; text stays text in SVG.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    buffer = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "seqray", "svg.fonttype": "none", "pdf.fonttype": 42}):
        figure.savefig(buffer, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata[kind])
    with open_output(path) as handle:
        handle.write(buffer.getvalue())


def _styled(axes: Axes) -> Axes:
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
    return axes


# ---------------------------------------------------------------------------------------------- letters


@cache
def _outline(letter: str) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and codes of a letter that fills the square from 0 to 1."""
    path = TextPath((0, 0), letter, size=1, prop=FontProperties(family="DejaVu Sans", weight="bold"))
    box = path.get_extents()
    # I is a bar: drawn as wide as an M it would be a block.
    share = 0.4 if letter == "I" else 1.0
    fit = Affine2D().translate(-box.x0, -box.y0).scale(share / box.width, 1 / box.height)
    fit.translate((1 - share) / 2, 0)
    return fit.transform(path.vertices), np.asarray(path.codes)


def draw_logo(axes: Axes, heights: Floats, letters: str, colours: dict[str, str], first: float = 0) -> None:
    """Stack letters at each place, the tallest outermost; those below 0 hang upside down.

    Parameters
    ----------
    heights
        (n, A) signed height of each letter at each place.
    letters
        The A letters of the columns.
    first
        Where the first place is on the x axis; a letter takes the width from -0.5 to 0.5 about its place.
    """
    order = np.argsort(np.abs(heights), axis=1)
    sorted_heights = np.take_along_axis(heights, order, axis=1)
    tops = np.where(sorted_heights > 0, np.cumsum(np.maximum(sorted_heights, 0), axis=1), 0)
    tops += np.where(sorted_heights < 0, np.cumsum(np.minimum(sorted_heights, 0), axis=1), 0)
    for code, letter in enumerate(letters):
        places, layers = np.nonzero((order == code) & (sorted_heights != 0))
        if len(places):
            tall, top = sorted_heights[places, layers], tops[places, layers]
            outline = _copies(letter, np.asarray(places + first - 0.47, np.float64), top - tall, tall)
            axes.add_patch(PathPatch(outline, facecolor=colours.get(letter, BLACK), linewidth=0))


def _copies(letter: str, left: Floats, base: Floats, tall: Floats) -> Outline:
    """One path of many copies of a letter: a figure of twenty records has thousands of them."""
    vertices, codes = _outline(letter)
    many = np.stack(
        [
            left[:, None] + 0.94 * vertices[None, :, 0],
            base[:, None] + tall[:, None] * vertices[None, :, 1],
        ],
        axis=2,
    )
    return Outline(many.reshape(-1, 2), np.tile(codes, len(left)))


def _colours(alphabet_name: str) -> dict[str, str]:
    return RESIDUE_COLOURS if alphabet_name == "protein" else LETTER_COLOURS


# ----------------------------------------------------------------------------------------- explanations


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
    width = min(_LONGEST_INCHES, max(6.0, _LEFT_INCHES + _RIGHT_INCHES + _LETTER_INCHES * longest))
    figure = _stack(panels, width)
    left_out = len(records) - len(shown)
    if left_out:
        text = f"{left_out} more {'record is' if left_out == 1 else 'records are'} not shown"
        figure.text(0.99, 0.002, text, ha="right", va="bottom", fontsize=8)
    _save(figure, path, kind)


class _Panel(NamedTuple):
    """One strip of a figure: inches of space above it, its height in inches, and who draws it."""

    above: float
    height: float
    draw: Callable[[Axes], None]


def _stack(panels: Sequence[_Panel], width: float) -> Figure:
    """A figure of panels one below the other."""
    # Placed by hand: matplotlib's layout engines need a minute for a hundred axes.
    total = sum(panel.above + panel.height for panel in panels) + _FOOT_INCHES
    figure = Figure(figsize=(width, total))
    bottom = total
    for above, height, draw in panels:
        bottom -= above + height
        left, right = _LEFT_INCHES / width, _RIGHT_INCHES / width
        draw(_styled(figure.add_axes((left, bottom / total, 1 - left - right, height / total))))
    return figure


def _record_panels(group: Sequence[Explanation], alphabet: Alphabet, site: int | None) -> list[_Panel]:
    first, last = group[0], group[-1]
    origin = -(site or 0)
    draws: list[tuple[float, Callable[[Axes], None]]] = []
    effects = next((e.effects for e in group if e.effects is not None), None)
    if effects is not None:
        logo = letter_contributions(first.sequence, effects, alphabet)
        draws.append((0.8, lambda axes: _draw_effects(axes, logo, alphabet, origin)))
    draws += [(0.5, lambda axes, e=e: _draw_track(axes, e, origin, labels=e is last)) for e in group]
    panels = [_Panel(_GAP_INCHES, height, draw) for height, draw in draws]
    title = f"{first.id}   {first.target} {first.probability:.3f}"
    panels[0] = panels[0]._replace(above=_HEAD_INCHES, draw=_with_title(panels[0].draw, title))
    return panels


def _with_title(draw: Callable[[Axes], None], title: str) -> Callable[[Axes], None]:
    def draw_both(axes: Axes) -> None:
        draw(axes)
        axes.set_title(title, loc="left", fontsize=9, parse_math=False)

    return draw_both


def letter_contributions(sequence: str, effects: Floats, alphabet: Alphabet) -> Floats:
    """(n, A): at the letter that stands there, minus the mean effect of putting another; 0 elsewhere."""
    codes = alphabet.encode(sequence)
    others = len(alphabet.letters) - 1  # the effect of the letter itself is 0
    logo = np.zeros(effects.shape)
    known = np.flatnonzero(codes < alphabet.unknown)
    logo[known, codes[known]] = -np.nan_to_num(effects[known]).sum(axis=1) / others
    return logo


def _draw_effects(axes: Axes, logo: Floats, alphabet: Alphabet, origin: int) -> None:
    draw_logo(axes, logo, alphabet.letters, _colours(alphabet.name), origin)
    axes.axhline(0, color=_GREY, linewidth=0.5)
    axes.set_ylim(*_limits(logo.sum(axis=1)))
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
    axes.axhline(0, color=_GREY, linewidth=0.5)
    low, high = _limits(explanation.scores)
    axes.set_ylim(low, high)
    member = "" if explanation.member == "mean" else f" ({explanation.member})"
    axes.set_ylabel(explanation.method + member, fontsize=7, rotation=0, ha="right", va="center")
    _place_axis(axes, origin, len(left))
    axes.tick_params(labelbottom=labels)


def _limits(values: Floats) -> tuple[float, float]:
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    pad = 0.05 * (high - low) or 1.0
    return (low - pad if low < 0 else 0.0), high + pad


def _place_axis(axes: Axes, origin: int, length: int) -> None:
    axes.set_xlim(origin - 0.6, origin + length - 0.4)
    step = 10 if length <= 300 else 50 if length <= 1500 else 500
    start = int(np.ceil(origin / step)) * step
    axes.set_xticks(np.arange(start, origin + length, step))
    if origin:
        axes.axvline(0, color=_GREY, linewidth=0.5, linestyle=":")


# ------------------------------------------------------------------------------------------ alignments


def plot_alignments(path: str | Path, shown: Sequence[tuple[AlignmentExplanation, PairTable]]) -> None:
    """Draw each alignment's profile of columns, a track for each method, and the map of its pairs.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``.
    shown
        Explanations with their pairs. At most 20 are drawn, and the figure says how many are left out.

    Raises
    ------
    ConfigError
        For another ending.
    InputError
        Where the file can't be written.
    """
    kind = check_figure_path(path)
    panels = [panel for one in shown[:MOST_RECORDS] for panel in _alignment_panels(*one)]
    longest = max((one.alignment.columns for one, _ in shown[:MOST_RECORDS]), default=20)
    width = min(_LONGEST_INCHES, max(6.0, _LEFT_INCHES + _RIGHT_INCHES + _COLUMN_INCHES * longest))
    figure = _stack(panels, width)
    left_out = len(shown) - MOST_RECORDS
    if left_out > 0:
        text = f"{left_out} more {'alignment is' if left_out == 1 else 'alignments are'} not shown"
        figure.text(0.99, 0.002, text, ha="right", va="bottom", fontsize=8)
    _save(figure, path, kind)


def _alignment_panels(e: AlignmentExplanation, found: PairTable) -> list[_Panel]:
    panels = [
        _Panel(_GAP_INCHES, 0.6, lambda axes, s=s: _draw_columns(axes, e, s, labels=s is e.scores[-1]))
        for s in e.scores
    ]
    title = f"{e.id}   {e.target} {e.probability:.3f}"
    panels[0] = panels[0]._replace(above=1.5 * _HEAD_INCHES, draw=_with_title(panels[0].draw, title))
    if (pairs := e.pairs) is not None:
        panels.append(_Panel(_HEAD_INCHES, _MAP_INCHES, lambda axes: _draw_pairs(axes, e, pairs, found)))
    return panels


def _draw_columns(axes: Axes, e: AlignmentExplanation, found: AlignmentScores, labels: bool) -> None:
    scores = np.nan_to_num(e.by_column(found))
    colours = np.where(scores < 0, VERMILION, BLUE)
    axes.bar(np.arange(1, len(scores) + 1), scores, width=0.9, color=colours.tolist(), linewidth=0)
    axes.axhline(0, color=_GREY, linewidth=0.5)
    axes.set_ylim(*_limits(scores))
    axes.set_xlim(0.4, len(scores) + 0.6)
    axes.set_ylabel(found.method, fontsize=7, rotation=0, ha="right", va="center")
    axes.tick_params(labelbottom=labels)
    if labels:
        axes.set_xlabel("column of the alignment", fontsize=7)


def _draw_pairs(axes: Axes, e: AlignmentExplanation, pairs: Floats, found: PairTable) -> None:
    """Scores above the diagonal; the pairs of the structure below it."""
    far = e.columns - e.columns[:, None] >= found.separation
    first, last = e.columns[0], e.columns[-1]
    size = last - first + 1  # a file may be far wider than what is read of it
    full = np.full((size, size), np.nan)
    full[np.ix_(e.columns - first, e.columns - first)] = np.where(far, np.maximum(pairs, 0), 0)
    edge = (first + 0.5, last + 1.5, last + 1.5, first + 0.5)
    axes.imshow(full, cmap="Purples", extent=edge, interpolation="nearest", aspect="equal")
    axes.set_anchor("W")
    if found.structure:
        known = np.array(sorted(found.structure)) + 1
        axes.scatter(known[:, 0], known[:, 1], s=4, color=GREEN, linewidths=0, label="SS_cons")
        axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    axes.set_xlabel("column of the alignment", fontsize=7)
    axes.set_ylabel("pairs", fontsize=7, rotation=0, ha="right", va="center")


# ------------------------------------------------------------------------------------- faithfulness


def plot_curves(path: str | Path, faithfulness: Faithfulness) -> None:
    """Draw the deletion and insertion curves of all methods, with their intervals.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``.
    """
    kind = check_figure_path(path)
    kinds = sorted({curve.kind for curve in faithfulness.curves})
    methods = sorted({curve.method for curve in faithfulness.curves} - {"random"})
    colours = {"random": _GREY} | {name: _LINES[i % len(_LINES)] for i, name in enumerate(methods)}
    figure = Figure(figsize=(4.5 * max(1, len(kinds)) + 1.5, 3.5), layout="constrained")
    for place, each in enumerate(kinds):
        axes = _styled(figure.add_subplot(1, len(kinds), place + 1))
        for curve in (c for c in faithfulness.curves if c.kind == each):
            _draw_curve(axes, curve, colours[curve.method])
        axes.set_title(each, loc="left", fontsize=9)
        axes.set_xlabel("share of letters " + ("replaced" if each == "deletion" else "put back"), fontsize=8)
        axes.set_ylabel("log-odds of the class", fontsize=8)
        if place == len(kinds) - 1:
            axes.legend(fontsize=7, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    _save(figure, path, kind)


def _draw_curve(axes: Axes, curve: Curve, colour: str) -> None:
    style = "--" if curve.method == "random" else "-"
    axes.plot(curve.shares, curve.mean, color=colour, linestyle=style, linewidth=1.2, label=curve.method)
    axes.fill_between(curve.shares, curve.low, curve.high, color=colour, alpha=0.2, linewidth=0)


# ------------------------------------------------------------------------------------------- motifs


def plot_motifs(path: str | Path, motifs: Sequence[Motif], site: int | None = None) -> None:
    """Draw each motif as a logo in bits, beside the histogram of its positions.

    Parameters
    ----------
    path
        ``.png``, ``.svg`` or ``.pdf``.
    site
        Index in the record that is numbered 0 on the histogram's axis; index 0 if None.
    """
    kind = check_figure_path(path)
    figure = Figure(figsize=(8.0, 1.9 * max(1, len(motifs))), layout="constrained")
    reach = [motif.positions - (site or 0) for motif in motifs]
    every = np.concatenate([np.zeros(0, dtype=np.int64), *reach])
    for row, motif in enumerate(motifs):
        logo, histogram = (figure.add_subplot(len(motifs), 2, 2 * row + side) for side in (1, 2))
        _draw_motif(_styled(logo), motif)
        _draw_positions(
            _styled(histogram), reach[row], every, "index" if site is None else "relative to the site"
        )
    if not motifs:
        figure.text(0.5, 0.5, "no motif was found", ha="center", va="center")
    _save(figure, path, kind)


def _draw_motif(axes: Axes, motif: Motif) -> None:
    shares = motif.counts / np.maximum(motif.counts.sum(axis=1, keepdims=True), 1)
    colours = _colours("protein" if len(motif.letters) > 4 else "dna")
    draw_logo(axes, shares * motif.bits[:, None], motif.letters, colours, 1)
    axes.set_xlim(0.4, len(shares) + 0.6)
    axes.set_ylim(0, max(np.log2(len(motif.letters)), float(motif.bits.max(initial=0))))
    axes.set_xticks(np.arange(1, len(shares) + 1))
    axes.set_ylabel("bits", fontsize=8)
    known = f", {motif.known} {motif.similarity:.2f}" if motif.known else ""
    axes.set_title(f"{motif.name}  {motif.consensus}  ({motif.sites} sites{known})", loc="left", fontsize=8)


def _draw_positions(axes: Axes, positions: np.ndarray, every: np.ndarray, label: str) -> None:
    low, high = int(every.min()), int(every.max())
    step = max(1, -(-(high - low + 1) // 100))  # at most a hundred bars
    axes.hist(positions, bins=(np.arange(low, high + step + 1, step) - 0.5).tolist(), color=BLUE, linewidth=0)
    axes.set_xlim(low - step, high + step)
    axes.set_xlabel(f"first place, {label}", fontsize=8)
    axes.set_ylabel("sites", fontsize=8)
