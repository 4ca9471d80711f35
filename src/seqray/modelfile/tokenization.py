"""The tokenizer of a model by its settings: seqray's own, or that of its backbone."""

from __future__ import annotations

from seqray.core import ConfigError, ModelConfig
from seqray.models.tokenizers import Tokenizer, make_tokenizer


def build_tokenizer(config: ModelConfig, context: str | None = None) -> Tokenizer:
    """Build the tokenizer that a model's settings name, for sequences of one context or of none.

    Raises
    ------
    ConfigError
        For a context that the settings don't name, and a backbone that can't be used.
    """
    if config.backbone is None:
        return make_tokenizer(config, context)
    if context is not None:
        raise ConfigError(f"the context '{context}' is given, but the model knows none")
    from seqray.modelfile.backbones import load_tokenizer  # most models need none of it

    return load_tokenizer(config.backbone, config.alphabet)
