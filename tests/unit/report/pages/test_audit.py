"""Pages of audits and evaluations: complete, with the figures, deaf to hostile names."""

import re

import numpy as np
import pytest

from seqray.core.results import Answers, Audit, AuditFigure, Histogram
from seqray.evaluation.run import Records, evaluate_answers, evaluate_scores
from seqray.report.pages.audit import render_audit
from seqray.report.pages.evaluation import render_evaluation
from seqray.report.svg.charts import Frame, class_histograms


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


def test_the_page_holds_every_section(made_evaluation):
    page = render_evaluation(made_evaluation(), "model", ["seqray 0"], {"summary": "words"})
    sections = "figures curves calibration thresholds calls similarity contexts provenance"
    assert " ".join(re.findall(r"<section id=(\w+)", page)) == sections
    assert page.count("<svg") > 5


def test_figures_stand_on_the_page(made_evaluation):
    evaluation = made_evaluation()
    page = render_evaluation(evaluation, "model", [])
    for metric in ("mcc", "auroc", "ece"):
        for source in ("model", "floor", "against"):
            assert f"{evaluation.figure(metric, source).value:.3f}" in page
    assert "◂ in force" in page
    assert f"{evaluation.labels.mean():.3f}" in page  # the line of precision


def test_several_classes(made_evaluation):
    page = render_evaluation(made_evaluation(("a", "b", "c")), "model", [])
    assert "Class <bdi>b</bdi> against the rest" in page
    assert "id=thresholds" not in page
    assert "how often it is the true one" in page


def test_one_class_and_scores_that_are_no_probabilities():
    alone = evaluate_scores(["promoter"] * 3, [0.5] * 3, ("background", "promoter"), "promoter", draws=5)
    assert "n/a" in render_evaluation(alone, "m", [])
    raw = np.array([[-3.0, 3.0], [2.0, -2.0]])
    answers = Answers("model", "raw", raw, np.array([1, 0]), probabilities=False, threshold=0.0)
    page = render_evaluation(
        evaluate_answers(
            Records(("background", "promoter"), "promoter", np.array([1, 0])), [answers], draws=5
        ),
        "m",
        [],
    )
    assert "Reliability" not in page
    assert "Scores of the model by true class" in page


@pytest.mark.parametrize(("steps", "expected"), [(True, "H100V90"), (False, "L100 90")])
def test_paths_draw_a_place_once(steps, expected):
    frame = Frame(0, 1, 0, 1, 200, 200)
    x = np.array([0.0, 0.0, 0.5, 0.5])
    y = np.array([0.0, 1e-6, 0.5, 0.5])
    drawn = frame.path(x, y, steps=steps)
    assert drawn.startswith(f"M{frame.x(0):g} {frame.y(0):g}")
    assert len(re.findall("[MLHV]", drawn)) == len(re.findall("[MLHV]", "M0 0" + expected))
