"""Dropout that takes few random numbers on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

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
