"""Model files, read without torch: where they are, their header, card and checksum."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqray.core.errors import InputError, ModelFileError, require_type
from seqray.core.text import did_you_mean

if TYPE_CHECKING:
    from seqray.core.card import Card

# --- Where a model file is, and where one may be written

SUFFIX = ".safetensors"
FOLDER = Path(__file__).parents[1] / "zoo_models"


def available_models() -> list[str]:
    """Return the names of the shipped models, sorted."""
    return sorted(path.stem for path in FOLDER.glob(f"*{SUFFIX}"))


def locate_model(name_or_path: str | Path) -> Path:
    """Find a model file by the name of a shipped model or by path."""
    if not isinstance(name_or_path, Path):
        require_type(name_or_path, str, "give the name of a shipped model, or the path of a model file")
    text = str(name_or_path)
    path = Path(text)
    if text in available_models():
        return FOLDER / f"{text}{SUFFIX}"
    if isinstance(name_or_path, Path) or "/" in text or path.suffix or path.is_file():
        if not path.exists():
            raise ModelFileError("no such file", where=text, remedy=_suggestion(path.stem))
        if not path.is_file() and not path.is_dir():
            raise ModelFileError("is a pipe or a device", where=text, remedy="save the model to a file")
        return path
    raise ModelFileError(f"no shipped model is called '{text}'", remedy=_suggestion(text))


def _suggestion(name: str) -> str:
    names = available_models()
    shipped = f"shipped are {', '.join(names)}" if names else "this installation ships none"
    return did_you_mean(
        name, names, cutoff=0.5, otherwise=f"{shipped}; a model of your own is given by its path"
    )


def check_model_path(path: str | Path) -> None:
    """Refuse a place where a model file can't be written, before hours go into the model."""
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
    """The header of the model file ``where``; the tensors begin at ``data_start``."""

    where: str
    mapping: Mapping[str, Any]
    card_json: str
    checksum: str
    data_start: int

    @cached_property
    def card(self) -> Card:
        """The card, checked. Raises ModelFileError for one that is damaged or of a newer format."""
        from seqray.core.card import card_from_mapping  # which loads numpy: lists of models do without

        try:
            return card_from_mapping(self.mapping)
        except ModelFileError as error:
            raise ModelFileError(error.what, where=self.where, remedy=error.remedy) from None


def read_header(path: str | Path) -> Header:
    """Read and check the header of a model file; the tensors stay unread, and the card unchecked."""
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
    _check_layout(tensors, size - 8 - length, where)
    return Header(where, mapping, canonical, claimed, 8 + length)


def _foreign(first: bytes, where: str) -> ModelFileError:
    """The error of a file that begins with other bytes than a safetensors file."""
    if not first:
        return ModelFileError("is empty, not a model file", where=where)
    for magic, name in _FOREIGN:
        if first.startswith(magic):
            return ModelFileError(f"is {name}; it was not opened further", where=where, remedy=_REMEDY)
    return ModelFileError("is not a safetensors file", where=where, remedy=_REMEDY)


def _check_layout(tensors: Mapping[str, Any], available: int, where: str) -> None:
    """Refuse tensors that don't lie as safetensors writes them: without gaps, by type and name."""
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
            f"holds {available} bytes of tensors where its header says {end}", where=where, remedy=_AGAIN
        )


def read_card(path: str | Path) -> Card:
    """Read the card of a model file, without torch."""
    header = read_header(path)
    card = header.card
    read_content(header, path)
    return card


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
