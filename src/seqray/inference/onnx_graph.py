"""A graph of ONNX operators that is written like numpy, and the layers that all networks share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from seqray.core.errors import ModelFileError
from seqray.core.model_config import ModelConfig

Array = npt.NDArray[Any]
Weights = Mapping[str, npt.NDArray[np.floating]]

OPSET, IR_VERSION = 17, 8  # ONNX Runtime 1.12 and later read these
_EPSILON = 1e-5  # of a layer norm, torch's default
_END = np.iinfo(np.int64).max
_TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
_INPUT_TYPES = _TYPES | {"uint8": TensorProto.UINT8, "bool": TensorProto.BOOL}


def _binary(kind: str) -> Callable[[Value, Operand], Value]:
    return lambda self, other: self.op(kind, other)


class Value:
    """A value of a graph. Numbers and arrays beside it become constants: float32 or int64, by their kind."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def op(self, kind: str, *others: Operand, **attributes: Any) -> Value:
        """An operator of ONNX, whose first input this is."""
        return self.graph.op(kind, self, *others, **attributes)

    __add__, __sub__, __mul__, __truediv__ = map(_binary, ("Add", "Sub", "Mul", "Div"))
    __mod__, __matmul__, __and__, equals = map(_binary, ("Mod", "MatMul", "And", "Equal"))
    __lt__, __le__, __gt__, __ge__ = map(_binary, ("Less", "LessOrEqual", "Greater", "GreaterOrEqual"))

    def __neg__(self) -> Value:
        return self.op("Neg")

    def __getitem__(self, key: Any) -> Value:
        """x[0, 1:n, None] as in numpy; the end of a single slice may be a value of one number."""
        parts, new, gone, slices = key if isinstance(key, tuple) else (key,), [], [], []
        for part in parts:
            axis = len(slices)
            if part is None:
                new.append(axis - len(gone) + len(new))
                continue
            if isinstance(part, int):
                gone.append(axis)
                part = slice(part, part + 1 or None)
            slices.append((part.start or 0, _END if part.stop is None else part.stop, axis, part.step or 1))
        x, cut = self, [one for one in slices if one[:2] != (0, _END) or one[3] != 1]
        if cut:
            starts, ends, axes, steps = zip(*cut, strict=True)
            stop = ends[0] if isinstance(ends[0], Value) else _ints(*ends)
            x = x.op("Slice", _ints(*starts), stop, _ints(*axes), _ints(*steps))
        x = x.op("Squeeze", _ints(*gone)) if gone else x
        return x.op("Unsqueeze", _ints(*new)) if new else x

    def size(self, axis: int) -> Value:
        """Length of an axis, as a list of one."""
        return self.op("Shape")[axis : axis + 1]

    def reshape(self, *sizes: int) -> Value:
        """As in ONNX: 0 keeps the size of an axis, and one may be -1."""
        return self.op("Reshape", _ints(*sizes))

    def transpose(self, *axes: int) -> Value:
        return self.op("Transpose", perm=axes)

    def to(self, kind: str) -> Value:
        return self.op("Cast", to=_TYPES[kind])

    def sum(self, axis: int, *, keep: bool = False) -> Value:
        return self.op("ReduceSum", _ints(axis), keepdims=int(keep))

    def max(self, axis: int, *, keep: bool = False) -> Value:
        return self.op("ReduceMax", axes=[axis], keepdims=int(keep))

    def pad(self, axis: int, before: Operand, after: Operand, value: float = 0.0, *, rank: int = 3) -> Value:
        """Rows of a value before and after an axis; how many may be a value of one number."""
        pads: list[Operand] = [_ints(0)] * (2 * rank)
        pads[axis], pads[rank + axis] = (_ints(n) if isinstance(n, int) else n for n in (before, after))
        return self.op("Pad", self.graph.concat(*pads, axis=0), value)

    def linear(self, weight: Array, bias: Array) -> Value:
        """x Wᵀ + b, of (..., D) by (F, D) and (F,)."""
        return self @ weight.T + bias


Operand = Value | float | Array


def _ints(*values: int) -> Array:
    return np.array(values, dtype=np.int64)


class Graph:
    """Collects nodes and constants. Equal constants are kept once."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[tuple[Any, ...], onnx.TensorProto] = {}
        self.inputs: list[onnx.ValueInfoProto] = []

    def input(self, name: str, kind: str, *shape: str | int) -> Value:
        """An input of the graph."""
        self.inputs.append(helper.make_tensor_value_info(name, _INPUT_TYPES[kind], shape))
        return Value(self, name)

    def op(self, kind: str, *inputs: Operand, **attributes: Any) -> Value:
        name = f"{kind.lower()}_{len(self.nodes)}"
        names = [one.name if isinstance(one, Value) else self._constant(one) for one in inputs]
        self.nodes.append(helper.make_node(kind, names, [name], name, **attributes))
        return Value(self, name)

    def constant(self, value: Array) -> Value:
        return Value(self, self._constant(value))

    def concat(self, *values: Operand, axis: int) -> Value:
        return self.op("Concat", *values, axis=axis)

    def where(self, condition: Value, yes: Operand, no: Operand) -> Value:
        return self.op("Where", condition, yes, no)

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        array = array.astype(array.dtype if array.dtype == bool else "if"[array.dtype.kind == "f"] + "8")
        array = array.astype(np.float32) if array.dtype.kind == "f" else array
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            array = np.ascontiguousarray(array).reshape(array.shape)
            self.constants[key] = numpy_helper.from_array(array, f"constant_{len(self.constants)}")
        return self.constants[key].name

    def model(self, outputs: dict[str, tuple[Value, tuple[str | int, ...]]]) -> onnx.ModelProto:
        """The graph with float32 outputs: the value and the shape of each name."""
        for name, (value, _) in outputs.items():
            self.nodes.append(helper.make_node("Identity", [value.name], [name], name))
        declared = [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
            for name, (_, shape) in outputs.items()
        ]
        graph = helper.make_graph(self.nodes, "seqray", self.inputs, declared, list(self.constants.values()))
        opset = helper.make_opsetid("", OPSET)
        return helper.make_model(graph, opset_imports=[opset], ir_version=IR_VERSION, producer_name="seqray")


# --- What all networks share


class NetworkGraph:
    """One member of a model, within the graph of all members."""

    def __init__(self, g: Graph, config: ModelConfig, arrays: Weights) -> None:
        self.g, self.config, self.width, self._arrays = g, config, config.d_model, arrays
        self._unread = set(arrays)

    def weight(self, name: str, *shape: int) -> Array:
        """Return a float32 tensor. Raises ModelFileError where it is missing or has another shape or type."""
        array = self._arrays.get(name)
        if array is None:
            raise ModelFileError(f"lacks tensors, such as '{name}'")
        if array.shape != shape:
            raise ModelFileError(
                f"tensor '{name}' is {array.shape} where the model description asks for {shape}"
            )
        if array.dtype != np.float32:
            raise ModelFileError(f"tensor '{name}' is of {array.dtype}, not float32")
        self._unread.discard(name)
        return array

    def check_all_read(self) -> None:
        """Raise ModelFileError for weights that are not read."""
        if self._unread:
            raise ModelFileError(f"has {len(self._unread)} unknown tensors, such as '{min(self._unread)}'")

    def map(self, name: str, x: Value, outputs: int, inputs: int) -> Value:
        """A linear map by its weights."""
        return x.linear(self.weight(f"{name}.weight", outputs, inputs), self.weight(f"{name}.bias", outputs))

    def convolution(self, x: Value, name: str, *shape: int, stride: int = 1) -> Value:
        """(B, C, N) to (B, D, N / stride) by weights (D, C, kernel)."""
        weights = self.weight(f"{name}.weight", *shape), self.weight(f"{name}.bias", shape[0])
        return x.op("Conv", *weights, pads=[(shape[-1] - stride + 1) // 2] * 2, strides=[stride])

    def norm(self, name: str, x: Value, width: int) -> Value:
        """Layer norm over the last axis."""
        weights = [self.weight(f"{name}.{part}", width) for part in ("weight", "bias")]
        return x.op("LayerNormalization", *weights, axis=-1, epsilon=_EPSILON)

    def activation(self, x: Value) -> Value:
        if self.config.activation == "relu":
            return x.op("Relu")
        return x * (((x * 0.5**0.5).op("Erf") + 1.0) * 0.5)

    def feed_forward(self, name: str, x: Value) -> Value:
        """x + FeedForward(norm(x)), of (..., D)."""
        inner = self.config.d_ff or 4 * self.width
        hidden = self.norm(f"{name}.feed_forward_norm", x, self.width)
        hidden = self.activation(self.map(f"{name}.feed_forward.up", hidden, inner, self.width))
        return x + self.map(f"{name}.feed_forward.down", hidden, self.width, inner)

    def rotate(self, x: Value, cos: Value, sin: Value) -> Value:
        """Rotate pairs of features of (B, T, H, E) by the angles of their positions, (T, 1, E/2)."""
        even, odd = x[:, :, :, ::2], x[:, :, :, 1::2]
        pairs = [one[:, :, :, :, None] for one in (even * cos - odd * sin, even * sin + odd * cos)]
        return self.g.concat(*pairs, axis=4).reshape(0, 0, 0, self.width // self.config.heads)


def frequencies(width: int) -> Array:
    """1 / 10000^(2i/width) of sinusoidal and rotary positions, in float32 as in `seqray.models.attention`."""
    exponent = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
    return (10000.0 ** -exponent.astype(np.float64)).astype(np.float32)
