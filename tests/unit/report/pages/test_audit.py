"""The page of an audit: hostile names are text, numbers are there, nothing is fetched."""

import re

import pytest

from seqray.core.results import Audit, AuditFigure, Histogram
from seqray.report.pages.audit import render_audit
from seqray.report.svg.charts import class_histograms


def test_verdicts_come_first_with_effect_and_remedy(made_audit):
    page = render_audit(made_audit(), [])
    verdict, rules = page.index("<section id=verdict"), page.index("<section id=rules")
    assert (
        verdict
        < page.index("Copies of pos.")
        < page.index("Effect on pos.")
        < page.index("drop pos.")
        < rules
    )
    assert "leak</span>" in page


def test_tables_hold_the_figures(made_audit):
    page = render_audit(made_audit(), [])
    assert "0.876 <small>0.800 to 0.910</small><td>0.432 <small>0.300 to 0.500</small>" in page
    assert "0.912 <small>0.900 to 0.930</small><td>n/a" in page
    assert "<th scope=col>duplicates" in page
    assert "strand duplicates" not in page  # there are none


def test_a_clean_audit_says_so_and_empty_sections_are_left_out():
    page = render_audit(Audit([], [], [], {}), [])
    assert "No leak and no shortcut was found." in page
    assert "<section id=rules" not in page
    assert "<section id=provenance" in page


def test_bars_are_as_high_as_their_share():
    [first, second] = [
        Histogram("gc", "all", name, (0.0, 0.5, 1.0), counts)
        for name, counts in (("a", (1, 3)), ("b", (4, 0)))
    ]
    drawn = class_histograms([first, second], "GC share")
    paths = re.findall(r'<path class=bar d="([^"]*)"', drawn)
    tops = [[float(v) for v in re.findall(r"V([\d.]+)H", path)] for path in paths]
    base = float(re.search(r"M[\d.]+ ([\d.]+)V", paths[0])[1])
    heights = [[base - top for top in of_class] for of_class in tops]
    assert heights[1][0] > 0  # all of b, the full height
    assert [h / heights[1][0] for h in heights[0]] == [pytest.approx(s, abs=0.01) for s in (0.25, 0.75)]
    assert len(heights[1]) == 1


def test_many_classes_are_drawn_in_part(made_audit):
    histograms = [Histogram("gc", "all", f"c{i}", (0.0, 1.0), (1,)) for i in range(30)]
    page = render_audit(
        Audit([AuditFigure("counts", "all", "*", "sequences", 30)], histograms, [], made_audit().settings), []
    )
    assert page.count("<figure>") == 24
    assert "6 more plots left out" in page
