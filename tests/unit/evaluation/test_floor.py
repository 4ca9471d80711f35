"""The floor learns what is there to learn, and is never judged by a fit that saw the record."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from seqray.core.alphabet import DNA, PROTEIN
from seqray.core.errors import InputError
from seqray.core.records import LabeledSequence
from seqray.evaluation.floor import answers_from_probabilities, floor_answers
from seqray.homology.split import grouped_folds
from seqray.metrics.baselines import KmerPositionalBaseline
from seqray.metrics.classification import auroc

CLASSES = ("background", "promoter")


def examples(n, seed, length=30, planted="TATAAT"):
    rng = np.random.default_rng(seed)
    found = []
    for i in range(n):
        letters = "".join(rng.choice(list("ACGT"), length))
        label = CLASSES[i % 2]
        if label == "promoter" and planted:
            letters = letters[:10] + planted + letters[10 + len(planted) :]
        found.append(LabeledSequence(letters, label, f"r{i}"))
    return found


def run(test, train=(), alphabet=DNA, classes=CLASSES, groups=None):
    keys = range(len(test)) if groups is None else groups
    return {a.source: a for a in floor_answers(test, train, classes, classes[-1], alphabet, list(keys))}


def test_the_floor_is_the_baseline_fitted_on_training_data():
    train, test = examples(80, 1), examples(30, 2)
    found = run(test, train)
    model = KmerPositionalBaseline().fit([e.sequence for e in train], [e.label for e in train])
    expected = model.predict_proba([e.sequence for e in test])
    np.testing.assert_allclose(found["floor"].scores, expected, atol=1e-8)
    assert "fitted on 80 training records" in found["floor"].note
    assert (found["floor"].calls == [i % 2 for i in range(30)]).mean() > 0.9


def test_the_composition_rule_is_a_logistic_regression_on_gc():
    train, test = examples(80, 1), examples(30, 2)
    share = [[sum(letter in "GC" for letter in e.sequence) / 30] for e in [*train, *test]]
    scaler = StandardScaler().fit(share[:80])
    model = LogisticRegression().fit(scaler.transform(share[:80]), [CLASSES.index(e.label) for e in train])
    expected = model.predict_proba(scaler.transform(share[80:]))
    found = run(test, train)
    np.testing.assert_allclose(found["gc"].scores, expected, atol=1e-6)
    assert set(found) == {"floor", "forest", "majority", "gc"}  # one length says nothing


@pytest.mark.parametrize("alphabet", [DNA, PROTEIN], ids=lambda alphabet: alphabet.name)
def test_a_rule_and_the_forest_know_a_range_of_lengths(alphabet):
    """Promoters are of middle length: no line separates them, and two thresholds do so in all records."""
    rng = np.random.default_rng(3)
    records = []
    for i in range(400):
        n = rng.integers(40, 60) if i % 2 else rng.choice([*range(15, 30), *range(70, 85)])
        letters = "".join(rng.choice(list(alphabet.letters), n))
        records.append(LabeledSequence(letters, CLASSES[i % 2], f"r{i}"))
    found = run(records[200:], records[:200], alphabet)
    assert set(found) == {"floor", "forest", "majority", "length"} | {"gc"} & {*found}
    truth = np.tile([0, 1], 100)
    assert auroc(truth, found["length"].scores[:, 1]) > 0.97
    assert auroc(truth, found["forest"].scores[:, 1]) > 0.97
    np.testing.assert_allclose(found["length"].scores.sum(axis=1), 1)


def test_majority_is_the_shares_of_training_and_does_not_rank():
    train = examples(60, 1)[:50] + [LabeledSequence("ACGT" * 8, "background", f"x{i}") for i in range(50)]
    found = run(examples(10, 2), train)["majority"]
    np.testing.assert_allclose(found.scores, np.tile([0.75, 0.25], (10, 1)))
    assert not found.calls.any()
    assert len(np.unique(run(examples(11, 2))["majority"].scores[:, 1])) == 1


def test_folds_hold_whole_groups_out():
    """Labels are drawn at random but shared by copies: only a fit that saw a copy can know them."""
    rng = np.random.default_rng(4)
    letters = ["".join(rng.choice(list("ACGT"), 30)) for _ in range(60)]
    labels = rng.permutation([0, 1] * 30)
    originals = [LabeledSequence(s, CLASSES[k], s) for s, k in zip(letters, labels, strict=True)]
    test = [*originals, *originals]
    truth = np.concatenate((labels, labels))
    apart = run(test, groups=[*range(60)] * 2)["floor"]
    leaking = run(test, groups=[*range(120)])["floor"]
    assert "cross-validated by groups in 5 folds" in apart.note
    assert (apart.scores.argmax(axis=1) == truth).mean() < 0.7
    assert (leaking.scores.argmax(axis=1) == truth).mean() > 0.75


def test_a_class_without_training_data_gets_0_and_unknown_labels_are_refused():
    train = examples(40, 1)
    with pytest.raises(InputError, match="record 'o': has the label 'other', which is none of background, "):
        run(examples(6, 2), [*train, LabeledSequence("ACGT" * 7, "other", "o")])
    found = run(examples(6, 2), train, classes=("background", "rare", "promoter"))
    assert found["floor"].scores[:, 1].tolist() == [0] * 6
    np.testing.assert_allclose(found["floor"].scores.sum(axis=1), 1)
    assert found["floor"].threshold is None
    one = run(examples(6, 2), [e for e in train if e.label == "promoter"])
    assert one["floor"].scores.tolist() == [[0, 1]] * 6


def test_few_records_get_fewer_folds():
    found = run(examples(6, 2))  # three of each class
    assert "cross-validated by groups in 3 folds" in found["floor"].note
    assert found["floor"].scores.shape == (6, 2)
    with pytest.raises(InputError, match="2 folds from 1 examples in the largest class"):
        grouped_folds(["a", "b"], [0, 1], 2)


def test_too_few_groups():
    with pytest.raises(InputError, match="folds from 1 groups"):
        run(examples(6, 2), groups=["x"] * 6)


@pytest.mark.parametrize(
    ("positive", "given", "threshold", "calls"),
    [
        ("promoter", 0.8, 0.8, [0, 0, 1, 0]),
        ("background", 0.8, 0.8, [0, 1, 1, 0]),
        ("promoter", None, 0.45, [0, 1, 1, 0]),  # halfway between .2 and .7, the widest gap
    ],
)
def test_calls_follow_a_threshold_or_the_highest_expected_correlation(positive, given, threshold, calls):
    scores = np.array([[0.8, 0.2], [0.3, 0.7], [0.1, 0.9], [0.9, 0.1]])
    found = answers_from_probabilities("model", "", scores, CLASSES, positive, given)
    assert found.threshold == pytest.approx(threshold)
    assert found.calls.tolist() == calls
