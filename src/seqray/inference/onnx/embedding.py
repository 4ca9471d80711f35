"""The embedding of `seqray.models` in ONNX operators: tokens to vectors."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from onnx import TensorProto
from torch import Tensor, nn

from seqray.inference.onnx.builder import Builder
from seqray.models import (
    SPECIAL_TOKENS,
    ConvolutionalStem,
    EndMatrix,
    KmerEmbedding,
    PositionGain,
    PositionMatrix,
    SequenceTransformer,
    TokenEmbedding,
    sinusoidal,
)


def embed(g: Builder, net: SequenceTransformer, tokens: str, mask: str | None) -> tuple[str, str | None]:
    """Vectors (B, T, D) with CLS first, and the mask of the real ones (B, T).

    Parameters
    ----------
    g
        Builder of the graph.
    net
        Network to export.
    tokens
        Name of the tokens, (B, L).
    mask
        Name of their mask, (B, L); None if nothing is padded.
    """
    width, stride = net.config.d_model, net.embedding.stride
    letters, real = g.slice(tokens, 1, 1), None if mask is None else g.slice(mask, 1, 1)
    # Number of the context, from 1, 0 for none: (B,)
    first = g.op("Squeeze", g.slice(tokens, 1, 0, 1), g.integers(1))
    context = g.op("Max", g.op("Sub", first, g.integers(net.vocabulary - 1)), g.integers(0))
    gain = None if net.gain is None else _gain(g, net.gain, context, g.size(letters, 1))
    stem = net.embedding if isinstance(net.embedding, ConvolutionalStem) else None
    vectors = g.op("Gather", g.constant(_letters(net.embedding)), letters)
    if stem is not None:
        if real is not None:  # padding is zero, as beyond the ends
            vectors = g.op("Mul", vectors, g.unsqueeze(g.op("Cast", real, to=TensorProto.FLOAT), 2))
        x = _stem(g, stem, vectors, real, gain, net.config.activation)
    else:
        x = vectors if gain is None else g.op("Mul", vectors, gain)
    if net.matrix is not None:
        x = g.op("Add", x, _matrix(g, net.matrix, vectors, context, g.size(letters, 1), stride))
    if net.ends is not None:
        x = g.op("Add", x, _sum_over_strides(g, _ends(g, net.ends, letters, real), stride))
    if net.words is not None:
        x = g.op("Add", x, _sum_over_strides(g, _kmers(g, net.words, letters, real), stride))
    shape = g.op("Concat", g.size(tokens, 0), g.integers(1, width), axis=0)
    cls = g.op("Expand", g.constant(net.cls.reshape(1, 1, -1)), shape)
    x = g.op("Concat", cls, x, axis=1)
    if net.contexts is not None:
        table = torch.cat((torch.zeros(1, width), net.contexts.detach().cpu()))
        x = g.op("Add", x, g.unsqueeze(g.op("Gather", g.constant(table), context), 1))
    if net.config.positions != "rotary":
        x = g.op("Add", x, g.slice(g.constant(_positions(net)), 0, 0, g.size(x, 1)))
    if mask is None or real is None:
        return x, None
    return x, g.op("Concat", g.slice(mask, 1, 0, 1), g.slice(real, 1, 0, step=stride), axis=1)


def _letters(embedding: TokenEmbedding | ConvolutionalStem) -> Tensor:
    """Vector of each token (vocabulary, V)."""
    return (embedding.letters if isinstance(embedding, ConvolutionalStem) else embedding.table).weight


def _positions(net: SequenceTransformer) -> Tensor:
    """Vector of each position (T, D)."""
    if net.positions is not None:
        return net.positions.table.weight
    return sinusoidal(torch.arange(longest(net)), net.config.d_model)


def _gain(g: Builder, gain: PositionGain, context: str, count: str) -> str:
    """Factors (B or 1, N, D)."""
    table = gain.table.detach().cpu()
    shared = g.slice(g.constant(1 + table[:1]), 1, 0, count)
    if len(table) == 1:
        return shared
    own = g.op("Gather", g.constant(torch.cat((torch.zeros_like(table[:1]), table[1:]))), context)
    return g.op("Add", shared, g.slice(own, 1, 0, count))


def _matrix(g: Builder, matrix: PositionMatrix, vectors: str, context: str, count: str, stride: int) -> str:
    """The terms of `PositionMatrix` for embedded letters (B, N, V): (B, T, D)."""
    table = matrix.table.detach().cpu()
    if len(table) == 1:
        shared = g.slice(g.constant(table[0]), 0, 0, count)
        columns = g.op("Einsum", vectors, shared, equation="bnv,nvr->bnr")
    else:
        each = torch.cat((table[:1], table[:1] + table[1:]))  # with no context, and with each
        own = g.slice(g.op("Gather", g.constant(each), context), 1, 0, count)
        columns = g.op("Einsum", vectors, own, equation="bnv,bnvr->bnr")
    # Sums of s neighbors, mapped to D channels, are a convolution of width and stride s.
    weight = matrix.up.weight[:, :, None].expand(-1, -1, stride)  # (D, r) -> (D, r, s)
    return g.merge(g.swap(columns), stride, weight)


def _ends(g: Builder, ends: EndMatrix, letters: str, real: str | None) -> str:
    """The terms of `EndMatrix` for letters (B, N): (B, N, D)."""
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


def _kmers(g: Builder, words: KmerEmbedding, letters: str, real: str | None) -> str:
    """The terms of `KmerEmbedding` for the k-mers that begin at letters (B, N): (B, N, D)."""
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
        letter = g.slice(following, 1, ahead, end)
        known = g.op("And", known, g.op("Greater", letter, none))
        index = g.op("Add", g.op("Mul", index, g.integers(words.letters)), letter)
        place = g.op("Where", known, g.op("Add", index, g.integers(1)), g.integers(0))
        scaled = len(table) ** 0.5 * table.detach().cpu()
        added.append(g.op("Gather", g.constant(F.pad(scaled, (0, 0, 1, 0))), place))
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


def _stem(
    g: Builder,
    stem: ConvolutionalStem,
    vectors: str,
    real: str | None,
    gain: str | None,
    activation: str,
) -> str:
    """Embedded letters (B, N, V) to vectors (B, T, D), by way of (B, channels, N)."""
    present = None if real is None else g.unsqueeze(g.op("Cast", real, to=TensorProto.FLOAT), 1)  # (B, 1, N)

    def hide_padding(x: str) -> str:
        return x if present is None else g.op("Mul", x, present)

    def convolution(x: str, layer: nn.Conv1d) -> str:
        pads = [layer.kernel_size[0] // 2] * 2
        assert isinstance(layer.bias, Tensor)
        return g.op("Conv", x, g.constant(layer.weight), g.constant(layer.bias), pads=pads)

    x = g.swap(vectors)
    detectors = [convolution(x, layer) for layer in stem.detectors if isinstance(layer, nn.Conv1d)]
    x = g.activation(g.op("Concat", *detectors, axis=1), activation)
    for layer in stem.residual:
        assert isinstance(layer, nn.Conv1d)
        x = g.op("Add", x, g.activation(convolution(hide_padding(x), layer), activation))
    if gain is not None:
        x = g.op("Mul", x, g.swap(gain))
    # A linear map of s neighbors is a convolution of width and stride s.
    weight = stem.merge.weight.unflatten(1, (stem.stride, -1)).transpose(1, 2)  # (D, s·D) -> (D, D, s)
    return g.merge(hide_padding(x), stem.stride, weight, stem.merge.bias)


def longest(net: SequenceTransformer) -> int:
    """Largest number of tokens, including CLS."""
    return 1 - -net.config.max_length // net.embedding.stride
