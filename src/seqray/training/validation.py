"""Logits of a model for a validation set, and their metrics."""

from __future__ import annotations

import numpy as np
import torch
from scipy.special import log_softmax

from seqray.metrics import binary_metrics, expected_calibration_error, threshold_metrics
from seqray.modelfile import TrainedModel
from seqray.training.data import Examples, validation_order


def classification_figures(
    logits: np.ndarray, labels: np.ndarray, positive: int, threshold: float = 0.5
) -> dict[str, float]:
    """Measure logits against class indices.

    With two classes: `seqray.metrics.binary_metrics` of the positive class at ``threshold``. With more: the
    mean over the classes of one against the rest, where each example is called for its most probable class;
    ``ece`` is that of the most probable class. ``loss`` is the mean negative log-likelihood.

    The logits are (N, K), the labels (N,) class indices. ``threshold`` is the lowest probability of a
    positive call; for two classes only.
    """
    log_p = log_softmax(np.asarray(logits, dtype=np.float64), axis=1)
    p = np.exp(log_p)
    loss = {"loss": float(-np.mean(log_p[np.arange(len(labels)), labels]))}
    if p.shape[1] == 2:
        return loss | binary_metrics(labels == positive, p[:, positive], threshold)
    called = p.argmax(axis=1)
    rows = [
        binary_metrics(labels == k, p[:, k]) | threshold_metrics(labels == k, called == k)
        for k in range(p.shape[1])
    ]
    macro = {name: float(np.nanmean([row[name] for row in rows])) for name in rows[0]}
    return loss | macro | {"ece": expected_calibration_error(p, labels)}


def model_logits(model: TrainedModel, data: Examples) -> np.ndarray:
    """Logits of the unchanged windows, in float32 as `predict` computes them: float64 (N, K)."""
    result = np.empty((len(data), len(model.card.classes)))
    for _, _, indices in validation_order(data.lengths):
        batch = data.batch(indices)
        masks = [None if mask is None else mask.to(model.device) for mask in batch.masks]
        with torch.inference_mode():
            result[indices] = model.logits(batch.tokens.to(model.device), *masks).double().cpu().numpy()
    return result
