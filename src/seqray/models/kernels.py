"""Linear maps and attention by the fastest public operator of torch.

On the CPU, while no gradient is recorded, two short cuts are taken. Both compute the same function, to rounding.

- A float32 linear map runs as a convolution of width 1. ``F.linear`` calls MKL, convolutions call oneDNN,
  which is about twice as fast at these shapes on an AMD CPU and adds the bias on the way.
- Softmax without the shift by its largest score: exp(QKᵀ/√E) V and the sums of its rows come out of one product, and no
  pass over the scores searches their maximum. In bfloat16 that is about twice as fast as torch's fused
  kernel; in float32 it pays below 56 keys. Row sums that come near the limits of the number format are
  noticed, and the fused kernel then does the work.

`benchmarks/throughput.py` measures both.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ROWS_FOR_CONVOLUTION = 512  # fewer rows are done sooner than a convolution is set up
KEYS_FOR_FLOAT32 = 56  # from here on the fused kernel wins in float32
SCORE_BYTES = 2 << 20  # of the scores held at a time: they stay in the cache
SAFE_SUMS = (1e-20, 1e30)  # far from underflow and overflow of float32 and bfloat16, e^±87


def takes_short_cuts(x: Tensor) -> bool:
    """True on the CPU, without gradients, outside of compilation and export."""
    return x.device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """X Wᵀ + b: (B, L, D) -> (B, L, F), or any leading axes."""
    if (
        x.ndim == 3
        and x.dtype == torch.float32
        and x.shape[0] * x.shape[1] >= ROWS_FOR_CONVOLUTION
        and takes_short_cuts(x)
        and torch.backends.mkldnn.is_available()
        and not torch.is_autocast_enabled("cpu")
    ):
        pixels = x[:, :, None].permute(0, 3, 1, 2)  # (B, L, D) -> (B, D, L, 1), channels last, no copy
        return F.conv2d(pixels, weight[:, :, None, None], bias).squeeze(3).transpose(1, 2)
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """`torch.nn.Linear` by way of `linear`."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)


def fused_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """softmax(Q Kᵀ / √E + mask) V.

    Parameters
    ----------
    q, k, v
        (B, H, Lq, E), (B, H, L, E) and (B, H, L, E).
    mask
        (B, L) bool, True where a key may be attended to.

    Returns
    -------
    Tensor
        (B, H, Lq, E).
    """
    narrow = q.dtype == torch.bfloat16 or (q.shape[2] > 1 and k.shape[2] < KEYS_FOR_FLOAT32)
    if narrow and takes_short_cuts(q):
        output = _unshifted_in_pieces(q, k, v, mask)
        if output is not None:
            return output
    key_mask = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, L)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=key_mask)


def _unshifted_in_pieces(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor | None:
    """`_unshifted` over a few sequences at a time."""
    step = max(1, SCORE_BYTES // (q.shape[1] * q.shape[2] * k.shape[2] * q.element_size()))
    if step >= len(q):
        return _unshifted(q, k, v, mask)
    masks = [None] * -(-len(q) // step) if mask is None else mask.split(step)
    pieces = []
    for piece in zip(q.split(step), k.split(step), v.split(step), masks, strict=True):
        pieces.append(_unshifted(*piece))
        if pieces[-1] is None:
            return None
    return torch.cat(pieces)


def _unshifted(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor | None:
    """Softmax attention without the shift by the largest score; None where a row sum is out of bounds."""
    width = q.shape[-1]
    v = F.pad(v, (0, 1), value=1.0)  # a column of ones, whose product is the row sum: (B, H, L, E + 1)
    if mask is not None:
        v = v * mask[:, None, :, None]  # a masked key adds nothing to either
    products = torch.matmul(torch.matmul(q * width**-0.5, k.transpose(-2, -1)).exp_(), v)
    sums = products[..., width:]
    low, high = (float(value) for value in torch.aminmax(sums))
    if not (SAFE_SUMS[0] < low and high < SAFE_SUMS[1]):  # also where one is no number
        return None
    return products[..., :width] / sums
