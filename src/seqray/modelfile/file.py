"""Networks from their settings, and model files: one safetensors file with the networks and their card."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors, save as serialize
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from seqray.core.card import Card, card_to_json
from seqray.core.errors import ConfigError, ModelFileError, require
from seqray.core.host import as_guest
from seqray.core.model_config import ModelConfig
from seqray.io.files import write_file
from seqray.modelfile.backbones import BACKBONE_VARIABLE, build_backbone
from seqray.modelfile.header import (
    CARD_KEY,
    CHECKSUM_KEY,
    check_model_path,
    checksum,
    locate_model,
    read_content,
    read_header,
)
from seqray.modelfile.model import TrainedModel, check_self_test, make_self_test
from seqray.models.alignment import AxialTransformer
from seqray.models.locator import LocatorTransformer
from seqray.models.prefilter import PREFIX, Prefilter, prefilter_arrays, read_prefilter
from seqray.models.sequence import Network, OwnNetwork, SequenceTransformer
from seqray.models.tokenizers import make_tokenizer

# --- Networks, by the kind that their settings name

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


def build_network(config: ModelConfig) -> Network:
    """Make a network in float32, with random weights (seeded by torch) except those of a backbone."""
    return NETWORKS[config.kind](config).float()


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())


# --- What holds while networks are made: draws of their own, and a limit of their size

_DRAWS = {
    *("uniform_", "normal_", "kaiming_uniform_", "normal", "bernoulli"),
    *("rand", "randn", "randint", "randperm"),
}


class OwnDraws(TorchFunctionMode):
    """Within ``with``, this thread draws weights by a generator of its own: others may train by torch's."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        self._generator = torch.Generator("cpu").manual_seed(seed)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        own = {"generator": self._generator} if getattr(func, "__name__", "") in _DRAWS else {}
        return func(*args, **{**(kwargs or {}), **own})


_MAKERS = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})
_SPARE_VALUES = 1_000_000  # that networks make and don't keep


class SizeLimit(TorchFunctionMode):
    """Within ``with``, raise an error instead of making more than so many values in all.

    A card may ask for larger networks than its file holds: this stops it before they take memory.
    """

    def __init__(self, values: int, error: Exception) -> None:
        super().__init__()
        self._left, self._error = values, error

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        settings = kwargs or {}
        if func in _MAKERS:
            size = settings.get("size", args[0] if args and not isinstance(args[0], int) else args)
            self._left -= math.prod(size)
            if self._left < 0:
                raise self._error
        return func(*args, **settings)


# --- Model files: written, and read with all checks


def save_model(
    path: str | Path, networks: Sequence[Network], card: Card, prefilter: Prefilter | None = None
) -> Card:
    """Write a model file, through a temporary file in the same folder."""
    check_model_path(path)
    if len(networks) != card.members:
        raise ModelFileError(
            f"the model description says {card.members} networks, {len(networks)} were given"
        )
    if (card.prefilter is None) != (prefilter is None):
        raise ModelFileError("the description names a prefilter where there is one")
    copies = tuple(copy.deepcopy(network).cpu() for network in networks)  # the caller's stay as they are
    card = replace(card, self_test=make_self_test(TrainedModel(card, copies, prefilter=prefilter)))
    tensors = dict[str, Tensor]()
    for i, network in enumerate(networks):
        for name, value in sorted(network.state_dict().items()):
            if not bool(torch.isfinite(value).all()):
                raise ModelFileError(
                    f"network {i} can't be saved: '{name}' holds a number that is not finite"
                )
            tensors[f"member.{i}.{name}"] = value.detach().cpu().contiguous().clone()
    for name, values in sorted(prefilter_arrays(prefilter).items()) if prefilter else ():
        tensors[name] = torch.from_numpy(values).contiguous()
    card_json, draft = card_to_json(card), serialize(tensors)
    data = memoryview(draft)[8 + int.from_bytes(draft[:8], "little") :]
    signed = json.loads(card_json) | {CHECKSUM_KEY: checksum(card_json, data)}
    # One metadata key only: safetensors writes several in no fixed order.
    text = json.dumps(signed, sort_keys=True, separators=(",", ":"))
    write_file(path, serialize(tensors, {CARD_KEY: text}))
    return card


@as_guest
def load_model(name_or_path: str | Path, backbone: str | Path | None = None) -> TrainedModel:
    """Load a shipped model by name, or a model file by path, onto the CPU, and check it.

    The file cannot run code, and no network is contacted. The random state of torch does not change.

    Parameters
    ----------
    name_or_path
        See `seqray.modelfile.header.locate_model`.
    backbone
        Directory of the encoder of the model, if it has moved since training; by default what the environment
        variable ``SEQRAY_BACKBONE`` names.

    Raises
    ------
    ModelFileError
        For a model that is missing, foreign (a pickle is refused unread), damaged, of a newer format, with
        tensors that don't fit the card, or that fails its self-test.
    ConfigError
        For a backbone that is missing or another one, or given to a model without one.
    """
    path = locate_model(name_or_path)
    where, header = str(path), read_header(path)
    card = header.card
    if card.model.backbone is not None:
        place = backbone or os.environ.get(BACKBONE_VARIABLE) or card.model.backbone.path
        moved = replace(card.model.backbone, path=str(Path(place).resolve()))
        card = replace(card, model=replace(card.model, backbone=moved))
    elif backbone is not None:
        raise ConfigError(f"model '{card.name}' has no backbone", remedy="leave it out")
    content = read_content(header, path)
    try:
        tensors = load_tensors(content)
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"can't be read ({str(error).splitlines()[0]})", where=where) from None
    own = {name: tensors.pop(name) for name in [*tensors] if name.startswith(PREFIX)}
    if any(tensor.dtype != torch.float32 for tensor in own.values()):
        raise ModelFileError("has a prefilter that is not of float32", where=where)
    arrays = {name: tensor.numpy() for name, tensor in own.items()}
    prefilter = read_prefilter(card, arrays, where) if own or card.prefilter else None
    networks = _build_members(card, tensors, where)
    model = TrainedModel(card, networks, hashlib.sha256(content).hexdigest(), prefilter=prefilter)
    check_self_test(model, where)
    return model


def _build_members(card: Card, tensors: Mapping[str, Tensor], where: str) -> tuple[Network, ...]:
    """Make the networks, and load the tensors; refuse missing, extra and misshapen ones, and other types."""
    limit, count = nullcontext(), sum(map(Tensor.numel, tensors.values()))
    if card.model.backbone is None:  # whose weights lie elsewhere
        error = ModelFileError(f"holds {count} weights, fewer than its description asks for", where=where)
        limit = SizeLimit(2 * count + _SPARE_VALUES, error)
    with torch.inference_mode(False), OwnDraws(), limit:
        networks = tuple(build_network(card.model) for _ in range(card.members))
    states = [network.state_dict() for network in networks]
    expected = {
        f"member.{i}.{name}": value for i, state in enumerate(states) for name, value in state.items()
    }
    missing, extra = expected.keys() - tensors.keys(), tensors.keys() - expected.keys()
    if missing:
        raise ModelFileError(f"lacks {len(missing)} tensors, such as '{min(missing)}'", where=where)
    if extra:
        raise ModelFileError(f"has {len(extra)} unknown tensors, such as '{min(extra)}'", where=where)
    for name, value in expected.items():
        tensor = tensors[name]
        if value.shape != tensor.shape:
            shapes = f"{tuple(tensor.shape)} where the model description asks for {tuple(value.shape)}"
            raise ModelFileError(f"tensor '{name}' is {shapes}", where=where)
        if value.dtype != tensor.dtype:
            raise ModelFileError(f"tensor '{name}' is of {tensor.dtype}, not {value.dtype}", where=where)
    for i, (network, state) in enumerate(zip(networks, states, strict=True)):
        network.load_state_dict({name: tensors[f"member.{i}.{name}"] for name in state})
    return networks
