"""Parts of the ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from seqray.core.errors import ModelFileError
from seqray.core.letters import (
    COMPOSITION_ENDS,
    COMPOSITION_GAPS,
    END_FACTORS,
    PAIR_FACTOR,
    WHOLE_FACTOR,
    composition_size,
)
from seqray.core.model_config import MATRIX_RANK, ModelConfig, StemConfig
from seqray.models.tokenizers import FIRST_LETTER, make_tokenizer

# --- The weights of one network of a model as arrays, by the names of its state dict

Array = npt.NDArray[np.float32]


class Member:
    """Settings and weights of one network. Calling it gives a tensor."""

    def __init__(self, config: ModelConfig, arrays: Mapping[str, npt.NDArray[np.floating]]) -> None:
        self.config, self._arrays = config, arrays
        self._unread = set(arrays)
        tokenizer = make_tokenizer(config)
        self.vocabulary = tokenizer.vocab_size
        self.letters = self.vocabulary - FIRST_LETTER
        self.stride = config.stem.stride if config.stem else 1
        self.longest = 1 - -config.max_length // self.stride
        """Largest number of tokens, including CLS."""
        self.reach = -(-config.ends // self.stride)
        """Tokens of either end that are pooled as such."""
        self.pooled = config.d_model * sum(2 if part == "ends" else 1 for part in config.pooling)
        """Width of what the head reads."""
        self.composition = composition_size(self.letters, config.composition)
        """Number of its features."""

    def __call__(self, name: str, *shape: int) -> Array:
        """Return a float32 tensor. Raises ModelFileError where it is missing or has another shape or type."""
        array = self._arrays.get(name)
        if array is None:
            raise ModelFileError(f"lacks tensors, such as '{name}'")
        if array.shape != shape:
            raise ModelFileError(f"tensor '{name}' is {array.shape} where the card asks for {shape}")
        if array.dtype != np.float32:
            raise ModelFileError(f"tensor '{name}' is of {array.dtype}, not float32")
        self._unread.discard(name)
        return array

    def check_all_read(self) -> None:
        """Refuse tensors that the settings do not account for. Raises ModelFileError."""
        if self._unread:
            raise ModelFileError(f"has {len(self._unread)} unknown tensors, such as '{min(self._unread)}'")

    def angles(self, width: int) -> npt.NDArray[np.float64]:
        """Angles of sinusoidal and rotary positions, position / 10000^(2i/width): (T, width / 2)."""
        # The frequencies and the products are float32, as those of `seqray.models.positions` are.
        exponent = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        frequency = (10000.0 ** -exponent.astype(np.float64)).astype(np.float32)
        return (np.arange(self.longest, dtype=np.float32)[:, None] * frequency).astype(np.float64)


# --- Writes the operators of an ONNX graph, one call for each

_END = np.iinfo(np.int64).max
_EPSILON = 1e-5  # of a layer norm, torch's default


class Builder:
    """Collects nodes and constants. A value is its name in the graph. Equal constants are kept once."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[tuple[Any, ...], onnx.TensorProto] = {}

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        array = np.asarray(value)
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

    def slice(self, x: str, axis: int, start: int, end: int | str = _END, step: int = 1) -> str:
        """x[start:end:step] along an axis.

        ``x`` is the name of the value; bounds and step are as in Python, and ``end`` may be the name of a
        value.
        """
        last = end if isinstance(end, str) else self.integers(end)
        return self.op("Slice", x, self.integers(start), last, self.integers(axis), self.integers(step))

    def size(self, x: str, axis: int) -> str:
        """Length of an axis, as a list of one."""
        return self.slice(self.op("Shape", x), 0, axis, axis + 1)

    def unsqueeze(self, x: str, axis: int) -> str:
        """Add an axis of length 1."""
        return self.op("Unsqueeze", x, self.integers(axis))

    def linear(self, x: str, weight: Array, bias: Array) -> str:
        """x Wᵀ + b.

        ``x`` is the name of the value, (..., D); ``weight`` is (F, D), ``bias`` (F,).
        """
        return self.op("Add", self.op("MatMul", x, self.constant(weight.T)), self.constant(bias))

    def norm(self, x: str, weight: Array, bias: Array) -> str:
        """Layer norm over the last axis.

        ``x`` is the name of the value, (..., D); ``weight`` and ``bias`` are (D,).
        """
        weights = (self.constant(weight), self.constant(bias))
        return self.op("LayerNormalization", x, *weights, axis=-1, epsilon=_EPSILON)

    def activation(self, x: str, name: str) -> str:
        if name == "relu":
            return self.op("Relu", x)
        erf = self.op("Erf", self.op("Mul", x, self.constant(0.5**0.5)))
        return self.op("Mul", x, self.op("Mul", self.op("Add", erf, self.constant(1)), self.constant(0.5)))

    def swap(self, x: str) -> str:
        """(B, N, D) to (B, D, N), or back."""
        return self.op("Transpose", x, perm=[0, 2, 1])

    def merge(self, x: str, stride: int, weight: Array, bias: Array | None = None) -> str:
        """Map each ``stride`` neighbors to one token: (B, T, D).

        ``x`` is the name of the value, (B, C, N); ``weight`` is (D, C, stride), ``bias`` (D,).
        """
        weights = [self.constant(part) for part in (weight, bias) if part is not None]
        return self.swap(self.op("Conv", x, *weights, pads=[0, stride - 1], strides=[stride]))


# --- The composition that is added to CLS, `seqray.models.composition.Composition`, in ONNX operators


def compose(g: Builder, net: Member, letters: str, real: str | None) -> str:
    """The vectors (B, D) that are added to CLS.

    ``letters`` is the name of the tokens of the letters, (B, N); ``real`` that of their mask, None if nothing
    is padded.
    """
    known = g.op("Max", g.op("Sub", letters, g.integers(FIRST_LETTER - 1)), g.integers(0))
    if real is None:
        real = g.op("Equal", letters, letters)
    known = g.op("Where", real, known, g.integers(0))
    known = g.op("Pad", known, g.integers(0, 0, 0, max(COMPOSITION_GAPS)))
    table = np.concatenate([np.zeros((1, net.letters)), np.eye(net.letters)])  # nothing at index 0
    shown = g.op("Gather", g.constant(table), known)  # (B, N + 3, A)
    first = g.slice(shown, 1, 0, g.size(letters, 1))
    features = g.op(
        "Concat", *(_part(g, net, part, shown, first, real) for part in net.config.composition), axis=1
    )
    hidden = _linear(g, net, "up", features, 2 * net.config.d_model, net.composition)
    hidden = g.activation(hidden, net.config.activation)
    return _linear(g, net, "down", hidden, net.config.d_model, 2 * net.config.d_model)


def _linear(g: Builder, net: Member, name: str, x: str, outputs: int, inputs: int) -> str:
    weight = net(f"composition.{name}.weight", outputs, inputs)
    return g.linear(x, weight, net(f"composition.{name}.bias", outputs))


def _part(g: Builder, net: Member, part: str, shown: str, first: str, real: str) -> str:
    """Features (B, F) of a part."""
    size = net.letters
    if part == "whole":
        return _scaled(g, g.op("ReduceSum", first, g.integers(1), keepdims=0), size, WHOLE_FACTOR)
    if part == "ends":
        weights = g.op("Cast", _near(g, real), to=TensorProto.FLOAT)
        shares = _scaled(g, g.op("MatMul", weights, first), size, np.array(2 * END_FACTORS)[:, None])
        return g.op("Reshape", shares, g.integers(0, 2 * len(END_FACTORS) * size))
    turned = g.swap(first)
    found = []
    for gap in COMPOSITION_GAPS:
        end = g.op("Add", g.size(first, 1), g.integers(gap))
        pairs = g.op("MatMul", turned, g.slice(shown, 1, gap, end))
        found.append(_scaled(g, g.op("Reshape", pairs, g.integers(0, size**2)), size**2, PAIR_FACTOR))
    return g.op("Concat", *found, axis=1)


def _near(g: Builder, real: str) -> str:
    """Masks (B, 6, N) of the letters of each end."""
    left = g.op("CumSum", g.op("Cast", real, to=TensorProto.INT64), g.constant(1, np.int64))
    right = g.op("Add", g.op("Sub", g.slice(left, 1, -1), left), g.integers(1))
    limits = g.constant(np.array(COMPOSITION_ENDS)[:, None], np.int64)
    near = (g.op("LessOrEqual", g.unsqueeze(distance, 1), limits) for distance in (left, right))
    return g.op("Concat", *near, axis=1)


def _scaled(g: Builder, counts: str, size: int, factor: object) -> str:
    """Scaled shares of counts (..., size)."""
    total = g.op("ReduceSum", counts, g.integers(-1), keepdims=1)
    shares = g.op("Div", g.op("Mul", counts, g.constant(size)), g.op("Max", total, g.constant(1.0)))
    one = g.op("Cast", g.op("Greater", total, g.constant(0.0)), to=TensorProto.FLOAT)
    return g.op("Mul", g.op("Sub", g.op("Sqrt", shares), one), g.constant(factor))


# --- What the head reads, `seqray.models.Pooling`, in ONNX operators

_MASKED_STATE = -1e30  # below any state


def pool(g: Builder, net: Member, states: str, mask: str | None) -> str:
    """Final states (B, T, D), CLS first, to (B, P D).

    ``states`` and ``mask`` (B, T) are names; the mask of real tokens is None if nothing is padded.
    """
    letters = g.slice(states, 1, 1)
    first = g.op("Squeeze", g.slice(states, 2, 0, 1), g.integers(2))  # (B, T)
    real = g.slice(mask if mask is not None else g.op("Equal", first, first), 1, 1)
    found = []
    for part in net.config.pooling:
        if part == "cls":
            found.append(g.op("Squeeze", g.slice(states, 1, 0, 1), g.integers(1)))
        elif part == "mean":
            found.append(_mean(g, letters, real))
        elif part == "max":
            shown = g.op("Where", g.unsqueeze(real, 2), letters, g.constant(_MASKED_STATE))
            found.append(g.op("ReduceMax", shown, axes=[1], keepdims=0))
        else:
            found += [_mean(g, letters, near) for near in _ends(g, real, net.reach)]
    return found[0] if len(found) == 1 else g.op("Concat", *found, axis=1)


def _ends(g: Builder, real: str, reach: int) -> tuple[str, str]:
    """Masks (B, N) of so many tokens at the beginning and at the end."""
    left = g.op("CumSum", g.op("Cast", real, to=TensorProto.INT64), g.constant(1, "int64"))
    right = g.op("Sub", g.slice(left, 1, -1), left)  # tokens that follow
    limit = g.integers(reach)
    near = g.op("LessOrEqual", left, limit), g.op("Less", right, limit)
    return g.op("And", real, near[0]), g.op("And", real, near[1])


def _mean(g: Builder, letters: str, chosen: str) -> str:
    """Mean over the chosen tokens: (B, N, D) to (B, D)."""
    weights = g.op("Cast", chosen, to=TensorProto.FLOAT)
    total = g.op("ReduceSum", weights, g.integers(1), keepdims=1)
    hidden = g.op("Where", g.unsqueeze(chosen, 2), letters, g.constant(0.0))
    summed = g.op("MatMul", g.unsqueeze(g.op("Div", weights, total), 1), hidden)  # (B, 1, D)
    return g.op("Squeeze", summed, g.integers(1))


# --- The embedding of `seqray.models` in ONNX operators: tokens to vectors

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
        x = g.op("Add", x, _sum_over_strides(g, _embedding_ends(g, net, letters, real), net.stride))
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
    table = net("matrix.table", 1 + contexts, config.max_length, _width(net), MATRIX_RANK)
    if len(table) == 1:
        shared = g.slice(g.constant(table[0]), 0, 0, count)
        columns = g.op("Einsum", vectors, shared, equation="bnv,nvr->bnr")
    else:
        each = np.concatenate([table[:1], table[:1] + table[1:]])  # with no context, and with each
        own = g.slice(g.op("Gather", g.constant(each), context), 1, 0, count)
        columns = g.op("Einsum", vectors, own, equation="bnv,bnvr->bnr")
    # Sums of s neighbors, mapped to D channels, are a convolution of width and stride s.
    up = net("matrix.up.weight", config.d_model, MATRIX_RANK)
    weight = np.repeat(up[:, :, None], net.stride, axis=2)  # (D, r) -> (D, r, s)
    return g.merge(g.swap(columns), net.stride, weight)


def _embedding_ends(g: Builder, net: Member, letters: str, real: str | None) -> str:
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
