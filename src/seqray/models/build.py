"""From settings to a network, by an explicit table."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import nn

from seqray.core import ALPHABETS, ConfigError, ModelConfig
from seqray.models.alignment import GAP_TOKENS, AxialTransformer
from seqray.models.layers import SPECIAL_TOKENS
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import SequenceTransformer

Network = SequenceTransformer | AxialTransformer | LocatorTransformer

NETWORKS: Mapping[str, Callable[[ModelConfig], Network]] = {
    "sequence": lambda config: SequenceTransformer(config, vocabulary_size(config)),
    "alignment": lambda config: AxialTransformer(config, vocabulary_size(config)),
    "locator": LocatorTransformer,
}


def vocabulary_size(config: ModelConfig) -> int:
    """Number of distinct tokens: special ones, letters or k-mers, and gaps in alignments."""
    letters = len(ALPHABETS[config.alphabet].letters) ** config.k
    return SPECIAL_TOKENS + letters + (GAP_TOKENS if config.kind == "alignment" else 0)


def build_network(config: ModelConfig) -> Network:
    """Make the network of a kind with fresh weights (seed torch beforehand for repeatable ones).

    Raises ConfigError for a classifier on a backbone, which `seqray.modelfile.build_network` makes.
    """
    if config.kind not in NETWORKS:
        raise ConfigError(f"'model.kind' is {config.kind}", remedy=f"choose {' or '.join(NETWORKS)}")
    return NETWORKS[config.kind](config)


def build_model(config: ModelConfig) -> SequenceTransformer:
    """`build_network` for code that reads single sequences. Raises ConfigError for a model of alignments."""
    network = build_network(config)
    if not isinstance(network, SequenceTransformer):
        raise ConfigError(f"'model.kind' is {config.kind}", remedy="choose a model that reads sequences")
    return network


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())
