"""What is explained, and how: the options of explanations and their defaults. Loads nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from seqray.core.errors import ConfigError, require, require_number, use_python_numbers

RESIDUAL, STEPS, SHUFFLES = 0.5, 32, 20
LETTER_BLOCK, COLUMN_BLOCK = 10, 1  # hidden at a time by occlusion
Fusion = Literal["mean", "max", "min"]
Spread = Literal["read", "span"]
MAX_SHOWN_RADIUS = 100  # letters around the site in the page and the plot, and in which motifs are searched


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodSettings:
    """Settings of single methods."""

    residual: float = RESIDUAL  # share of the residual connection in the rollouts
    heads: Fusion = "mean"  # how rollout combines the heads
    steps: int = STEPS  # of integrated gradients
    # letters or columns that occlusion hides at a time; `LETTER_BLOCK` or `COLUMN_BLOCK` if None
    block: int | None = None
    # how the rollouts get from the tokens of a convolutional stem to letters: ``read`` is over all letters
    # that the token has read, see `seqray.explanations.targets`; ``span`` is evenly over its stride
    spread: Spread = "read"

    def __post_init__(self) -> None:
        use_python_numbers(self)
        require_number(self.residual, "residual")
        if not 0 <= self.residual < 1:
            raise ConfigError(f"the residual share is {self.residual:g}", remedy="give 0 or more, below 1")
        require(self.heads in ("mean", "max", "min"), "heads", "must be mean, max or min")
        require(self.spread in ("read", "span"), "spread", "must be read or span")
        for name in ("steps", "block"):
            require_number(getattr(self, name), name, whole=True, least=1)


GENOME_METHODS = ("input-x-gradient",)
"""The default of models for genomes: rollout ranks no better there than the distance from the site does."""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """What the explanations of every kind of model share."""

    known: ClassVar[tuple[str, ...]]
    unit: ClassVar[str]

    methods: tuple[str, ...] = ("rollout",)
    target: str | None = None
    seed: int = 0
    settings: MethodSettings = field(default_factory=MethodSettings)

    def __post_init__(self) -> None:
        use_python_numbers(self)
        if not self.methods or len(set(self.methods)) < len(self.methods):
            raise ConfigError("name one method or more, each once")
        for method in self.methods:
            if method not in self.known:
                remedy = f"use {', '.join(self.known)}"
                raise ConfigError(f"method '{method}' doesn't explain {self.unit}", remedy=remedy)
        require(isinstance(self.settings, MethodSettings), "settings", "must be MethodSettings")
        for name, least in (("seed", 0), ("shuffles", 0), ("rows", 1)):
            require_number(getattr(self, name, None), name, whole=True, least=least)
        require(self.target is None or isinstance(self.target, str), "target", "must be the name of a class")


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(_Options):
    """What is explained of sequences, and how.

    Attributes
    ----------
    methods
        Names, see `seqray.explanations.methods.METHODS`.
    target
        The class explained; ``called`` for the one that each record is called. None is the positive one of
        two classes, and ``called`` with more.
    seed
        Of the shuffles and the bootstrap.
    settings
        Of single methods.
    members
        ``mean`` over the members of the model, or ``each`` beside it.
    shuffles
        Shuffled copies of each record for p-values; 0 for none.
    effects
        Whether to compute the effect of every substitution; above 500 letters (210 residues) none.
    attention
        Whether to keep the attention of CLS per layer and head.
    """

    known = (
        *("rollout", "grad-rollout", "value-rollout"),
        *("input-x-gradient", "integrated-gradients", "linear", "ism", "occlusion"),
    )
    unit = "sequences"

    members: Literal["mean", "each"] = "mean"
    shuffles: int = SHUFFLES
    effects: bool = True
    attention: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.members in ("mean", "each"), "members", "must be mean or each")


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions(_Options):
    """What is explained of alignments, and how; ``rows`` are the most to read, by default the model's."""

    known = ("rollout", "grad-rollout", "occlusion")
    unit = "alignments"

    methods: tuple[str, ...] = ("occlusion",)  # what models with a linear part read, rollout can't show
    rows: int | None = None
