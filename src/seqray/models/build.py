"""From settings to a network, by an explicit table."""

from __future__ import annotations

from torch import nn

from seqray.alphabet import ALPHABETS
from seqray.config import ModelConfig
from seqray.models.sequence import SequenceTransformer

SPECIAL_TOKENS = 4  # PAD, CLS, MASK, UNK come before the letters or words, see seqray.tokens


def vocabulary_size(config: ModelConfig) -> int:
    """Distinct tokens: the special ones and every letter, or every word of k letters."""
    return SPECIAL_TOKENS + len(ALPHABETS[config.alphabet].letters) ** config.k


def build_model(config: ModelConfig) -> SequenceTransformer:
    """Make a network with fresh weights (seed torch beforehand for repeatable ones)."""
    return SequenceTransformer(config, vocabulary_size(config))


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())
