"""The network that scores every position of a genome."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.model_config import (
    DETECTOR_WIDTH,
    LETTERS_PER_TOKEN,
    MERGER_WIDTH,
    SITE_WIDTH,
    LocatorConfig,
    ModelConfig,
)
from seqray.models.attention import Rotation, WindowedAttention, for_each, rotary_angles
from seqray.models.batches import AttentionStep, Dropout
from seqray.models.layers import ACTIVATIONS, ChannelsLastConvolution, LayerNorm, ResidualBlock

# --- Scores of a locator that count what it expects nearby: starts are rarely known to the letter

_SITE_SUM = 2.5066 * SITE_WIDTH  # √(2π) times the width: what the labels of one site add up to


class Smoothing(nn.Module):
    """Logits of letters to those of the same letters, each from all letters around it.

    A site at one of several letters has a low p at each; the sum of -log(1 - p), by the kernel of
    Epanechnikov (1969), is the better score. Sites come in groups: a ``region`` multiplies by their
    probability.
    """

    distance: Tensor
    kernel: Tensor
    wide_kernel: Tensor

    def __init__(self, reach: int, region: int = 0) -> None:
        super().__init__()
        self.reach, self.region = reach, region
        distance = torch.arange(-reach, reach + 1)
        kernel = _epanechnikov(reach)
        site = torch.exp(-0.5 * (distance / SITE_WIDTH) ** 2)
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


# --- The locator: a transformer that scores every position of a strand for each class of site

LETTERS = 4
STRIDE = LETTERS_PER_TOKEN
_REACH = DETECTOR_WIDTH // 2 + (MERGER_WIDTH - STRIDE) // 2  # letters that a token reads on either side
_FULL = 255.0  # of a track, which comes as bytes


@dataclass(frozen=True, slots=True)
class LocatorOutput:
    """Scores along a strand."""

    # (B, L, K), for each class of site at each letter; the logistic is the probability of a site there
    logits: Tensor
    # (B, L, T), the logit of each gene track, predicted from what was read: the auxiliary task
    tracks: Tensor
    attention: tuple[AttentionStep, ...] = ()  # A step for each layer, if asked for


class LocatorStem(nn.Module):
    """Letters and tracks (B, L, 4 + T) to tokens (B, L/4, D): a convolution, and one that merges letters."""

    stride = STRIDE
    field = STRIDE + 2 * _REACH  # letters that a token reads

    def __init__(self, channels: int, width: int, d_model: int, activation: str) -> None:
        super().__init__()
        self.detect = ChannelsLastConvolution(channels, width, DETECTOR_WIDTH)
        self.merge = nn.Conv1d(width, d_model, MERGER_WIDTH, STRIDE, padding=(MERGER_WIDTH - STRIDE) // 2)
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        x = self.activation(self.detect(x))  # (B, L, C)
        if torch.is_grad_enabled():
            return self.merge(x.transpose(1, 2)).transpose(1, 2).contiguous()  # (B, D, L/4) -> (B, L/4, D)
        return for_each(self._merge_rows, x)

    def _merge_rows(self, x: Tensor) -> Tensor:
        """The second convolution of one sequence (L, C) as a product of matrices: (L/4, D).

        The letters of a token are a row of a view whose rows overlap.
        """
        edge = (MERGER_WIDTH - STRIDE) // 2
        x = F.pad(x, (0, 0, edge, edge))
        count, width = (len(x) - MERGER_WIDTH) // STRIDE + 1, x.shape[1]
        rows = x.as_strided((count, MERGER_WIDTH * width), (STRIDE * width, 1))
        return F.linear(rows, self.merge.weight.transpose(1, 2).flatten(1), self.merge.bias)


class WindowedBlock(ResidualBlock):
    """Pre-norm residual block: x + WindowedAttention(norm(x)), then x + FeedForward(norm(x))."""

    linear = nn.Linear  # faster than `Linear` for few channels and thousands of tokens

    def add_attention(self, config: ModelConfig) -> None:
        window = _settings(config).window
        self.attention_norm = LayerNorm(config.d_model)
        self.attention = WindowedAttention(config.d_model, config.heads, window)

    def forward(
        self, x: Tensor, rotation: Rotation, *, need_weights: bool = False
    ) -> tuple[Tensor, tuple[AttentionStep, ...]]:
        """Attention and feed-forward: (B, L, D), in place without gradients, and the attention step."""
        attended, weights = self.attention(self.attention_norm(x), rotation, need_weights=need_weights)
        x = self.add(x, attended)
        steps = () if weights is None else (AttentionStep("sequence", weights, None),)
        return self.add_feed_forward(x), steps


class LocatorTransformer(nn.Module):
    """Letters and gene tracks of a stretch to a score at each letter, for one strand.

    A token is four letters. What lies further than `radius` letters away does not change a score.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        settings, width = _settings(config), config.d_model
        self.config, self.tracks = config, len(settings.tracks)
        self.stem = LocatorStem(LETTERS + self.tracks, settings.stem, width, config.activation)
        self.blocks = nn.ModuleList(WindowedBlock(config) for _ in range(config.layers))
        self.norm = LayerNorm(width)
        self.dropout = Dropout(config.dropout)
        self.head = nn.Linear(width, STRIDE * (config.classes + self.tracks))
        self.smoothing = Smoothing(settings.smoothing, settings.region)
        self._no_gene_ahead = settings.no_gene_ahead
        self.radius = config.radius

    def forward(
        self, letters: Tensor, tracks: Tensor | None = None, *, return_attention: bool = False
    ) -> LocatorOutput:
        """Scores of the letters of a strand (B, L), L a multiple of 4, with tracks (B, T, L) of known genes.

        Letters are 0 to 3 for A, C, G, T and above for unknown; 255 in a track stands for 1.
        """
        return self.locate(self.embed(letters, tracks), return_attention=return_attention)

    def scores(self, output: LocatorOutput) -> Tensor:
        """Logits of the scores at each letter (B, L, K): those of the output, smoothed."""
        return self.smoothing(output.logits.float())

    def embed(self, letters: Tensor, tracks: Tensor | None = None) -> Tensor:
        """Input of the stem, (B, L, 4 + T): one channel a letter, then the tracks."""
        dtype = self.norm.weight.dtype
        x = torch.zeros(*letters.shape, LETTERS + self.tracks, dtype=dtype, device=letters.device)
        x[..., :LETTERS] = letters[..., None] == torch.arange(LETTERS, device=letters.device)
        if tracks is not None:
            x[..., LETTERS:] = tracks.transpose(1, 2)
            x[..., LETTERS:] /= _FULL
        return x

    def locate(self, x: Tensor, *, return_attention: bool = False) -> LocatorOutput:
        """Scores from embedded letters and tracks (B, L, 4 + T)."""
        if x.shape[1] % STRIDE:
            raise ValueError(f"{x.shape[1]} letters are no multiple of {STRIDE}")
        embedded = x
        x = self.stem(x)
        rotation = _rotation(x.shape[1], self.config.d_model // self.config.heads, x.device)
        steps: list[AttentionStep] = []
        for block in self.blocks:
            x, taken = block(x, rotation, need_weights=return_attention)
            steps += taken
        scores = self.head(self.dropout(self.norm(x)))  # (B, L/4, 4·(K + T))
        scores = scores.unflatten(-1, (STRIDE, -1)).flatten(1, 2)
        logits, tracks = scores.split([self.config.classes, self.tracks], dim=-1)
        if self._no_gene_ahead and not self.training:
            logits = logits + self._without_gene(embedded) * logits.new_tensor(self._no_gene_ahead)
        return LocatorOutput(logits, tracks, tuple(steps))

    def _without_gene(self, embedded: Tensor) -> Tensor:
        """Letters where genes are known and none begins soon ahead: 1 there and 0 elsewhere, (B, L, 1).

        Genes are known as far as the contig reaches: near its end one may begin beyond.
        """
        rows = [LETTERS + _settings(self.config).tracks.index(name) for name in ("known", "to-start")]
        known, ahead = embedded[..., rows].split(1, dim=-1)
        read = self.config.letters_read
        known = F.pad(known[:, read:], (0, 0, 0, min(read, known.shape[1])))
        return known * (ahead == 0)


@functools.lru_cache(maxsize=4)
def _rotation(tokens: int, head_width: int, device: torch.device) -> Rotation:
    """Rotary angles of tokens that are counted from 0."""
    with torch.inference_mode(False):  # or they could not be used where gradients are recorded
        return rotary_angles(torch.arange(tokens, device=device), head_width)


def _settings(config: ModelConfig) -> LocatorConfig:
    return config.locator or LocatorConfig()
