"""The card of a trained model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import lightning
import numpy as np
import torch
from scipy.special import log_softmax

from seqray.calibration.domain import fit_domain
from seqray.calibration.fit import (
    Calibration,
    calibrated_card,
    calibration_shortfalls,
    choose_threshold,
    fit_temperature,
)
from seqray.calibration.signature import make_sketch
from seqray.core.alphabet import ALPHABETS
from seqray.core.arrays import log_probabilities
from seqray.core.card import Card
from seqray.core.errors import verb
from seqray.core.records import Example, LabeledSequence
from seqray.core.run_config import RunConfig
from seqray.core.serialization import to_mapping
from seqray.core.text import round_number
from seqray.core.version import __version__
from seqray.homology.options import INSEPARABLE
from seqray.modelfile.file import count_parameters
from seqray.modelfile.model import TrainedModel
from seqray.models.sequence import Network
from seqray.training import partitions
from seqray.training.data import encode
from seqray.training.data_facts import subclass_names
from seqray.training.linear_part import LinearFit, fit_linear
from seqray.training.module import classification_figures, model_logits
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
    """Settings, seeds, best epochs, checksum of the data, figures on what was held out, and versions."""
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
    part: partitions.Partition,
    sha256: str,
    metrics: Mapping[str, Any] | None = None,
) -> tuple[Card, tuple[Network, ...], dict[str, float]]:
    """Add a linear part if wanted, calibrate on the validation part, which chose the epochs, and describe."""
    classes, alphabet = part.classes, ALPHABETS[config.model.alphabet]
    known = encode(data, part.labels, part.train, config)
    sequences = [one for one in (data[i] for i in part.train) if isinstance(one, LabeledSequence)]
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
            known.windows(), alphabet, known.labels, contexts=[one.context for one in sequences] or None
        ),
        metrics=dict(metrics or {}),
        info=dict(config.card),
    )
    logits, labels = held_out_logits(card, networks, data, part, config), part.labels[part.validation]
    rows = np.union1d(part.train, part.validation)
    given = [data[i] for i in rows]
    groups = partitions.related_groups([data[i] for i in part.validation], alphabet)
    facts: dict[str, Any] = {}
    if config.floor:
        examples = encode(data, part.labels, rows, config)
        held = np.searchsorted(rows, part.validation)
        linear = fit_linear(examples, held, groups, logits, config)
        facts["floor"] = _floor_facts(card, linear, labels)
        logits = linear.logits["together"]
        if linear.share:
            networks = [linear.joined(network) for network in networks]
            card = replace(card, model=networks[0].config)
    card, calibration = calibrated_card(card, logits, labels, groups, config.calibration.method)
    figures = _figures(card, logits, labels)
    training = training_facts(config, networks, results, sha256, figures) | {
        **facts,
        "counts": part.counts(),
        "held_out": len(labels),
        "calibration": calibration,
        "related_validation": partitions.count_related(data, part, alphabet),
        "related_word": partitions.relative_word(given, alphabet),
        "content_sha256": partitions.content_sha256(given),
    }
    if config.model.subclasses:
        names = [[name or "unnamed" for name in each] for each in subclass_names(data, classes)]
        training["subclasses"] = dict(zip(classes, names, strict=True))
    card = replace(card, training=training)
    sample = make_sketch(partitions.learned_keys(card, given))
    domain = replace(card.domain, learned=sample) if card.domain else None
    return replace(card, domain=domain), tuple(networks), figures


FEW_HELD_OUT = 50  # fewer give figures that can be off by .2: the standard error of an MCC of 0 is 1/√n


def card_cautions(card: Card) -> Iterator[str]:
    """What speaks against the figures of a trained model, and against its networks; of a locator nothing."""
    facts = card.training
    if card.model.is_locator:
        return
    kind = "alignments" if card.model.reads_alignments else "sequences"
    if facts["held_out"] < FEW_HELD_OUT:
        intervals = f"{verb('evaluate')} gives intervals"
        yield f"{facts['held_out']} held-out {kind} are few: these figures may be far off; {intervals}"
    if related := facts["related_validation"]:
        strands = ", on either strand" if ALPHABETS[card.model.alphabet].is_nucleotide else ""
        remedy = f"{verb('split')} keeps relatives together"
        if related == sum(facts["counts"]["validation"].values()):
            remedy += f", but {INSEPARABLE}"
        word = f", or {facts['related_word']} positions in common{strands}" if facts["related_word"] else ""
        yield (
            f"{related} validation {kind} have a relative in training (same group, the same sequence{word}), "
            f"so these figures are too good; {remedy}"
        )
    yield from calibration_shortfalls(facts["calibration"])
    floor = facts.get("floor")
    if floor and floor["linear"]["loss"] <= floor["together"]["loss"]:
        yield (
            "the networks add nothing to the baseline; a logistic regression would do, unless more examples "
            "are at hand"
        )


def _floor_facts(card: Card, linear: LinearFit, labels: np.ndarray) -> dict[str, Any]:
    """Share of the linear part, and figures of networks, linear part and both on what was held out."""
    facts: dict[str, Any] = {"share": linear.share}
    for name, logits in linear.logits.items():
        log_p = log_softmax(logits / fit_temperature(logits, labels), axis=1)
        threshold = choose_threshold(np.exp(log_p[:, card.positive_index]))
        figures = classification_figures(log_p, labels, card.positive_index, threshold)
        facts[name] = {key: round_number(figures[key]) for key in ("mcc", "auroc", "loss")}
    return facts


def held_out_logits(
    card: Card,
    networks: Sequence[Network],
    data: Sequence[Example],
    part: partitions.Partition,
    config: RunConfig,
) -> np.ndarray:
    """Logits (N, K) of the validation part by all members together, as they answer after training."""
    model = TrainedModel(card, tuple(networks)).to("cuda" if on_gpu(config) else "cpu")
    logits = model_logits(model, encode(data, part.labels, part.validation, config))
    model.to("cpu")
    return logits


def _figures(card: Card, logits: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    """Figures of merit at the card's threshold; the calibration error is the cross-fitted one."""
    log_p = log_probabilities(Calibration.of(card).probabilities(logits))
    figures = classification_figures(log_p, labels, card.positive_index, card.threshold) | {"ece": card.ece}
    return {name: value for name, value in figures.items() if math.isfinite(value)}
