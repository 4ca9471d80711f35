"""Networks from their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from seqray.core.errors import ConfigError, require
from seqray.core.model_config import ModelConfig
from seqray.modelfile.backbones import build_backbone
from seqray.models.alignment import AxialTransformer
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import BackboneClassifier, OwnNetwork, SequenceTransformer
from seqray.models.tokenizers import make_tokenizer

SequenceNetwork = SequenceTransformer | BackboneClassifier | OwnNetwork
Network = SequenceNetwork | AxialTransformer | LocatorTransformer

OwnFactory = Callable[[ModelConfig, int], nn.Module]
_OWN: dict[str, OwnFactory] = {}


def register_network(name: str, factory: OwnFactory) -> None:
    """Give a name to a network of your own, so that it can be trained, loaded, and explained.

    Parameters
    ----------
    name
        What settings and model files call it, as ``model.network``, with ``model.kind: own``.
    factory
        Makes the module from a `ModelConfig` and the number of tokens. The module turns tokens (B, L) int64
        into logits (B, K) of ``config.classes``; token 0 is padding, and the first one stands for the
        sequence. Its first `torch.nn.Embedding` is that of the tokens.

    Notes
    -----
    A model file holds the weights, the settings and the name, and no code: register the network before you
    load it. On the command line, networks are found that an installed package names in its entry
    points, in the group "seqray.networks".

    Examples
    --------
    >>> import torch, seqray
    >>> def counting(config, tokens):
    ...     return torch.nn.Sequential(
    ...         torch.nn.Embedding(tokens, 8), torch.nn.Flatten(), torch.nn.LazyLinear(config.classes)
    ...     )
    >>> seqray.register_network("counting", counting)
    """
    require(bool(name) and name.isprintable(), "name", "must be a word")
    _OWN[name] = factory


def _build_own(config: ModelConfig) -> OwnNetwork:
    factory = _OWN.get(config.network)
    if factory is None:
        try:
            factory = entry_points(group="seqray.networks")[config.network].load()
        except KeyError:
            remedy = "call seqray.register_network first, or install the package that holds it"
            raise ConfigError(f"no network '{config.network}' is registered", remedy=remedy) from None
    words = make_tokenizer(config).vocab_size + len(config.contexts)
    return OwnNetwork(config, factory(config, words))


NETWORKS: Mapping[str, Callable[[ModelConfig], Network]] = {
    "sequence": SequenceTransformer,
    "alignment": AxialTransformer,
    "locator": LocatorTransformer,
    "backbone": build_backbone,
    "own": _build_own,
}


_DRAWS = {
    "uniform_",
    "normal_",
    "kaiming_uniform_",
    "rand",
    "randn",
    "randint",
    "randperm",
    "normal",
    "bernoulli",
}


class OwnDraws(TorchFunctionMode):
    """Within ``with``, this thread draws weights by a generator of its own: others may train by torch's."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._generator = torch.Generator("cpu").manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = {"generator": self._generator} if getattr(func, "__name__", "") in _DRAWS else {}
        return func(*args, **{**(kwargs or {}), **own})


def build_network(config: ModelConfig) -> Network:
    """Make the network of a kind, with random weights (seeded by torch) except those of a backbone.

    Its weights are of float32, whatever torch's default is.
    """
    return NETWORKS[config.kind](config).float()


def build_model(config: ModelConfig) -> SequenceTransformer:
    """`build_network` for code that reads single sequences. Raises ConfigError for another kind."""
    network = build_network(config)
    if not isinstance(network, SequenceTransformer):
        raise ConfigError(f"'model.kind' is {config.kind}", remedy="choose a model that reads sequences")
    return network


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())
