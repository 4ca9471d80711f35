"""A model as an ONNX graph: the operators of `seqray.models`, for any batch size and length.

This is a second description of the network: a change in `seqray.models` needs the same change here.
`check_graph` compares the two before each export, and the self-test of the card before each use by an engine.
Decision 14 explains why torch's exporter does not make the graph.

A value is its name in the graph. B is the batch, N letters, T tokens with CLS, D the width of the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from seqray.core.card import Card
from seqray.core.errors import ConfigError, ModelFileError
from seqray.core.letters import (
    COMPOSITION_ENDS,
    COMPOSITION_GAPS,
    END_FACTORS,
    PAIR_FACTOR,
    WHOLE_FACTOR,
    composition_size,
)
from seqray.core.model_config import MATRIX_RANK, ModelConfig, StemConfig
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import FIRST_LETTER, make_tokenizer

Array = npt.NDArray[np.float32]

OPSET, IR_VERSION = 17, 8  # ONNX Runtime 1.12 and later read these
_MAX_POSITION_VALUES = 1 << 26  # a file must not decide how much memory a graph takes
_MAX_LOG_ODDS = 36.0  # beyond, a probability is 1 in float64, see `RisingMap`
_MASKED_SCORE, _MASKED_STATE = -1e9, -1e30  # of a padded key, whose weight is exactly 0; below any state
_END = np.iinfo(np.int64).max
_EPSILON = 1e-5  # of a layer norm, torch's default
_RESIDUAL_KERNEL = 5  # of the convolutions that follow the detectors of a stem


def make_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """Describe all members and the calibration as one graph.

    Gives inputs ``tokens`` (batch, length) int64 and ``mask`` (batch, length) bool, True at real tokens.
    Outputs ``logits`` (batch, K), as `TrainedModel.logits` gives, and ``probabilities`` (batch, K).
    """
    g, members, card = Builder(), [], model.card
    for arrays in model.arrays():
        member = Member(g, card.model, arrays)
        if member.longest * card.model.d_model > _MAX_POSITION_VALUES:
            raise ConfigError(
                f"model '{card.name}' reads inputs too long for a graph", remedy="use the engine torch"
            )
        members.append(g.op("LogSoftmax", member.network("tokens", "mask" if masked else None), axis=-1))
    total = members[0] if len(members) == 1 else g.op("Sum", *members)
    logits = g.op("Mul", total, g.constant(1 / (len(members) * card.temperature)))
    for name, value in (("logits", logits), ("probabilities", "")):
        g.op("Identity", value or _probabilities(g, logits, card))
        g.nodes[-1].output[0] = name
    inputs = [helper.make_tensor_value_info("tokens", TensorProto.INT64, ["batch", "length"])]
    if masked:
        inputs.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, ["batch", "length"]))
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", len(card.classes)])
        for name in ("logits", "probabilities")
    ]
    graph = helper.make_graph(g.nodes, "seqray", inputs, outputs, list(g.constants.values()))
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="seqray"
    )


class Builder:
    """Collects nodes and constants. Equal constants are kept once."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[tuple[Any, ...], onnx.TensorProto] = {}

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name, **attributes))
        return name

    def constant(self, value: Any, dtype: Any = np.float32) -> str:
        array = np.asarray(value)
        array = np.ascontiguousarray(array.astype(dtype)).reshape(array.shape)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"constant_{len(self.constants)}")
        return self.constants[key].name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def slice(self, x: str, axis: int, start: int, end: int | str = _END, step: int = 1) -> str:
        """x[start:end:step] along an axis, as in Python; ``end`` may be the name of a value."""
        last = end if isinstance(end, str) else self.integers(end)
        return self.op("Slice", x, self.integers(start), last, self.integers(axis), self.integers(step))

    def size(self, x: str, axis: int) -> str:
        """Length of an axis, as a list of one."""
        return self.slice(self.op("Shape", x), 0, axis, axis + 1)

    def unsqueeze(self, x: str, axis: int) -> str:
        return self.op("Unsqueeze", x, self.integers(axis))

    def floats(self, x: str) -> str:
        return self.op("Cast", x, to=TensorProto.FLOAT)

    def swap(self, x: str) -> str:
        """(B, N, D) to (B, D, N), or back."""
        return self.op("Transpose", x, perm=[0, 2, 1])

    def linear(self, x: str, weight: Array, bias: Array) -> str:
        """x Wᵀ + b, of (..., D) by (F, D) and (F,)."""
        return self.op("Add", self.op("MatMul", x, self.constant(weight.T)), self.constant(bias))

    def merge(self, x: str, stride: int, weight: Array, bias: Array | None = None) -> str:
        """Map each ``stride`` neighbors of (B, C, N) to a token (B, T, D), by (D, C, stride) and (D,)."""
        weights = [self.constant(part) for part in (weight, bias) if part is not None]
        return self.swap(self.op("Conv", x, *weights, pads=[0, stride - 1], strides=[stride]))


class Member(Builder):
    """One network of a model; its nodes go into the graph of all members. Calling it gives a weight."""

    def __init__(
        self, graph: Builder, config: ModelConfig, arrays: Mapping[str, npt.NDArray[np.floating]]
    ) -> None:
        self.nodes, self.constants = graph.nodes, graph.constants
        self.config, self.width, self._arrays = config, config.d_model, arrays
        self._unread = set(arrays)
        self.vocabulary = make_tokenizer(config).vocab_size
        self.letters = self.vocabulary - FIRST_LETTER
        self.stride = config.stem.stride if config.stem else 1
        self.longest = 1 - -config.max_length // self.stride  # tokens, CLS included

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

    def network(self, tokens: str, mask: str | None) -> str:
        """Logits (B, K) of tokens (B, L). Raises ModelFileError for weights that are not read."""
        x, keys = self.embed(tokens, mask)
        config, bias = self.config, None
        if keys is not None:  # (B, T) -> (B, 1, 1, T)
            bias = self.op("Where", keys, self.constant(0.0), self.constant(_MASKED_SCORE))
            bias = self.op("Unsqueeze", bias, self.integers(1, 2))
        last = config.layers - 1
        for number in range(last + 1):
            x = self.block(f"blocks.{number}", x, bias, config.pooling == ("cls",) and number == last)
        pooled = self.pool(x, keys)
        width = self.width * sum(2 if part == "ends" else 1 for part in config.pooling)
        logits = self.map("head.linear", self.norm("head.norm", pooled, width), config.outputs, width)
        if config.subclasses:
            ends = accumulate(config.subclasses, initial=0)
            parts = [self._log_sum(self.slice(logits, 1, start, end)) for start, end in pairwise(ends)]
            logits = self.op("Concat", *parts, axis=1)
        if self._unread:
            raise ModelFileError(f"has {len(self._unread)} unknown tensors, such as '{min(self._unread)}'")
        return logits

    def _log_sum(self, logits: str) -> str:
        """Log of the sum of exponentials: (B, n) to (B, 1). OpenVINO's ReduceLogSumExp sums the rows, too."""
        highest = self.op("ReduceMax", logits, axes=[1])
        total = self.op("ReduceSum", self.op("Exp", self.op("Sub", logits, highest)), self.integers(1))
        return self.op("Add", highest, self.op("Log", total))

    def map(self, name: str, x: str, outputs: int, inputs: int) -> str:
        """A linear map by its weights."""
        return self.linear(x, self(f"{name}.weight", outputs, inputs), self(f"{name}.bias", outputs))

    def norm(self, name: str, x: str, width: int) -> str:
        """Layer norm over the last axis."""
        weights = [self.constant(self(f"{name}.{part}", width)) for part in ("weight", "bias")]
        return self.op("LayerNormalization", x, *weights, axis=-1, epsilon=_EPSILON)

    def activation(self, x: str) -> str:
        if self.config.activation == "relu":
            return self.op("Relu", x)
        erf = self.op("Erf", self.op("Mul", x, self.constant(0.5**0.5)))
        return self.op("Mul", x, self.op("Mul", self.op("Add", erf, self.constant(1)), self.constant(0.5)))

    def angles(self, width: int) -> npt.NDArray[np.float64]:
        """Angles of sinusoidal and rotary positions, position / 10000^(2i/width): (T, width / 2)."""
        # The frequencies and the products are float32, as those of `seqray.models.attention` are.
        exponent = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        frequency = (10000.0 ** -exponent.astype(np.float64)).astype(np.float32)
        return (np.arange(self.longest, dtype=np.float32)[:, None] * frequency).astype(np.float64)

    # --- blocks -----------------------------------------------------------------------------------------

    def block(self, name: str, x: str, bias: str | None, cls_only: bool) -> str:
        """(B, T, D) to (B, T, D), or (B, 1, D)."""
        width, inner = self.width, self.config.d_ff or 4 * self.width
        normed = self.norm(f"{name}.attention_norm", x, width)
        attended = self.attention(f"{name}.attention", normed, bias, cls_only)
        x = self.op("Add", self.slice(x, 1, 0, 1) if cls_only else x, attended)
        hidden = self.norm(f"{name}.feed_forward_norm", x, width)
        hidden = self.activation(self.map(f"{name}.feed_forward.up", hidden, inner, width))
        return self.op("Add", x, self.map(f"{name}.feed_forward.down", hidden, width, inner))

    def attention(self, name: str, x: str, bias: str | None, cls_only: bool) -> str:
        """softmax(Q Kᵀ / √E + mask) V, heads concatenated, times W_O: (B, Lq, D)."""
        config, heads = self.config, self.config.heads
        groups, width = config.kv_heads or heads, self.width // heads
        begin = [0, heads * width, (heads + groups) * width, (heads + 2 * groups) * width]
        weight, offset = (
            self(f"{name}.qkv.weight", begin[-1], self.width),
            self(f"{name}.qkv.bias", begin[-1]),
        )
        first = self.slice(x, 1, 0, 1) if cls_only else x
        q, k, v = (
            self.op(
                "Reshape",
                self.linear(source, weight[start:end], offset[start:end]),
                self.integers(0, -1, count, width),
            )
            for source, count, (start, end) in zip(
                (first, x, x), (heads, groups, groups), pairwise(begin), strict=True
            )
        )  # (B, T, H, E) each
        if config.positions == "rotary":
            k = self._rotate(k)
            q = q if cls_only else self._rotate(q)  # the first token is at 0, which rotates nothing
        if groups < heads:
            shared = self.constant(np.repeat(np.arange(groups), heads // groups), np.int64)
            k, v = (self.op("Gather", one, shared, axis=2) for one in (k, v))
        q = self.op("Transpose", self.op("Mul", q, self.constant(width**-0.5)), perm=[0, 2, 1, 3])
        k = self.op("Transpose", k, perm=[0, 2, 3, 1])  # (B, H, E, T); the others (B, H, T, E)
        v = self.op("Transpose", v, perm=[0, 2, 1, 3])
        scores = self.op("MatMul", q, k)
        scores = scores if bias is None else self.op("Add", scores, bias)
        output = self.op("MatMul", self.op("Softmax", scores, axis=-1), v)  # (B, H, Lq, E)
        joined = self.op("Transpose", output, perm=[0, 2, 1, 3])
        output = self.op("Reshape", joined, self.integers(0, -1, heads * width))
        return self.map(f"{name}.out", output, self.width, self.width)

    def _rotate(self, x: str) -> str:
        """Rotate pairs of features of (B, T, H, E) by the angles of their positions."""
        width = self.width // self.config.heads
        angles = self.angles(width)[:, None]  # (T, 1, E/2)
        cos, sin = (
            self.slice(self.constant(one), 0, 0, self.size(x, 1)) for one in (np.cos(angles), np.sin(angles))
        )
        even, odd = (self.slice(x, 3, start, step=2) for start in (0, 1))
        rotated = (
            self.op("Sub", self.op("Mul", even, cos), self.op("Mul", odd, sin)),
            self.op("Add", self.op("Mul", even, sin), self.op("Mul", odd, cos)),
        )
        pairs = self.op("Concat", *(self.unsqueeze(part, 4) for part in rotated), axis=4)  # (.., E/2, 2)
        return self.op("Reshape", pairs, self.integers(0, 0, 0, width))

    # --- what the head reads ----------------------------------------------------------------------------

    def pool(self, states: str, mask: str | None) -> str:
        """Final states (B, T, D), CLS first, and the mask of real tokens to (B, P D)."""
        letters = self.slice(states, 1, 1)
        first = self.op("Squeeze", self.slice(states, 2, 0, 1), self.integers(2))  # (B, T)
        real = self.slice(mask if mask is not None else self.op("Equal", first, first), 1, 1)
        parts = []
        for part in self.config.pooling:
            if part == "cls":
                parts.append(self.op("Squeeze", self.slice(states, 1, 0, 1), self.integers(1)))
            elif part == "mean":
                parts.append(self._mean(letters, real))
            elif part == "max":
                shown = self.op("Where", self.unsqueeze(real, 2), letters, self.constant(_MASKED_STATE))
                parts.append(self.op("ReduceMax", shown, axes=[1], keepdims=0))
            else:  # so many tokens at the beginning, and at the end
                left = self.op(
                    "CumSum", self.op("Cast", real, to=TensorProto.INT64), self.constant(1, np.int64)
                )
                right = self.op("Sub", self.slice(left, 1, -1), left)  # tokens that follow
                limit = self.integers(-(-self.config.ends // self.stride))
                near = self.op("LessOrEqual", left, limit), self.op("Less", right, limit)
                ends = self.op("And", real, near[0]), self.op("And", real, near[1])
                parts += [self._mean(letters, chosen) for chosen in ends]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=1)

    def _mean(self, letters: str, chosen: str) -> str:
        """Mean over the chosen tokens: (B, N, D) to (B, D)."""
        weights = self.floats(chosen)
        total = self.op("ReduceSum", weights, self.integers(1), keepdims=1)
        hidden = self.op("Where", self.unsqueeze(chosen, 2), letters, self.constant(0.0))
        summed = self.op("MatMul", self.unsqueeze(self.op("Div", weights, total), 1), hidden)  # (B, 1, D)
        return self.op("Squeeze", summed, self.integers(1))

    # --- the embedding ----------------------------------------------------------------------------------

    def embed(self, tokens: str, mask: str | None) -> tuple[str, str | None]:
        """Vectors (B, T, D) with CLS first, and the mask of the real ones (B, T) if something is padded."""
        config, width = self.config, self.width
        letters, real = self.slice(tokens, 1, 1), None if mask is None else self.slice(mask, 1, 1)
        # Number of the context, from 1, 0 for none: (B,)
        first = self.op("Squeeze", self.slice(tokens, 1, 0, 1), self.integers(1))
        context = self.op("Max", self.op("Sub", first, self.integers(self.vocabulary - 1)), self.integers(0))
        gain = None if config.position_gain == "none" else self._gain(context, self.size(letters, 1))
        letter_width = self.vocabulary if config.stem else width
        name = "letters" if config.stem else "table"
        table = self(f"embedding.{name}.weight", self.vocabulary, letter_width)
        vectors = self.op("Gather", self.constant(table), letters)
        if config.stem is not None:
            if real is not None:  # padding is zero, as beyond the ends
                vectors = self.op("Mul", vectors, self.unsqueeze(self.floats(real), 2))
            x = self._stem(config.stem, vectors, real, gain)
        else:
            x = vectors if gain is None else self.op("Mul", vectors, gain)
        if config.position_matrix != "none":
            x = self.op("Add", x, self._matrix(vectors, letter_width, context, self.size(letters, 1)))
        if config.ends:
            x = self.op("Add", x, self._sum_over_strides(self._ends(letters, real)))
        if config.words:
            x = self.op("Add", x, self._sum_over_strides(self._kmers(letters, real)))
        shape = self.op("Concat", self.size(tokens, 0), self.integers(1, width), axis=0)
        cls = self.op("Expand", self.constant(self("cls", width).reshape(1, 1, -1)), shape)
        if config.composition:
            cls = self.op("Add", cls, self.unsqueeze(self._composition(letters, real), 1))
        x = self.op("Concat", cls, x, axis=1)
        if config.contexts:
            own = self.constant(_with_zeros(self("contexts", len(config.contexts), width)))
            x = self.op("Add", x, self.unsqueeze(self.op("Gather", own, context), 1))
        if config.positions != "rotary":
            if config.positions == "learned":
                table = self("positions.table.weight", self.longest, width)
            else:
                angles = self.angles(width)
                table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(self.longest, width)
            x = self.op("Add", x, self.slice(self.constant(table), 0, 0, self.size(x, 1)))
        if mask is None or real is None:
            return x, None
        first, merged = self.slice(mask, 1, 0, 1), self.slice(real, 1, 0, step=self.stride)
        return x, self.op("Concat", first, merged, axis=1)

    def _gain(self, context: str, count: str) -> str:
        """Factors (B or 1, N, D)."""
        contexts = len(self.config.contexts) if self.config.position_gain == "context" else 0
        table = self("gain.table", 1 + contexts, self.config.max_length, self.width)
        shared = self.slice(self.constant(1 + table[:1]), 1, 0, count)
        if not contexts:
            return shared
        own = self.op("Gather", self.constant(_with_zeros(table[1:])), context)
        return self.op("Add", shared, self.slice(own, 1, 0, count))

    def _matrix(self, vectors: str, letter_width: int, context: str, count: str) -> str:
        """The terms of `PositionMatrix` for embedded letters (B, N, V): (B, T, D)."""
        contexts = len(self.config.contexts) if self.config.position_matrix == "context" else 0
        table = self("matrix.table", 1 + contexts, self.config.max_length, letter_width, MATRIX_RANK)
        if not contexts:
            shared = self.slice(self.constant(table[0]), 0, 0, count)
            columns = self.op("Einsum", vectors, shared, equation="bnv,nvr->bnr")
        else:
            each = np.concatenate([table[:1], table[:1] + table[1:]])  # with no context, and with each
            own = self.slice(self.op("Gather", self.constant(each), context), 1, 0, count)
            columns = self.op("Einsum", vectors, own, equation="bnv,bnvr->bnr")
        # Sums of s neighbors, mapped to D channels, are a convolution of width and stride s.
        up = self("matrix.up.weight", self.width, MATRIX_RANK)
        weight = np.repeat(up[:, :, None], self.stride, axis=2)  # (D, r) -> (D, r, s)
        return self.merge(self.swap(columns), self.stride, weight)

    def _ends(self, letters: str, real: str | None) -> str:
        """The terms of `EndMatrix` for letters (B, N): (B, N, D)."""
        reach, vocabulary = self.config.ends, self.vocabulary
        one, axis = self.integers(1), self.constant(1, np.int64)
        filled = self.op("Equal", letters, letters) if real is None else real
        count = self.op("Cast", filled, to=TensorProto.INT64)
        left = self.op("CumSum", count, axis)
        last = self.op("ReduceSum", count, one, keepdims=1)
        right = self.op("Add", self.op("Sub", last, left), one)
        sides = []
        tables = self("ends.table", 2, reach * vocabulary, self.width)
        for table, distance in zip(tables, (left, right), strict=True):
            row = self.op("Mul", self.op("Sub", distance, one), self.integers(vocabulary))
            near = self.op("And", filled, self.op("LessOrEqual", distance, self.integers(reach)))
            place = self.op("Add", self.op("Add", row, letters), one)
            index = self.op("Where", near, place, self.integers(0))
            sides.append(self.op("Gather", self.constant(_with_zeros(table)), index))
        return self.op("Add", *sides)

    def _kmers(self, letters: str, real: str | None) -> str:
        """The terms of `KmerEmbedding` for the k-mers that begin at letters (B, N): (B, N, D)."""
        none, count = self.integers(-1), self.config.words - 1
        codes = self.op("Sub", letters, self.integers(FIRST_LETTER))
        if real is not None:
            codes = self.op("Where", real, codes, none)
        following = self.op("Pad", codes, self.integers(0, 0, 0, count), self.constant(-1, np.int64))
        index = codes
        known = self.op("Greater", index, none)
        added = []
        for ahead in range(1, count + 1):
            rows = self.letters ** (ahead + 1)
            table = self(f"words.tables.{ahead - 1}", rows, self.width)
            end = self.op("Add", self.size(letters, 1), self.integers(ahead))
            letter = self.slice(following, 1, ahead, end)
            known = self.op("And", known, self.op("Greater", letter, none))
            index = self.op("Add", self.op("Mul", index, self.integers(self.letters)), letter)
            place = self.op("Where", known, self.op("Add", index, self.integers(1)), self.integers(0))
            added.append(self.op("Gather", self.constant(_with_zeros(np.float32(rows**0.5) * table)), place))
        return added[0] if count == 1 else self.op("Sum", *added)

    def _sum_over_strides(self, vectors: str) -> str:
        """As `seqray.models.attention.sum_over_strides`: the average over neighbors times their number."""
        stride = self.stride
        if stride == 1:
            return vectors
        settings: dict[str, Any] = {"kernel_shape": [stride], "strides": [stride], "pads": [0, stride - 1]}
        mean = self.op("AveragePool", self.swap(vectors), **settings, ceil_mode=0, count_include_pad=1)
        return self.swap(self.op("Mul", mean, self.constant(stride)))

    def _stem(self, stem: StemConfig, vectors: str, real: str | None, gain: str | None) -> str:
        """Embedded letters (B, N, V) to vectors (B, T, D), by way of (B, channels, N)."""
        present = None if real is None else self.unsqueeze(self.floats(real), 1)  # (B, 1, N)
        width, branch = self.width, self.width // len(stem.kernels)

        def hide_padding(x: str) -> str:
            return x if present is None else self.op("Mul", x, present)

        def convolution(x: str, name: str, *shape: int) -> str:
            weight, bias = self(f"embedding.{name}.weight", *shape), self(f"embedding.{name}.bias", shape[0])
            return self.op("Conv", x, self.constant(weight), self.constant(bias), pads=[shape[-1] // 2] * 2)

        x = self.swap(vectors)
        kernels = enumerate(stem.kernels)
        found = [convolution(x, f"detectors.{i}", branch, self.vocabulary, kernel) for i, kernel in kernels]
        x = self.activation(self.op("Concat", *found, axis=1))
        for i in range(stem.depth):
            hidden = convolution(hide_padding(x), f"residual.{i}", width, width, _RESIDUAL_KERNEL)
            x = self.op("Add", x, self.activation(hidden))
        if gain is not None:
            x = self.op("Mul", x, self.swap(gain))
        # A linear map of s neighbors is a convolution of width and stride s.
        weight = self("embedding.merge.weight", width, stem.stride * width)
        weight = weight.reshape(width, stem.stride, width).transpose(0, 2, 1)  # (D, s·D) -> (D, D, s)
        return self.merge(hide_padding(x), stem.stride, weight, self("embedding.merge.bias", width))

    def _composition(self, letters: str, real: str | None) -> str:
        """The vectors (B, D) that are added to CLS, as of `seqray.models.sequence.Composition`."""
        size = self.letters
        known = self.op("Max", self.op("Sub", letters, self.integers(FIRST_LETTER - 1)), self.integers(0))
        if real is None:
            real = self.op("Equal", letters, letters)
        known = self.op("Where", real, known, self.integers(0))
        known = self.op("Pad", known, self.integers(0, 0, 0, max(COMPOSITION_GAPS)))
        table = np.concatenate([np.zeros((1, size)), np.eye(size)])  # nothing at index 0
        shown = self.op("Gather", self.constant(table), known)  # (B, N + 3, A)
        first = self.slice(shown, 1, 0, self.size(letters, 1))
        features = []
        for part in self.config.composition:
            if part == "whole":
                counts = self.op("ReduceSum", first, self.integers(1), keepdims=0)
                features.append(self._shares(counts, size, WHOLE_FACTOR))
            elif part == "ends":
                left = self.op(
                    "CumSum", self.op("Cast", real, to=TensorProto.INT64), self.constant(1, np.int64)
                )
                right = self.op("Add", self.op("Sub", self.slice(left, 1, -1), left), self.integers(1))
                limits = self.constant(np.array(COMPOSITION_ENDS)[:, None], np.int64)
                sides = (
                    self.op("LessOrEqual", self.unsqueeze(distance, 1), limits) for distance in (left, right)
                )
                near = self.floats(self.op("Concat", *sides, axis=1))  # (B, 6, N)
                shares = self._shares(
                    self.op("MatMul", near, first), size, np.array(2 * END_FACTORS)[:, None]
                )
                features.append(self.op("Reshape", shares, self.integers(0, 2 * len(END_FACTORS) * size)))
            else:
                turned, pairs = self.swap(first), []
                for gap in COMPOSITION_GAPS:
                    end = self.op("Add", self.size(first, 1), self.integers(gap))
                    counts = self.op("MatMul", turned, self.slice(shown, 1, gap, end))
                    flat = self.op("Reshape", counts, self.integers(0, size**2))
                    pairs.append(self._shares(flat, size**2, PAIR_FACTOR))
                features.append(self.op("Concat", *pairs, axis=1))
        count = composition_size(size, self.config.composition)
        joined = self.op("Concat", *features, axis=1)
        hidden = self.activation(self.map("composition.up", joined, 2 * self.width, count))
        return self.map("composition.down", hidden, self.width, 2 * self.width)

    def _shares(self, counts: str, size: int, factor: object) -> str:
        """Scaled shares of counts (..., size)."""
        total = self.op("ReduceSum", counts, self.integers(-1), keepdims=1)
        scaled = self.op("Mul", counts, self.constant(size))
        shares = self.op("Div", scaled, self.op("Max", total, self.constant(1.0)))
        one = self.floats(self.op("Greater", total, self.constant(0.0)))
        return self.op("Mul", self.op("Sub", self.op("Sqrt", shares), one), self.constant(factor))


def _with_zeros(table: Array) -> Array:
    """The same rows after one of zeros, for what has no vector."""
    return np.concatenate([np.zeros_like(table[:1]), table])


def _probabilities(g: Builder, logits: str, card: Card) -> str:
    """Softmax, and the card's isotonic map if there is one."""
    if card.isotonic is None:
        return g.op("Softmax", logits, axis=-1)
    before, after = card.isotonic.before, card.isotonic.after
    sign = np.full((2, 1), -1.0)
    sign[card.positive_index] = 1.0
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
