"""The composition that is added to CLS, `seqray.models.composition.Composition`, in ONNX operators."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from seqray.core import (
    COMPOSITION_ENDS,
    COMPOSITION_GAPS,
    END_FACTORS,
    PAIR_FACTOR,
    WHOLE_FACTOR,
)
from seqray.inference.onnx.builder import Builder
from seqray.inference.onnx.member import Member
from seqray.models.tokenizers import FIRST_LETTER


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
