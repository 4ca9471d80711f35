"""Networks from their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.modelfile.backbones import build_backbone
from seqray.models.alignment import AxialTransformer
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import BackboneClassifier, SequenceTransformer

SequenceNetwork = SequenceTransformer | BackboneClassifier
Network = SequenceNetwork | AxialTransformer | LocatorTransformer

NETWORKS: Mapping[str, Callable[[ModelConfig], Network]] = {
    "sequence": SequenceTransformer,
    "alignment": AxialTransformer,
    "locator": LocatorTransformer,
    "backbone": build_backbone,
}


def build_network(config: ModelConfig) -> Network:
    """Make the network of a kind, with random weights (seeded by torch) except those of a backbone.

    Its weights are of float32, whatever torch's default is.
    """
    return NETWORKS[config.kind](config).float()


def build_model(config: ModelConfig) -> SequenceTransformer:
    """`build_network` for code that reads single sequences. Raises ConfigError for another kind."""
    network = build_network(config)
    if not isinstance(network, SequenceTransformer):
        raise ConfigError(f"'model.kind' is {config.kind}", remedy="choose a model that reads sequences")
    return network


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())
