"""Plots by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

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

from seqray.core.alphabet import ALPHABETS, Alphabet, infer_alphabet
from seqray.core.arrays import Floats
from seqray.core.errors import ConfigError
from seqray.core.explanation import AlignmentExplanation, AlignmentScores, Explanation
from seqray.explanations.options import MAX_SHOWN_RADIUS
from seqray.io.files import write_file
from seqray.report.html import offset, offset_ticks
from seqray.report.palette import OPPOSE, SUPPORT, Color, letter_color
from seqray.report.svg.rows import letter_effects

if TYPE_CHECKING:
    import pandas as pd

# --- What all figures share: sizes, panels, tracks of scores, and how a file is written

MAX_RECORDS, MAX_NAMED = 20, 30
GAPS = ("-", ".")
HEAD_INCHES, GAP_INCHES = 0.5, 0.08  # above a record, above a further track
_LEFT_INCHES, _RIGHT_INCHES, _FOOT_INCHES = 1.5, 0.2, 0.4
_MIN_WIDTH_INCHES, _MAX_WIDTH_INCHES = 6.0, 100.0  # wider, matplotlib's PNG exceeds 2^16 dots
_DOTS_PER_INCH = 150


class Panel(NamedTuple):
    """One strip of a figure: space above it and height in inches, how it is drawn, and its title."""

    above: float
    height: float
    draw: Callable[[Axes], None]
    title: str = ""


class Drawing(Figure):
    """A figure that a notebook shows, also where pyplot was never imported."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        with own_style():
            self.savefig(buffer, format="png", dpi=_DOTS_PER_INCH)
        return buffer.getvalue()


def strips(title: str, above: float, *tracks: tuple[float, Callable[[Axes], None]]) -> list[Panel]:
    """Panels of a record, its title above the first, from the height of each and how it is drawn."""
    first, *others = (Panel(GAP_INCHES, height, draw) for height, draw in tracks)
    return [first._replace(above=above, title=title), *others]


@contextmanager
def own_style() -> Iterator[None]:
    """Draw as matplotlib does without any settings of the user, and leave those as they are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "seqray", "svg.fonttype": "none", "pdf.fonttype": 42})
        yield


@own_style()
def draw_figure(
    panels: Sequence[Panel],
    inches: float,
    omitted: int = 0,
    unit: str = "record",
    ax: Axes | None = None,
    xlabel: str = "",
) -> Figure:
    """Draw panels one below the other, ``inches`` wide; the figure says how many units are ``omitted``.

    A single panel can be drawn into axes ``ax``. The last one names the x axis.
    """
    if ax is not None and len(panels) != 1:
        what = f"'ax' has place for one strip, and the frame has {len(panels)}"
        raise ConfigError(what, remedy="choose one record, method and member, or one contig")
    width = min(_MAX_WIDTH_INCHES, max(_MIN_WIDTH_INCHES, _LEFT_INCHES + _RIGHT_INCHES + inches))
    # Placed by hand: matplotlib's layout engines need a minute for a hundred axes.
    total = sum(panel.above + panel.height for panel in panels) + _FOOT_INCHES
    figure = Drawing(figsize=(width, total))
    left, right, bottom = _LEFT_INCHES / width, _RIGHT_INCHES / width, total
    for panel in panels:
        bottom -= panel.above + panel.height
        place = (left, bottom / total, 1 - left - right, panel.height / total)
        axes = figure.add_axes(place) if ax is None else ax
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7)
        panel.draw(axes)
        axes.set_title(panel.title, loc="left", fontsize=9, parse_math=False)
        if xlabel and panel is panels[-1]:
            axes.set_xlabel(xlabel, fontsize=7)
    if ax is not None:
        return cast(Figure, ax.get_figure(root=True))
    if omitted > 0:
        text = f"{omitted} more {f'{unit} is' if omitted == 1 else f'{unit}s are'} not shown"
        figure.text(0.99, 0.002, text, ha="right", va="bottom", fontsize=8)
    return figure


def write_figure(path: str | Path, panels: Sequence[Panel], inches: float, omitted: int, unit: str) -> None:
    """Write what `draw_figure` draws as a ``.png``, ``.svg`` or ``.pdf``."""
    kind = Path(path).suffix.lower().removeprefix(".")
    # Dates and random identifiers would make each run's file differ; text stays text in SVG.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
    if kind not in metadata:
        raise ConfigError(f"'{path}' does not end in a format of figures", remedy="use .png, .svg or .pdf")
    figure, buffer = draw_figure(panels, inches, omitted, unit), io.BytesIO()
    with own_style():
        figure.savefig(buffer, format=kind, dpi=_DOTS_PER_INCH, metadata=metadata[kind])
    write_file(path, buffer.getvalue())


def name_row(axes: Axes, name: str) -> None:
    """Write the name of a panel on its left."""
    axes.set_ylabel(name, fontsize=7, rotation=0, ha="right", va="center")


def draw_track(axes: Axes, scores: Floats, first: float, name: str) -> None:
    """Draw finite scores (n,) from the place ``first`` on as bars, those below 0 in another color."""
    left = np.arange(len(scores)) + first - 0.45
    zero = np.zeros(len(left))
    corners = [(left, zero), (left, scores), (left + 0.9, scores), (left + 0.9, zero)]
    bars = np.array(corners).transpose(2, 0, 1)  # one collection: a patch for each bar takes seconds
    colors = np.where(scores < 0, OPPOSE.value, SUPPORT.value)
    axes.add_collection(PolyCollection(list(bars), facecolors=list(colors), linewidths=0))
    axes.set_xlim(first - 0.6, first + len(scores) - 0.4)
    name_row(axes, name)
    draw_zero(axes, scores)


def draw_zero(axes: Axes, values: Floats) -> None:
    """Draw the line of 0, and let the y axis cover the values."""
    axes.axhline(0, color=Color.EDGE, linewidth=0.5)
    low, high = min(0.0, float(values.min(initial=0))), max(0.0, float(values.max(initial=0)))
    pad = 0.05 * (high - low) or 1.0
    axes.set_ylim(low - pad if low < 0 else 0.0, high + pad)


# --- Letters drawn as tall as a number says: logos


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


def draw_logo(axes: Axes, heights: Floats, alphabet: Alphabet, first: float = 0) -> None:
    """Stack letters of signed heights (n, A), the tallest outermost; those below 0 hang upside down."""
    order = np.argsort(np.abs(heights), axis=1)
    sorted_heights = np.take_along_axis(heights, order, axis=1)
    tops = np.where(sorted_heights > 0, np.cumsum(np.maximum(sorted_heights, 0), axis=1), 0)
    tops += np.where(sorted_heights < 0, np.cumsum(np.minimum(sorted_heights, 0), axis=1), 0)
    for code, letter in enumerate(alphabet.letters):
        places, layers = np.nonzero((order == code) & (sorted_heights != 0))
        if not len(places):
            continue
        tall, top = sorted_heights[places, layers], tops[places, layers]
        left, base = np.asarray(places + first - 0.47, np.float64), top - tall
        # One path of many copies of a letter: a figure of twenty records has thousands of them.
        vertices, codes = _outline(letter)
        x = left[:, None] + 0.94 * vertices[None, :, 0]
        y = base[:, None] + tall[:, None] * vertices[None, :, 1]
        copies = Outline(np.stack([x, y], axis=2).reshape(-1, 2), np.tile(codes, len(left)))
        axes.add_patch(PathPatch(copies, facecolor=letter_color(letter, alphabet), linewidth=0))


# --- Figures of explained alignments: profiles of columns

_COLUMN_INCHES = 0.05
_TRACK_INCHES = 0.6


def plot_alignments(path: str | Path, shown: Sequence[AlignmentExplanation]) -> None:
    """Draw each alignment's profile of columns, a track for each method; at most 20 are drawn."""
    drawn = shown[:MAX_RECORDS]
    panels = []
    for e in drawn:
        tracks = [(_TRACK_INCHES, partial(_draw_columns, e=e, scores=scores)) for scores in e.scores]
        panels += strips(f"{e.id}   {e.target} {e.probability:.3f}", 1.5 * HEAD_INCHES, *tracks)
    longest = max((e.alignment.columns for e in drawn), default=20)
    write_figure(path, panels, _COLUMN_INCHES * longest, len(shown) - len(drawn), "alignment")


def _draw_columns(axes: Axes, e: AlignmentExplanation, scores: AlignmentScores) -> None:
    draw_track(axes, np.nan_to_num(e.by_column(scores)), 1, scores.method)
    axes.tick_params(labelbottom=scores is e.scores[-1])
    if scores is e.scores[-1]:
        axes.set_xlabel("column of the alignment", fontsize=7)


# --- Figures of explained sequences: letters by their effects, and a track for each method

_LETTER_INCHES = 0.11
_LOGO_INCHES, _SEQUENCES_TRACK_INCHES = 0.8, 0.5
_NAME_POINTS, _NAME_LEVELS = 6, (0.45, 0.15, 0.75, 1.05)  # size of names of genes, and how high they stand


def plot_explanations(
    path: str | Path, explanations: Sequence[Explanation], alphabet: Alphabet, site: int | None = None
) -> None:
    """Draw the letters of at most 20 records by their effects, and a track a method; the ``site`` is +1."""
    records: dict[int, list[Explanation]] = {}
    for explanation in explanations:
        records.setdefault(explanation.record, []).append(explanation)
    shown = list(records.values())[:MAX_RECORDS]
    first = -(site or 0)
    panels = []
    for group in shown:
        tracks: list[tuple[float, Callable[[Axes], None]]] = []
        effects = next((e.effects for e in group if e.effects is not None), None)
        if effects is not None:
            logo = letter_contributions(group[0].sequence, effects, alphabet)
            tracks.append((_LOGO_INCHES, partial(_draw_effects, logo=logo, alphabet=alphabet, first=first)))
        for e in group:
            draw = partial(_draw_scores, explanation=e, first=first, labels=e is group[-1])
            tracks.append((_SEQUENCES_TRACK_INCHES, draw))
        title = f"{group[0].id}   {group[0].target} {group[0].probability:.3f}"
        panels += strips(title, HEAD_INCHES, *tracks)
    longest = max((len(group[0].sequence) for group in shown), default=20)
    write_figure(path, panels, _LETTER_INCHES * longest, len(records) - len(shown), "record")


def letter_contributions(sequence: str, effects: Floats, alphabet: Alphabet) -> Floats:
    """(n, A): the contribution of each letter of the sequence, by `letter_effects`; 0 in other columns."""
    codes = alphabet.encode(sequence)
    logo = np.zeros(effects.shape)
    canonical = np.flatnonzero(codes < alphabet.unknown)
    logo[canonical, codes[canonical]] = np.nan_to_num(letter_effects(effects)[canonical])
    return logo


def _draw_effects(
    axes: Axes,
    logo: Floats,
    alphabet: Alphabet,
    first: int = 0,
    name: str = "effect, log-odds",
    labels: bool = False,
) -> None:
    draw_logo(axes, logo, alphabet, first)
    draw_zero(axes, logo.sum(axis=1))
    name_row(axes, name)
    _number_positions(axes, first, len(logo), labels)


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


# --- Figures of frames and results, for notebooks


class plot:  # noqa: N801 - `seqray.plot` groups functions
    """Figures of what seqray returns: each is a `matplotlib.figure.Figure`, without the state of pyplot."""

    @staticmethod
    def logo(letters: pd.DataFrame, values: str = "score", *, ax: Axes | None = None) -> Figure:
        """Draw letters as tall as their values: a strip for each record, method and member.

        Parameters
        ----------
        letters
            What `seqray.explain` gave for sequences or alignments; the first 20 records are drawn. Of calls
            in genomes the 100 bases on either side of the site are drawn, with positions on the contig.
        values
            The column of the heights, such as ``score`` or ``ism_delta``.
        ax
            Where a single strip is drawn; else in a new figure.
        """
        _require_columns(letters, ("record", values), "seqray.explain")
        place, base = ("column", "letter") if "column" in letters else ("position", "base")
        frame: Any = letters
        named = letters.attrs.get("alphabet")
        alphabet = ALPHABETS[named] if named else infer_alphabet(frame[base][~frame[base].isin(GAPS)])
        names = frame["record"].unique()
        keys = [name for name in ("record", "method", "member") if name in frame]
        panels, longest, before = [], 20, None
        for (record, *track), rows in frame[frame["record"].isin(names[:MAX_RECORDS])].groupby(
            keys, sort=False
        ):
            site = letters.attrs.get("site")
            first = 0 if site is None else max(0, site - MAX_SHOWN_RADIUS)
            rows = rows if site is None else rows[rows[place].between(first, site + MAX_SHOWN_RADIUS)]
            logo = np.zeros((int(rows[place].max()) + 1 - first, len(alphabet.letters) + 1))
            drawn = rows[~rows[base].isin(GAPS)]
            codes = alphabet.encode("".join(drawn[base])).clip(max=len(alphabet.letters))
            logo[drawn[place] - first, codes] = np.nan_to_num(drawn[values])
            name = " ".join(word for word in track if word != "mean")
            places = rows.set_index(rows[place] - first).get("genomic_position")
            draw = partial(_draw_letters, places=places, logo=logo[:, :-1], alphabet=alphabet, name=name)
            title, above = (record, HEAD_INCHES) if record != before else ("", 3 * GAP_INCHES)
            panels.append(Panel(above, _LOGO_INCHES, draw, title))
            longest, before = max(longest, len(logo)), record
        xlabel = "column of the alignment" if place == "column" else "position, from 0"
        return draw_figure(panels, _LETTER_INCHES * longest, len(names) - MAX_RECORDS, ax=ax, xlabel=xlabel)

    @staticmethod
    def calls(calls: pd.DataFrame, *, ax: Axes | None = None) -> Figure:
        """Draw each call of a scan by its site and score, those of the minus strand downwards.

        Parameters
        ----------
        calls
            What `seqray.scan` gave; the first 20 contigs are drawn, the threshold as a dotted line. The 30
            best calls of each have the names of their genes where there is room.
        ax
            Where a single contig is drawn; else in a new figure.
        """
        _require_columns(calls, ("contig", "site", "score"), "seqray.scan")
        contigs = list(calls.groupby("contig", sort=False))
        panels = [
            Panel(HEAD_INCHES, _LOGO_INCHES, partial(_draw_calls, rows=rows, attrs=calls.attrs), str(name))
            for name, rows in contigs[:MAX_RECORDS]
        ]
        return draw_figure(panels, 8, len(contigs) - MAX_RECORDS, "contig", ax, "position, from 0")


def _require_columns(frame: pd.DataFrame, names: Sequence[str], maker: str) -> None:
    if missing := [name for name in names if name not in frame]:
        raise ConfigError(f"the frame has no column '{missing[0]}'", remedy=f"give what {maker} gave")


def _draw_letters(axes: Axes, places: Any, **drawn: Any) -> None:
    _draw_effects(axes, labels=True, **drawn)
    if places is not None and places.notna().any():
        ticks = axes.get_xticks()
        axes.set_xticks(ticks, [str(places.get(tick, "")) for tick in ticks])


def _draw_calls(axes: Axes, rows: Any, attrs: Mapping[Any, Any]) -> None:
    signs = np.where(rows["strand"] == "-", -1.0, 1.0)
    colors = [OPPOSE if sign < 0 else SUPPORT for sign in signs]
    axes.vlines(rows["site"], 0, signs * rows["score"], colors)
    last = attrs.get("lengths", {}).get(rows["contig"].iloc[0], rows["end"].max())
    axes.set_xlim(-0.01 * last, 1.01 * last)
    axes.axhline(0, color=Color.EDGE, linewidth=0.5)
    if (threshold := attrs.get("threshold")) is not None:
        for sign, label in ((1, f"threshold {threshold:.2f}"), (-1, None)):
            axes.axhline(sign * threshold, color=Color.EDGE, linewidth=0.5, linestyle=":", label=label)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), fontsize=7, frameon=False)
    axes.set_ylim(-1.05, 1.05)
    axes.set_yticks([-1, 0, 1], ["1", "0", "1"])
    name_row(axes, "score on + and \N{MINUS SIGN}")
    if "gene" in rows:
        _name_genes(axes, rows.assign(height=signs * rows["score"]).sort_values("score", ascending=False))


def _name_genes(axes: Axes, calls: Any) -> None:
    """Name each gene at its best call, if there is room beside all bars and other names."""
    first, end = axes.get_xlim()
    inches = axes.get_window_extent().width / axes.figure.dpi
    letter = 0.65 * _NAME_POINTS / 72 / inches * (end - first)  # its width in bases
    taken = [(site, site, *sorted((0, height))) for site, height in calls[["site", "height"]].values.tolist()]
    best = calls.drop_duplicates("gene").dropna(subset="gene").head(MAX_NAMED)
    for site, height, gene in best[["site", "height", "gene"]].values.tolist():
        width = letter * len(gene)
        for level, left in product(_NAME_LEVELS, (site + letter, site - letter - width)):
            y = float(np.copysign(level, height))
            box = (left, left + width, y - 0.13, y + 0.13)
            beside = (a >= box[1] or b <= box[0] or c >= box[3] or d <= box[2] for a, b, c, d in taken)
            if first <= left and box[1] <= end and all(beside):
                axes.text(left, y, gene, fontsize=_NAME_POINTS, va="center", parse_math=False)
                taken.append(box)
                break
