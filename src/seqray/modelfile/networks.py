"""Build the network that the model settings name."""

from __future__ import annotations

from seqray.core.model_config import ModelConfig
from seqray.models.alignment import AxialTransformer
from seqray.models.build import BackboneClassifier, build_network as build_own_network
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import SequenceTransformer

SequenceNetwork = SequenceTransformer | BackboneClassifier
Network = SequenceNetwork | AxialTransformer | LocatorTransformer


def build_network(config: ModelConfig) -> Network:
    """Build the network of any kind, with random weights (seeded by torch) except those of a backbone.

    Its weights are of float32, whatever torch's default is.

    Raises ConfigError for a backbone that can't be used.
    """
    if config.backbone is None:
        return build_own_network(config).float()
    from seqray.modelfile.backbones import build_backbone

    return build_backbone(config).float()
