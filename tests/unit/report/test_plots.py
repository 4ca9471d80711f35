"""Figures: what is drawn, in which format, and the same bytes each time."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.explanation import Explanation
from seqray.report.plots import draw_logo, letter_contributions, plot_explanations

MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "pdf": b"%PDF"}


def explanation(number=0, method="ism", alphabet=DNA, **changes):
    rng = np.random.default_rng(number)
    sequence = alphabet.decode(rng.integers(0, alphabet.unknown, 40))
    scores = rng.normal(size=40)
    effects = -scores[:, None] * (1 - np.eye(alphabet.unknown)[alphabet.encode(sequence)])
    fields = {
        "scores": scores,
        "effects": effects,
        "signed": True,
        "member": "mean",
        "id": f"record_{number}",
    }
    fields |= {"label": "site", "target": "site", "probability": 0.9} | changes
    return Explanation(record=number, sequence=sequence, method=method, **fields)


def texts(path):
    """Words of an SVG in which text is kept as text."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text())


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_each_format_is_written_with_the_same_bytes_each_time(tmp_path, ending):
    paths = [tmp_path / f"{name}.{ending}" for name in "ab"]
    for path in paths:
        plot_explanations(path, [explanation(0), explanation(1)], DNA, site=30)
    first, second = (path.read_bytes() for path in paths)
    assert sorted(tmp_path.iterdir()) == paths
    assert first.startswith(MAGIC[ending])
    assert first == second


def test_records_have_their_names_tracks_and_an_axis_from_the_site(tmp_path):
    path = tmp_path / "e.svg"
    both = [explanation(0), explanation(1), explanation(0, "rollout", effects=None, member="2")]
    plot_explanations(path, both, DNA, site=30)
    words = texts(path)
    titles = [word for word in words if word.startswith("record_")]
    assert titles == ["record_0   site 0.900", "record_1   site 0.900"]
    assert [words.count(word) for word in ("ism", "rollout (2)", "effect, log-odds")] == [2, 1, 2]
    assert {"−30", "−20", "−10", "+1", "+10"} <= set(words)
    assert "more" not in " ".join(words)


@pytest.mark.parametrize(
    ("count", "note"), [(21, "1 more record is not shown"), (23, "3 more records are not shown")]
)
def test_twenty_records_are_drawn_and_the_others_are_counted(tmp_path, count, note):
    path = tmp_path / "e.svg"
    plot_explanations(path, [explanation(i, effects=None) for i in range(count)], DNA)
    words = texts(path)
    assert sum(word.startswith("record_") for word in words) == 20
    assert note in words


def test_names_are_no_formulas_and_no_markup(tmp_path):
    path = tmp_path / "e.svg"
    plot_explanations(path, [explanation(id="a$_b$<c>&")], DNA)
    assert "a$_b$&lt;c&gt;&amp;   site 0.900" in texts(path)


def test_unknown_letters_flat_scores_and_no_records_are_drawn(tmp_path):
    strange = explanation()
    effects = strange.effects.copy()
    effects[3] = np.nan
    sequence = strange.sequence[:3] + "N" + strange.sequence[4:]
    strange = replace(strange, sequence=sequence, effects=effects, scores=np.zeros(40))
    plot_explanations(tmp_path / "e.png", [strange], DNA)
    plot_explanations(tmp_path / "none.png", [], DNA)
    assert len(list(tmp_path.iterdir())) == 2


def test_proteins_and_long_records(tmp_path):
    plot_explanations(tmp_path / "p.png", [explanation(alphabet=PROTEIN)], PROTEIN)
    long = replace(explanation(effects=None), sequence="A" * 2000, scores=np.ones(2000))
    plot_explanations(tmp_path / "l.png", [long], DNA)
    width = int.from_bytes((tmp_path / "l.png").read_bytes()[16:20], "big")
    assert 10_000 < width < 2**16


def test_the_contribution_of_a_letter_by_hand():
    effects = np.array([[0.0, -3.0, -2.0, -1.0], [1.0, 2.0, 0.0, 3.0], [np.nan] * 4])
    np.testing.assert_allclose(
        letter_contributions("AGN", effects, DNA), [[2.0, 0, 0, 0], [0, 0, -2.0, 0], [0, 0, 0, 0]]
    )


def test_letters_are_as_tall_as_their_values_and_stacked():
    axes = Figure().add_subplot()
    heights = np.array([[1.0, 3.0, 0.0, 0.0], [-2.0, 0.0, 0.0, -0.5]])
    draw_logo(axes, heights, DNA, first=10)
    drawn = {patch.get_facecolor(): patch.get_path() for patch in axes.patches}
    boxes = [path.get_extents() for path in drawn.values()]
    assert len(drawn) == 3  # no G
    a, c, t = boxes
    assert (a.y0, a.y1) == pytest.approx((-2.5, 1.0))  # 1 up at the first, below T at the second
    assert (c.y0, c.y1) == pytest.approx((1.0, 4.0))  # upon A
    assert (t.y0, t.y1) == pytest.approx((-0.5, 0.0))
    assert 9.5 <= a.x0 < c.x1 <= 10.5 <= t.x0 < t.x1 <= 11.5
