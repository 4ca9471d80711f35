"""From settings to a network of any kind: seqray's own, or a classifier on a backbone."""

from __future__ import annotations

from seqray.config import ModelConfig
from seqray.models import build
from seqray.models.alignment import AxialTransformer
from seqray.models.backbone import BackboneClassifier
from seqray.models.sequence import SequenceTransformer

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
        return build.build_network(config)
    from seqray.backbones.encoder import build_backbone  # most models need none of it

    return build_backbone(config)
