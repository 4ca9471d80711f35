"""The benchmark of explanations: what is planted, the measures by paper arithmetic, where boxes are found."""

from functools import partial

import numpy as np
import pytest

import explanations
import planted
import promoter_boxes
from explanations import RANDOM, Row, Trial, jobs_of, judge, settings, trials, write_rows
from planted import GAP, LENGTH, TASKS, generate, labeled
from pointing import average_precision, by_chance, precision_at, share_below_zero
from promoter_boxes import find_boxes, mark_found, mark_places
from seqray.core.alphabet import DNA
from seqray.modelfile.file import load_model


def letters_at(record, mask):
    """The marked letters, stretch by stretch."""
    text = DNA.decode(record.codes)
    return "".join(letter if marked else " " for letter, marked in zip(text, mask, strict=True)).split()


@pytest.mark.parametrize("task", TASKS)
def test_records_come_by_turns_repeat_and_carry_class_and_split(task):
    records = generate(task, 40, seed=5)
    assert [r.positive for r in records] == [True, False] * 20
    assert all(r.codes.shape == r.truth.shape == r.against.shape == (LENGTH,) for r in records)
    again = generate(task, 40, seed=5)
    assert all((a.codes == b.codes).all() for a, b in zip(records, again, strict=True))
    assert any((a.codes != b.codes).any() for a, b in zip(records, generate(task, 40, seed=6), strict=True))
    rows = labeled(records, "train")
    assert [row.label for row in rows] == ["motif", "background"] * 20
    assert ({row.split for row in rows}, len({row.id for row in rows})) == ({"train"}, 40)


def test_single_marks_the_word_and_negatives_lack_it():
    for record in generate("single", 100, seed=1):
        text = DNA.decode(record.codes)
        assert text.count(planted.WORD) == record.positive
        assert letters_at(record, record.truth) == ([planted.WORD] if record.positive else [])
        assert not record.against.any()


def test_pair_asks_for_both_words_at_the_right_distance():
    kinds = set()
    for record in generate("pair", 400, seed=1):
        text = DNA.decode(record.codes)
        one, two = text.find(planted.FIRST), text.find(planted.SECOND)
        assert record.positive == (one >= 0 and two == one + len(planted.FIRST) + GAP)
        both = [planted.FIRST, planted.SECOND]
        assert letters_at(record, record.truth) == (both if record.positive else [])
        kinds |= set() if record.positive else {(one >= 0, two >= 0)}
    assert kinds == {(True, True), (True, False), (False, True)}


def test_suppressor_is_marked_against_the_class_only_beside_the_activator():
    seen = set()
    for record in generate("suppressor", 200, seed=1):
        text = DNA.decode(record.codes)
        active, stopped = planted.ACTIVATOR in text, planted.SUPPRESSOR in text
        assert record.positive == (active and not stopped)
        assert letters_at(record, record.truth) == ([planted.ACTIVATOR] if active else [])
        assert letters_at(record, record.against) == ([planted.SUPPRESSOR] if stopped else [])
        seen.add((active, stopped))
    assert seen == {(True, False), (True, True), (False, False)}


@pytest.mark.parametrize("task", TASKS)
def test_composition_gives_nothing_away(task):
    records = generate(task, 2000, seed=1)
    codes = [np.concatenate([r.codes for r in records if r.positive is kind]) for kind in (True, False)]
    positive, negative = (np.bincount(one) / len(one) for one in codes)
    assert np.abs(positive - negative).max() < 0.006  # of 80,000 letters each, 3 standard errors


def test_average_precision_and_precision_at_the_number_of_true_letters():
    truth = np.array([[True, False, True, False], [True, True, False, False]])
    scores = np.array([[4.0, 3.0, 2.0, 1.0], [2.0, 1.0, -1.0, -2.0]])
    assert average_precision(scores, truth).tolist() == pytest.approx([(1 / 1 + 2 / 3) / 2, 1])
    assert precision_at(scores, truth).tolist() == [0.5, 1.0]
    assert precision_at(scores, truth, k=1).tolist() == [1.0, 1.0]
    assert precision_at(scores, truth, k=3).tolist() == pytest.approx([2 / 3, 2 / 3])


def test_ties_count_as_broken_at_random():
    truth = np.array([[True, True, False, False]])
    assert precision_at(np.zeros((1, 4)), truth)[0] == 0.5
    one_above = np.array([[9.0, 1.0, 1.0, 0.0]])  # the second place is the true or the false letter
    assert precision_at(one_above, truth)[0] == pytest.approx((1 + 0.5) / 2)


def test_share_below_zero_and_chance():
    truth = np.array([[True, True, False], [True, True, True]])
    scores = np.array([[-1.0, 0.0, -5.0], [-1.0, -2.0, 3.0]])
    assert share_below_zero(scores, truth).tolist() == pytest.approx([1 / 2, 2 / 3])
    truth = np.zeros((300, 50), dtype=bool)
    truth[:, :10] = True
    assert by_chance(precision_at, truth).mean() == pytest.approx(0.2, abs=0.01)
    assert by_chance(share_below_zero, truth).mean() == pytest.approx(0.5, abs=0.01)


def promoter(spacer, before, site=60, length=81):
    """Windows of C with perfect hexamers at a spacer and a distance to the start."""
    text = ["C"] * length
    ten = site - before - 6
    text[ten : ten + 6] = "TATAAT"
    text[ten - spacer - 6 : ten - spacer] = "TTGACA"
    return DNA.encode("".join(text)), (ten - spacer - 6, ten)


@pytest.mark.parametrize(("spacer", "before", "found"), [(17, 6, 1), (15, 4, 1), (19, 9, 1), (17, 20, 0)])
def test_perfect_boxes_are_found_where_a_start_would_follow(spacer, before, found):
    codes, places = promoter(spacer, before)
    assert (find_boxes(codes, 60) == places) == found
    mark = mark_found(codes, 60)
    assert mark.sum() == 16
    assert all(mark[start - 1 : start + 7].all() for start in places) == found


def test_places_before_the_start():
    mark = mark_places(((-3, -2),), site=5, length=8)
    assert np.flatnonzero(mark).tolist() == [2, 3]  # -1 is index 4
    assert np.flatnonzero(mark_places(((-3, -2),), 5, 8, around=1)).tolist() == [1, 2, 3, 4]
    assert mark_places(promoter_boxes.FIXED_BOXES, 60, 81, promoter_boxes.AROUND).sum() == 20
    assert mark_places(promoter_boxes.TATA_WINDOW, 200, 251).sum() == 16


def test_each_planted_task_runs_with_each_shape_and_real_ones_once():
    assert jobs_of(["single", "ecoli"]) == [
        *(("single", shape) for shape in explanations.SHAPES),
        ("ecoli", "ecoli-promoter"),
    ]
    for task in TASKS:
        for shape in explanations.SHAPES:
            assert settings(task, shape).data.window == LENGTH


def test_positives_that_are_called_and_negatives_that_hold_both_are_judged():
    records = generate("suppressor", 60, seed=1)
    positive = np.array([r.positive for r in records])
    plain, opposed = trials(records, positive)
    assert len(plain.codes) == 30
    assert opposed.signed_only
    assert len(opposed.codes) == sum(bool(r.against.any()) for r in records)
    [only] = trials(generate("single", 20, seed=1), np.zeros(20, dtype=bool) | (np.arange(20) < 4))
    assert len(only.codes) == 2  # records 0 and 2 are the positives among the called


def test_every_method_and_chance_get_a_row(tiny_model_file, monkeypatch, tmp_path):
    monkeypatch.setattr(explanations, "VARIANTS", [v for v in explanations.VARIANTS if v[1] != "occlusion"])
    model = load_model(tiny_model_file)
    codes = np.random.default_rng(0).integers(0, 4, (3, model.card.window)).astype(np.uint8)
    truth = np.zeros(codes.shape, dtype=bool)
    truth[:, 4:8] = True
    name = partial(Row, "task", "tiny")
    rows = judge(model, Trial(codes, {"precision_at_k": (precision_at, truth)}), name)
    assert [row.method for row in rows] == [label for label, *_ in explanations.VARIANTS] + [RANDOM]
    assert all(0 <= row.low <= row.value <= row.high <= 1 for row in rows)
    signed = judge(model, Trial(codes, {"below": (share_below_zero, truth)}, signed_only=True), name)
    assert [row.method for row in signed] == ["input-x-gradient", "integrated-gradients", "ism", RANDOM]
    out = tmp_path / "table.tsv"
    write_rows(str(out), rows, ["head"])
    lines = out.read_text().splitlines()
    assert lines[0] == "# head"
    assert lines[1].split("\t")[:5] == ["task", "model", "method", "measure", "n"]
    assert lines[-1].split("\t")[-1] == "1.000"  # chance against itself
    assert len(lines) == 2 + len(rows)
