"""Evaluations as a whole, parts of the data, points of curves, and scores of a model by context."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta
from sklearn import metrics as reference

import seqray
from seqray.core.alphabet import DNA
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.evaluation import run as subsets
from seqray.evaluation.floor import (
    answers_from_probabilities,
    precision_recall_points,
    reliability,
    roc_points,
    threshold_rows,
)
from seqray.evaluation.run import Records, evaluate_examples, evaluate_scores, label_indices, summary
from seqray.homology.similarity import best_matches
from seqray.inference.sequences import known_context
from seqray.kinds.kinds import model_probabilities

CLASSES = ("background", "promoter")


def simulated(n=80, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, n)
    return [CLASSES[k] for k in truth], np.clip(0.4 * truth + 0.6 * rng.random(n), 0, 1), truth


# --- evaluations --------------------------------------------------------------------------------------


def test_one_column_or_two_say_the_same():
    labels, p, truth = simulated()
    one = seqray.evaluate_scores(labels, p, CLASSES, "promoter", draws=20)
    two = evaluate_scores(labels, np.stack((1 - p, p), axis=1), CLASSES, "promoter", draws=20)
    assert [(f.value, f.low, f.high) for f in one.figures] == [(f.value, f.low, f.high) for f in two.figures]
    assert one.figure("auroc").value == pytest.approx(reference.roc_auc_score(truth, p))
    assert one.figure("f1").value == pytest.approx(reference.f1_score(truth, p >= 0.5))
    turned = evaluate_scores(labels, p, CLASSES[::-1], "promoter", draws=0)
    assert turned.figure("auroc").value == pytest.approx(one.figure("auroc").value)
    expected = reference.confusion_matrix(truth, p >= 0.5)
    assert one.confusion().tolist() == expected.tolist()
    assert turned.confusion().tolist() == expected[::-1, ::-1].tolist()


def test_what_stands_beside_the_model_is_measured_and_compared():
    labels, p, truth = simulated()
    worse = np.clip(p + np.random.default_rng(1).normal(0, 0.3, 80), 0, 1)
    floor = answers_from_probabilities(
        "floor", "noise", np.stack((1 - worse, worse), axis=1), CLASSES, "promoter", 0.5
    )
    rows = {"context:x": np.arange(40), "context:y": np.arange(40, 80)}
    found = evaluate_scores(labels, p, CLASSES, "promoter", beside=[floor], subsets=rows, draws=50)
    difference = found.figure("auroc", "model-floor")
    expected = reference.roc_auc_score(truth, p) - reference.roc_auc_score(truth, worse)
    assert difference.value == pytest.approx(expected)
    part = found.figure("auroc", "floor", subset="context:x")
    assert part.value == pytest.approx(reference.roc_auc_score(truth[:40], worse[:40]))
    assert (part.n, found.subsets) == (40, {"context:x": 40, "context:y": 40})
    right, floor_right = (p >= 0.5) == truth, (worse >= 0.5) == truth
    assert found.mcnemar["floor"][:2] == ((right & ~floor_right).sum(), (floor_right & ~right).sum())
    with pytest.raises(KeyError):
        found.figure("auroc", "against")
    lines = summary(found, "m")
    assert lines[0].startswith("m on 80 records of split all: ")
    assert any(line.startswith("model minus baseline: mcc ") for line in lines)
    assert any(line.startswith("context:y  40  ") for line in lines)


def test_few_groups_and_an_absent_class_are_told():
    found = evaluate_scores(["promoter"] * 4, [0.9] * 4, CLASSES, "promoter", groups=[1, 1, 2, 2], draws=10)
    assert found.notes == (
        "no record of class background: figures that need it are undefined",
        "only 2 groups: intervals are missing or too narrow",
    )
    assert math.isnan(found.figure("auroc").value)
    assert found.figure("sensitivity").value == 1


def test_a_class_that_is_never_called_is_told():
    truth = ["a"] * 20 + ["b"] * 20 + ["c"] * 3
    p = np.array([[0.9, 0.1, 0.0]] * 20 + [[0.1, 0.9, 0.0]] * 20 + [[0.4, 0.35, 0.25]] * 3)
    found = evaluate_scores(truth, p, ("a", "b", "c"), "a", draws=0)
    assert found.notes == ("model never calls class c, which 3 of 43 records have",)


def test_macro_figures_are_means_over_the_classes_that_are_there():
    """All of a and b are right; c has no record among the first four."""
    truth = ["a", "a", "b", "b", "c", "c"]
    p = np.eye(3)[[0, 0, 1, 1, 0, 2]]
    parts = {"without c": np.arange(4)}
    found = evaluate_scores(truth, p, ("a", "b", "c"), "a", subsets=parts, draws=0)
    assert found.figure("mcc", label="macro", subset="without c").value == 1.0
    each = [found.figure("mcc", label=name).value for name in "abc"]
    assert found.figure("mcc", label="macro").value == pytest.approx(np.mean(each))
    assert each[1] == 1.0


def test_small_subsets_are_told():
    truth = ["promoter", "background"] * 20
    subsets = {"few": np.arange(3), "many": np.arange(30), "none in pairs": np.arange(4)}
    found = evaluate_scores(truth, np.linspace(0.1, 0.9, 40), CLASSES, "promoter", subsets=subsets, draws=10)
    assert found.notes == ("fewer than 20 groups in few, none in pairs: intervals there are too narrow",)


@pytest.mark.parametrize(
    ("labels", "p", "message"),
    [
        (["promoter", "x"], [0.1, 0.2], "label 'x' is none of the classes .*; rename it to one of them"),
        ([], [], "no record to evaluate"),
        (["promoter"], [1.2], "outside 0 to 1 .* record 1: -0.2, 1.2"),
        (["promoter"], [np.nan], "not a number"),
        (["promoter"], [[0.3, 0.3]], "don't sum to 1"),
        (["promoter"], [0.1, 0.2], "for 1 records of 2 classes"),
    ],
)
def test_what_does_not_go_together_is_refused(labels, p, message):
    with pytest.raises(InputError, match=message):
        evaluate_scores(labels, p, CLASSES, "promoter")


# --- parts --------------------------------------------------------------------------------------------


def example(i, context=None, sequence="ACGT"):
    return LabeledSequence(sequence, "promoter", f"r{i}", context=context)


def test_contexts_are_parts_where_there_are_two():
    mixed = [example(0, "b"), example(1, "a"), example(2), example(3, "b")]
    parts = subsets.by_context(mixed)
    assert {name: rows.tolist() for name, rows in parts.items()} == {"context:a": [1], "context:b": [0, 3]}
    assert subsets.by_context([example(0, "a"), example(1, "a")]) == {}
    assert list(subsets.by_context([example(0, "a"), example(1)])) == ["context:a"]


def test_subclasses_are_measured_beside_all_other_classes():
    kinds = ["gene"] * 10 + ["shuffle"] * 11 + ["rare"] * 9 + [None] * 12
    negatives = [
        LabeledSequence("ACGT", "background", f"n{i}", subclass=kind) for i, kind in enumerate(kinds)
    ]
    positives = [LabeledSequence("ACGT", "promoter", f"p{i}", subclass="all") for i in range(12)]
    parts = subsets.by_subclass([*negatives, *positives])
    others = list(range(42, 54))
    assert {name: rows.tolist() for name, rows in parts.items()} == {
        "subclass:background:gene": [*range(10), *others],
        "subclass:background:shuffle": [*range(10, 21), *others],
        "subclass:background:unnamed": [*range(30, 42), *others],
    }
    assert subsets.by_subclass(positives) == {}


def test_similarity_is_cut_into_ranges():
    rng = np.random.default_rng(0)
    letters = "".join(rng.choice(list("ACGT"), 60))
    changed = "".join("ACGT"["ACGT".index(c) - 1] if i % 6 == 3 else c for i, c in enumerate(letters))
    other = "".join(rng.choice(list("ACGT"), 60))
    sequences = [
        *(other, letters, changed) * 10,
        letters[:30] + ("A" if letters[30] != "A" else "C") + letters[31:],
    ]
    parts = subsets.by_similarity(best_matches([letters], sequences)[0])
    assert parts.pop("similarity:1.0").tolist() == [*range(1, 30, 3)]
    changes = parts.pop("similarity:0.8-0.9").tolist()  # 10 of 60 letters changed
    assert [*range(2, 30, 3)] == changes
    assert [rows.tolist() for rows in parts.values()] == [
        [*range(0, 30, 3)]
    ]  # the last is alone in its range


def test_relatives_of_training_records_are_counted_or_said_to_be_unknown():
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("ACGT"), 60)) for _ in range(40)]
    turned = str.maketrans("ACGT", "CGTA")
    relatives = [text[:20] + text[20:22].translate(turned) + text[22:] for text in texts[:7]]  # 58 of 60
    examples = [example(i, sequence=s) for i, s in enumerate([*relatives, *texts[20:]])]
    train = [example(i, sequence=s) for i, s in enumerate(texts[:20])]
    answers = [answers_from_probabilities("model", "", np.full((27, 2), 0.5), CLASSES, CLASSES[1])]
    for known, note in ((train, "caution: 7 of 27 records are 80% identical"), ([], "are not looked for")):
        records = Records(CLASSES, CLASSES[1], label_indices([one.label for one in examples], CLASSES))
        found = evaluate_examples(examples, known, records, answers, DNA, draws=0)
        assert [one for one in found.notes if "training" in one and note in one]


# --- curves -------------------------------------------------------------------------------------------


def test_areas_under_the_drawn_points_are_the_figures():
    _, p, truth = simulated()
    assert np.trapezoid(*roc_points(truth, p)[::-1]) == pytest.approx(reference.roc_auc_score(truth, p))
    recall, precision = precision_recall_points(truth, p)
    assert np.all(np.diff(recall) >= 0)
    assert np.sum(np.diff(recall, prepend=0) * precision) == pytest.approx(
        reference.average_precision_score(truth, p)
    )
    assert len(roc_points(np.ones(3), p[:3])[0]) == 0
    assert len(precision_recall_points(np.zeros(3), p[:3])[0]) == 0


def test_reliability_counts_records_by_probability():
    labels, p = np.array([0, 1, 1, 1, 0]), np.array([0.02, 0.08, 1.0, 0.95, 0.93])
    found = reliability(labels, p)
    assert found.counts.tolist() == [2, 3]
    np.testing.assert_allclose(found.confidence, [0.05, 0.96])
    np.testing.assert_allclose(found.frequency, [1 / 2, 2 / 3])
    # Clopper and Pearson by quantiles of the beta distribution
    np.testing.assert_allclose(found.low, [beta.ppf(0.025, 1, 2), beta.ppf(0.025, 2, 2)])
    np.testing.assert_allclose(found.high, [beta.ppf(0.975, 2, 1), beta.ppf(0.975, 3, 1)])


def test_thresholds_call_from_all_records_to_few_with_the_one_in_force():
    _, p, truth = simulated()
    rows = threshold_rows(truth, p, 0.5)
    assert [row["threshold"] for row in rows] == sorted(row["threshold"] for row in rows)
    assert (rows[0]["called"], rows[-1]["called"]) == (80, 1)
    [own] = [row for row in rows if row["threshold"] == 0.5]
    assert own["sensitivity"] == pytest.approx(reference.recall_score(truth, p >= 0.5))


# --- a model ------------------------------------------------------------------------------------------


def test_each_context_is_scored_by_itself(monkeypatch):
    """A stand-in for a model that knows two contexts: its probability tells which one it was told."""
    known = ("E. coli", "B. subtilis")

    def model(context=None):
        card = SimpleNamespace(classes=CLASSES, model=SimpleNamespace(contexts=known, kind="sequence"))
        return SimpleNamespace(card=card, context=context, with_context=model)

    def answers(reader, records, *_):
        told = {None: 0.0, "E. coli": 0.25, "B. subtilis": 0.5}[reader.context]
        return [([], [SimpleNamespace(probabilities=(1 - told, told)) for _ in records])]

    monkeypatch.setattr("seqray.kinds.kinds.predict_batches", answers)
    examples = [example(i, c) for i, c in enumerate(["B. subtilis", None, "e. coli", "yeast", "B. subtilis"])]
    found = model_probabilities(model(), examples)
    assert found[:, 1].tolist() == [0.5, 0, 0.25, 0, 0.5]
    assert known_context(model(), "b") == "B. subtilis"
