"""Small networks of random weights."""

from typing import Any

import torch

from seqray.core.model_config import LocatorConfig, ModelConfig
from seqray.modelfile.file import build_network


def random_network(config: ModelConfig, seed: int = 0, noise: float = 0.2) -> Any:
    """A network in evaluation, each weight moved by so much that answers depend on all of the input."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build_network(config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(noise * torch.randn_like(parameter))
    return network


def locator_config(tracks: tuple[str, ...], classes: int = 1, layers: int = 1, **more: Any) -> ModelConfig:
    """Settings of a small locator; keywords change those of its own part."""
    shape = {"d_model": 16, "heads": 2, "d_ff": 32, "positions": "rotary", "dropout": 0.0, "max_length": 256}
    own = LocatorConfig(**{"tracks": tracks, "window": 4, "stem": 8} | more)
    return ModelConfig(kind="locator", classes=classes, layers=layers, locator=own, **shape)
