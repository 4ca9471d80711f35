"""`seqray.SequenceClassifier` among scikit-learn's tools."""

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone, is_classifier
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import seqray
from seqray.api.estimator import SequenceClassifier, lay_parameters
from seqray.core.alphabet import PROTEIN
from seqray.core.errors import ConfigError, InputError
from seqray.core.records import LabeledSequence, SequenceRecord
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping, to_mapping
from seqray.inference.sequences import predict_records
from seqray.modelfile.file import save_model
from seqray.modelfile.model import TrainedModel
from seqray.training.data_facts import measure_data
from seqray.training.settings_from_data import choose_settings

SMALL = {"d_model": 8, "layers": 1, "heads": 2, "epochs": 1, "members": 1, "device": "cpu", "threads": 1}
RNG = np.random.default_rng(1)


def made_up(count: int, classes=("other", "site"), length: int = 12) -> tuple[list[str], np.ndarray]:
    """Sequences that tell their class by the letters of their first half."""
    y = np.array([classes[i % len(classes)] for i in range(count)])
    letters = dict(zip(classes, ("AC", "GT", "AT"), strict=False))
    half = length // 2
    X = ["".join([*RNG.choice(list(letters[c]), half), *RNG.choice(list("ACGT"), half)]) for c in y]
    return X, y


X, Y = made_up(80)


@pytest.fixture(scope="module")
def fitted() -> SequenceClassifier:
    return SequenceClassifier(**SMALL | {"epochs": 6, "d_model": 16}, learning_rate=0.01).fit(X, Y)


# --- the conventions of scikit-learn --------------------------------------------------------------


class OnNumbers(SequenceClassifier):
    """Numbers as letters, so that scikit-learn's checks, which know nothing but tables, can run.

    Each number of a row is written with six amino acids for its digits. One epoch of a tiny network makes
    little of that: how well it does is not asked.
    """

    def _text(self, X):
        from sklearn.utils.validation import validate_data

        table = validate_data(self, X, reset=not hasattr(self, "model_") or self._fitting, dtype=float)
        numbers = (1000 * np.clip(np.asarray(table) + 500, 0, 999.999)).astype(int)  # six digits
        digits = numbers[..., None] // 10 ** np.arange(6) % 10  # (N, features, 6)
        return ["".join(row.ravel()) for row in np.array(list("ACDEFGHIKL"))[digits]]

    _fitting = False

    def fit(self, X, y, groups=None):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        self._fitting = True
        try:
            text = self._text(X)
        finally:
            del self._fitting
        return super().fit(text, y, groups)

    def predict_proba(self, X):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(self)
        return super().predict_proba(self._text(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = True, False, False
        tags.classifier_tags.poor_score = True
        return tags


# One check compares float32 results of batches of different sizes to 1e-7; the test below does so to 1e-6.
FINER_THAN_FLOAT32 = {"check_methods_subset_invariance": "1e-7 is less than the rounding of float32"}


@parametrize_with_checks(
    [OnNumbers(alphabet="protein", **SMALL)], expected_failed_checks=lambda _: FINER_THAN_FLOAT32
)
def test_scikit_learn_finds_what_it_expects(estimator, check):
    check(estimator)


def test_scores_do_not_depend_on_what_else_is_asked():
    table = 3 * np.random.RandomState(0).uniform(size=(20, 3))
    estimator = OnNumbers(alphabet="protein", **SMALL).fit(table, table[:, 0].astype(int))
    single = np.concatenate([estimator.decision_function(row[None]) for row in table])
    np.testing.assert_allclose(estimator.decision_function(table), single, rtol=1e-6, atol=1e-6)


def test_its_tags_say_that_it_reads_text_in_one_dimension():
    estimator = SequenceClassifier()
    tags = estimator.__sklearn_tags__()
    assert (tags.input_tags.string, tags.input_tags.one_d_array, tags.input_tags.two_d_array) == (
        True,
        True,
        False,
    )
    assert is_classifier(estimator)
    with pytest.warns(SkipTestWarning):  # its tables are no sequences, hence OnNumbers
        check_estimator(estimator)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
@pytest.mark.parametrize("kind", [list, pd.Series, lambda y: np.array(y, dtype=object)])
def test_missing_labels_are_no_class(missing, kind):
    labels = kind([*Y[:-1], missing])
    with pytest.raises(ValueError, match=f"label {len(Y) - 1} is a missing value; drop missing values"):
        SequenceClassifier(**SMALL).fit(X, labels)


# --- answers --------------------------------------------------------------------------------------


def test_it_learns_and_answers_as_the_library_does(fitted):
    fresh, truth = made_up(60)
    assert fitted.score(fresh, truth) > 0.9
    p = fitted.predict_proba(fresh)
    records = [SequenceRecord(str(i), letters) for i, letters in enumerate(fresh)]
    expected = np.array([answer.probabilities for answer in predict_records(fitted.model_, records)])
    np.testing.assert_allclose(p, expected, atol=1e-6)
    assert list(fitted.classes_) == list(fitted.model_.card.classes) == ["other", "site"]
    odds = np.log(p[:, 1]) - np.log(p[:, 0])
    np.testing.assert_allclose(fitted.decision_function(fresh), odds, atol=1e-9)
    assert (fitted.predict(fresh) == np.where(odds > 0, "site", "other")).all()


@pytest.mark.parametrize("threshold", [0.9, 0.02, "model"])
@pytest.mark.parametrize("positive", [None, "other"])
def test_a_threshold_moves_calls_and_scores_together(threshold, positive):
    classifier = SequenceClassifier(**SMALL, positive=positive, threshold=threshold).fit(X, Y)
    fresh, _ = made_up(40)
    card = classifier.model_.card
    limit = card.threshold if threshold == "model" else threshold
    assert card.positive == (positive or "site")
    p = classifier.predict_proba(fresh)[:, list(classifier.classes_).index(card.positive)]
    called = np.where(p >= limit, card.positive, "other" if card.positive == "site" else "site")
    assert (classifier.predict(fresh) == called).all()
    assert (classifier.classes_[(classifier.decision_function(fresh) > 0).astype(int)] == called).all()
    if threshold == "model":
        frame = seqray.predict(classifier.model_, fresh)
        assert frame["label"].tolist() == list(called)


def test_three_classes_and_labels_that_are_numbers():
    sequences, y = made_up(90, classes=(3, 1, 20))
    classifier = SequenceClassifier(**SMALL).fit(sequences, y)
    assert classifier.classes_.tolist() == [1, 3, 20]
    assert classifier.model_.card.classes == ("1", "3", "20")
    p = classifier.predict_proba(sequences)
    assert p.shape == classifier.decision_function(sequences).shape == (90, 3)
    assert (classifier.predict(sequences) == classifier.classes_[p.argmax(axis=1)]).all()
    assert classifier.predict(sequences).dtype == y.dtype
    with pytest.raises(ConfigError, match="'threshold' is for two classes, and the labels have 3; leave it"):
        classifier.set_params(threshold=0.9).fit(sequences, y)


def test_a_calibration_that_could_not_be_fitted_is_warned_about():
    """Random labels: what networks memorize does not predict the held-out ones."""
    classifier = SequenceClassifier(**SMALL | {"epochs": 12, "d_model": 16}, learning_rate=0.01)
    words = "no better than the share of each class|the calibration reached the limit of its range"
    with pytest.warns(UserWarning, match=words) as caught:
        classifier.fit(X, np.random.default_rng(0).permutation(Y))
    assert caught[0].filename == __file__


# --- settings -------------------------------------------------------------------------------------


def test_settings_come_from_a_file_a_shipped_model_or_an_object(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text("model: {d_model: 24, layers: 2, heads: 3}\ndata: {window: 12, positive: site}\n")
    trained = SequenceClassifier(path, layers=1, epochs=1, device="cpu", threads=1).fit(X, Y).model_.card
    assert (trained.model.d_model, trained.model.layers, trained.model.heads) == (24, 1, 3)
    config = from_mapping(
        RunConfig, {"name": "mine", "model": {"d_model": 6, "heads": 1}, "data": {"window": 12}}
    )
    card = SequenceClassifier(config, epochs=1, device="cpu").fit(X, Y).model_.card
    assert (card.name, card.model.d_model, card.positive) == ("mine", 6, "site")
    settings = lay_parameters(SequenceClassifier("ecoli-promoter").get_params())
    shipped = seqray.load_model("ecoli-promoter").card
    assert settings.model == shipped.model
    assert settings.optimizer.learning_rate == shipped.training["config"]["optimizer"]["learning_rate"]


def test_without_settings_those_of_the_rules_are_taken():
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    peptides = ["".join(RNG.choice(letters[i % 2 * 5 :], 6 + i % 7)) for i in range(40)]
    y = ["non-toxic" if i % 2 else "toxic" for i in range(40)]
    fast = {"epochs": 1, "members": 1, "device": "cpu", "threads": 1}
    card = SequenceClassifier(**fast).fit(peptides, y).model_.card
    assert (card.name, card.positive, card.window) == ("sequence-classifier", "toxic", 12)
    data = [LabeledSequence(x, label, str(i)) for i, (x, label) in enumerate(zip(peptides, y, strict=True))]
    chosen = choose_settings(measure_data(data, PROTEIN))
    assert replace(card.model, linear=None) == chosen.model
    assert card.model.linear is not None  # found in training
    found = card.training["config"]
    assert found["optimizer"] == to_mapping(chosen)["optimizer"]
    assert found["trainer"]["max_epochs"] == 1
    changed = SequenceClassifier(**fast, d_model=16, window=20, positive="non-toxic").fit(peptides, y)
    card = changed.model_.card
    assert (card.model.d_model, card.model.d_ff, card.window, card.positive) == (16, 32, 20, "non-toxic")
    assert SequenceClassifier(**fast, alphabet="rna").fit(X, Y).model_.card.model.alphabet == "rna"
    with pytest.raises(ConfigError, match="'alphabet' is 'amino'; give dna, rna, protein"):
        SequenceClassifier(alphabet="amino").fit(X, Y)  # pyright: ignore


def test_training_sequences_may_carry_flanks_and_be_scored_with_them():
    config = from_mapping(RunConfig, {"data": {"window": 8, "flank": 2}, "augment": {"shift": 2}})
    classifier = SequenceClassifier(config, **SMALL).fit(X, Y)
    inner = [x[2:10] for x in X]
    np.testing.assert_array_equal(classifier.predict_proba(X), classifier.predict_proba(inner))
    assert classifier.fit(inner, Y).model_.card.training["config"]["data"]["flank"] == 0


def test_the_same_seed_gives_the_same_model_and_leaves_random_states_alone():
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    expected = random.random(), np.random.random(), float(torch.rand(1))
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(0)
    threads = torch.get_num_threads()
    one = SequenceClassifier(**SMALL, seed=4).fit(X, Y)
    assert (random.random(), np.random.random(), float(torch.rand(1))) == expected
    assert torch.get_num_threads() == threads
    same, other = (SequenceClassifier(**SMALL, seed=seed).fit(X, Y) for seed in (4, 5))
    assert one.model_.sha256 == same.model_.sha256 != other.model_.sha256


def test_threads_that_train_at_once_give_the_models_of_a_single_one():
    def answers(seed: int) -> np.ndarray:
        return SequenceClassifier(**SMALL, seed=seed).fit(X, Y).predict_proba(X)

    alone = [answers(seed) for seed in (3, 4)]
    with ThreadPoolExecutor(2) as pool:
        for one, other in zip(alone, pool.map(answers, (3, 4)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_relatives_are_held_out_together():
    """Labels by group and letters by chance: held-out groups that leaked would be learned by heart."""
    groups = np.arange(80) // 8
    held = []
    for shuffled in (None, groups):
        card = SequenceClassifier(**SMALL, validation=0.3).fit(X, Y, groups=shuffled).model_.card
        held.append(card.training["held_out"])
        assert card.training["related_validation"] == 0
    assert held[1] % 8 == 0


def test_a_missing_group_is_a_group_of_its_own():
    """As an empty cell of a table: all without a group are not one family, which would fall on one side."""
    alone = SequenceClassifier(**SMALL).fit(X, Y).model_.card.training["held_out"]
    missing = [None, float("nan"), "", pd.NA]
    card = SequenceClassifier(**SMALL).fit(X, Y, groups=[missing[i % 4] for i in range(len(X))]).model_.card
    assert card.training["held_out"] == alone


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"heads": 3}, "'d_model'"),
        ({"epochs": 0}, "'epochs' is 0; give a whole number, 1 or more"),
        ({"device": "gpu0"}, "unknown device 'gpu0'"),
        ({"config": {}}, "'config' must be a RunConfig, a path"),
        ({"config": from_mapping(RunConfig, {"model": {"kind": "alignment"}})}, "'model.kind' is alignment"),
        ({"config": "no-such.yaml"}, "no-such.yaml: can't be read"),
    ],
)
def test_settings_that_do_not_fit_are_refused(parameters, words):
    with pytest.raises(ConfigError, match=words):
        SequenceClassifier(**SMALL | parameters).fit(X, Y)


def test_what_cannot_be_read_is_refused(fitted):
    with pytest.raises(InputError, match="'sequence_1': unknown letter"):
        fitted.predict(["ACGT!"])
    with pytest.raises(InputError, match=r"at most 12; shorten it$"):
        fitted.predict(["ACGT" * 4])
    with pytest.raises(InputError, match=r"more than 'window' \(9\).*; shorten it, or raise 'window'$"):
        SequenceClassifier(**SMALL, window=9).fit(X, Y)
    with pytest.raises(InputError, match="positive class '7'; set 'positive' to a label"):
        SequenceClassifier(**SMALL, positive=7).fit(X, Y)
    with pytest.raises(ValueError, match=r"2 dimensions .*one column as X\['sequence'\]"):
        fitted.predict(np.array([X]))
    with pytest.raises(ValueError, match="one sequence or path"):
        fitted.predict("ACGT")
    with pytest.raises(ConfigError, match="'threshold' is 1\\.5"):
        clone(fitted).set_params(threshold=1.5, epochs=1).fit(X, Y).predict(X)


# --- keeping --------------------------------------------------------------------------------------


def test_a_pickle_holds_the_bytes_of_the_model_file(fitted, tmp_path):
    fitted.save(tmp_path / "m.safetensors")
    content = (tmp_path / "m.safetensors").read_bytes()
    text = pickle.dumps(fitted)
    assert content in text
    assert b"seqray.models" not in text  # no network is pickled
    again = pickle.loads(text)
    assert isinstance(again.model_, TrainedModel)
    assert again.model_.sha256 == fitted.model_.sha256
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert pickle.loads(pickle.dumps(SequenceClassifier(d_model=8))).get_params()["d_model"] == 8


def test_a_saved_model_answers_alike_elsewhere(fitted, tmp_path):
    path = tmp_path / "m.safetensors"
    fitted.save(path)
    frame = seqray.predict(path, X)
    np.testing.assert_allclose(frame[["p_other", "p_site"]], fitted.predict_proba(X), atol=1e-9)
    save_model(tmp_path / "again.safetensors", fitted.model_.networks, fitted.model_.card)
    assert path.read_bytes() == (tmp_path / "again.safetensors").read_bytes()
    loaded = SequenceClassifier.load(path, threshold="model", device="cpu")
    np.testing.assert_array_equal(loaded.predict_proba(X), fitted.predict_proba(X))
    assert loaded.predict(X).tolist() == frame.label.tolist()
    assert loaded.classes_.tolist() == fitted.classes_.tolist()
    with pytest.raises(ConfigError, match="model for genomes"):
        SequenceClassifier.load("bacteria-genome")
