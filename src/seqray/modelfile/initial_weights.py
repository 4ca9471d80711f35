"""Weights to begin with: a file that pre-training writes (safetensors without a card), or a model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save as serialize
from torch import Tensor

from seqray.core.errors import ConfigError, ModelFileError
from seqray.core.model_config import LocatorConfig, ModelConfig
from seqray.core.serialization import from_mapping, to_mapping
from seqray.core.version import __version__
from seqray.io.files import write_file
from seqray.modelfile.file import load_model
from seqray.modelfile.header import PRETRAINED_KEY
from seqray.models.sequence import Network

FORMAT = 1
# Settings that may differ: of one data set, of the training, of the head, and of parts that are trained anew.
# All others must be the same for the weights to mean the same.
_MAY_DIFFER = frozenset({
    "classes", "subclasses", "contexts", "max_length", "max_rows", "dropout", "pooling",
    "position_gain", "position_matrix", "ends", "words", "helices", "composition", "linear", "backbone",
})  # fmt: skip
# These belong to the classes, contexts and frame of one data set.
_OWN = ("head.", "contexts", "gain.", "matrix.", "linear.")
# These are taken over where both networks have them, of the same size.
_OPTIONAL = ("ends.", "words.", "helices.", "composition.")


@dataclass(frozen=True)
class InitialWeights:
    """Weights of a pretrained network, or a model: ``tensors`` of the first member, ``others`` after it."""

    config: ModelConfig
    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]
    sha256: str
    others: tuple[Mapping[str, Tensor], ...] = ()

    def for_member(self, number: int) -> InitialWeights:
        """Weights of the member of the same number, from 1; they are used in turn where there are fewer."""
        members = (self.tensors, *self.others)
        return replace(self, tensors=members[(number - 1) % len(members)], others=())


def save_pretrained(path: str | Path, network: Network, facts: Mapping[str, Any]) -> None:
    """Write the weights of a network without its head, and as plain data for JSON how they came about."""
    tensors = {
        name: value.detach().cpu().contiguous().clone()
        for name, value in sorted(network.state_dict().items())
        if not name.startswith(_OWN)
    }
    header = {
        "format": FORMAT,
        "seqray_version": __version__,
        "model": to_mapping(network.config),
        "facts": dict(facts),
    }
    content = serialize(tensors, {PRETRAINED_KEY: json.dumps(header, sort_keys=True)})
    write_file(path, content)


def load_pretrained(path: str | Path) -> InitialWeights:
    """Read what `save_pretrained` wrote."""
    where = str(path)
    try:
        with safe_open(where, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        header = json.loads(metadata[PRETRAINED_KEY])
    except FileNotFoundError:
        raise ModelFileError("does not exist", where=where) from None
    except KeyError:
        raise ModelFileError(
            "holds no pre-trained weights", where=where, remedy="give a file that seqray pretrain wrote"
        ) from None
    except (SafetensorError, OSError, RecursionError, ValueError) as error:
        raise ModelFileError(f"can't be read ({str(error).splitlines()[0]})", where=where) from None
    try:
        if header.get("format", 0) > FORMAT:
            raise ModelFileError(
                f"has format {header['format']}, written by seqray {header.get('seqray_version')}",
                where=where,
            )
        config, facts = from_mapping(ModelConfig, header["model"]), dict(header["facts"])
    except (AttributeError, ConfigError, KeyError, TypeError, ValueError):
        raise ModelFileError("has a damaged header", where=where) from None
    sha256 = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    return InitialWeights(config, tensors, facts, sha256)


def load_initial_weights(path: str | Path) -> InitialWeights:
    """Read weights to begin with from a file of `save_pretrained`, or of the members of a model file."""
    if is_pretrained(path):
        return load_pretrained(path)
    model = load_model(path)
    tensors, *others = [network.state_dict() for network in model.networks]
    return InitialWeights(model.card.model, tensors, {"model": model.card.name}, model.sha256, tuple(others))


def is_pretrained(path: str | Path) -> bool:
    """Whether it is a file of `save_pretrained` and not a model file."""
    try:
        with safe_open(str(path), framework="pt") as file:
            return PRETRAINED_KEY in (file.metadata() or {})
    except (SafetensorError, OSError, ValueError):  # also of a name that is not UTF-8
        return False


def check_initial_weights(start: InitialWeights, config: ModelConfig) -> None:
    """Refuse weights of a network of another shape."""
    if config.has_backbone or config.network:
        raise ConfigError(f"'model.kind: {config.kind}' begins with weights of its own, not with others")
    for name in (field.name for field in fields(ModelConfig) if field.name not in _MAY_DIFFER):
        theirs, ours = getattr(start.config, name), getattr(config, name)
        if isinstance(theirs, LocatorConfig) and isinstance(ours, LocatorConfig):  # but for its scores
            theirs, ours = (replace(x, no_gene_ahead=(), smoothing=0, region=0) for x in (theirs, ours))
        if theirs != ours:
            raise ConfigError(
                f"the weights to begin with have 'model.{name}' {theirs}, the settings {ours}",
                remedy="take the settings that the weights were made with",
            )
    if config.positions == "learned" and start.config.max_length != config.max_length:
        raise ConfigError(
            f"the weights to begin with have learned positions up to {start.config.max_length}, "
            f"'model.max_length' is {config.max_length}"
        )


def apply_initial_weights(network: Network, start: InitialWeights) -> None:
    """Copy the weights into a network, but for the head (except a locator's), contexts, gain and matrix."""
    given = network.state_dict()
    own = _OWN
    if start.config.is_locator and start.config.classes == network.config.classes:
        own = ()
    kept = {name: value for name, value in given.items() if name.startswith(_OWN + _OPTIONAL)}
    learned = {name: value for name, value in start.tensors.items() if not name.startswith(own)}
    for name in [name for name in learned if name.startswith(_OPTIONAL)]:
        if name not in given or given[name].shape != learned[name].shape:
            del learned[name]
    try:
        network.load_state_dict(kept | learned)
    except RuntimeError:
        raise ModelFileError("the weights to begin with don't fit the settings beside them") from None
