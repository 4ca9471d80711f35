"""Scores of a locator that count what it expects nearby: starts are rarely known to the letter."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_SITE_WIDTH = 2.5  # letters, the default of `genomes.sigma`
_SITE_SUM = 2.5066 * _SITE_WIDTH  # √(2π) times the width: what the labels of one site add up to


class Smoothing(nn.Module):
    """Logits of letters to those of the same letters, each from all letters around it.

    A network that expects one site, but not at which of some letters, gives each a low probability p. What
    these add up to is the better score. The sum is one of -log(1 - p), weighted by the kernel of Epanechnikov
    (1969). A site that is sure keeps its score if `genomes.sigma` is 2.5; with another, the order of the
    scores is right, and their size is not. With a ``region``, the score is multiplied by the probability that
    the letters of the region have any site, because sites come in groups.

    Parameters
    ----------
    reach
        Letters on either side that count as the same place; 0 for none.
    region
        Letters on either side that are the region; 0 for none.
    """

    distance: Tensor
    kernel: Tensor
    wide_kernel: Tensor

    def __init__(self, reach: int, region: int = 0) -> None:
        super().__init__()
        self.reach, self.region = reach, region
        distance = torch.arange(-reach, reach + 1)
        kernel = _epanechnikov(reach)
        site = torch.exp(-0.5 * (distance / _SITE_WIDTH) ** 2)
        self.register_buffer("distance", distance, persistent=False)
        self.register_buffer("kernel", kernel / (kernel * site).sum(), persistent=False)
        self.register_buffer("wide_kernel", _epanechnikov(region) / _SITE_SUM, persistent=False)

    def shares(self) -> Tensor:
        """How much each of the letters that count as the same place does: (2 reach + 1,), sums to 1."""
        return self.kernel / self.kernel.sum()

    def forward(self, logits: Tensor) -> Tensor:
        """Logits (B, L, K), float32, to smooth ones; beyond the ends there are no sites."""
        if not self.reach and not self.region:
            return logits
        rows = F.softplus(logits).transpose(1, 2).flatten(0, 1)[:, None]  # -log(1 - p) as (B·K, 1, L)
        here = _weighted_sum(rows, self.kernel)
        log_here, log_none = torch.log(-torch.expm1(-here)), -here
        if self.region:
            near = _weighted_sum(rows, self.wide_kernel)
            log_none = torch.logaddexp(log_none, log_here - near)  # of 1 - a b = (1 - a) + a (1 - b)
            log_here = log_here + torch.log(-torch.expm1(-near))
        smooth = log_here - log_none
        return smooth.view(len(logits), -1, logits.shape[1]).transpose(1, 2)


def _epanechnikov(reach: int) -> Tensor:
    return 1 - (torch.arange(-reach, reach + 1) / (reach + 1)) ** 2


def _weighted_sum(rows: Tensor, kernel: Tensor) -> Tensor:
    """Sum around each letter of (N, 1, L), above 0."""
    with torch.autocast(rows.device.type, enabled=False):  # bfloat16 would hold three digits of it
        summed = F.conv1d(rows, kernel.to(rows)[None, None], padding=len(kernel) // 2)
    return summed.clamp_min(torch.finfo(summed.dtype).tiny)
