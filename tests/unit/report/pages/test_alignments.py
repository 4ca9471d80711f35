"""The page of alignments as text and pictures: all sections, nothing from outside, names that stay text."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from seqray.core.alphabet import PROTEIN, RNA
from seqray.core.explanation import AlignmentExplanation, AlignmentScores, Check, Curve, Faithfulness
from seqray.core.records import Alignment
from seqray.report.pages.alignments import alignment_panel, cell_relevance, render_alignments
from seqray.report.svg.rows import line_width, picture


def checked():
    shares = np.linspace(0, 1, 3)
    curves = [
        Curve(method, kind, shares, shares, shares - 1, shares + 1)
        for method in ("rollout", "random")
        for kind in ("deletion", "insertion")
    ]
    checks = tuple(Check("rollout", f"{k}_gain", "random", 1, 0.5, 2, 9) for k in ("deletion", "insertion"))
    return Faithfulness(checks, tuple(curves), {"rollout": "rollout beats random rankings"})


def test_every_section_is_there(explained, report):
    page = render_alignments(report(explained(), explained(seed=1), faithfulness=checked(), omitted=3))
    headings = re.findall(r"<h2 id=[^>]+>(.*?)</h2>", page)
    assert headings[:2] == ["Can the rankings be trusted?", "How to read the alignments"]
    rest = ["All alignments together", "Model description", "Provenance"]
    assert headings[2:] == ["<bdi>RF1</bdi>", "<bdi>RF1</bdi>", *rest]
    assert "2 alignments on this page; 3 alignments left out" in page
    assert "columns hidden, highest rank first" in page
    for text in ("SS_cons", "position in the query", "made up", "read 6 × 30"):
        assert page.count(text) >= 2


def test_without_checks_and_without_alignments_it_says_so(report):
    page = render_alignments(report())
    assert "not checked (--no-check)" in page
    assert "0 alignments on this page" in page


def test_each_column_tells_its_place_and_scores(explained):
    e = explained(3, 12, read_columns=10)
    page = alignment_panel(e, 40)
    titles = re.findall(r"<rect x=(\d+) y=0 [^>]*><title>([^<]*)</title>", page)
    assert len(titles) == 10
    for i, (x, title) in enumerate(titles):
        assert int(x) == 12 * i
        letter = "ACGU"[e.alignment.codes[0, i]]
        assert title.startswith(f"column {i + 1}; query {i + 1} {letter}; rollout ")


def test_columns_passed_over_are_marked_and_ticks_count_the_query(explained):
    e = explained(2, 50)
    codes = e.alignment.codes.copy()
    codes[0, :15] = 5  # the query begins at the sixteenth column
    columns = np.array([0, 1, *range(15, 50)])
    few = tuple(replace(s, columns=np.ones(37), rows=np.ones(2), grid=None) for s in e.scores)
    e = replace(e, alignment=replace(e.alignment, codes=codes), columns=columns, scores=few)
    page = alignment_panel(e, 40)
    ticks = re.findall(r'<text class="tick mid" x=(\d+) y=11>(\d+)</text>', page)
    # The tenth letter of the query stands in column 25, which is the twelfth of those that were read.
    assert ticks == [(str(12 * (2 + p - 1) + 6), str(p)) for p in (10, 20, 30)]
    assert '<path class=skipped d="M24 20v-5"/>' in page
    assert "column 1; a gap in the query;" in page


def test_long_alignments_are_wrapped_and_rows_counted(explained, report):
    e = explained(50, 200, read_rows=40, read_columns=190)
    page = render_alignments(report(e))
    assert line_width(190, 40, 80) == 70
    assert page.count("<div class=line>") == 3
    assert (
        "10 more rows that the model read; 10 rows of the file that the model did not read; 10 columns"
        in page
    )
    assert page.count("row30</text>") == 0
    assert len(re.findall(r">row29<title>row 30: row29</title>", page)) == 3


def test_relevance_of_cells_is_the_root_of_the_share_of_the_largest(explained):
    e = explained()
    grid = e.scores[0].grid
    assert cell_relevance(e) == pytest.approx(np.sqrt(grid / grid.max()))
    only = replace(e, scores=e.scores[1:])
    expected = np.sqrt(np.abs(e.scores[1].columns) / np.abs(e.scores[1].columns).max())
    assert cell_relevance(only) == pytest.approx(np.tile(expected, (6, 1)))
    none = replace(e, scores=(replace(e.scores[0], grid=np.zeros((6, 30))),))
    assert cell_relevance(none).max() == 0


@given(
    arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 9)), elements=st.integers(0, 15)),
    st.booleans(),
)
def test_pictures_hold_their_cells(decoded, cells, many):
    palette = [(i, 2 * i, 255 - i) for i in range(40 if many else 16)]
    image = picture(cells, ["#{:02x}{:02x}{:02x}".format(*color) for color in palette], 10, 20)
    found, colors = decoded(re.search(r'href="([^"]+)" width=10 height=20 ', image)[1])
    assert found.tolist() == cells.tolist()
    assert colors[: len(palette)] == palette


@pytest.mark.parametrize("alphabet", [RNA, PROTEIN])
def test_letters_are_colored_gaps_are_white_and_missing_data_gray(decoded, alphabet):
    letter, gap = 0, alphabet.unknown + 1
    codes = np.array([[letter, letter, gap, gap + 1, alphabet.unknown]], dtype=np.uint8)
    grid = np.array([[1.0, 0.0, 1.0, 1.0, 1.0]])
    scores = (AlignmentScores("rollout", False, grid[0], np.ones(1), grid),)
    e = AlignmentExplanation(
        0, Alignment("a", ("q",), codes, alphabet), "x", "x", (1.0,), 1.0, np.arange(1), np.arange(5), scores
    )
    panel = alignment_panel(e, 40)
    cells, palette = decoded(re.search(r'<image href="([^"]+)"', panel)[1])
    strong, pale, white, gray, other = (palette[cell] for cell in cells[0])
    assert white == (255, 255, 255)
    assert max(gray) - min(gray) < 16
    assert len({strong, pale, white, gray, other}) == 5
    assert sum(strong) < sum(pale)
    assert '<path class=gaps d="M28 8h4"/>' in panel
    text = alphabet.letters[0] * 2 + "~" + alphabet.unknown_letter
    assert f'<text class=seq x="6 18 42 54" y=12>{text}</text>' in panel
