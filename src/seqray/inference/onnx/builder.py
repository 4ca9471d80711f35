"""Writes the operators of an ONNX graph, one call for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from seqray.inference.onnx.member import Array

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
