"""A model whose weights stay arrays: for engines that compute without torch."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from seqray.core import ModelFileError
from seqray.modelfile.header import read_content, read_header
from seqray.modelfile.prefilter import PREFIX, read_prefilter
from seqray.modelfile.trained import TrainedModel


@dataclass(frozen=True)
class _Cpu:
    """As a device of torch, which is not loaded."""

    type: str = "cpu"
    index: int | None = None

    def __str__(self) -> str:
        return self.type


CPU = _Cpu()
"""What stands for ``torch.device("cpu")``."""


@dataclass(frozen=True, eq=False)
class StoredModel(TrainedModel):
    """A model without networks.

    Attributes
    ----------
    weights
        Of each member, by the names of its state dict.
    """

    weights: tuple[Mapping[str, npt.NDArray[np.floating]], ...] = field(default=(), kw_only=True)

    @property
    def device(self) -> Any:
        return super().device if self.networks else CPU

    def member(self, number: int) -> Self:
        return replace(super().member(number), weights=self.weights[number : number + 1])

    def arrays(self) -> tuple[Mapping[str, npt.NDArray[np.floating]], ...]:
        return self.weights


def open_stored_model(path: str | Path) -> StoredModel:
    """Read a model file and compare its checksum; its weights are checked by what computes with them.

    Raises
    ------
    ModelFileError
        For a file that is missing, foreign, damaged or of a newer format.
    """
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
