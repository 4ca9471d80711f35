"""The first bytes of a model file: what kind of file it is, the card inside it, the checksum. No torch here.

A safetensors file begins with the length of its header (8 bytes, little-endian), then the header in JSON,
then the numbers. Nothing in it can run. Anything else (a pickle above all) is refused by its first bytes,
unread.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seqray.core import Card, ModelFileError, card_from_mapping

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

    Attributes
    ----------
    card_json
        The card as in the file, without the checksum.
    checksum
        sha256 of the card and the tensors, as the file claims.
    tensors
        Name of each tensor to its entry (dtype, shape, data_offsets).
    data_start
        Offset of the tensors in the file.
    """

    card: Card
    card_json: str
    checksum: str
    tensors: Mapping[str, Any]
    data_start: int


def read_header(path: str | Path) -> Header:
    """Read and check the header of a model file; the tensors stay unread.

    Raises ModelFileError for a file that is missing, foreign (named by its first bytes), damaged, of a newer
    format, or without a card.
    """
    where = str(path)
    try:
        with open(path, "rb") as handle:
            first = handle.read(9)
            length = _header_length(first, where)
            text = first[8:] + handle.read(length - 1)
            size = handle.seek(0, 2)
    except IsADirectoryError:
        raise ModelFileError("is a directory, not a model file", where=where) from None
    except OSError as error:
        raise ModelFileError(f"can't be read ({error.strerror})", where=where) from None
    header = _parse(text, length, where)
    _check_layout(header.tensors, size - header.data_start, where)
    return header


def _header_length(first: bytes, where: str) -> int:
    if not first:
        raise ModelFileError("is empty, not a model file", where=where)
    if len(first) == 9 and first[8:] == b"{":
        [length] = struct.unpack("<Q", first[:8])
        if 2 <= length <= MAX_HEADER_BYTES:
            return length
    for magic, name in _FOREIGN:
        if first.startswith(magic):
            raise ModelFileError(f"is {name}; it was not opened further", where=where, remedy=_REMEDY)
    raise ModelFileError("is not a safetensors file", where=where, remedy=_REMEDY)


def _parse(text: bytes, length: int, where: str) -> Header:
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
        card = json.loads(metadata[CARD_KEY])
        checksum = card.pop(CHECKSUM_KEY)
        canonical = json.dumps(card, sort_keys=True, separators=(",", ":"))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ModelFileError("has a damaged card", where=where, remedy=_AGAIN) from None
    try:
        checked = card_from_mapping(card)
    except ModelFileError as error:
        raise ModelFileError(error.what, where=where, remedy=error.remedy) from None
    return Header(checked, canonical, str(checksum), tensors, 8 + length)


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
