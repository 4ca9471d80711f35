"""A model as an ONNX graph: the operators of `seqray.models`, for any batch size and length.

This is a second description of the network: a change in `seqray.models` needs the same change here.
`check_graph` compares the two before each export, and the self-test of the card before each use by an engine.
Decision 14 explains why torch's exporter does not make the graph.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
import onnx
from onnx import TensorProto, helper

from seqray.calibration.isotonic import IsotonicMap
from seqray.core.errors import ConfigError
from seqray.inference.onnx_parts import Builder, Member, embed, pool
from seqray.modelfile.model import TrainedModel

OPSET, IR_VERSION = 17, 8  # read by ONNX Runtime from 1.12 on
_CLS_ONLY = ("cls",)
_MASKED = -1e9  # added to the score of a padded key: its weight is exactly 0
_MAX_POSITION_VALUES = 1 << 26  # a file must not decide how much memory a graph takes
_MAX_LOG_ODDS = 36.0  # beyond, a probability is 1 in float64, see seqray.calibration.isotonic


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

    Raises
    ------
    ModelFileError
        The weights do not fit the card.
    ConfigError
        The model reads inputs too long for a graph.
    """
    g = Builder()
    members = []
    for arrays in model.arrays():
        net = Member(model.card.model, arrays)
        if net.longest * model.card.model.d_model > _MAX_POSITION_VALUES:
            raise ConfigError(
                f"model '{model.card.name}' reads inputs too long for a graph", remedy="use the engine torch"
            )
        logits = _network(g, net, "tokens", "mask" if masked else None)
        net.check_all_read()
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


def _network(g: Builder, net: Member, tokens: str, mask: str | None) -> str:
    """Logits (B, K) of one member."""
    x, keys = embed(g, net, tokens, mask)
    cls_only = net.config.pooling == _CLS_ONLY
    bias = None
    if keys is not None:  # (B, T) -> (B, 1, 1, T)
        bias = g.op("Where", keys, g.constant(0.0), g.constant(_MASKED))
        bias = g.op("Unsqueeze", bias, g.integers(1, 2))
    last = net.config.layers - 1
    for number in range(last + 1):
        x = _block(g, net, f"blocks.{number}", x, bias, cls_only=cls_only and number == last)
    pooled, width = pool(g, net, x, keys), net.pooled
    normed = g.norm(pooled, net("head.norm.weight", width), net("head.norm.bias", width))
    logits = _linear(g, net, "head.linear", normed, net.config.outputs, width)
    if not net.config.subclasses:
        return logits
    ends = accumulate(net.config.subclasses, initial=0)
    classes = [_log_sum(g, g.slice(logits, 1, start, end)) for start, end in pairwise(ends)]
    return g.op("Concat", *classes, axis=1)


def _log_sum(g: Builder, logits: str) -> str:
    """Log of the sum of exponentials: (B, n) to (B, 1). OpenVINO sums the rows, too, in ReduceLogSumExp."""
    highest = g.op("ReduceMax", logits, axes=[1])
    total = g.op("ReduceSum", g.op("Exp", g.op("Sub", logits, highest)), g.integers(1))
    return g.op("Add", highest, g.op("Log", total))


def _norm(g: Builder, net: Member, name: str, x: str) -> str:
    width = net.config.d_model
    return g.norm(x, net(f"{name}.weight", width), net(f"{name}.bias", width))


def _linear(g: Builder, net: Member, name: str, x: str, outputs: int, inputs: int | None = None) -> str:
    """x Wᵀ + b; from the width of the model if no other is given."""
    weight = net(f"{name}.weight", outputs, inputs or net.config.d_model)
    return g.linear(x, weight, net(f"{name}.bias", outputs))


def _block(g: Builder, net: Member, name: str, x: str, bias: str | None, *, cls_only: bool) -> str:
    """(B, T, D) to (B, T, D), or (B, 1, D)."""
    width, inner = net.config.d_model, net.config.d_ff or 4 * net.config.d_model
    normed = _norm(g, net, f"{name}.attention_norm", x)
    attended = _attention(g, net, f"{name}.attention", normed, bias, cls_only)
    x = g.op("Add", g.slice(x, 1, 0, 1) if cls_only else x, attended)
    hidden = _norm(g, net, f"{name}.feed_forward_norm", x)
    hidden = g.activation(_linear(g, net, f"{name}.feed_forward.up", hidden, inner), net.config.activation)
    return g.op("Add", x, _linear(g, net, f"{name}.feed_forward.down", hidden, width, inner))


def _attention(g: Builder, net: Member, name: str, x: str, bias: str | None, cls_only: bool) -> str:
    """softmax(Q Kᵀ / √E + mask) V, heads concatenated, times W_O: (B, Lq, D)."""
    config = net.config
    heads, groups, width = config.heads, config.kv_heads or config.heads, config.d_model // config.heads
    begin = [0, heads * width, (heads + groups) * width, (heads + 2 * groups) * width]
    weight, offset = net(f"{name}.qkv.weight", begin[-1], config.d_model), net(f"{name}.qkv.bias", begin[-1])
    q, k, v = (
        g.op(
            "Reshape",
            g.linear(source, weight[start:end], offset[start:end]),
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
    if config.positions == "rotary":
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
    return _linear(g, net, f"{name}.out", output, config.d_model)


def _rotate(g: Builder, net: Member, x: str) -> str:
    """Rotate pairs of features of (B, T, H, E) by the angles of their positions."""
    width = net.config.d_model // net.config.heads
    angles = net.angles(width)[:, None]  # (T, 1, E/2)
    cos, sin = (g.slice(g.constant(one), 0, 0, g.size(x, 1)) for one in (np.cos(angles), np.sin(angles)))
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
    y = g.op("Clip", y, g.constant(-_MAX_LOG_ODDS), g.constant(_MAX_LOG_ODDS))
    return g.op("Sigmoid", g.op("Mul", y, g.constant(sign.T)))  # (B, 2)
