"""After training: calibrate the members together on the validation part, and write the card."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import lightning
import numpy as np
import torch
from scipy.special import softmax

from seqray import __version__
from seqray.alphabet import ALPHABETS
from seqray.calibrate import (
    Domain,
    choose_stable_threshold,
    expected_calibration_error,
    fit_temperature,
)
from seqray.card import Card
from seqray.config import RunConfig, to_mapping
from seqray.modelfile import TrainedModel
from seqray.models.build import count_parameters
from seqray.models.sequence import SequenceTransformer
from seqray.training.data import EncodedSet
from seqray.training.figures import classification_figures, model_logits
from seqray.training.partition import Partition
from seqray.training.trainer import on_gpu

# Settings that have their own place on the card.
_ELSEWHERE = ("name", "summary", "card", "model")


def finish(
    config: RunConfig,
    networks: Sequence[SequenceTransformer],
    results: Sequence[Mapping[str, Any]],
    parts: Partition,
    train_set: EncodedSet,
    validation_set: EncodedSet,
    sha256: str,
    metrics: Mapping[str, Any] | None = None,
) -> tuple[Card, dict[str, float]]:
    """Calibrate and describe.

    Temperature and threshold are fitted on the validation part, which also chose the epoch: figures
    measured on it are a little too good, and the card says which they are.

    Returns
    -------
    card
        Without a self-test, which `save_model` adds.
    figures
        Of the calibrated model on the validation part, at the card's threshold.
    """
    card = Card(
        name=config.name,
        summary=config.summary,
        classes=parts.classes,
        positive=config.data.positive,
        window=config.data.window,
        site=config.data.site,
        model=config.model,
        members=len(networks),
        domain=Domain.fit(
            train_set.windows(), ALPHABETS[config.model.alphabet], train_set.labels
        ).to_mapping(),
        metrics=dict(metrics or {}),
        info=dict(config.card),
    )
    card, figures = _calibrate(card, networks, validation_set, "cuda" if on_gpu(config) else "cpu")
    settings = to_mapping(config)
    training = {
        "config": {key: value for key, value in settings.items() if key not in _ELSEWHERE},
        "seeds": [result["seed"] for result in results],
        "best_epochs": [result["best_epoch"] for result in results],
        "parameters": count_parameters(networks[0]),
        "counts": parts.counts(),
        "related_validation": parts.related,
        "data_sha256": sha256,
        "validation": {name: float(f"{value:.6g}") for name, value in figures.items()},
        "versions": {
            "seqray": __version__,
            "torch": torch.__version__,
            "lightning": lightning.__version__,
        },
    }
    return replace(card, training=training), figures


def _calibrate(
    card: Card, networks: Sequence[SequenceTransformer], data: EncodedSet, device: str
) -> tuple[Card, dict[str, float]]:
    """Fill temperature, threshold, prevalence and calibration error in."""
    model = TrainedModel(card, tuple(networks)).to(device)
    logits = model_logits(model, data)
    model.to("cpu")
    temperature = fit_temperature(logits, data.labels)
    p = softmax(logits / temperature, axis=1)
    positive = data.labels == card.positive_index
    threshold = choose_stable_threshold(p[:, card.positive_index], positive)
    confidence, hit = (p[:, card.positive_index], positive) if p.shape[1] == 2 else (p, data.labels)
    card = replace(
        card,
        temperature=temperature,
        threshold=threshold,
        prevalence=float(np.mean(positive)),
        ece=expected_calibration_error(confidence, hit),
    )
    figures = classification_figures(logits / temperature, data.labels, card.positive_index, threshold)
    return card, {name: value for name, value in figures.items() if math.isfinite(value)}
