"""Figures of merit against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import average_precision_score, f1_score, log_loss, matthews_corrcoef, roc_auc_score

from seqray.core.alphabet import DNA
from seqray.core.card import Card
from seqray.core.model_config import ModelConfig
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import build_model
from seqray.models.tokenizers import CharacterTokenizer
from seqray.training.data import SequenceExamples
from seqray.training.module import classification_figures, model_logits
from slow_metrics import calibration_error


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def test_two_classes_are_measured_on_the_positive_one(rng):
    labels = rng.integers(0, 2, 300)
    logits = rng.normal(size=(300, 2)) + np.eye(2)[labels]
    p = softmax(logits, axis=1)
    for positive in (0, 1):
        figures = classification_figures(logits, labels, positive, threshold=0.6)
        truth = labels == positive
        assert figures["loss"] == pytest.approx(log_loss(labels, p))
        assert figures["mcc"] == pytest.approx(matthews_corrcoef(truth, p[:, positive] >= 0.6))
        assert figures["auprc"] == pytest.approx(average_precision_score(truth, p[:, positive]))


def test_a_score_at_the_threshold_is_a_call():
    logits = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert classification_figures(logits, np.array([1, 0]), positive=1, threshold=0.5)["accuracy"] == 1


def test_more_classes_are_averaged_one_against_the_rest(rng):
    labels = rng.integers(0, 4, 400)
    logits = rng.normal(size=(400, 4)) + 1.5 * np.eye(4)[labels]
    p, called = softmax(logits, axis=1), logits.argmax(axis=1)
    figures = classification_figures(logits, labels, positive=3)
    assert figures["f1"] == pytest.approx(f1_score(labels, called, average="macro"))
    assert figures["auroc"] == pytest.approx(roc_auc_score(labels, p, multi_class="ovr", average="macro"))
    mcc = [matthews_corrcoef(labels == k, called == k) for k in range(4)]
    assert figures["mcc"] == pytest.approx(np.mean(mcc))
    assert figures["ece"] == pytest.approx(calibration_error(p.max(axis=1), called == labels))


def test_a_models_logits_are_those_of_each_sequence_by_itself(rng):
    config = ModelConfig(d_model=16, layers=1, heads=2, max_length=32)
    card = Card(
        name="m", classes=("a", "b"), positive="b", window=32, model=config, members=2, temperature=1.7
    )
    model = TrainedModel(card, (build_model(config), build_model(config)))
    sequences = ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(5, 33, 40)]
    data = SequenceExamples(sequences, np.zeros(40), CharacterTokenizer(DNA))
    together = model_logits(model, data)
    alone = [model.logits(data.batch(np.array([i])).tokens.numpy())[0] for i in range(40)]
    assert together == pytest.approx(np.array(alone), abs=1e-5)
