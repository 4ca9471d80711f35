"""The embedding of `seqray.models` in ONNX operators: tokens to vectors."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from seqray.core import StemConfig
from seqray.inference.onnx.builder import Builder
from seqray.inference.onnx.composition import compose
from seqray.inference.onnx.member import Array, Member
from seqray.models.tokenizers import FIRST_LETTER

_RESIDUAL_KERNEL = 5  # of the convolutions that follow the detectors of a stem


def embed(g: Builder, net: Member, tokens: str, mask: str | None) -> tuple[str, str | None]:
    """Vectors (B, T, D) with CLS first, and the mask of the real ones (B, T).

    ``tokens`` is the name of the tokens, (B, L); ``mask`` that of their mask, None if nothing is padded.
    """
    config, width = net.config, net.config.d_model
    letters, real = g.slice(tokens, 1, 1), None if mask is None else g.slice(mask, 1, 1)
    # Number of the context, from 1, 0 for none: (B,)
    first = g.op("Squeeze", g.slice(tokens, 1, 0, 1), g.integers(1))
    context = g.op("Max", g.op("Sub", first, g.integers(net.vocabulary - 1)), g.integers(0))
    gain = None if config.position_gain == "none" else _gain(g, net, context, g.size(letters, 1))
    vectors = g.op("Gather", g.constant(_letters(net)), letters)
    if config.stem is not None:
        if real is not None:  # padding is zero, as beyond the ends
            vectors = g.op("Mul", vectors, g.unsqueeze(g.op("Cast", real, to=TensorProto.FLOAT), 2))
        x = _stem(g, net, config.stem, vectors, real, gain)
    else:
        x = vectors if gain is None else g.op("Mul", vectors, gain)
    if config.position_matrix != "none":
        x = g.op("Add", x, _matrix(g, net, vectors, context, g.size(letters, 1)))
    if config.ends:
        x = g.op("Add", x, _sum_over_strides(g, _ends(g, net, letters, real), net.stride))
    if config.words:
        x = g.op("Add", x, _sum_over_strides(g, _kmers(g, net, letters, real), net.stride))
    shape = g.op("Concat", g.size(tokens, 0), g.integers(1, width), axis=0)
    cls = g.op("Expand", g.constant(net("cls", width).reshape(1, 1, -1)), shape)
    if config.composition:
        cls = g.op("Add", cls, g.unsqueeze(compose(g, net, letters, real), 1))
    x = g.op("Concat", cls, x, axis=1)
    if config.contexts:
        table = _with_zeros(net("contexts", len(config.contexts), width))
        x = g.op("Add", x, g.unsqueeze(g.op("Gather", g.constant(table), context), 1))
    if config.positions != "rotary":
        x = g.op("Add", x, g.slice(g.constant(_positions(net)), 0, 0, g.size(x, 1)))
    if mask is None or real is None:
        return x, None
    return x, g.op("Concat", g.slice(mask, 1, 0, 1), g.slice(real, 1, 0, step=net.stride), axis=1)


def _with_zeros(table: Array) -> Array:
    """The same rows after one of zeros, for what has no vector."""
    return np.concatenate([np.zeros_like(table[:1]), table])


def _width(net: Member) -> int:
    """Width of the embedded letters [V]."""
    return net.vocabulary if net.config.stem else net.config.d_model


def _letters(net: Member) -> Array:
    """Vector of each token (vocabulary, V)."""
    name = "letters" if net.config.stem else "table"
    return net(f"embedding.{name}.weight", net.vocabulary, _width(net))


def _positions(net: Member) -> Array:
    """Vector of each position (T, D)."""
    width = net.config.d_model
    if net.config.positions == "learned":
        return net("positions.table.weight", net.longest, width)
    angles = net.angles(width)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(net.longest, width).astype(np.float32)


def _contexts(net: Member, kind: str) -> int:
    """Number of contexts with position terms of their own."""
    return len(net.config.contexts) if kind == "context" else 0


def _gain(g: Builder, net: Member, context: str, count: str) -> str:
    """Factors (B or 1, N, D)."""
    contexts, width = _contexts(net, net.config.position_gain), net.config.d_model
    table = net("gain.table", 1 + contexts, net.config.max_length, width)
    shared = g.slice(g.constant(1 + table[:1]), 1, 0, count)
    if len(table) == 1:
        return shared
    own = g.op("Gather", g.constant(_with_zeros(table[1:])), context)
    return g.op("Add", shared, g.slice(own, 1, 0, count))


def _matrix(g: Builder, net: Member, vectors: str, context: str, count: str) -> str:
    """The terms of `PositionMatrix` for embedded letters (B, N, V): (B, T, D)."""
    config, contexts = net.config, _contexts(net, net.config.position_matrix)
    table = net("matrix.table", 1 + contexts, config.max_length, _width(net), config.matrix_rank)
    if len(table) == 1:
        shared = g.slice(g.constant(table[0]), 0, 0, count)
        columns = g.op("Einsum", vectors, shared, equation="bnv,nvr->bnr")
    else:
        each = np.concatenate([table[:1], table[:1] + table[1:]])  # with no context, and with each
        own = g.slice(g.op("Gather", g.constant(each), context), 1, 0, count)
        columns = g.op("Einsum", vectors, own, equation="bnv,bnvr->bnr")
    # Sums of s neighbors, mapped to D channels, are a convolution of width and stride s.
    up = net("matrix.up.weight", config.d_model, config.matrix_rank)
    weight = np.repeat(up[:, :, None], net.stride, axis=2)  # (D, r) -> (D, r, s)
    return g.merge(g.swap(columns), net.stride, weight)


def _ends(g: Builder, net: Member, letters: str, real: str | None) -> str:
    """The terms of `EndMatrix` for letters (B, N): (B, N, D)."""
    reach, vocabulary = net.config.ends, net.vocabulary
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
    tables = net("ends.table", 2, reach * vocabulary, net.config.d_model)
    for table, distance in zip(tables, (left, right), strict=True):
        row = g.op("Mul", g.op("Sub", distance, one), g.integers(vocabulary))
        near = g.op("And", filled, g.op("LessOrEqual", distance, g.integers(reach)))
        index = g.op("Where", near, g.op("Add", g.op("Add", row, letters), one), g.integers(0))
        sides.append(g.op("Gather", g.constant(_with_zeros(table)), index))
    return g.op("Add", *sides)


def _kmers(g: Builder, net: Member, letters: str, real: str | None) -> str:
    """The terms of `KmerEmbedding` for the k-mers that begin at letters (B, N): (B, N, D)."""
    none, count = g.integers(-1), net.config.words - 1
    codes = g.op("Sub", letters, g.integers(FIRST_LETTER))
    if real is not None:
        codes = g.op("Where", real, codes, none)
    following = g.op("Pad", codes, g.integers(0, 0, 0, count), g.constant(-1, np.int64))
    index = codes
    known = g.op("Greater", index, none)
    added = []
    for ahead in range(1, count + 1):
        rows = net.letters ** (ahead + 1)
        table = net(f"words.tables.{ahead - 1}", rows, net.config.d_model)
        end = g.op("Add", g.size(letters, 1), g.integers(ahead))
        letter = g.slice(following, 1, ahead, end)
        known = g.op("And", known, g.op("Greater", letter, none))
        index = g.op("Add", g.op("Mul", index, g.integers(net.letters)), letter)
        place = g.op("Where", known, g.op("Add", index, g.integers(1)), g.integers(0))
        added.append(g.op("Gather", g.constant(_with_zeros(np.float32(rows**0.5) * table)), place))
    return added[0] if count == 1 else g.op("Sum", *added)


def _sum_over_strides(g: Builder, vectors: str, stride: int) -> str:
    """As `seqray.models.positions.sum_over_strides`: the average over neighbors times their number."""
    if stride == 1:
        return vectors
    vectors = g.swap(vectors)
    padded = g.op(
        "AveragePool",
        vectors,
        kernel_shape=[stride],
        strides=[stride],
        ceil_mode=0,
        pads=[0, stride - 1],
        count_include_pad=1,
    )
    return g.swap(g.op("Mul", padded, g.constant(stride)))


def _stem(g: Builder, net: Member, stem: StemConfig, vectors: str, real: str | None, gain: str | None) -> str:
    """Embedded letters (B, N, V) to vectors (B, T, D), by way of (B, channels, N)."""
    present = None if real is None else g.unsqueeze(g.op("Cast", real, to=TensorProto.FLOAT), 1)  # (B, 1, N)
    width, activation = net.config.d_model, net.config.activation
    branch = width // len(stem.kernels)

    def hide_padding(x: str) -> str:
        return x if present is None else g.op("Mul", x, present)

    def convolution(x: str, name: str, *shape: int) -> str:
        weight, bias = net(f"embedding.{name}.weight", *shape), net(f"embedding.{name}.bias", shape[0])
        return g.op("Conv", x, g.constant(weight), g.constant(bias), pads=[shape[-1] // 2] * 2)

    x = g.swap(vectors)
    detectors = [
        convolution(x, f"detectors.{i}", branch, net.vocabulary, kernel)
        for i, kernel in enumerate(stem.kernels)
    ]
    x = g.activation(g.op("Concat", *detectors, axis=1), activation)
    for i in range(stem.depth):
        hidden = convolution(hide_padding(x), f"residual.{i}", width, width, _RESIDUAL_KERNEL)
        x = g.op("Add", x, g.activation(hidden, activation))
    if gain is not None:
        x = g.op("Mul", x, g.swap(gain))
    # A linear map of s neighbors is a convolution of width and stride s.
    weight = net("embedding.merge.weight", width, stem.stride * width)
    weight = weight.reshape(width, stem.stride, width).transpose(0, 2, 1)  # (D, s·D) -> (D, D, s)
    return g.merge(hide_padding(x), stem.stride, weight, net("embedding.merge.bias", width))
