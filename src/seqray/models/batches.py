"""Batches, padding, devices, and what a network returns."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqray.core.errors import ConfigError
from seqray.core.text import Brief
from seqray.models.tokenizers import pad_arrays

# A fork has none of the threads of OpenMP that its parent has started, and would wait for them for ever.
os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))

# --- Arrays of tokens to tensors


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Tokens (B, L), CLS first, or (B, R, C) of alignments, the query in row 0 and CLS in column 0.

    Masks (B, L), or (B, R) and (B, C), are True at real tokens; None without padding, which is faster.
    """

    tokens: Tensor
    masks: tuple[Tensor | None, ...]

    def to(self, device: torch.device | str) -> TokenBatch:
        """Return the same batch on another device."""
        masks = tuple(None if mask is None else mask.to(device) for mask in self.masks)
        return TokenBatch(self.tokens.to(device), masks)


def collate(tokens: Sequence[np.ndarray]) -> TokenBatch:
    """Stack token arrays, (L_i,) or (R_i, C_i), into one batch as large as the largest on each axis."""
    padded, masks = pad_arrays(tokens)
    return TokenBatch(
        torch.from_numpy(padded), tuple(None if mask is None else torch.from_numpy(mask) for mask in masks)
    )


# --- What a network returns


@dataclass(frozen=True, slots=True, repr=False)
class AttentionStep(Brief):
    """The attention weights of one layer."""

    # the axis along which tokens attend to each other: ``sequence``; in an alignment ``column`` (over the
    # rows of each column) or ``row`` (over the columns of each row)
    axis: str
    # share of each key (last axis) in the output of each query; rows sum to 1. ``sequence``: (B, H, L, L);
    # ``column``: (B, H, C, R, R); ``row``: (B, H, R, C, C), or (B, H, 1, C, C) where rows are tied
    weights: Tensor
    mask: Tensor | None  # (B, L), (B, R) or (B, C) bool, True at real keys; None where nothing is padded


@dataclass(frozen=True, slots=True, repr=False)
class ModelOutput(Brief):
    """What a network answers."""

    logits: Tensor  # (B, K)
    # on request an `AttentionStep` for each attention layer, first layer first
    attention: tuple[AttentionStep, ...] = ()
    # (B, M) logits of the subclasses of all classes; None of a network that learned none
    subclasses: Tensor | None = None


# --- Names of devices: what torch and what Lightning's trainer make of auto, cpu, cuda and cuda:N


def torch_device(name: str) -> str:
    """Check a name, and choose for ``auto`` a GPU if there is one."""
    kind, number = _parts(name)
    present = torch.cuda.device_count()
    if kind == "auto":
        return "cuda" if present else "cpu"
    if kind == "cuda" and (number or 0) >= present:
        raise ConfigError(
            f"the device is '{name}', and {present} GPUs are seen here", remedy="use the device cpu"
        )
    return name


def trainer_device(name: str) -> dict[str, Any]:
    """Settings of Lightning's trainer; none for ``auto``, which leaves them as they are."""
    kind, number = _parts(name)
    if kind == "auto":
        return {}
    torch_device(name)
    return {"accelerator": kind, "devices": 1 if number is None else [number]}


def _parts(name: str) -> tuple[str, int | None]:
    match = re.fullmatch(r"(auto|cpu|cuda)|cuda:([0-9]{1,3})", str(name))
    if match is None:
        raise ConfigError(f"unknown device '{name}'", remedy="give auto, cpu, cuda or cuda:N")
    return (match[1], None) if match[1] else ("cuda", int(match[2]))


# --- Dropout that takes few random numbers on the CPU

_BYTE = 256


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`; on the CPU a random byte decides on each value, so p is rounded to a 256th.

    torch draws a number of 32 bits for each value there, which is a large part of a training step.
    """

    def forward(self, input: Tensor) -> Tensor:
        dropped = round(self.p * _BYTE)  # values of a byte
        if not self.training or input.device.type != "cpu" or dropped in (0, _BYTE):
            return super().forward(input)
        count = input.numel()
        words = torch.empty(-(-count // 8), dtype=torch.int64).random_(-(2**63), None)
        kept = words.view(torch.uint8)[:count].view(input.shape) >= dropped
        return input * (kept.to(input.dtype) * (_BYTE / (_BYTE - dropped)))
