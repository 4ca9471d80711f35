"""What settings leave to the directory of a backbone: its files, its width, and what the head reads."""

from __future__ import annotations

from dataclasses import replace

from seqray.core import ConfigError, ModelConfig
from seqray.modelfile.backbones.directory import SETTINGS, checksums, find_directory, read_json
from seqray.modelfile.backbones.tokenizer import load_tokenizer


def resolve_backbone(config: ModelConfig) -> ModelConfig:
    """Fill in what a backbone's directory settles, for the card; other models are returned as they are.

    Raises ConfigError for a directory that can't be used, or settings that don't fit it.
    """
    if config.backbone is None:
        return config
    path = find_directory(config.backbone).resolve()
    settings = read_json(path / SETTINGS)
    if settings.get("is_encoder_decoder") or settings.get("is_decoder"):
        raise ConfigError("is no encoder but holds a decoder", where=str(path), remedy="give an encoder")
    width = settings.get("hidden_size", settings.get("dim"))
    if not isinstance(width, int):
        raise ConfigError(f"{SETTINGS} has no 'hidden_size'", where=str(path), remedy="give an encoder")
    tokenizer = load_tokenizer(config.backbone, config.alphabet)
    pooling = config.backbone.pooling
    if pooling == "cls" and not tokenizer.starts_with_cls:
        raise ConfigError("'model.backbone.pooling' is cls, and the tokenizer puts no CLS in front")
    if pooling == "auto":
        pooling = "cls" if tokenizer.starts_with_cls else "mean"
    known = replace(
        config.backbone, path=str(path), name=path.name, files=checksums(path), width=width, pooling=pooling
    )
    return replace(config, backbone=known)
