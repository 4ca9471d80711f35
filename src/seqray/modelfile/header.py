"""The header of a model file."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from seqray.core.alphabet import ALPHABETS
from seqray.core.card import Card, card_from_mapping
from seqray.core.errors import InputError, ModelFileError
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import KERNEL, Prefilter, PrefilterSize, prefilter_shapes

# --- The name of a model file, and where one may be written

SUFFIX = ".safetensors"


def check_model_path(path: str | Path) -> None:
    """Refuse a place where a model file can't be written, before hours go into the model.

    Raises ModelFileError for another suffix, InputError for a directory, and a folder that does not exist or
    can't be written to.
    """
    out, where = Path(path), str(path)
    if out.suffix != SUFFIX:
        raise ModelFileError(f"a model file ends in {SUFFIX}", where=where, remedy="give another name")
    if out.is_dir():
        raise InputError("is a directory, not a model file to write", where=where)
    if not out.parent.is_dir():
        raise InputError("can't be written: its folder does not exist", where=where)
    if not os.access(out.parent, os.W_OK):
        raise InputError("can't be written: no permission for its folder", where=where)


# --- The first bytes of a model file: what kind of file it is, the card inside it, the checksum

CARD_KEY = "seqray_card"
PRETRAINED_KEY = "seqray_pretrained"  # of files of initial weights
CHECKSUM_KEY = "checksum"
MAX_HEADER_BYTES = 100_000_000  # the limit of the format

_REMEDY = "a seqray model is one .safetensors file, as 'seqray train' writes"
_AGAIN = "copy or download it again"
_FOREIGN = (
    (b"\x80\x02", "a Python pickle"),
    (b"\x80\x03", "a Python pickle"),
    (b"\x80\x04", "a Python pickle"),
    (b"\x80\x05", "a Python pickle"),
    (b"PK\x03\x04", "a zip archive (as torch.save and Lightning write, with a pickle inside)"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x1f\x8b", "a gzip file"),
    (b"BZh", "a bzip2 file"),
    (b"\xfd7zXZ", "an xz file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b">", "a FASTA file"),
)


@dataclass(frozen=True)
class Header:
    """The checked header of a model file.

    ``card_json`` is the card as in the file, without the ``checksum`` of card and tensors that the file
    claims; the tensors begin at ``data_start``.
    """

    card: Card
    card_json: str
    checksum: str
    data_start: int


def read_header(path: str | Path) -> Header:
    """Read and check the header of a model file; the tensors stay unread.

    Raises ModelFileError for a file that is missing, foreign (named by its first bytes), damaged, of a newer
    format, or without a card.
    """
    where, length = str(path), 0
    try:
        with open(path, "rb") as handle:
            first = handle.read(9)
            if len(first) == 9 and first[8:] == b"{":
                [length] = struct.unpack("<Q", first[:8])
            if not 2 <= length <= MAX_HEADER_BYTES:
                raise _foreign(first, where)
            text = first[8:] + handle.read(length - 1)
            size = handle.seek(0, 2)
    except IsADirectoryError:
        raise ModelFileError("is a directory, not a model file", where=where) from None
    except OSError as error:
        raise ModelFileError(f"can't be read ({error.strerror})", where=where) from None
    if len(text) < length:
        raise ModelFileError("is cut short within its header", where=where, remedy=_AGAIN)
    try:
        tensors = json.loads(text)
        metadata = tensors.pop("__metadata__", {})
    except (ValueError, AttributeError, RecursionError):
        raise ModelFileError("has a damaged header", where=where, remedy=_AGAIN) from None
    if isinstance(metadata, dict) and PRETRAINED_KEY in metadata:
        what = "holds weights of 'seqray pretrain', not a model"
        raise ModelFileError(what, where=where, remedy="train one that begins with them: seqray train --init")
    if not isinstance(metadata, dict) or CARD_KEY not in metadata:
        raise ModelFileError("is a safetensors file without a seqray card", where=where, remedy=_REMEDY)
    try:
        mapping = json.loads(metadata[CARD_KEY])
        claimed = str(mapping.pop(CHECKSUM_KEY))
        canonical = json.dumps(mapping, sort_keys=True, separators=(",", ":"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ModelFileError("has a damaged card", where=where, remedy=_AGAIN) from None
    try:
        card = card_from_mapping(mapping)
    except ModelFileError as error:
        raise ModelFileError(error.what, where=where, remedy=error.remedy) from None
    _check_layout(tensors, size - 8 - length, where)
    return Header(card, canonical, claimed, 8 + length)


def _foreign(first: bytes, where: str) -> ModelFileError:
    """The error of a file that begins with other bytes than a safetensors file."""
    if not first:
        return ModelFileError("is empty, not a model file", where=where)
    for magic, name in _FOREIGN:
        if first.startswith(magic):
            return ModelFileError(f"is {name}; it was not opened further", where=where, remedy=_REMEDY)
    return ModelFileError("is not a safetensors file", where=where, remedy=_REMEDY)


def _check_layout(tensors: Mapping[str, Any], available: int, where: str) -> None:
    """Refuse tensors that don't lie as safetensors writes them: without gaps, those of a type by their names.

    So the card and the numbers, which the checksum covers, decide what each tensor is.
    """
    end, last = 0, dict[str, str]()
    try:
        for (begin, stop), name in sorted((entry["data_offsets"], name) for name, entry in tensors.items()):
            kind = tensors[name]["dtype"]
            if begin != end or name <= last.get(kind, ""):
                raise ValueError(name)
            end, last[kind] = stop, name
    except (KeyError, TypeError, ValueError):
        raise ModelFileError("has a damaged header", where=where, remedy=_AGAIN) from None
    if end != available:
        raise ModelFileError(
            f"holds {available} bytes of tensors where its header says {end}",
            where=where,
            remedy=_AGAIN,
        )


def read_card(path: str | Path) -> Card:
    """Read the card of a model file, without torch.

    Raises ModelFileError as `read_header`, and where the checksum of the file does not match.
    """
    header = read_header(path)
    read_content(header, path)
    return header.card


def read_content(header: Header, path: str | Path) -> bytes:
    """Read a whole file. Raises ModelFileError where its checksum is another one than its header says."""
    content = Path(path).read_bytes()
    if checksum(header.card_json, memoryview(content)[header.data_start :]) != header.checksum:
        raise ModelFileError(
            "is damaged: its checksum does not match", where=str(path), remedy="copy or download it again"
        )
    return content


def checksum(card_json: str, data: bytes | memoryview) -> str:
    """Sha256 of a card and of the tensors that follow it."""
    digest = hashlib.sha256(card_json.encode())
    digest.update(data)
    return digest.hexdigest()


# --- The prefilter in a model file: tensors ``prefilter.<name>``, and ``prefilter.second.<name>``

PREFIX = "prefilter."
_SECOND = "second."


def read_prefilter(card: Card, arrays: Mapping[str, np.ndarray], where: str) -> Prefilter | None:
    """Make the prefilter of a model file; None where the card names none.

    ``arrays`` are all of the file whose names begin with `PREFIX`. ModelFileError is raised for arrays that
    are missing, unknown or of another shape or type than the card implies.
    """
    if card.prefilter is None:
        if arrays:
            raise ModelFileError("has a prefilter that its card does not name", where=where)
        return None
    if card.window < KERNEL:
        raise ModelFileError(f"has a prefilter of windows of {card.window} letters", where=where)
    names = {name.removeprefix(PREFIX): value for name, value in arrays.items()}
    first = {name: value for name, value in names.items() if not name.startswith(_SECOND)}
    second = {name.removeprefix(_SECOND): value for name, value in names.items() if name not in first}
    letters, contexts = len(ALPHABETS[card.model.alphabet].letters), len(card.model.contexts)
    fits = bool(second) == (card.prefilter.second is not None)
    for weights in filter(None, (first, second)):
        own = {name: value.shape for name, value in weights.items()}
        # The biases give the size; a missing one, or a single number, makes it 0.
        biases = ("convolution_bias", "first_bias", "second_bias")
        size = PrefilterSize(*((0, *own.get(name, ()))[-1] for name in biases))
        fits &= own == prefilter_shapes(card.window, letters, contexts, size)
        fits &= all(value.dtype == np.float32 for value in weights.values())
    if not fits or not first:
        raise ModelFileError("has a prefilter that doesn't fit its card", where=where)
    return Prefilter(first, card.window, Prefilter(second, card.window) if second else None)


def prefilter_arrays(prefilter: Prefilter) -> dict[str, np.ndarray]:
    """The tensors of a prefilter in a model file."""
    prefixes = (PREFIX, PREFIX + _SECOND)
    return {
        prefix + name: value
        for prefix, network in zip(prefixes, prefilter.networks, strict=False)
        for name, value in network.weights.items()
    }


# --- A model whose weights stay arrays: for engines that compute without torch


@dataclass(frozen=True)
class _Cpu:
    """As ``torch.device("cpu")``, without torch."""

    type: str = "cpu"
    index: int | None = None

    def __str__(self) -> str:
        return self.type


@dataclass(frozen=True, eq=False, repr=False)
class StoredModel(TrainedModel):
    """A model without networks; ``weights`` are those of each member, by the names of its state dict."""

    weights: tuple[Mapping[str, npt.NDArray[np.floating]], ...] = field(default=(), kw_only=True)

    @property
    def device(self) -> Any:
        return super().device if self.networks else _Cpu()

    def member(self, number: int) -> Self:
        return replace(super().member(number), weights=self.weights[number : number + 1])

    def arrays(self) -> tuple[Mapping[str, npt.NDArray[np.floating]], ...]:
        return self.weights


def open_stored_model(path: str | Path) -> StoredModel:
    """Read a model file and compare its checksum; its weights are checked by what computes with them."""
    header = read_header(path)
    content = read_content(header, path)
    try:
        arrays = load_arrays(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"can't be read ({str(error).splitlines()[0]})", where=str(path)) from None
    own = {name: arrays.pop(name) for name in [*arrays] if name.startswith(PREFIX)}
    prefilter = read_prefilter(header.card, own, str(path))
    members = tuple[dict[str, Any], ...]({} for _ in range(header.card.members))
    for name, value in arrays.items():
        prefix, number, rest = (*name.split(".", 2), "", "")[:3]
        if prefix != "member" or not number.isdecimal() or int(number) >= len(members):
            raise ModelFileError(f"has unknown tensors, such as '{name}'", where=str(path))
        members[int(number)][rest] = value
    sha256 = hashlib.sha256(content).hexdigest()
    return StoredModel(header.card, (), sha256, prefilter=prefilter, weights=members)
