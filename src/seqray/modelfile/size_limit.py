"""A limit on the tensors that a network is made of, which holds before they take memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

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
