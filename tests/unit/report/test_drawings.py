"""Drawings against arithmetic on paper and against an independent reader of the picture."""

import re
from importlib.resources import files

import numpy as np
import pytest

from seqray.core.alphabet import ALPHABETS, DNA, PROTEIN, RNA
from seqray.report.html import compact, decimals_for, fixed, number, offset, offset_ticks
from seqray.report.pages.sequences import ranking
from seqray.report.palette import Color, components, letter_color, level_colors, palette_css, tint
from seqray.report.svg.charts import position_histogram
from seqray.report.svg.rows import (
    attention_map,
    draw_levels,
    effect_letters,
    glyph_definitions,
    letter_effects,
    line_width,
    lines_of,
)


def test_the_score_of_a_letter_is_minus_the_mean_of_the_others():
    effects = np.array([[0.0, -3.0, -1.0, -2.0], [0.5, 0.0, 1.0, 0.0], [np.nan] * 4])
    assert letter_effects(effects).tolist()[:2] == [2.0, -0.5]
    assert np.isnan(letter_effects(effects)[2])


def test_letters_that_support_stand_and_those_that_oppose_hang():
    # Of 50 px: 50, -25, 2 (a bar), and 0.4, which is below 1 %.
    drawn = effect_letters("ACGT", np.array([2.0, -1.0, 0.08, 0.016]), 2.0)
    assert "<use href=#gA x=0 class=h50 />" in drawn
    assert "<use href=#gc x=12 class=h25 />" in drawn
    assert "<path class=fG d=M24,0v-2 />" in drawn
    assert drawn.count("<") == 3


@pytest.mark.parametrize("alphabet", list(ALPHABETS.values()), ids=list(ALPHABETS))
def test_every_letter_has_an_outline_of_its_own(alphabet):
    drawn = re.findall(r'<g id=g([A-Z])><path[^>]* d="([^"]+)"', glyph_definitions(alphabet))
    assert "".join(letter for letter, _ in drawn) == alphabet.letters
    assert len({outline for _, outline in drawn}) == len(alphabet.letters)
    for _, outline in drawn:
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", outline)]
        assert min(numbers) == 0
        assert max(numbers) == 100


def test_neighbors_of_one_shade_are_one_stroke():
    assert draw_levels("110a1", 10) == '<path class=l1 d="M0 0h20M40 0h10"/><path class=la d="M30 0h10"/>'


@pytest.mark.parametrize(
    ("longest", "width"), [(1, 60), (80, 80), (81, 90), (100, 100), (101, 60), (251, 90)]
)
def test_lines_hold_60_to_100_letters(longest, width):
    assert line_width(longest) == width
    assert 40 <= line_width(longest, 40, 80) <= 80
    lines = lines_of(longest, width, None)
    assert (lines[0].start, lines[-1].end) == (0, longest)


def test_ranking_breaks_ties_by_position_and_puts_nan_last():
    assert ranking(np.array([1.0, np.nan, 2.0, 1.0, -5.0])) == [2, 0, 3, 4, 1]
    assert ranking(np.arange(15.0)) == [*range(14, 2, -1)]


def test_the_picture_of_attention_holds_the_weights(decoded):
    weights = np.arange(12, dtype=float).reshape(2, 2, 3)
    cells, palette = decoded(re.search(r'href="([^"]+)"', attention_map(weights, 60, None))[1])
    assert cells.tolist() == np.rint(15 * weights.reshape(4, 3) / 11).astype(int).tolist()
    assert (palette[0], palette[15]) == ((255, 255, 255), components(Color.DEEP_VIOLET))


def test_histograms_count_every_site_relative_to_the_site():
    # 20 letters, bins of one: positions 8 and 8 and 12 with the site at 10 are -2, -2 and +3.
    drawn = position_histogram(np.array([8, 8, 12]), 10, 20, "m")
    bars = re.search(r'class=bin d="([^"]+)"', drawn)[1]
    assert bars.count("M") == 2
    assert "relative to the site<" in drawn
    places = [text for text in re.findall(r"<text[^>]*>([^<]*)", drawn) if text[0] in "−+"]
    assert places == ["−10", "−5", "+1", "+5", "+10"]
    assert "relative" not in position_histogram(np.array([8]), None, 20, "m")


def test_numbers():
    assert [number(v) for v in (0.12345, -2.0, 1e-7, 0, float("nan"), 123456.0)] == [
        "0.123", "−2", "1e−7", "0", "n/a", "1.23e5",
    ]  # fmt: skip
    assert [offset(v) for v in (-3, -1, 0, 4)] == ["−3", "−1", "+1", "+5"]
    assert [offset(i) for i in offset_ticks(-25, 20, 10)] == ["−20", "−10", "+1", "+10", "+20"]
    assert [decimals_for(v) for v in (1.66, 0.0963, 250.0, 0.0, float("nan"))] == [2, 4, 0, 2, 2]
    assert fixed(-0.5, 2) == "−0.50"
    assert " ".join(compact(v) for v in (0.5, -0.5, 10.0, -0.01, 20.04, 100.0)) == ".5 -.5 10 0 20 100"


def luminance(color):
    parts = [part / 255 for part in components(color)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first, second):
    light, dark = sorted((luminance(first), luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_letters_can_be_read_on_every_level_and_text_on_its_background():
    levels = level_colors()
    assert "".join(levels) == "123456ABCDEFabcdef"
    assert min(contrast(Color.INK, background) for background in levels.values()) >= 4.5
    variables = dict(re.findall(r"--([\w-]+):(#\w{6});", palette_css()))
    style = files("seqray.report").joinpath("templates/style.css").read_text(encoding="utf-8")
    pairs = re.findall(r"background: var\(--([\w-]+)\); color: var\(--([\w-]+)\)", style)
    assert len(pairs) >= 3
    for background, text in [*pairs, ("wash", "soft"), ("paper", "soft"), ("paper", "navy")]:
        assert contrast(variables[text], variables[background]) >= 4.5


def test_colors_distinguish_the_bases_and_every_amino_acid_has_its_group():
    assert len({letter_color(letter, DNA) for letter in DNA.letters}) == 4
    assert components("#1f4e9e") == (31, 78, 158)
    assert (tint("#0064ff", 0.5), tint("#0a141e", 0), tint("#0a141e", 1)) == ("#80b2ff", "#ffffff", "#0a141e")
    assert len({letter_color(letter, PROTEIN) for letter in "AGDKSF"}) == 6
    assert letter_color("T", DNA) == letter_color("U", RNA)
