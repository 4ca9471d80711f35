"""Names of devices: what torch and what Lightning's trainer make of auto, cpu, cuda and cuda:N."""

from __future__ import annotations

import re
from typing import Any

import torch

from seqray.core import ConfigError


def torch_device(name: str) -> str:
    """Check a name, and choose for ``auto`` a GPU if there is one.

    Raises ConfigError for another name, or a GPU that isn't there.
    """
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
    """Settings of Lightning's trainer; none for ``auto``, which leaves them as they are.

    Raises ConfigError for another name, or a GPU that isn't there.
    """
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
