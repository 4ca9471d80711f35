"""Make the tokenizer that the model settings name. No torch here."""

from __future__ import annotations

from seqray.core import ConfigError, ModelConfig
from seqray.models.tokenizers import Tokenizer, make_tokenizer


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
