"""The page of an evaluation: complete, self-contained, and deaf to hostile names."""

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from seqray.core.results import Answers
from seqray.evaluation.floor import answers_from_probabilities
from seqray.evaluation.run import Records, evaluate_answers, evaluate_scores
from seqray.report.pages.evaluation import render_evaluation
from seqray.report.svg.charts import Frame

EVIL = '<script>alert("x")</script>&\u202e'


class Elements(HTMLParser):
    """Collects tags and texts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.texts, self.attributes = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_data(self, data):
        self.texts.append(data)


def made(classes=("background", "promoter")):
    rng = np.random.default_rng(0)
    truth = rng.integers(0, len(classes), 60)

    def scores():
        table = rng.dirichlet(np.ones(len(classes)), 60) + 0.5 * np.eye(len(classes))[truth]
        return table / table.sum(axis=1, keepdims=True)

    beside = [
        answers_from_probabilities(name, f"the {name}", scores(), classes, classes[-1])
        for name in ("against", "floor", "majority")
    ]
    rows = {
        "similarity:0.0-0.5": np.arange(30),
        "similarity:1.0": np.arange(30, 60),
        f"context:{EVIL}": np.arange(9),
    }
    labels = [classes[k] for k in truth]
    return evaluate_scores(labels, scores(), classes, classes[-1], beside=beside, subsets=rows, draws=20)


def test_errors_say_that_lower_is_better():
    page = render_evaluation(made(), "model", [])
    rows = set(re.findall(r"([a-z ]+) \(lower is better\)", page))
    assert rows == {"brier", "log loss", "ece"}
    differences = page[page.index("Is the model better?") :]
    assert "brier (lower is better)" in differences


def test_the_page_holds_every_section_and_refers_to_nothing_outside():
    page = render_evaluation(made(), "model", ["seqray 0"], {"summary": "words"})
    found = Elements(page)
    sections = [value for tag, key, value in found.attributes if (tag, key) == ("section", "id")]
    assert sections == [
        "figures",
        "curves",
        "calibration",
        "thresholds",
        "calls",
        "similarity",
        "contexts",
        "provenance",
    ]
    assert not {"script", "link", "img", "iframe"} & set(found.tags)
    assert not re.search(r"https?://", page)
    targets = [value for tag, key, value in found.attributes if (tag, key) == ("a", "href")]
    assert set(targets) == {f"#{section}" for section in sections}
    assert found.tags.count("svg") > 5
    assert "default-src 'none'" in page
    assert page == render_evaluation(made(), "model", ["seqray 0"], {"summary": "words"})


def test_names_from_files_are_text():
    page = render_evaluation(made(("background", EVIL)), EVIL, [EVIL], {"summary": EVIL})
    found = Elements(page)
    assert "script" not in found.tags
    assert any('<script>alert("x")</script>&' in text for text in found.texts)
    assert "\u202e" not in page


def test_figures_stand_on_the_page():
    evaluation = made()
    page = render_evaluation(evaluation, "model", [])
    for metric in ("mcc", "auroc", "ece"):
        for source in ("model", "floor", "against"):
            assert f"{evaluation.figure(metric, source).value:.3f}" in page
    assert "◂ in force" in page
    assert f"{evaluation.labels.mean():.3f}" in page  # the line of precision


def test_several_classes():
    page = render_evaluation(made(("a", "b", "c")), "model", [])
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
