"""Logits of a model for a validation set, and their metrics."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import log_softmax

from seqray.core import Floats
from seqray.metrics import calibration_error, class_metrics, macro_metrics
from seqray.modelfile import TrainedModel
from seqray.training.data import Examples, validation_order

FIGURES = (
    "mcc", "f1", "sensitivity", "specificity", "precision", "accuracy", "auroc", "auprc", "brier", "ece",
)  # fmt: skip


def classification_figures(
    logits: np.ndarray, labels: np.ndarray, positive: int, threshold: float = 0.5
) -> dict[str, float]:
    """Measure logits against class indices.

    With two classes: `FIGURES` of the positive class at ``threshold``. With more: the mean over the classes
    of one against the rest, where each example is called for its most probable class; ``ece`` is that of the
    most probable class. ``loss`` is the mean negative log-likelihood.

    The logits are (N, K), the labels (N,) class indices. ``threshold`` is the lowest probability of a
    positive call; for two classes only.
    """
    log_p = log_softmax(np.asarray(logits, dtype=np.float64), axis=1)
    p = np.exp(log_p)
    loss = {"loss": float(-np.mean(log_p[np.arange(len(labels)), labels]))}
    ones = np.ones((1, len(labels)))

    def one_vs_rest(k: int, calls: np.ndarray) -> dict[str, Floats]:
        return class_metrics(labels == k, p[:, k], calls, ones, probabilities=True)

    if p.shape[1] == 2:
        found = one_vs_rest(positive, p[:, positive] >= threshold)
    else:
        called = p.argmax(axis=1)
        found = macro_metrics(labels, [one_vs_rest(k, called == k) for k in range(p.shape[1])], ones)
    figures = {name: float(found[name][0]) for name in FIGURES}
    return loss | figures | {"ece": calibration_error(p, labels, positive)}


def model_logits(model: TrainedModel, data: Examples) -> np.ndarray:
    """Logits of the unchanged windows, in float32 as `predict` computes them: float64 (N, K)."""
    result = np.empty((len(data), len(model.card.classes)))
    for _, _, indices in validation_order(data.lengths):
        batch = data.batch(indices)
        masks = [None if mask is None else mask.to(model.device) for mask in batch.masks]
        with torch.inference_mode():
            result[indices] = model.logits(batch.tokens.to(model.device), *masks).double().cpu().numpy()
    return result
