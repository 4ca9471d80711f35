"""Parts of a network that have settings of their own: stem, backbone, and what a locator adds."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from seqray.core.errors import require


def refuse_set(settings: Any, section: str, names: Iterable[str], rule: str) -> None:
    """Raise an error for the first of these settings that doesn't have its default."""
    defaults = {f.name: f.default for f in dataclasses.fields(settings)}
    for name in names:
        require(getattr(settings, name) == defaults[name], f"{section}.{name}", rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class StemConfig:
    """Convolutions before attention: local detectors first, attention over fewer tokens.

    Attributes
    ----------
    kernels
        Widths of the parallel first convolutions, odd; their channels are concatenated to ``d_model``.
    stride
        Letters per token after the stem.
    depth
        Residual convolutions of width 5 at full resolution before the stride is taken.
    """

    kernels: tuple[int, ...] = (7,)
    stride: int = 1
    depth: int = 0

    def __post_init__(self) -> None:
        require(len(self.kernels) > 0, "stem.kernels", "needs at least one width")
        require(len(self.kernels) <= 64, "stem.kernels", "must have at most 64 widths")
        require(
            all(0 < k < 1024 and k % 2 == 1 for k in self.kernels),
            "stem.kernels",
            "takes odd widths below 1024",
        )
        require(1 <= self.stride <= 64, "stem.stride", "must lie between 1 and 64")
        require(0 <= self.depth <= 8, "stem.depth", "must lie between 0 and 8")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackboneConfig:
    """A pretrained encoder, in a directory as Hugging Face's transformers writes it.

    Attributes
    ----------
    path
        The directory; relative to where the command runs.
    tuning
        What is trained besides the head: nothing (``frozen``), low-rank additions to some matrices (``lora``)
        or the whole encoder (``full``).
    rank, alpha
        Of ``lora``: the additions are alpha / rank times a product of two matrices of that rank.
    targets
        Of ``lora``: names of the linear maps that are added to; those of query and value by default.
    pooling
        What the head reads: the final state of CLS (``cls``) or the mean over the letters' tokens (``mean``);
        ``auto`` is CLS where the tokenizer adds one.
    name, files, width
        Filled in by training: the directory's name, the sha256 of each file that decides what it computes,
        and the size of its states. Another directory is refused; where ``files`` are given, by training too.
    """

    path: str = ""
    tuning: Literal["frozen", "lora", "full"] = "frozen"
    rank: int = 8
    alpha: float = 16.0
    targets: tuple[str, ...] = ()
    pooling: Literal["auto", "cls", "mean"] = "auto"
    name: str = ""
    files: dict[str, str] = field(default_factory=dict)
    width: int = 0

    def __post_init__(self) -> None:
        require(self.path.isprintable(), "model.backbone.path", "is no name of a directory")
        require(1 <= self.rank <= 1024, "model.backbone.rank", "must lie between 1 and 1024")
        require(0 < self.alpha < math.inf, "model.backbone.alpha", "must be above 0")
        require(all(self.targets), "model.backbone.targets", "must be names, none of them empty")
        if self.tuning != "lora":
            refuse_set(self, "model.backbone", ("rank", "alpha", "targets"), "requires 'tuning: lora'")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatorConfig:
    """What a locator has besides blocks of attention.

    Attributes
    ----------
    tracks
        Names of the gene tracks that it reads beside the letters, see `seqray.annotation.TRACKS`; without
        any it reads letters alone.
    window
        Tokens on either side that a token attends to [W].
    stem
        Channels of the first convolution.
    no_gene_ahead
        For each class of site, what is added to its logit, outside of training, at a letter where genes are
        known and none of its strand begins within 510 letters ahead; nothing by default, and near the end of
        a contig. It corrects for starts inside genes, of which species have more or fewer mapped than those
        of training.
    smoothing
        Letters on either side whose probabilities count for the score of a letter, outside of training, see
        `seqray.models.Smoothing`; 0 for none.
    region
        Letters on either side: outside of training, the score is multiplied by the probability that any site
        lies among them; 0 for not.
    """

    tracks: tuple[str, ...] = ()
    window: int = 32
    stem: int = 32
    no_gene_ahead: tuple[float, ...] = ()
    smoothing: int = 0
    region: int = 0

    def __post_init__(self) -> None:
        known = {"known", "to-start"} <= set(self.tracks)
        name = "model.locator.no_gene_ahead"
        require(known or not self.no_gene_ahead, name, "requires the tracks 'known' and 'to-start'")
        require(
            all(-100 <= value <= 100 for value in self.no_gene_ahead), name, "must lie between -100 and 100"
        )
        require(0 <= self.smoothing <= 100, "model.locator.smoothing", "must lie between 0 and 100")
        require(0 <= self.region <= 1000, "model.locator.region", "must lie between 0 and 1000")
        require(len(set(self.tracks)) == len(self.tracks), "model.locator.tracks", "repeats a name")
        require(1 <= self.window <= 1024, "model.locator.window", "must lie between 1 and 1024")
        require(1 <= self.stem <= 1024, "model.locator.stem", "must lie between 1 and 1024")
