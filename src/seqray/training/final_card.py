"""The card of a trained model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import lightning
import numpy as np
import torch

from seqray.calibration.domain import fit_domain
from seqray.calibration.fit import Calibration, calibrated_card
from seqray.calibration.signature import make_sketch
from seqray.core.alphabet import ALPHABETS
from seqray.core.arrays import log_probabilities
from seqray.core.card import Card
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig
from seqray.core.serialization import to_mapping
from seqray.core.text import round_number
from seqray.core.version import __version__
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import Network, count_parameters
from seqray.training.data import encode
from seqray.training.data_facts import subclass_names
from seqray.training.module import classification_figures, model_logits
from seqray.training.partitions import (
    Partition,
    content_sha256,
    count_related,
    learned_keys,
    related_groups,
    relative_word,
)
from seqray.training.trainer import on_gpu, training_precision

# --- What a card says of every training, whatever the kind of model

_ELSEWHERE = ("name", "summary", "card", "model")  # settings that have their own place on the card


def training_facts(
    config: RunConfig,
    networks: Sequence[Network],
    results: Sequence[Mapping[str, Any]],
    sha256: str,
    figures: Mapping[str, float],
) -> dict[str, Any]:
    """Settings, seeds, best epochs, checksum of the data, figures on validation, and versions.

    There are one network and one result of `train_member` per member; ``figures`` are those of the calibrated
    model on what was held out.
    """
    settings = to_mapping(config)
    versions = {"seqray": __version__, "torch": torch.__version__, "lightning": lightning.__version__}
    if config.model.backbone:
        versions["transformers"] = version("transformers")
    return {
        "config": {key: value for key, value in settings.items() if key not in _ELSEWHERE},
        "seeds": [result["seed"] for result in results],
        "best_epochs": [result["best_epoch"] for result in results],
        "precision": training_precision(config),
        "parameters": count_parameters(networks[0]),
        "data_sha256": sha256,
        "validation": {name: round_number(value) for name, value in figures.items()},
        "versions": versions,
    }


# --- Calibrate the members together on held-out examples and write the card


def build_card(
    config: RunConfig,
    networks: Sequence[Network],
    results: Sequence[Mapping[str, Any]],
    data: Sequence[Example],
    parts: Sequence[Partition],
    sha256: str,
    metrics: Mapping[str, Any] | None = None,
) -> tuple[Card, dict[str, float]]:
    """Calibrate the model on the validation parts and describe it.

    Temperature (or isotonic map), threshold and conformal ranks are fitted on the validation parts, which
    also chose the epochs, so figures measured on them are slightly optimistic; the card names these figures.
    Only the calibration error is cross-fitted over groups of relatives. If each member held out its own part,
    only that member scores the part, so no example is scored by a network that learned it. The full ensemble
    is slightly better than these figures.

    The card has no self-test, which `save_model` adds. The figures are those of the calibrated model on the
    validation part, at the card's threshold. ``results`` come from `train_member`; ``metrics`` are other
    figures for the card, for example from cross-validation.
    """
    classes, labels, alphabet = parts[0].classes, parts[0].labels, ALPHABETS[config.model.alphabet]
    rows = np.unique(np.concatenate([part.train for part in parts]))
    known = encode(data, labels, rows, config)
    sequences = [one for one in (data[i] for i in rows) if isinstance(one, LabeledSequence)]
    card = Card(
        name=config.name,
        summary=config.summary,
        classes=classes,
        positive=config.data.positive,
        window=config.data.window,
        site=config.data.site,
        truncate=config.data.truncate,
        model=config.model,
        members=len(networks),
        domain=fit_domain(
            known.windows(),
            alphabet,
            known.labels,
            contexts=[one.context for one in sequences] or None,
        ),
        metrics=dict(metrics or {}),
        info=dict(config.card),
    )
    logits, labels = held_out_logits(card, networks, data, parts, config)
    held_out = held_out_rows(parts)
    given = [data[i] for i in np.union1d(rows, held_out)]
    groups = related_groups([data[i] for i in held_out], alphabet)
    card, calibration = calibrated_card(card, logits, labels, groups, config.calibration.method)
    figures = _figures(card, logits, labels)
    training = training_facts(config, networks, results, sha256, figures) | {
        "counts": parts[0].counts(),
        "held_out": len(labels),
        "calibration": calibration,
        "related_validation": count_related(data, parts[0], alphabet),
        "related_word": relative_word(given, alphabet),
        "content_sha256": content_sha256(given),
    }
    if config.model.subclasses:
        names = [[name or "unnamed" for name in each] for each in subclass_names(data, classes)]
        training["subclasses"] = dict(zip(classes, names, strict=True))
    card = replace(card, training=training)
    sample = make_sketch(learned_keys(card, given))
    domain = replace(card.domain, learned=sample) if card.domain else None
    return replace(card, domain=domain), figures


def _share_validation(parts: Sequence[Partition]) -> bool:
    return all(np.array_equal(part.validation, parts[0].validation) for part in parts)


def held_out_rows(parts: Sequence[Partition]) -> np.ndarray:
    """Indices of the examples in `held_out_logits`, in its order."""
    return np.concatenate([part.validation for part in (parts[:1] if _share_validation(parts) else parts)])


def held_out_logits(
    card: Card,
    networks: Sequence[Network],
    data: Sequence[Example],
    parts: Sequence[Partition],
    config: RunConfig,
) -> tuple[np.ndarray, np.ndarray]:
    """Logits (N, K) of held-out examples, and their labels (N,).

    All members score a part that all held out; otherwise each member scores its own part.
    """
    groups = (
        [(tuple(networks), parts[0])]
        if _share_validation(parts)
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


def _figures(card: Card, logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Figures of merit at the card's threshold; the calibration error is the cross-fitted one."""
    log_p = log_probabilities(Calibration.of(card).probabilities(logits))
    figures = classification_figures(log_p, labels, card.positive_index, card.threshold) | {"ece": card.ece}
    return {name: value for name, value in figures.items() if math.isfinite(value)}
