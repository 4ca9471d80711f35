"""Load the encoder of a backbone's directory, ready for the chosen tuning."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from seqray.core import BackboneConfig, ConfigError, ModelConfig
from seqray.modelfile.backbones.directory import find_directory
from seqray.modelfile.backbones.packages import import_extra, transformers_offline
from seqray.modelfile.backbones.tokenizer import load_tokenizer
from seqray.models import BackboneClassifier

# Names of the linear maps of query and value in the encoders of transformers; apart, or with the key in one.
_QUERY_AND_VALUE = (
    ("query", "value"),
    ("q_proj", "v_proj"),
    ("q_lin", "v_lin"),
    ("query_proj", "value_proj"),
    ("Wqkv",),
    ("qkv",),
    ("query_key_value",),
)
_NOT_NEEDED = "pooler."  # a layer of other tasks


def build_backbone(config: ModelConfig) -> BackboneClassifier:
    """Make a classifier on the encoder of the settings' directory; head and adapters are fresh.

    Raises ConfigError for a directory that can't be used, and names of LoRA's targets that the encoder
    doesn't have.
    """
    assert isinstance(config.backbone, BackboneConfig)
    tokenizer = load_tokenizer(config.backbone, config.alphabet)
    encoder = load_encoder(find_directory(config.backbone))
    encoder.requires_grad_(config.backbone.tuning == "full")
    if config.backbone.tuning == "lora":
        add_adapters(encoder, config.backbone)
    return BackboneClassifier(config, encoder, tokenizer.pad, tokenizer.special_tokens.tolist())


def load_encoder(path: Path) -> Any:
    """Load the weights of a directory that was checked before, in float32, in evaluation mode.

    Raises ConfigError if transformers does not know this kind of encoder, or the weights don't fit the
    settings.
    """
    with transformers_offline("the encoder", path) as transformers:
        encoder, found = transformers.AutoModel.from_pretrained(
            path,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # whose message names no tensor
        )
    _check_fit(found, str(path))
    if isinstance(getattr(encoder, "pooler", None), nn.Module):
        encoder.pooler = None
    return encoder.eval()


def _check_fit(found: Mapping[str, Any], where: str) -> None:
    """Refuse weights that config.json does not describe; ``found`` is what transformers reports of them."""
    missing = sorted(name for name in found["missing_keys"] if not name.startswith(_NOT_NEEDED))
    if missing:
        fault = f"the weights lack {len(missing)} tensors of the encoder, such as '{missing[0]}'"
    elif found["mismatched_keys"]:
        name, given, asked = min(found["mismatched_keys"])
        fault = f"tensor '{name}' is {tuple(given)} where config.json asks for {tuple(asked)}"
    else:
        return
    raise ConfigError(fault, where=where, remedy="give a directory whose config.json describes its weights")


def add_adapters(encoder: Any, config: BackboneConfig) -> None:
    """Add LoRA matrices to linear maps of the encoder and freeze its other weights.

    Source: Hu et al. 2022, LoRA: Low-Rank Adaptation of Large Language Models.
    """
    peft = import_extra("peft")
    targets = config.targets or query_and_value(encoder)
    names = _linear_names(encoder)
    for target in targets:
        if target not in names:
            raise ConfigError(
                f"'model.backbone.targets' names '{target}', and the encoder has no such linear map",
                remedy=f"it has {', '.join(sorted(names))}",
            )
    settings = peft.LoraConfig(r=config.rank, lora_alpha=config.alpha, target_modules=list(targets))
    peft.inject_adapter_in_model(settings, encoder)


def query_and_value(encoder: nn.Module) -> tuple[str, ...]:
    """Names of the linear maps that make queries and values.

    Raises ConfigError if none of the usual names occurs.
    """
    names = _linear_names(encoder)
    for usual in _QUERY_AND_VALUE:
        if names.issuperset(usual):
            return usual
    raise ConfigError(
        "the encoder's maps of query and value have unusual names",
        remedy=f"name those to adapt in 'model.backbone.targets', of {', '.join(sorted(names))}",
    )


def _linear_names(encoder: nn.Module) -> set[str]:
    linear = (name for name, module in encoder.named_modules() if isinstance(module, nn.Linear))
    return {name.rpartition(".")[2] for name in linear}
