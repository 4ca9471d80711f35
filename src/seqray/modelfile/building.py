"""Build the network and the tokenizer that the model settings name."""

from __future__ import annotations

from seqray.core import ConfigError, ModelConfig
from seqray.models import (
    AxialTransformer,
    BackboneClassifier,
    LocatorTransformer,
    SequenceTransformer,
    build_network as build_own_network,
)
from seqray.models.tokenizers import Tokenizer, make_tokenizer

SequenceNetwork = SequenceTransformer | BackboneClassifier
Network = SequenceNetwork | AxialTransformer | LocatorTransformer


def build_network(config: ModelConfig) -> Network:
    """Build the network of any kind, with random weights (seeded by torch) except those of a backbone.

    Raises ConfigError for a backbone that can't be used.
    """
    if config.backbone is None:
        return build_own_network(config)
    from seqray.modelfile.backbones import build_backbone  # most models need none of it

    return build_backbone(config)


def build_tokenizer(config: ModelConfig, context: str | None = None) -> Tokenizer:
    """Make the tokenizer for sequences of one context or of none.

    Raises ConfigError for a context that the settings don't name, or a backbone that can't be used.
    """
    if config.backbone is None:
        return make_tokenizer(config, context)
    if context is not None:
        raise ConfigError(f"the context '{context}' is given, but the model has no contexts")
    from seqray.modelfile.backbones import load_tokenizer  # most models need none of it

    return load_tokenizer(config.backbone, config.alphabet)
