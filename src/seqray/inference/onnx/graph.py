"""A model as an ONNX graph: the operators of `seqray.models` spelled out, for any batch and length.

Written by hand, because torch's exporter needs some 20 seconds of computing for three members of 64 channels
and its older one fixes the batch; this takes milliseconds, so an engine can start with it. It is a second
description of the network: whoever changes `seqray.models` changes this, and `check_graph`
compares the two on every use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn

from seqray.calibration import IsotonicMap
from seqray.modelfile import TrainedModel
from seqray.models import (
    SPECIAL_TOKENS,
    Block,
    ConvolutionalStem,
    EndMatrix,
    KmerEmbedding,
    MultiHeadAttention,
    PositionGain,
    PositionMatrix,
    SequenceTransformer,
    TokenEmbedding,
    rotary_angles,
    sinusoidal,
)

OPSET, IR_VERSION = 17, 8  # read by ONNX Runtime from 1.12 on
_END = np.iinfo(np.int64).max
_NEVER = -1e9  # added to the score of a padded key: its weight is exactly 0
_STEEPEST = 36.0  # log-odds beyond which a probability is 1 in float64, see seqray.calibration.isotonic


class _Builder:
    """Nodes and constants as they come; a value is known by its name. Equal constants are kept once."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[tuple[Any, ...], onnx.TensorProto] = {}

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        array = np.ascontiguousarray(array.astype(dtype)).reshape(array.shape)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"constant_{len(self.constants)}")
        return self.constants[key].name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def cut(self, x: str, axis: int, start: int, end: int | str = _END, step: int = 1) -> str:
        """x[start:end:step] along an axis."""
        last = end if isinstance(end, str) else self.integers(end)
        return self.op("Slice", x, self.integers(start), last, self.integers(axis), self.integers(step))

    def size(self, x: str, axis: int) -> str:
        """Length of an axis, as a list of one."""
        return self.cut(self.op("Shape", x), 0, axis, axis + 1)

    def axis(self, x: str, axis: int) -> str:
        """Add an axis of length 1."""
        return self.op("Unsqueeze", x, self.integers(axis))

    def linear(self, x: str, weight: Tensor, bias: Tensor | None) -> str:
        y = self.op("MatMul", x, self.constant(weight.T))
        return y if bias is None else self.op("Add", y, self.constant(bias))

    def norm(self, x: str, layer: nn.LayerNorm) -> str:
        weights = (self.constant(layer.weight), self.constant(layer.bias))
        return self.op("LayerNormalization", x, *weights, axis=-1, epsilon=layer.eps)

    def activation(self, x: str, name: str) -> str:
        if name == "relu":
            return self.op("Relu", x)
        bent = self.op("Erf", self.op("Mul", x, self.constant(0.5**0.5)))
        return self.op("Mul", x, self.op("Mul", self.op("Add", bent, self.constant(1)), self.constant(0.5)))


def make_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """Describe all members and the calibration as one graph.

    Parameters
    ----------
    model
        One of sequences, without a backbone; its context plays no part, since the first token tells it.
    masked
        Whether the graph takes a mask. Without one nothing may be padded, and there is a little less to do.

    Returns
    -------
    onnx.ModelProto
        Inputs ``tokens`` (batch, length) int64 and ``mask`` (batch, length) bool, True at real tokens.
        Outputs ``logits`` (batch, K), as `TrainedModel.logits` gives, and ``probabilities`` (batch, K).
    """
    g = _Builder()
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


def _network(g: _Builder, net: SequenceTransformer, tokens: str, mask: str | None) -> str:
    """Logits (B, K) of one member."""
    x, keys = _embed(g, net, tokens, mask)
    bias = None
    if keys is not None:  # (B, T) -> (B, 1, 1, T)
        bias = g.op("Where", keys, g.constant(0.0), g.constant(_NEVER))
        bias = g.op("Unsqueeze", bias, g.integers(1, 2))
    for number, block in enumerate(net.blocks, start=1):
        if not isinstance(block, Block):
            raise TypeError(f"no graph for {type(block).__name__}")
        x = _block(g, net, block, x, bias, cls_only=number == len(net.blocks))
    cls = g.op("Squeeze", g.cut(x, 1, 0, 1), g.integers(1))  # (B, 1, D) -> (B, D)
    return g.linear(g.norm(cls, net.head.norm), net.head.linear.weight, net.head.linear.bias)


def _embed(g: _Builder, net: SequenceTransformer, tokens: str, mask: str | None) -> tuple[str, str | None]:
    """Vectors (B, T, D) with CLS first, and which of them are real (B, T)."""
    width, stride = net.config.d_model, net.embedding.stride
    letters, real = g.cut(tokens, 1, 1), None if mask is None else g.cut(mask, 1, 1)
    # Number of the context, from 1, 0 for none: (B,)
    first = g.op("Squeeze", g.cut(tokens, 1, 0, 1), g.integers(1))
    context = g.op("Max", g.op("Sub", first, g.integers(net.vocabulary - 1)), g.integers(0))
    gain = None if net.gain is None else _gain(g, net.gain, context, g.size(letters, 1))
    stem = net.embedding if isinstance(net.embedding, ConvolutionalStem) else None
    vectors = g.op("Gather", g.constant(_letters(net.embedding)), letters)
    if stem is not None:
        if real is not None:  # padding is zero, as beyond the ends
            vectors = g.op("Mul", vectors, g.axis(g.op("Cast", real, to=TensorProto.FLOAT), 2))
        x = _stem(g, stem, vectors, real, gain, net.config.activation)
    else:
        x = vectors if gain is None else g.op("Mul", vectors, gain)
    if net.matrix is not None:
        x = g.op("Add", x, _matrix(g, net.matrix, vectors, context, g.size(letters, 1), stride))
    if net.ends is not None:
        x = g.op("Add", x, _ends(g, net.ends, letters, real))
    if net.words is not None:
        x = g.op("Add", x, _words(g, net.words, letters, real, stride))
    shape = g.op("Concat", g.size(tokens, 0), g.integers(1, width), axis=0)
    cls = g.op("Expand", g.constant(net.cls.reshape(1, 1, -1)), shape)
    x = g.op("Concat", cls, x, axis=1)
    if net.contexts is not None:
        table = torch.cat((torch.zeros(1, width), net.contexts.detach().cpu()))
        x = g.op("Add", x, g.axis(g.op("Gather", g.constant(table), context), 1))
    if net.config.positions != "rotary":
        x = g.op("Add", x, g.cut(g.constant(_positions(net)), 0, 0, g.size(x, 1)))
    if mask is None or real is None:
        return x, None
    return x, g.op("Concat", g.cut(mask, 1, 0, 1), g.cut(real, 1, 0, step=stride), axis=1)


def _letters(embedding: TokenEmbedding | ConvolutionalStem) -> Tensor:
    """Vector of each token (vocabulary, V)."""
    return (embedding.letters if isinstance(embedding, ConvolutionalStem) else embedding.table).weight


def _longest(net: SequenceTransformer) -> int:
    """Most tokens that a graph is made for, CLS included."""
    return 1 - -net.config.max_length // net.embedding.stride


def _positions(net: SequenceTransformer) -> Tensor:
    """Vector of each token's place (T, D)."""
    if net.positions is not None:
        return net.positions.table.weight
    return sinusoidal(torch.arange(_longest(net)), net.config.d_model)


def _gain(g: _Builder, gain: PositionGain, context: str, count: str) -> str:
    """Factors (B or 1, N, D)."""
    table = gain.table.detach().cpu()
    shared = g.cut(g.constant(1 + table[:1]), 1, 0, count)
    if len(table) == 1:
        return shared
    own = g.op("Gather", g.constant(torch.cat((torch.zeros_like(table[:1]), table[1:]))), context)
    return g.op("Add", shared, g.cut(own, 1, 0, count))


def _matrix(g: _Builder, matrix: PositionMatrix, vectors: str, context: str, count: str, stride: int) -> str:
    """What embedded letters (B, N, V) add at their places to the tokens: (B, T, D)."""
    table = matrix.table.detach().cpu()
    if len(table) == 1:
        shared = g.cut(g.constant(table[0]), 0, 0, count)
        columns = g.op("Einsum", vectors, shared, equation="bnv,nvr->bnr")
    else:
        each = torch.cat((table[:1], table[:1] + table[1:]))  # with no context, and with each
        own = g.cut(g.op("Gather", g.constant(each), context), 1, 0, count)
        columns = g.op("Einsum", vectors, own, equation="bnv,bnvr->bnr")
    # Sums of s neighbours, mapped to D channels, are a convolution of width and stride s.
    weight = matrix.up.weight[:, :, None].expand(-1, -1, stride)  # (D, r) -> (D, r, s)
    columns = g.op("Transpose", columns, perm=[0, 2, 1])
    added = g.op("Conv", columns, g.constant(weight), pads=[0, stride - 1], strides=[stride])
    return g.op("Transpose", added, perm=[0, 2, 1])


def _ends(g: _Builder, ends: EndMatrix, letters: str, real: str | None) -> str:
    """What letters (B, N) add by their distance to the first and to the last one: (B, N, D)."""
    one, axis = g.integers(1), g.constant(1, np.int64)
    if real is None:
        filled = g.op("Equal", letters, letters)
        count = g.op("Cast", filled, to=TensorProto.INT64)
    else:
        filled, count = real, g.op("Cast", real, to=TensorProto.INT64)
    left = g.op("CumSum", count, axis)
    last = g.op("ReduceSum", count, one, keepdims=1)
    right = g.op("Add", g.op("Sub", last, left), one)
    sides = []
    for table, distance in zip(ends.table.detach().cpu(), (left, right), strict=True):
        row = g.op("Mul", g.op("Sub", distance, one), g.integers(ends.vocabulary))
        near = g.op("And", filled, g.op("LessOrEqual", distance, g.integers(ends.reach)))
        index = g.op("Where", near, g.op("Add", g.op("Add", row, letters), one), g.integers(0))
        sides.append(g.op("Gather", g.constant(F.pad(table, (0, 0, 1, 0))), index))
    return g.op("Add", *sides)


def _words(g: _Builder, words: KmerEmbedding, letters: str, real: str | None, stride: int) -> str:
    """What the words that begin at letters (B, N) add to the tokens: (B, T, D)."""
    none, count = g.integers(-1), len(words.tables)
    codes = g.op("Sub", letters, g.integers(SPECIAL_TOKENS))
    if real is not None:
        codes = g.op("Where", real, codes, none)
    following = g.op("Pad", codes, g.integers(0, 0, 0, count), g.constant(-1, np.int64))
    index = codes
    known = g.op("Greater", index, none)
    added = []
    for ahead, table in enumerate(words.tables, start=1):
        end = g.op("Add", g.size(letters, 1), g.integers(ahead))
        letter = g.cut(following, 1, ahead, end)
        known = g.op("And", known, g.op("Greater", letter, none))
        index = g.op("Add", g.op("Mul", index, g.integers(words.letters)), letter)
        place = g.op("Where", known, g.op("Add", index, g.integers(1)), g.integers(0))
        scaled = len(table) ** 0.5 * table.detach().cpu()
        added.append(g.op("Gather", g.constant(F.pad(scaled, (0, 0, 1, 0))), place))
    vectors = added[0] if count == 1 else g.op("Sum", *added)
    if stride == 1:
        return vectors
    # Sums of neighbours: averages of a pool over whole strides, times their number.
    vectors = g.op("Transpose", vectors, perm=[0, 2, 1])
    padded = g.op(
        "AveragePool",
        vectors,
        kernel_shape=[stride],
        strides=[stride],
        ceil_mode=0,
        pads=[0, stride - 1],
        count_include_pad=1,
    )
    return g.op("Transpose", g.op("Mul", padded, g.constant(stride)), perm=[0, 2, 1])


def _stem(
    g: _Builder, stem: ConvolutionalStem, vectors: str, real: str | None, gain: str | None, activation: str
) -> str:
    """Embedded letters (B, N, V) to vectors (B, T, D); channels come before letters in between."""
    present = None if real is None else g.axis(g.op("Cast", real, to=TensorProto.FLOAT), 1)  # (B, 1, N)

    def hide_padding(x: str) -> str:
        return x if present is None else g.op("Mul", x, present)

    def convolution(x: str, layer: nn.Conv1d) -> str:
        pads = [layer.kernel_size[0] // 2] * 2
        assert isinstance(layer.bias, Tensor)
        return g.op("Conv", x, g.constant(layer.weight), g.constant(layer.bias), pads=pads)

    x = g.op("Transpose", vectors, perm=[0, 2, 1])
    detectors = [convolution(x, layer) for layer in stem.detectors if isinstance(layer, nn.Conv1d)]
    x = g.activation(g.op("Concat", *detectors, axis=1), activation)
    for layer in stem.residual:
        assert isinstance(layer, nn.Conv1d)
        x = g.op("Add", x, g.activation(convolution(hide_padding(x), layer), activation))
    if gain is not None:
        x = g.op("Mul", x, g.op("Transpose", gain, perm=[0, 2, 1]))
    # A linear map of s neighbours is a convolution of width and stride s.
    weight = stem.merge.weight.unflatten(1, (stem.stride, -1)).transpose(1, 2)  # (D, s·D) -> (D, D, s)
    merged = g.op(
        "Conv",
        hide_padding(x),
        g.constant(weight),
        g.constant(stem.merge.bias),
        pads=[0, stem.stride - 1],
        strides=[stem.stride],
    )
    return g.op("Transpose", merged, perm=[0, 2, 1])


def _block(
    g: _Builder, net: SequenceTransformer, block: Block, x: str, bias: str | None, *, cls_only: bool
) -> str:
    """(B, T, D) to (B, T, D), or (B, 1, D)."""
    attended = _attention(g, net, block.attention, g.norm(x, block.attention_norm), bias, cls_only)
    x = g.op("Add", g.cut(x, 1, 0, 1) if cls_only else x, attended)
    up, down = block.feed_forward.up, block.feed_forward.down
    hidden = g.linear(g.norm(x, block.feed_forward_norm), up.weight, up.bias)
    hidden = g.activation(hidden, net.config.activation)
    return g.op("Add", x, g.linear(hidden, down.weight, down.bias))


def _attention(
    g: _Builder, net: SequenceTransformer, layer: MultiHeadAttention, x: str, bias: str | None, cls_only: bool
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
            (g.cut(x, 1, 0, 1) if cls_only else x, x, x),
            (heads, groups, groups),
            begin[:-1],
            begin[1:],
            strict=True,
        )
    )  # (B, T, H, E) each
    if net.config.positions == "rotary":
        k = _rotated(g, net, k)
        q = q if cls_only else _rotated(g, net, q)  # the first token is at 0, which turns nothing
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


def _rotated(g: _Builder, net: SequenceTransformer, x: str) -> str:
    """Pairs of features of (B, T, H, E), turned by the angles of their places."""
    width = net.config.d_model // net.config.heads
    angles = rotary_angles(torch.arange(_longest(net)), width)  # (1, 1, T, E/2) each
    cos, sin = (g.cut(g.constant(one.reshape(-1, 1, width // 2)), 0, 0, g.size(x, 1)) for one in angles)
    even, odd = (g.cut(x, 3, start, step=2) for start in (0, 1))
    turned = (
        g.op("Sub", g.op("Mul", even, cos), g.op("Mul", odd, sin)),
        g.op("Add", g.op("Mul", even, sin), g.op("Mul", odd, cos)),
    )
    pairs = g.op("Concat", *(g.axis(part, 4) for part in turned), axis=4)  # (B, T, H, E/2, 2)
    return g.op("Reshape", pairs, g.integers(0, 0, 0, width))


def _probabilities(g: _Builder, logits: str, model: TrainedModel) -> str:
    """Softmax, and the map of the card where there is one."""
    if not model.card.isotonic:
        return g.op("Softmax", logits, axis=-1)
    bend = IsotonicMap.from_mapping(model.card.isotonic)
    positive = model.card.positive_index
    sign = np.full((2, 1), -1.0)
    sign[positive] = 1.0
    x = g.op("MatMul", logits, g.constant(sign))  # (B, 1): log-odds of the positive class
    # Between knots the rise of each piece counts as far as x has come; beyond them the slope is 1.
    y = g.op("Add", g.op("Min", x, g.constant(bend.before[0])), g.constant(bend.after[0] - bend.before[0]))
    over = g.op("Relu", g.op("Sub", x, g.constant(bend.before[-1])))
    y = g.op("Add", y, over)
    if len(bend.before) > 1:
        widths = np.diff(bend.before)
        run = g.op(
            "Min", g.op("Relu", g.op("Sub", x, g.constant(bend.before[None, :-1]))), g.constant(widths)
        )
        y = g.op("Add", y, g.op("MatMul", run, g.constant((np.diff(bend.after) / widths)[:, None])))
    y = g.op("Clip", y, g.constant(-_STEEPEST), g.constant(_STEEPEST))
    return g.op("Sigmoid", g.op("Mul", y, g.constant(sign.T)))  # (B, 2)
