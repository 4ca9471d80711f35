"""Networks of random weights."""

from typing import Any

import torch

from seqray.core.model_config import ModelConfig
from seqray.modelfile.networks import build_network


def random_network(config: ModelConfig, seed: int = 0, noise: float = 0.2) -> Any:
    """A network in evaluation, each weight moved by so much that answers depend on all of the input."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = build_network(config).eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(noise * torch.randn_like(parameter))
    return network
