"""What a card says of every training, whatever the kind of model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import lightning
import torch

from seqray.core import RunConfig, __version__, round_number, to_mapping
from seqray.modelfile import Network
from seqray.models import count_parameters
from seqray.training.trainer import training_precision

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
