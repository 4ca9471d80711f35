"""What the head reads, `seqray.models.Pooling`, in ONNX operators."""

from __future__ import annotations

from onnx import TensorProto

from seqray.inference.onnx.builder import Builder
from seqray.inference.onnx.member import Member

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
