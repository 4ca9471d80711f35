"""The page of an evaluation: complete, self-contained, and deaf to hostile names."""

import re

import numpy as np
import pytest

from seqray.core.results import Answers
from seqray.evaluation.run import Records, evaluate_answers, evaluate_scores
from seqray.report.pages.evaluation import render_evaluation
from seqray.report.svg.charts import Frame


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
