"""Linear maps and attention by the fastest public operators of torch.

On the CPU, while no gradient is recorded, two short cuts compute the same functions, to rounding:

- A float32 linear map runs as a convolution of width 1. ``F.linear`` calls MKL, convolutions call oneDNN,
  which takes half the time on an AMD processor and adds the bias on the way.
- Softmax attention leaves out the shift by the largest score of a row: exp(QKᵀ/√E) [V 1] gives the weighted
  values and the row sums in one product. In bfloat16 that takes half the time of torch's fused kernel; in
  float32 it pays below 56 keys. Row sums near the limits of the number format are noticed, and the fused
  kernel then does the work.

``benchmarks/throughput.py`` measures what they bring.
"""

from __future__ import annotations

import ctypes
import functools
import platform

import torch
import torch.nn.functional as F
from torch import Tensor, nn

MIN_CONVOLUTION_ROWS = 512  # fewer rows are done sooner than a convolution is set up
MIN_FUSED_KEYS = 56  # with so many or more, the fused kernel is faster in float32
SCORE_BYTES = 2 << 20  # of the scores held at a time: they stay in the cache
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of malloc.h
MAX_TRAINED_SCORES = 16 << 20  # 32 MB in bfloat16, a few times for each layer
SAFE_SUMS = (1e-20, 1e30)  # far from underflow and overflow of float32 and bfloat16, e^±87


def uses_cpu_shortcuts(x: Tensor) -> bool:
    """True on the CPU, without gradients, outside of compilation and export."""
    return x.device.type == "cpu" and not torch.is_grad_enabled() and not torch.compiler.is_compiling()


@functools.cache
def keep_freed_memory() -> None:
    """Let the C library keep freed activations for the next layer; call it before networks run on the CPU.

    By default glibc hands blocks of some MiB back to the system, and every layer pays page faults for fresh
    ones: a third of the time of a small network. This raises both thresholds for the process, see mallopt(3);
    the second bounds what it keeps. Other C libraries are left as they are.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 32 << 20)  # the most that it takes
        libc.mallopt(M_TRIM_THRESHOLD, 128 << 20)


def linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """X Wᵀ + b: (B, L, F).

    ``x`` is (B, L, D), or has any leading axes; ``weight`` is (F, D), ``bias`` (F,).
    """
    if (
        x.ndim == 3
        and x.dtype == torch.float32
        and x.shape[0] * x.shape[1] >= MIN_CONVOLUTION_ROWS
        and uses_cpu_shortcuts(x)
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
        (B, H, Lq, E), (B, H, L, E) and (B, H, L, F).
    mask
        (B, L) bool, True where a key may be attended to.

    Returns
    -------
    Tensor
        (B, H, Lq, F).
    """
    narrow = q.dtype == torch.bfloat16 or (q.shape[2] > 1 and k.shape[2] < MIN_FUSED_KEYS)
    if narrow and uses_cpu_shortcuts(q):
        output = _unshifted_attention(q, k, v, mask)
        if output is not None:
            return output
    key_mask = None if mask is None else mask[:, None, None, :]  # (B, 1, 1, L)
    if q.dtype == torch.bfloat16 and q.device.type == "cpu" and torch.is_grad_enabled():
        with torch.autocast("cpu", enabled=False):
            return _trained_attention(q, k, v, key_mask)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=key_mask)


def _trained_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Attention in bfloat16 with gradients on the CPU, by products of matrices.

    Backwards, torch's kernel for the CPU is slower in bfloat16 than in float32, and the products are faster
    than both. They keep all scores, so long sequences are left to the kernel.
    """
    if q.shape[:3].numel() * k.shape[2] > MAX_TRAINED_SCORES:
        wide = (t.float() for t in (q, k, v))
        return F.scaled_dot_product_attention(*wide, attn_mask=mask).to(q.dtype)
    scores = (q * q.shape[3] ** -0.5) @ k.mT
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1) @ v


def _unshifted_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor | None:
    """V exp(K Qᵀ/√E), transposed, over its row sums; None where a sum is out of bounds.

    A column of ones beside V gives the sums, a zero in both takes out a masked key, and the transposed
    products are the faster ones for narrow heads. Some heads at a time keep the scores in the cache.
    """
    B, H, Lq, E = q.shape
    width = v.shape[3]
    q = (q * E**-0.5).transpose(2, 3).reshape(B * H, E, Lq)
    k = k.reshape(B * H, -1, E)
    v = F.pad(v.transpose(2, 3), (0, 0, 0, 1), value=1.0)  # (B, H, F, L) -> (B, H, F + 1, L)
    v = (v if mask is None else v * mask[:, None, None, :]).reshape(B * H, width + 1, -1)
    step = min(B * H, max(1, SCORE_BYTES // (Lq * k.shape[1] * q.element_size())))
    scores = q.new_empty(step, k.shape[1], Lq)
    products = q.new_empty(B * H, width + 1, Lq)
    for start in range(0, B * H, step):
        heads = slice(start, start + step)
        part = scores[: B * H - start]
        torch.bmm(k[heads], q[heads], out=part)
        torch.bmm(v[heads], part.exp_(), out=products[heads])
    sums = products[:, width:]  # (B·H, 1, Lq)
    low, high = (float(value) for value in torch.aminmax(sums))
    if not (SAFE_SUMS[0] < low and high < SAFE_SUMS[1]):  # also where one is no number
        return None
    return products[:, :width].div_(sums).view(B, H, width, Lq).transpose(2, 3)
