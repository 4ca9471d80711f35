"""What is explained: the log-odds of a class against the rest, after the temperature, network by network."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from seqray.core import ConfigError, Floats
from seqray.inference import compute_precision, micro_batch, pad_batch
from seqray.modelfile import TrainedModel

CALLED = "called"
"""In place of a class: the one that each record is called."""


def class_explained(model: TrainedModel, target: str | None, label: str) -> int:
    """Index of the class explained for a record that is called ``label``.

    Parameters
    ----------
    target
        Name of a class; `CALLED` for the one that the record is called; the positive one if None.

    Raises
    ------
    ConfigError
        For a class that the model doesn't have.
    """
    classes = model.card.classes
    name = label if target == CALLED else (target or model.card.positive)
    if name not in classes:
        known = ", ".join((*classes, CALLED))
        raise ConfigError(f"model '{model.card.name}' has no class '{name}'", remedy=f"known are {known}")
    return classes.index(name)


def log_odds(logits: Tensor, target: int, temperature: float = 1.0) -> Tensor:
    """log p / (1 - p) of class ``target``: (..., K) to (...), after division by the temperature."""
    scaled = logits / temperature
    others = torch.cat((scaled[..., :target], scaled[..., target + 1 :]), dim=-1)
    return scaled[..., target] - torch.logsumexp(others, dim=-1)


@torch.inference_mode()
def score(model: TrainedModel, network: nn.Module, codes: npt.NDArray[np.uint8], target: int) -> Floats:
    """Log-odds of class ``target`` for many sequences of one length.

    Parameters
    ----------
    model
        Gives tokenizer, temperature and device.
    network
        One of its members, or another network of that shape.
    codes
        (N, n) letter codes.

    Returns
    -------
    array of float64, shape (N,)
    """
    result = np.empty(len(codes))
    size = micro_batch(model.card.model, codes.shape[1], model.device)
    with compute_precision(model.device, "fp32"):
        for start in range(0, len(codes), size):
            part = codes[start : start + size]
            tokens = torch.from_numpy(model.tokenizer.encode_codes(pad_batch(part, size)))
            values = log_odds(network(tokens.to(model.device)).logits.float(), target, model.card.temperature)
            result[start : start + size] = values[: len(part)].double().cpu().numpy()
    return result


def ensemble_score(model: TrainedModel, codes: npt.NDArray[np.uint8], target: int) -> Floats:
    """Mean over the members of `score`: (N, n) codes to (N,). With two classes, the model's own log-odds."""
    return np.mean([score(model, network, codes, target) for network in model.networks], axis=0)
