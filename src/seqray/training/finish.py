"""After training: calibrate the members together on what they held out, and write the card."""

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
    choose_threshold,
    expected_calibration_error,
    fit_temperature,
)
from seqray.card import Card
from seqray.config import RunConfig, to_mapping
from seqray.modelfile import TrainedModel
from seqray.models.build import count_parameters
from seqray.models.sequence import SequenceTransformer
from seqray.records import LabelledSequence
from seqray.training.data import encode
from seqray.training.figures import classification_figures, model_logits
from seqray.training.partition import Partition
from seqray.training.trainer import on_gpu

# Settings that have their own place on the card.
_ELSEWHERE = ("name", "summary", "card", "model")


def finish(
    config: RunConfig,
    networks: Sequence[SequenceTransformer],
    results: Sequence[Mapping[str, Any]],
    data: Sequence[LabelledSequence],
    parts: Sequence[Partition],
    sha256: str,
    metrics: Mapping[str, Any] | None = None,
) -> tuple[Card, dict[str, float]]:
    """Calibrate and describe.

    Temperature and threshold are fitted on the validation parts, which also chose the epochs: figures
    measured on them are a little too good, and the card says which they are. Where each member held out
    its own part, each answers for that part alone, so that no answer is that of a network which has learned
    the example; all members together do a little better than the figures say.

    Returns
    -------
    card
        Without a self-test, which `save_model` adds.
    figures
        Of the calibrated model on the validation part, at the card's threshold.
    """
    classes, labels = parts[0].classes, parts[0].labels
    known = encode(data, labels, np.unique(np.concatenate([part.train for part in parts])), config)
    card = Card(
        name=config.name,
        summary=config.summary,
        classes=classes,
        positive=config.data.positive,
        window=config.data.window,
        site=config.data.site,
        model=config.model,
        members=len(networks),
        domain=Domain.fit(known.windows(), ALPHABETS[config.model.alphabet], known.labels).to_mapping(),
        metrics=dict(metrics or {}),
        info=dict(config.card),
    )
    logits, labels = held_out_logits(card, networks, data, parts, config)
    card, figures = _calibrate(card, logits, labels)
    settings = to_mapping(config)
    training = {
        "config": {key: value for key, value in settings.items() if key not in _ELSEWHERE},
        "seeds": [result["seed"] for result in results],
        "best_epochs": [result["best_epoch"] for result in results],
        "parameters": count_parameters(networks[0]),
        "counts": parts[0].counts(),
        "held_out": len(labels),
        "related_validation": parts[0].related,
        "data_sha256": sha256,
        "validation": {name: float(f"{value:.6g}") for name, value in figures.items()},
        "versions": {
            "seqray": __version__,
            "torch": torch.__version__,
            "lightning": lightning.__version__,
        },
    }
    return replace(card, training=training), figures


def held_out_logits(
    card: Card,
    networks: Sequence[SequenceTransformer],
    data: Sequence[LabelledSequence],
    parts: Sequence[Partition],
    config: RunConfig,
) -> tuple[np.ndarray, np.ndarray]:
    """Answers (N, K) for held-out examples and their labels (N,).

    All members answer together for a part that all held out, else each for its own.
    """
    shared = all(np.array_equal(part.validation, parts[0].validation) for part in parts)
    groups = (
        [(tuple(networks), parts[0])]
        if shared
        else [((network,), part) for network, part in zip(networks, parts, strict=True)]
    )
    answers, labels = [], []
    for members, part in groups:
        examples = encode(data, part.labels, part.validation, config)
        model = TrainedModel(replace(card, members=len(members)), members)
        answers.append(model_logits(model.to("cuda" if on_gpu(config) else "cpu"), examples))
        model.to("cpu")
        labels.append(examples.labels)
    return np.concatenate(answers), np.concatenate(labels)


def _calibrate(card: Card, logits: np.ndarray, labels: np.ndarray) -> tuple[Card, dict[str, float]]:
    """Fill temperature, threshold, prevalence and calibration error in."""
    temperature = fit_temperature(logits, labels)
    p = softmax(logits / temperature, axis=1)
    positive = labels == card.positive_index
    threshold = choose_threshold(p[:, card.positive_index])
    confidence, hit = (p[:, card.positive_index], positive) if p.shape[1] == 2 else (p, labels)
    card = replace(
        card,
        temperature=temperature,
        threshold=threshold,
        prevalence=float(np.mean(positive)),
        ece=expected_calibration_error(confidence, hit),
    )
    figures = classification_figures(logits / temperature, labels, card.positive_index, threshold)
    return card, {name: value for name, value in figures.items() if math.isfinite(value)}
