"""From settings to a network of any kind: seqray's own, or a classifier on a backbone."""

from __future__ import annotations

from seqray.core import ModelConfig
from seqray.models import (
    AxialTransformer,
    BackboneClassifier,
    SequenceTransformer,
    build_network as build_own_network,
)

SequenceNetwork = SequenceTransformer | BackboneClassifier
Network = SequenceNetwork | AxialTransformer


def build_network(config: ModelConfig) -> Network:
    """Make the network of a kind, with fresh weights where it has none yet (seed torch for repeatable ones).

    Raises
    ------
    ConfigError
        For a backbone that can't be used.
    """
    if config.kind != "backbone":
        return build_own_network(config)
    from seqray.modelfile.backbones import build_backbone  # most models need none of it

    return build_backbone(config)
