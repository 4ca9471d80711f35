"""From settings to a network: vocabularies, counts, and the names and shapes that model files rely on."""

from typing import Any

import pytest

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.modelfile.networks import build_model, build_network
from seqray.models.tokenizers import make_tokenizer

CONFIGS: dict[str, ModelConfig] = {
    "dna": ModelConfig(),
    "rna": ModelConfig(alphabet="rna"),
    "protein": ModelConfig(alphabet="protein"),
    "dna words": ModelConfig(tokenizer="kmer", k=3),
    "protein words": ModelConfig(alphabet="protein", tokenizer="kmer", k=2),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_table_has_a_row_for_every_token(name):
    assert build_network(CONFIGS[name]).vocabulary == make_tokenizer(CONFIGS[name]).vocab_size


BLOCK = {
    "attention_norm.weight": (12,),
    "attention_norm.bias": (12,),
    "attention.qkv.weight": (20, 12),  # three query heads and one of keys and of values, 4 wide
    "attention.qkv.bias": (20,),
    "attention.out.weight": (12, 12),
    "attention.out.bias": (12,),
    "feed_forward_norm.weight": (12,),
    "feed_forward_norm.bias": (12,),
    "feed_forward.up.weight": (30, 12),
    "feed_forward.up.bias": (30,),
    "feed_forward.down.weight": (12, 30),
    "feed_forward.down.bias": (12,),
}
HEAD = {
    "head.norm.weight": (12,),
    "head.norm.bias": (12,),
    "head.linear.weight": (3, 12),
    "head.linear.bias": (3,),
}
STEM = {
    "embedding.letters.weight": (8, 8),
    "embedding.detectors.0.weight": (6, 8, 3),
    "embedding.detectors.0.bias": (6,),
    "embedding.detectors.1.weight": (6, 8, 7),
    "embedding.detectors.1.bias": (6,),
    "embedding.residual.0.weight": (12, 12, 5),
    "embedding.residual.0.bias": (12,),
    "embedding.merge.weight": (12, 48),
    "embedding.merge.bias": (12,),
}
SMALL: dict[str, Any] = {"d_model": 12, "heads": 3, "kv_heads": 1, "d_ff": 30, "layers": 2, "classes": 3}


def shapes(config: ModelConfig) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in build_model(config).state_dict().items()}


def expected_shapes(embedding: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    blocks = {f"blocks.{i}.{name}": shape for i in range(2) for name, shape in BLOCK.items()}
    return {"cls": (12,)} | embedding | blocks | HEAD


def test_names_and_shapes_in_a_model_file():
    """A change here makes earlier model files unreadable."""
    assert shapes(ModelConfig(**SMALL)) == expected_shapes({"embedding.table.weight": (8, 12)})


def test_names_and_shapes_with_a_stem_and_learned_positions():
    stem = StemConfig(kernels=(3, 7), stride=4, depth=1)
    config = ModelConfig(**SMALL, stem=stem, positions="learned", max_length=10)
    rows = 1 + 3  # CLS, and 10 letters by fours
    assert shapes(config) == expected_shapes(STEM | {"positions.table.weight": (rows, 12)})
