"""A model as an ONNX graph: the operators of `seqray.models`, for any batch size and length.

This is a second description of the network: a change in `seqray.models` needs the same change here.
`check_graph` compares the two before each export, and the self-test of the card before each use by an engine.
Decision 14 explains why torch's exporter does not make the graph.
"""

from __future__ import annotations

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper

from seqray.calibration import IsotonicMap
from seqray.inference.onnx.builder import Builder
from seqray.inference.onnx.embedding import embed, longest
from seqray.inference.onnx.pooling import pool
from seqray.modelfile import TrainedModel
from seqray.models import Block, MultiHeadAttention, SequenceTransformer, rotary_angles

OPSET, IR_VERSION = 17, 8  # read by ONNX Runtime from 1.12 on
_MASKED = -1e9  # added to the score of a padded key: its weight is exactly 0
_STEEPEST = 36.0  # log-odds beyond which a probability is 1 in float64, see seqray.calibration.isotonic


def make_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """Describe all members and the calibration as one graph.

    Parameters
    ----------
    model
        A model of sequences without a backbone. Its context has no effect: the first token names the context.
    masked
        Whether the graph takes a mask. A graph without a mask is a little faster and takes no padding.

    Returns
    -------
    onnx.ModelProto
        Inputs ``tokens`` (batch, length) int64 and ``mask`` (batch, length) bool, True at real tokens.
        Outputs ``logits`` (batch, K), as `TrainedModel.logits` gives, and ``probabilities`` (batch, K).
    """
    g = Builder()
    members = []
    for network in model.networks:
        assert isinstance(network, SequenceTransformer)  # see seqray.inference.onnx.require_graph
        logits = _network(g, network, "tokens", "mask" if masked else None)
        members.append(g.op("LogSoftmax", logits, axis=-1))
    total = members[0] if len(members) == 1 else g.op("Sum", *members)
    scale = 1 / (len(members) * model.card.temperature)
    logits = g.op("Mul", total, g.constant(scale))
    g.op("Identity", logits)
    g.nodes[-1].output[0] = "logits"
    g.op("Identity", _probabilities(g, logits, model))
    g.nodes[-1].output[0] = "probabilities"
    classes = len(model.card.classes)
    inputs = [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "length"])]
    if masked:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, ["batch", "length"]))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", classes])
        for name in ("logits", "probabilities")
    ]
    graph = helper.make_graph(g.nodes, "seqray", inputs, outputs, list(g.constants.values()))
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="seqray"
    )


def _network(g: Builder, net: SequenceTransformer, tokens: str, mask: str | None) -> str:
    """Logits (B, K) of one member."""
    x, keys = embed(g, net, tokens, mask)
    cls_only = net.pooling.cls_only
    bias = None
    if keys is not None:  # (B, T) -> (B, 1, 1, T)
        bias = g.op("Where", keys, g.constant(0.0), g.constant(_MASKED))
        bias = g.op("Unsqueeze", bias, g.integers(1, 2))
    for number, block in enumerate(net.blocks, start=1):
        if not isinstance(block, Block):
            raise TypeError(f"no graph for {type(block).__name__}")
        x = _block(g, net, block, x, bias, cls_only=cls_only and number == len(net.blocks))
    return g.linear(
        g.norm(pool(g, net.pooling, x, keys), net.head.norm), net.head.linear.weight, net.head.linear.bias
    )


def _block(
    g: Builder, net: SequenceTransformer, block: Block, x: str, bias: str | None, *, cls_only: bool
) -> str:
    """(B, T, D) to (B, T, D), or (B, 1, D)."""
    attended = _attention(g, net, block.attention, g.norm(x, block.attention_norm), bias, cls_only)
    x = g.op("Add", g.slice(x, 1, 0, 1) if cls_only else x, attended)
    up, down = block.feed_forward.up, block.feed_forward.down
    hidden = g.linear(g.norm(x, block.feed_forward_norm), up.weight, up.bias)
    hidden = g.activation(hidden, net.config.activation)
    return g.op("Add", x, g.linear(hidden, down.weight, down.bias))


def _attention(
    g: Builder,
    net: SequenceTransformer,
    layer: MultiHeadAttention,
    x: str,
    bias: str | None,
    cls_only: bool,
) -> str:
    """softmax(Q Kᵀ / √E + mask) V, heads concatenated, times W_O: (B, Lq, D)."""
    heads, groups, width = layer.heads, layer.kv_heads, layer.head_width
    begin = [0, heads * width, (heads + groups) * width, (heads + 2 * groups) * width]
    q, k, v = (
        g.op(
            "Reshape",
            g.linear(source, layer.qkv.weight[start:end], layer.qkv.bias[start:end]),
            g.integers(0, -1, count, width),
        )
        for source, count, start, end in zip(
            (g.slice(x, 1, 0, 1) if cls_only else x, x, x),
            (heads, groups, groups),
            begin[:-1],
            begin[1:],
            strict=True,
        )
    )  # (B, T, H, E) each
    if net.config.positions == "rotary":
        k = _rotate(g, net, k)
        q = q if cls_only else _rotate(g, net, q)  # the first token is at 0, which rotates nothing
    if groups < heads:
        shared = g.constant(np.repeat(np.arange(groups), heads // groups), np.int64)
        k, v = (g.op("Gather", one, shared, axis=2) for one in (k, v))
    q = g.op("Transpose", g.op("Mul", q, g.constant(width**-0.5)), perm=[0, 2, 1, 3])  # (B, H, Lq, E)
    k = g.op("Transpose", k, perm=[0, 2, 3, 1])  # (B, H, E, T)
    v = g.op("Transpose", v, perm=[0, 2, 1, 3])  # (B, H, T, E)
    scores = g.op("MatMul", q, k)
    scores = scores if bias is None else g.op("Add", scores, bias)
    output = g.op("MatMul", g.op("Softmax", scores, axis=-1), v)  # (B, H, Lq, E)
    output = g.op("Reshape", g.op("Transpose", output, perm=[0, 2, 1, 3]), g.integers(0, -1, heads * width))
    return g.linear(output, layer.out.weight, layer.out.bias)


def _rotate(g: Builder, net: SequenceTransformer, x: str) -> str:
    """Rotate pairs of features of (B, T, H, E) by the angles of their positions."""
    width = net.config.d_model // net.config.heads
    angles = rotary_angles(torch.arange(longest(net)), width)  # (1, 1, T, E/2) each
    cos, sin = (g.slice(g.constant(one.reshape(-1, 1, width // 2)), 0, 0, g.size(x, 1)) for one in angles)
    even, odd = (g.slice(x, 3, start, step=2) for start in (0, 1))
    rotated = (
        g.op("Sub", g.op("Mul", even, cos), g.op("Mul", odd, sin)),
        g.op("Add", g.op("Mul", even, sin), g.op("Mul", odd, cos)),
    )
    pairs = g.op("Concat", *(g.unsqueeze(part, 4) for part in rotated), axis=4)  # (B, T, H, E/2, 2)
    return g.op("Reshape", pairs, g.integers(0, 0, 0, width))


def _probabilities(g: Builder, logits: str, model: TrainedModel) -> str:
    """Softmax, and the card's isotonic map if there is one."""
    if not model.card.isotonic:
        return g.op("Softmax", logits, axis=-1)
    isotonic = IsotonicMap.from_mapping(model.card.isotonic)
    before, after = isotonic.before, isotonic.after
    sign = np.full((2, 1), -1.0)
    sign[model.card.positive_index] = 1.0
    x = g.op("MatMul", logits, g.constant(sign))  # (B, 1): log-odds of the positive class
    # Each piece between two knots adds its slope times its part below x. Outside the knots the slope is 1.
    y = g.op("Add", g.op("Min", x, g.constant(before[0])), g.constant(after[0] - before[0]))
    y = g.op("Add", y, g.op("Relu", g.op("Sub", x, g.constant(before[-1]))))
    if len(before) > 1:
        widths = np.diff(before)
        above = g.op("Relu", g.op("Sub", x, g.constant(before[None, :-1])))
        covered = g.op("Min", above, g.constant(widths))
        y = g.op("Add", y, g.op("MatMul", covered, g.constant((np.diff(after) / widths)[:, None])))
    y = g.op("Clip", y, g.constant(-_STEEPEST), g.constant(_STEEPEST))
    return g.op("Sigmoid", g.op("Mul", y, g.constant(sign.T)))  # (B, 2)
