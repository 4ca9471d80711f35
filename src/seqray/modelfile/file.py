"""Model files written, read and checked."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors, save as serialize
from torch import Tensor
from torch.overrides import TorchFunctionMode

from seqray.core.card import Card, card_to_json
from seqray.core.errors import ConfigError, ModelFileError
from seqray.io.files import write_file
from seqray.modelfile.backbones import BACKBONE_VARIABLE
from seqray.modelfile.header import (
    CARD_KEY,
    CHECKSUM_KEY,
    PREFIX,
    Header,
    check_model_path,
    checksum,
    prefilter_arrays,
    read_content,
    read_header,
    read_prefilter,
)
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import Network, build_network
from seqray.modelfile.self_test import check_self_test, make_self_test
from seqray.models.prefilter import Prefilter

# --- A limit on the tensors that a network is made of, which holds before they take memory

_MAKERS = frozenset({torch.empty, torch.zeros, torch.ones, torch.full, torch.rand, torch.randn})


class SizeLimit(TorchFunctionMode):
    """Within ``with``, raise an error instead of making more than so many values in all."""

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


# --- One safetensors file: the weights of up to five networks and their card

_SPARE_VALUES = 1_000_000  # that networks make and don't keep


def save_model(
    path: str | Path, networks: Sequence[Network], card: Card, prefilter: Prefilter | None = None
) -> Card:
    """Write a model file, through a temporary file in the same folder.

    Parameters
    ----------
    path
        Ends in ``.safetensors``.
    networks
        The members, as many as the card says.
    card
        Its self-test is made anew.
    prefilter
        That the card describes, if it does.

    Returns
    -------
    Card
        The card as written.

    Raises
    ------
    ModelFileError
        Where the networks don't fit the card, hold a number that is not finite, or the name ends otherwise.
    InputError
        Where the file can't be written.
    """
    check_model_path(path)
    if len(networks) != card.members:
        raise ModelFileError(f"the card says {card.members} members, {len(networks)} were given")
    if bool(card.prefilter) != (prefilter is not None):
        raise ModelFileError("a card describes a prefilter where there is one")
    copies = tuple(copy.deepcopy(network).cpu() for network in networks)  # the caller's stay as they are
    card = replace(card, self_test=make_self_test(TrainedModel(card, copies, prefilter=prefilter)))
    content = _file_bytes(networks, card, prefilter)
    write_file(path, content)
    return card


def _file_bytes(networks: Sequence[Network], card: Card, prefilter: Prefilter | None) -> bytes:
    tensors = _named_tensors(networks)
    for name, value in sorted(prefilter_arrays(prefilter).items()) if prefilter else ():
        tensors[name] = torch.from_numpy(value).contiguous()
    card_json = card_to_json(card)
    draft = serialize(tensors)
    data = memoryview(draft)[8 + int.from_bytes(draft[:8], "little") :]
    signed = json.loads(card_json) | {CHECKSUM_KEY: checksum(card_json, data)}
    # One metadata key only: safetensors writes several in no fixed order.
    return serialize(tensors, {CARD_KEY: json.dumps(signed, sort_keys=True, separators=(",", ":"))})


def _named_tensors(networks: Sequence[Network]) -> dict[str, Tensor]:
    tensors = {}
    for i, network in enumerate(networks):
        for name, value in sorted(network.state_dict().items()):
            if not bool(torch.isfinite(value).all()):
                raise ModelFileError(f"member {i} can't be saved: '{name}' holds a number that is not finite")
            tensors[f"member.{i}.{name}"] = value.detach().cpu().contiguous().clone()
    return tensors


def load_model_file(path: str | Path, backbone: str | Path | None = None) -> TrainedModel:
    """Load a model file onto the CPU and check it.

    The file cannot run code, and no network is contacted. The random state of torch does not change.

    Parameters
    ----------
    path
        The file.
    backbone
        Current directory of the encoder of a model with a backbone; by default what the environment
        variable ``SEQRAY_BACKBONE`` names, else where it lay in training.

    Raises
    ------
    ModelFileError
        For a file that is missing, foreign (a pickle is refused unread), damaged, of a newer format, with
        tensors that don't fit the card, or that fails its self-test.
    ConfigError
        For a backbone that is missing or another one, or given to a model without one.
    """
    header = _with_backbone(read_header(path), backbone)
    content = read_content(header, path)
    tensors = _load_tensors(content, str(path))
    own = {name: tensors.pop(name) for name in [*tensors] if name.startswith(PREFIX)}
    if any(tensor.dtype != torch.float32 for tensor in own.values()):
        raise ModelFileError("has a prefilter that is not of float32", where=str(path))
    arrays = {name: tensor.numpy() for name, tensor in own.items()}
    prefilter = read_prefilter(header.card, arrays, str(path))
    networks = _build_members(header, tensors, str(path))
    sha256 = hashlib.sha256(content).hexdigest()
    model = TrainedModel(header.card, networks, sha256, prefilter=prefilter)
    check_self_test(model, str(path))
    return model


def _with_backbone(header: Header, place: str | Path | None) -> Header:
    """Put the path of a backbone's directory into the card if it differs from the recorded one."""
    model = header.card.model
    if model.backbone is None:
        if place is not None:
            raise ConfigError(f"model '{header.card.name}' has no backbone", remedy="leave it out")
        return header
    place = place or os.environ.get(BACKBONE_VARIABLE) or model.backbone.path
    known = replace(model.backbone, path=str(Path(place).resolve()))
    return replace(header, card=replace(header.card, model=replace(model, backbone=known)))


def _load_tensors(content: bytes, where: str) -> dict[str, Tensor]:
    try:
        return load_tensors(content)
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"can't be read ({str(error).splitlines()[0]})", where=where) from None


def _build_members(header: Header, tensors: Mapping[str, Tensor], where: str) -> tuple[Network, ...]:
    limit = _limit(header, sum(map(Tensor.numel, tensors.values())), where)
    with torch.inference_mode(False), torch.random.fork_rng(devices=[]), limit:
        networks = tuple(build_network(header.card.model) for _ in range(header.card.members))
    states = [network.state_dict() for network in networks]
    expected = {
        f"member.{i}.{name}": value for i, state in enumerate(states) for name, value in state.items()
    }
    _compare(expected, tensors, where)
    for i, network in enumerate(networks):
        prefix = f"member.{i}."
        network.load_state_dict(
            {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
        )
    return networks


def _limit(header: Header, values: int, where: str) -> AbstractContextManager[Any]:
    """Stop a card that asks for larger networks than the file holds, before memory is taken for them."""
    if header.card.model.backbone is not None:  # whose weights lie elsewhere
        return nullcontext()
    error = ModelFileError(f"holds {values} weights, fewer than its card asks for", where=where)
    return SizeLimit(2 * values + _SPARE_VALUES, error)


def _compare(expected: Mapping[str, Tensor], found: Mapping[str, Tensor], where: str) -> None:
    """Refuse missing, extra and misshapen tensors, and those of another type."""
    missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    if missing:
        raise ModelFileError(f"lacks {len(missing)} tensors, such as '{min(missing)}'", where=where)
    if extra:
        raise ModelFileError(f"has {len(extra)} unknown tensors, such as '{min(extra)}'", where=where)
    for name, value in expected.items():
        if value.shape != found[name].shape:
            shapes = f"{tuple(found[name].shape)} where the card asks for {tuple(value.shape)}"
            raise ModelFileError(f"tensor '{name}' is {shapes}", where=where)
        if value.dtype != found[name].dtype:
            raise ModelFileError(f"tensor '{name}' is of {found[name].dtype}, not {value.dtype}", where=where)
