"""The page as text: what is on it, what must not be, and how large it gets."""

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.card import Card
from seqray.core.explanation import Check, Explanation, Faithfulness, Place
from seqray.core.model_config import ModelConfig
from seqray.core.results import Box, Call, CallContext
from seqray.report.pages.sequences import SequenceReport, render_sequences
from seqray.report.svg.rows import SLOT


def text_of(page):
    return unescape(re.sub(r"<[^>]+>", "", page))


def tables(page):
    """Rows of the tables of ranks, as lists of text."""
    found = re.findall(r"<table class=m\d+>.*?</table>", page, flags=re.DOTALL)
    return [
        [[re.sub(r"<[^>]+>", "", cell) for cell in row.split("<td>")[1:]] for row in table.split("<tr>")[2:]]
        for table in found
    ]


def single(sequence="ACGT", scores=(0.1, 0.4, 0.3, 0.2), **more):
    settings = {
        "record": 0,
        "id": "r",
        "sequence": sequence,
        "label": "promoter",
        "target": "promoter",
        "probability": 0.75,
        "method": "rollout",
        "member": "mean",
        "signed": False,
        "scores": np.array(scores, dtype=float),
    }
    return Explanation(**{**settings, **more})


def test_characters_that_turn_the_writing_or_break_the_file_are_replaced():
    data = single(id="a\u202eb\x00c\ud800d")
    page = render_sequences(page_of(data))
    page.encode("utf-8")
    assert "<bdi>a\ufffdb\ufffdc\ufffdd</bdi>" in page


def page_of(*explanations, **more):
    card = Card(name="m", classes=("b", "promoter"), positive="promoter", window=4, model=ModelConfig())
    settings = {"title": "t", "alphabet": DNA, "card": card, "site": None, "provenance": ()}
    return SequenceReport(explanations=explanations, **{**settings, **more})


def test_a_hundred_records_of_251_letters_stay_below_2_mb(make_report):
    assert len(render_sequences(make_report(records=100, length=251)).encode()) < 2_000_000


def test_every_record_and_every_ranked_position_is_there(make_report):
    data = make_report(records=81)
    page = render_sequences(data)
    assert [f"promoter_{i:03d}" for i in range(1, 82)] == re.findall(
        r"<h3><a href=#r\d+><bdi>(\w+)</bdi>", page
    )
    found = tables(page)
    assert len(found) == len(data.explanations)
    for item, rows in zip(data.explanations, found, strict=True):
        first = sorted(range(80), key=lambda i: (-item.scores[i], i))[:12]
        assert [int(row[1]) for row in rows] == first
        assert [row[4] for row in rows] == [item.sequence[i] for i in first]


def test_ranks_positions_and_values_of_an_example_on_paper():
    # Letters 5' to 3' on the minus strand of 101-104, from 1: index 0 lies at 104. The site is index 2.
    item = single(
        sequence="GATC",
        scores=(0.25, -1.5, 0.75, 0.25),
        signed=True,
        method="ism",
        p=np.array([0.5, 1.0, 0.01, np.nan]),
        q=np.array([0.6, 1.0, 0.04, 0.6]),
        place=Place("chr", 100, 104, "-", 1000),
    )
    page = render_sequences(page_of(item, site=2))
    assert "A q near 1 means that no position stands out by itself." in page
    assert tables(page) == [
        [
            ["1", "2", "+1", "102", "T", "0.75", "0.01", "0.04"],
            ["2", "0", "−2", "104", "G", "0.25", "0.5", "0.6"],
            ["3", "3", "+2", "101", "C", "0.25", "n/a", "0.6"],
            ["4", "1", "−1", "103", "A", "−1.50", "1", "1"],
        ]
    ]


def test_what_the_file_of_calls_says_heads_a_record_and_its_boxes_are_marked():
    # Minus strand of 101-104, from 1: the box TC lies at 101 and 102, so at the last two letters of GATC.
    context = CallContext(gene="<i>", distance=7, boxes=(Box("-10", 100, "TC"),))
    called = Call("chr", 103, 104, "-", 103, 0.75, "promoter", context)
    item = single("GATC", (0.1, 0.4, 0.3, 0.2), place=Place("chr", 100, 104, "-", 1000, call=called))
    page = render_sequences(page_of(item, site=2))
    assert [row[4:6] for row in tables(page)[0]] == [["A", ""], ["T", "−10"], ["C", "−10"], ["G", ""]]
    assert "The file of calls: <i>, 7 bases before the gene, score 0.75, -10 TC" in text_of(page)
    assert f'd="M{2 * SLOT} 0H{4 * SLOT}"' in page
    assert page.count("&lt;i&gt;") == 3  # in the contents, the heading and the line below it
    plain = render_sequences(page_of(replace(item, place=Place("chr", 100, 104, "-", 1000))))
    assert not re.search("file of calls|boxes of the call|<th scope=col>box", plain)


def test_a_record_across_the_origin_of_a_circle():
    item = single(place=Place("chr", 998, 1002, "+", 1000))
    ranked = tables(render_sequences(page_of(item)))[0]
    assert [(row[1], row[2]) for row in ranked] == [("1", "1000"), ("2", "1"), ("3", "2"), ("0", "999")]


def test_a_part_of_a_record_keeps_the_indices_of_the_record():
    # Letters 3 to 6 of a record of 8; the record begins 4 letters before its contig, which is not circular.
    scores = (0.0, 0.0, 0.0, 0.1, 0.4, 0.3, 0.0, 0.0)
    whole = single("ACGTACGT", scores, place=Place("chr", -4, 4, "+", 1000, circular=False))
    page = render_sequences(page_of(whole.part(3, 6), site=1))
    assert [row[1:5] for row in tables(page)[0]] == [
        ["4", "+1", "1", "A"],
        ["5", "+2", "2", "C"],
        ["3", "−1", "n/a", "T"],
    ]
    assert "the one of index 4:" in page
    assert "index 3–5<" in page


def test_records_of_one_name_stay_apart():
    page = render_sequences(page_of(single(record=0), single(record=1)))
    assert page.count("<article class=record") == 2
    assert "id=r0 " in page
    assert "id=r1 " in page


def test_verdicts_come_first_then_the_letters(make_report):
    data = make_report(records=1)
    page = render_sequences(data)
    places = [page.index(text) for text in data.faithfulness.verdicts.values()]
    records, curves = page.index("id=records"), page.index("<h3>Deletion and insertion")
    assert max(places) < records < curves < page.index("<h3>Checks")
    assert "associated with the model's output" in text_of(page)
    assert "causes" not in page


@pytest.mark.parametrize(
    ("bounds", "alike", "badge"),
    [
        ([(0.1, 0.5), (0.2, 0.4)], 0.49, "better than random"),
        ([(0.1, 0.5), (0.2, 0.4)], 0.5, "better than random, but much the same with random weights"),
        ([(0.1, 0.5), (-0.1, 0.4)], 0.9, "not distinguishable from random"),
        ([(-0.5, -0.1), (0.2, 0.4)], 0.9, "worse than random"),
        ([(np.nan, np.nan)], 0.9, "too few records for a verdict"),
        ([], 0.9, None),
    ],
)
def test_badges_follow_the_gains_over_random_and_the_check_with_random_weights(bounds, alike, badge):
    checks = [Check("rollout", "deletion_gain", "random", 0.0, low, high, 9) for low, high in bounds]
    checks += [Check("rollout", "randomised_weights", "random weights", alike, alike, alike, 9)]
    checks = tuple(checks)
    page = render_sequences(page_of(single(), faithfulness=Faithfulness(checks, (), {"rollout": "So so."})))
    badges = re.findall(r"<span class='badge[^>]*>. ([^<]+)<", page)
    assert badges == ([badge] if badge else [])


def test_missing_parts_are_left_out():
    page = render_sequences(page_of(single()))
    absent = (
        "A q near 1|<h3>Checks|<h3>Motifs|<h3>Attention heads|Attention per layer|class=h5|<th scope=col>q"
    )
    assert not re.search(f"{absent}|substitution effect", page)
    assert "none given" in page


def test_no_records_at_all():
    page = render_sequences(page_of())
    assert "0 records on this page" in page
    assert "The input has no records." in page
    assert "A high score means" not in page
    assert "<script" not in page


@pytest.mark.parametrize(
    "item",
    [
        single("A", (1.0,), effects=np.array([[0.0, -1.0, -2.0, -3.0]]), attention=np.ones((1, 1, 1))),
        single("ACGT", (0.0,) * 4, effects=np.zeros((4, 4)), attention=np.zeros((2, 2, 4))),
        single("ANGT", (0.5, 0.0, -0.5, 0.0), signed=True, effects=np.full((4, 4), np.nan)),
        single("ACGT", (np.nan,) * 4, probability=float("nan")),
        single("", ()),
    ],
    ids=["one letter", "all zero", "nan effects", "nan scores", "empty"],
)
def test_odd_records(item):
    page = render_sequences(page_of(item, site=60))
    assert page.count("<article class=record") == 1
    assert not re.search(r"\bnan\b|\binf\b", page)


def test_proteins(make_report):
    data = make_report(records=2, length=120, alphabet=PROTEIN, site=None, motifs=())
    page = render_sequences(data)
    used = set(re.findall(r"<use href=#g([A-Z]) ", page))
    assert len(used) > 10
    assert used <= set(PROTEIN.letters)
    assert "<th scope=col>site" not in page
    assert "index from 0" in page


def test_members_are_told_apart():
    page = render_sequences(page_of(single(), single(member="2")))
    assert "rollout, network 2" in page
    assert len(tables(page)) == 2
