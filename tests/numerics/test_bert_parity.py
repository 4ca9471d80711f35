"""The encoder against `transformers`: BERT's sub-layers, and the pre-norm RoBERTa, with copied weights."""

from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import BertConfig, BertModel, RobertaPreLayerNormConfig, RobertaPreLayerNormModel

from seqray.core.model_config import ModelConfig
from seqray.modelfile.networks import build_model
from seqray.models.layers import Block

D, HEADS, FEED_FORWARD, LAYERS, EPSILON = 32, 4, 80, 3, 1e-5  # ε of torch's LayerNorm
SIZES: dict[str, Any] = {
    "vocab_size": 8,
    "hidden_size": D,
    "num_attention_heads": HEADS,
    "intermediate_size": FEED_FORWARD,
    "num_hidden_layers": LAYERS,
    "layer_norm_eps": EPSILON,
    "max_position_embeddings": 64,
    "attn_implementation": "eager",
}


def randomize(model: Any) -> Any:
    """Weights of ordinary size, biases and norms included: their defaults of 0 and 1 would hide errors."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.15)
    return model.eval().requires_grad_(False)


def copy_layer(block: Any, theirs: Any) -> None:
    """Weights of a BertLayer, or of one built like it, into a block."""
    attention = theirs.attention.self
    for kind in ("weight", "bias"):
        parts = [getattr(part, kind) for part in (attention.query, attention.key, attention.value)]
        getattr(block.attention.qkv, kind).data = torch.cat(parts)
    block.attention.out.load_state_dict(theirs.attention.output.dense.state_dict())
    block.feed_forward.up.load_state_dict(theirs.intermediate.dense.state_dict())
    block.feed_forward.down.load_state_dict(theirs.output.dense.state_dict())


def shape(activation):
    return ModelConfig(d_model=D, heads=HEADS, d_ff=FEED_FORWARD, activation=activation, dropout=0.0)


def batch() -> tuple[Tensor, Tensor, Tensor]:
    """Vectors (B, L, D), the mask (B, L), and the additive mask that `transformers` takes."""
    mask = torch.arange(13) < torch.tensor([13, 9, 4])[:, None]
    return torch.randn(3, 13, D), mask, torch.where(mask, 0.0, float("-inf"))[:, None, None, :]


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_the_sub_layers_are_those_of_bert(activation):
    bert = randomize(BertModel(BertConfig(**SIZES, hidden_act=activation)))
    layer = bert.encoder.layer[1]
    block = Block(shape(activation)).eval()
    copy_layer(block, layer)
    x, mask, additive = batch()
    heads, weights = layer.attention.self(x, additive)
    ours, our_weights = block.attention(x, mask, need_weights=True)
    torch.testing.assert_close(our_weights, weights)
    torch.testing.assert_close(ours, layer.attention.output.dense(heads))
    torch.testing.assert_close(block.attention(x, mask)[0], layer.attention.output.dense(heads))
    torch.testing.assert_close(block.feed_forward(x), layer.output.dense(layer.intermediate(x)))


def test_the_block_is_berts_parts_with_the_norms_in_front():
    bert = randomize(BertModel(BertConfig(**SIZES)))
    layer = bert.encoder.layer[0]
    first_norm, second_norm = layer.attention.output.LayerNorm, layer.output.LayerNorm
    block = Block(shape("gelu")).eval()
    copy_layer(block, layer)
    block.attention_norm.load_state_dict(first_norm.state_dict())
    block.feed_forward_norm.load_state_dict(second_norm.state_dict())
    x, mask, additive = batch()
    y = x + layer.attention.output.dense(layer.attention.self(first_norm(x), additive)[0])
    expected = y + layer.output.dense(layer.intermediate(second_norm(y)))
    torch.testing.assert_close(block(x, mask)[0], expected)
    torch.testing.assert_close(block(x, mask, cls_only=True)[0], expected[:, :1])


def test_the_whole_encoder_is_a_pre_norm_roberta():
    """Stacked blocks and the norm of the head, on the state of CLS."""
    theirs = randomize(RobertaPreLayerNormModel(RobertaPreLayerNormConfig(**SIZES, hidden_act="gelu")))
    config = ModelConfig(d_model=D, heads=HEADS, d_ff=FEED_FORWARD, layers=LAYERS, positions="rotary")
    ours: Any = build_model(config).eval()
    for block, layer in zip(ours.blocks, theirs.encoder.layer, strict=True):
        copy_layer(block, layer)
        block.attention_norm.load_state_dict(layer.attention.LayerNorm.state_dict())
        block.feed_forward_norm.load_state_dict(layer.intermediate.LayerNorm.state_dict())
    ours.head.norm.load_state_dict(theirs.LayerNorm.state_dict())
    tokens, mask = torch.randint(4, 8, (3, 13)), batch()[1]
    still = torch.zeros(3, 13)  # rotary positions that are all zero turn nothing: the blocks by themselves
    x, _, _ = ours.embed(tokens, mask, still)
    states = theirs.LayerNorm(theirs.encoder(x, attention_mask=batch()[2])[0])
    expected = ours.head.linear(states[:, 0])
    torch.testing.assert_close(ours(tokens, mask, still).logits, expected)
    torch.testing.assert_close(ours(tokens, mask, still, return_attention=True).logits, expected)
    with torch.inference_mode():
        torch.testing.assert_close(ours(tokens, mask, still).logits, expected)
