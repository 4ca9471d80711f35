"""Figures: what is drawn, in which format, and the same bytes each time."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

import seqray
from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import ConfigError
from seqray.core.explanation import Explanation
from seqray.report.palette import Color
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


# --- Figures of frames


def letters_frame(records=2):
    rows = [
        (f"r{number}", place, base, method, "mean", height)
        for number in range(records)
        for method in ("ism", "rollout")
        for place, (base, height) in enumerate(zip("ACGTN", (0.5, -1.0, 2.0, 0.0, 3.0), strict=True))
    ]
    return pd.DataFrame(rows, columns=["record", "position", "base", "method", "member", "score"])


def heights_of(axes):
    """Lowest and highest point of each letter that is drawn, by its place."""
    found = {}
    for patch in axes.patches:
        outline = patch.get_path()
        points = outline.vertices[outline.codes != outline.CLOSEPOLY]  # these stand anywhere
        for place in np.unique(np.round(points[:, 0])):
            y = points[np.round(points[:, 0]) == place][:, 1]
            found[int(place)] = (y.min(), y.max())
    return found


def test_a_logo_of_a_frame_draws_each_letter_as_tall_as_its_score():
    figure = seqray.plot.logo(letters_frame())
    assert isinstance(figure, Figure)
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["r0", "", "r1", ""]
    assert [axes.get_ylabel() for axes in figure.axes] == ["ism", "rollout"] * 2
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "", "", "position, from 0"]
    found = heights_of(figure.axes[0])
    assert found.keys() == {0, 1, 2}  # nothing of height 0, and no N
    for place, height in enumerate((0.5, -1.0, 2.0)):
        assert found[place] == pytest.approx(sorted((0, height)), abs=0.05 * abs(height))  # of curves


def test_a_logo_shows_some_letters_gaps_and_says_what_is_left_out():
    rows = letters_frame().iloc[[2, 3]]
    assert heights_of(seqray.plot.logo(rows, values="score").axes[0]).keys() == {2}
    columns = pd.DataFrame(
        {"record": "a", "column": [1, 2, 3], "letter": list("G-U"), "method": "rollout", "score": 0.3}
    )
    assert heights_of(seqray.plot.logo(columns).axes[0]).keys() == {1, 3}
    assert seqray.plot.logo(columns).axes[0].get_xlabel() == "column of the alignment"
    gapped = pd.concat([columns, columns.assign(column=[4, 5, 6], letter=list("-.-"))])
    drawn = seqray.plot.logo(gapped).axes[0]
    assert heights_of(drawn).keys() == {1, 3}  # most cells are gaps, which are of no protein
    assert {to_hex(patch.get_facecolor()) for patch in drawn.patches} == {Color.ORANGE, Color.PURPLE}
    gapped.attrs["alphabet"] = "protein"  # it is said: G and an unknown residue
    assert heights_of(seqray.plot.logo(gapped).axes[0]).keys() == {1}
    with pytest.raises(ConfigError, match=r"no column 'nope'; give what seqray\.explain"):
        seqray.plot.logo(columns, values="nope")
    with pytest.raises(ConfigError, match=r"no column 'contig'; give what seqray\.scan"):
        seqray.plot.calls(columns)
    many = seqray.plot.logo(letters_frame(22))
    assert len(many.axes) == 40
    assert many.texts[0].get_text() == "2 more records are not shown"


def test_a_logo_of_a_call_shows_100_bases_around_the_site_where_the_user_wants_it():
    rows = pd.DataFrame({"record": "a", "position": range(1001), "base": "A", "score": 1.0, "method": "ism"})
    rows["genomic_position"] = 5000 - rows["position"]  # on the minus strand
    rows.attrs["site"] = 500
    figure = Figure()
    axes = figure.subplots()
    assert seqray.plot.logo(rows, ax=axes) is figure
    assert heights_of(axes).keys() == {*range(201)}
    assert [tick.get_text() for tick in axes.get_xticklabels()][:2] == ["4600", "4590"]
    with pytest.raises(ConfigError, match="'ax' has place for one strip, and the frame has 4"):
        seqray.plot.logo(letters_frame(), ax=axes)


def test_calls_stand_at_their_sites_up_and_down_by_strand():
    calls = pd.DataFrame(
        {"contig": ["a", "a", "b"], "site": [10, 40, 7], "strand": ["+", "-", "+"], "score": [0.9, 0.7, 0.8]}
    )
    calls["end"] = calls["site"] + 5
    calls["gene"] = ["x", pd.NA, "y"]
    calls.attrs["threshold"] = 0.6
    figure = seqray.plot.calls(calls)
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["x", "y"]
    assert figure.axes[0].get_legend().get_texts()[0].get_text() == "threshold 0.60"
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["a", "b"]
    [bars] = figure.axes[0].collections
    assert [segment.tolist() for segment in bars.get_segments()] == [
        [[10, 0], [10, 0.9]],
        [[40, 0], [40, -0.7]],
    ]
    assert [line.get_ydata()[0] for line in figure.axes[0].lines] == [0, 0.6, -0.6]
    assert figure.axes[0].get_xlim() == pytest.approx((-0.45, 45.45))  # a hundredth on both sides
    assert [axes.get_xlabel() for axes in figure.axes] == ["", "position, from 0"]
    calls.attrs["lengths"] = {"a": 100, "b": 300}  # of the contigs, where they are known
    limits = [axes.get_xlim() for axes in seqray.plot.calls(calls).axes]
    assert limits == [pytest.approx((-1, 101)), pytest.approx((-3, 303))]


def test_names_of_genes_stand_apart_and_within_the_figure():
    rng = np.random.default_rng(0)
    sites = np.sort(np.concatenate([rng.integers(0, 40_000, 20), 20_000 + rng.integers(0, 900, 20)]))
    calls = pd.DataFrame({"contig": "a", "site": sites, "end": sites + 5, "strand": ["+", "-"] * 20})
    calls["score"] = rng.uniform(0.3, 1, 40)
    calls["gene"] = [f"gene{place}" for place in range(40)]
    calls.attrs["lengths"] = {"a": 40_000}
    [axes] = seqray.plot.calls(calls).axes
    boxes = [text.get_window_extent() for text in axes.texts]
    assert 10 < len(boxes) <= 30
    assert not any(one.overlaps(other) for place, one in enumerate(boxes) for other in boxes[:place])
    outside = axes.get_window_extent()
    assert all(outside.x0 <= box.x0 and box.x1 <= outside.x1 for box in boxes)
    best = calls.loc[calls.score.idxmax(), "gene"]
    assert best in [text.get_text() for text in axes.texts]


def test_figures_show_themselves_without_the_state_of_pyplot():
    program = (
        "import sys, pandas as pd, seqray\n"
        "calls = pd.DataFrame({'contig': 'a', 'site': [1], 'strand': '+', 'score': [.9], 'end': 2})\n"
        "assert seqray.plot.calls(calls)._repr_png_().startswith(b'\\x89PNG')\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
