"""The networks of `seqray.models` as ONNX graphs; a change of these needs the same change here.

B is the batch, N letters, T tokens with CLS, D the width. Decision 14: why torch's exporter is not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from seqray.core import alphabet
from seqray.core.card import Card
from seqray.core.errors import ConfigError
from seqray.core.model_config import (
    DETECTOR_WIDTH,
    LETTERS_PER_TOKEN,
    MATRIX_RANK,
    MERGER_WIDTH,
    RESIDUAL_KERNEL,
    SITE_WIDTH,
    LinearConfig,
    LocatorConfig,
    ModelConfig,
    StemConfig,
)
from seqray.inference.onnx_graph import Array, Graph, NetworkGraph, Value, Weights, frequencies
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import FIRST_LETTER, make_tokenizer

_MAX_POSITION_VALUES = 1 << 26  # a file must not decide how much memory a graph takes
_MAX_LOG_ODDS = 36.0  # beyond, a probability is 1 in float64, see `RisingMap`
_MASKED_SCORE, _MASKED_STATE = -1e9, -1e30  # of a padded key, whose weight is exactly 0; below any state
_TINY = float(np.finfo(np.float32).tiny)


def make_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """Describe all members and the calibration as one graph; without ``masked`` nothing is padded."""
    g, card = Graph(), model.card
    if card.model.is_locator:
        letters, tracks = g.input("letters", "uint8", "batch", "length"), None
        if count := len(card.model.tracks):
            tracks = g.input("tracks", "uint8", "batch", count, "length")
        members = [LocatorGraph(g, card.model, arrays).network(letters, tracks) for arrays in model.arrays()]
        shape = ("batch", "length", len(card.classes))
    else:
        tokens = g.input("tokens", "int64", "batch", "length")
        mask = g.input("mask", "bool", "batch", "length") if masked else None
        graphs = [SequenceGraph(g, card.model, arrays) for arrays in model.arrays()]
        if graphs[0].longest * card.model.d_model > _MAX_POSITION_VALUES:
            what = f"model '{card.name}' reads inputs too long for a graph"
            raise ConfigError(what, remedy="use the engine torch")
        members = [one.network(tokens, mask).op("LogSoftmax", axis=-1) for one in graphs]
        shape = ("batch", len(card.classes))
    total = members[0] if len(members) == 1 else g.op("Sum", *members)
    logits = total * (1 / (len(members) * card.temperature))
    probabilities = logits.op("Sigmoid") if card.model.is_locator else _probabilities(logits, card)
    return g.model({"logits": (logits, shape), "probabilities": (probabilities, shape)})


def _probabilities(logits: Value, card: Card) -> Value:
    """Softmax, and the card's isotonic map if there is one."""
    if card.isotonic is None:
        return logits.op("Softmax", axis=-1)
    before, after = card.isotonic.before, card.isotonic.after
    sign = np.full((2, 1), -1.0)
    sign[card.positive_index] = 1.0
    x = logits @ sign  # (B, 1): log-odds of the positive class
    # Each piece between two knots adds its slope times its part below x. Outside the knots the slope is 1.
    y = x.op("Min", float(before[0])) + float(after[0] - before[0])
    y = y + (x - float(before[-1])).op("Relu")
    if len(before) > 1:
        widths = np.diff(before)
        above = (x - before[None, :-1]).op("Relu")
        y = y + above.op("Min", widths) @ (np.diff(after) / widths)[:, None]
    return (y.op("Clip", -_MAX_LOG_ODDS, _MAX_LOG_ODDS) * sign.T).op("Sigmoid")  # (B, 2)


# --- A transformer of sequences


class SequenceGraph(NetworkGraph):
    """A member of `seqray.models.sequence.SequenceTransformer`."""

    def __init__(self, g: Graph, config: ModelConfig, arrays: Weights) -> None:
        super().__init__(g, config, arrays)
        self.vocabulary = make_tokenizer(config).vocab_size
        self.letters = self.vocabulary - FIRST_LETTER
        self.stride = config.stem.stride if config.stem else 1
        self.longest = 1 - -config.max_length // self.stride  # tokens, CLS included

    def network(self, tokens: Value, mask: Value | None) -> Value:
        """Logits (B, K) of tokens (B, L). Raises ModelFileError for weights that are not read."""
        x, keys = self.embed(tokens, mask)
        config = self.config
        bias = None if keys is None else self.g.where(keys, 0.0, _MASKED_SCORE)[:, None, None]  # (B, 1, 1, T)
        for number in range(config.layers):
            cls_only = config.pooling == ("cls",) and number == config.layers - 1
            x = self.block(f"blocks.{number}", x, bias, cls_only)
        pooled = self.pool(x, keys)
        width = self.width * sum(2 if part == "ends" else 1 for part in config.pooling)
        logits = self.map("head.linear", self.norm("head.norm", pooled, width), config.outputs, width)
        if config.subclasses:
            sums = []  # log of the sum of exponentials: OpenVINO's ReduceLogSumExp sums the rows, too
            for start, end in pairwise(accumulate(config.subclasses, initial=0)):
                highest = (part := logits[:, start:end]).max(1, keep=True)
                sums.append(highest + (part - highest).op("Exp").sum(1, keep=True).op("Log"))
            logits = self.g.concat(*sums, axis=1)
        if config.linear is not None:
            real = None if mask is None else mask[:, 1:]
            logits = self._linear(config.linear, logits, tokens[:, 1:], real)
        self.check_all_read()
        return logits

    def angles(self, width: int) -> npt.NDArray[np.float64]:
        """Angles of sinusoidal and rotary positions: (T, width / 2)."""
        # The products are float32, as those of `seqray.models.attention` are.
        positions = np.arange(self.longest, dtype=np.float32)[:, None]
        return (positions * frequencies(width)).astype(np.float64)

    def block(self, name: str, x: Value, bias: Value | None, cls_only: bool) -> Value:
        """(B, T, D) to (B, T, D), or (B, 1, D)."""
        normed = self.norm(f"{name}.attention_norm", x, self.width)
        attended = self.attention(f"{name}.attention", normed, bias, cls_only)
        return self.feed_forward(name, (x[:, :1] if cls_only else x) + attended)

    def attention(self, name: str, x: Value, bias: Value | None, cls_only: bool) -> Value:
        """softmax(Q Kᵀ / √E + mask) V, heads concatenated, times W_O: (B, Lq, D)."""
        config, heads = self.config, self.config.heads
        groups, width = config.kv_heads or heads, self.width // heads
        begin = [0, heads * width, (heads + groups) * width, (heads + 2 * groups) * width]
        weight = self.weight(f"{name}.qkv.weight", begin[-1], self.width)
        offset = self.weight(f"{name}.qkv.bias", begin[-1])
        q, k, v = (
            source.linear(weight[start:end], offset[start:end]).reshape(0, -1, count, width)
            for source, count, (start, end) in zip(
                (x[:, :1] if cls_only else x, x, x), (heads, groups, groups), pairwise(begin), strict=True
            )
        )  # (B, T, H, E) each
        if config.positions == "rotary":
            angles = self.angles(width)[:, None]  # (T, 1, E/2)
            cos, sin = (self.g.constant(one)[: x.size(1)] for one in (np.cos(angles), np.sin(angles)))
            k = self.rotate(k, cos, sin)
            q = q if cls_only else self.rotate(q, cos, sin)  # the first token is at 0, which rotates nothing
        if groups < heads:
            shared = np.repeat(np.arange(groups), heads // groups)
            k, v = (one.op("Gather", shared, axis=2) for one in (k, v))
        q = (q * width**-0.5).transpose(0, 2, 1, 3)  # (B, H, Lq, E)
        scores = q @ k.transpose(0, 2, 3, 1)
        weights = (scores if bias is None else scores + bias).op("Softmax", axis=-1)
        output = (weights @ v.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3)
        return self.map(f"{name}.out", output.reshape(0, -1, heads * width), self.width, self.width)

    # --- what the head reads ----------------------------------------------------------------------------

    def pool(self, states: Value, mask: Value | None) -> Value:
        """Final states (B, T, D), CLS first, and the mask of real tokens to (B, P D)."""
        letters, first = states[:, 1:], states[:, :, 0]  # (B, T)
        real = (mask if mask is not None else first.equals(first))[:, 1:]
        parts = []
        for part in self.config.pooling:
            if part == "cls":
                parts.append(states[:, 0])
            elif part == "mean":
                parts.append(self._mean(letters, real))
            elif part == "max":
                parts.append(self.g.where(real[:, :, None], letters, _MASKED_STATE).max(1))
            else:  # so many tokens at the beginning, and at the end
                left = real.to("int64").op("CumSum", np.array(1))
                right = left[:, -1:] - left  # tokens that follow
                limit = -(-self.config.ends // self.stride)
                parts += [self._mean(letters, real & near) for near in (left <= limit, right < limit)]
        return parts[0] if len(parts) == 1 else self.g.concat(*parts, axis=1)

    def _mean(self, letters: Value, chosen: Value) -> Value:
        """Mean over the chosen tokens: (B, N, D) to (B, D)."""
        weights = chosen.to("float32")
        hidden = self.g.where(chosen[:, :, None], letters, 0.0)
        return ((weights / weights.sum(1, keep=True))[:, None] @ hidden)[:, 0]

    # --- the embedding ----------------------------------------------------------------------------------

    def embed(self, tokens: Value, mask: Value | None) -> tuple[Value, Value | None]:
        """Vectors (B, T, D) with CLS first, and the mask of the real ones (B, T) if something is padded."""
        config, width, g = self.config, self.width, self.g
        letters, real = tokens[:, 1:], None if mask is None else mask[:, 1:]
        # Number of the context, from 1, 0 for none: (B,)
        context = (tokens[:, 0] - (self.vocabulary - 1)).op("Max", 0)
        gain = None if config.position_gain == "none" else self._gain(context, letters.size(1))
        letter_width = self.vocabulary if config.stem else width
        name = "letters" if config.stem else "table"
        table = self.weight(f"embedding.{name}.weight", self.vocabulary, letter_width)
        vectors = g.constant(table).op("Gather", letters)
        if config.stem is not None:
            if real is not None:  # padding is zero, as beyond the ends
                vectors = vectors * real[:, :, None].to("float32")
            x = self._stem(config.stem, vectors, real, gain)
        else:
            x = vectors if gain is None else vectors * gain
        if config.position_matrix != "none":
            x = x + self._matrix(vectors, letter_width, context, letters.size(1))
        if config.ends:
            x = x + self._sum_over_strides(self._ends(letters, real))
        if config.words:
            x = x + self._sum_over_strides(self._kmers(letters, real))
        shape = g.concat(tokens.size(0), np.array([1, width]), axis=0)
        cls = g.constant(self.weight("cls", width).reshape(1, 1, -1)).op("Expand", shape)
        if config.composition:
            cls = cls + self._composition(letters, real)[:, None]
        x = g.concat(cls, x, axis=1)
        if config.contexts:
            own = _with_zeros(self.weight("contexts", len(config.contexts), width))
            x = x + g.constant(own).op("Gather", context)[:, None]
        if config.positions != "rotary":
            if config.positions == "learned":
                table = self.weight("positions.table.weight", self.longest, width)
            else:
                angles = self.angles(width)
                table = np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(self.longest, width)
            x = x + g.constant(table)[: x.size(1)]
        if mask is None or real is None:
            return x, None
        return x, g.concat(mask[:, :1], real[:, :: self.stride], axis=1)

    def _gain(self, context: Value, count: Value) -> Value:
        """Factors (B or 1, N, D)."""
        contexts = len(self.config.contexts) if self.config.position_gain == "context" else 0
        table = self.weight("gain.table", 1 + contexts, self.config.max_length, self.width)
        shared = self.g.constant(1 + table[:1])[:, :count]
        if not contexts:
            return shared
        return shared + self.g.constant(_with_zeros(table[1:])).op("Gather", context)[:, :count]

    def _matrix(self, vectors: Value, letter_width: int, context: Value, count: Value) -> Value:
        """The terms of `PositionMatrix` for embedded letters (B, N, V): (B, T, D)."""
        contexts = len(self.config.contexts) if self.config.position_matrix == "context" else 0
        table = self.weight("matrix.table", 1 + contexts, self.config.max_length, letter_width, MATRIX_RANK)
        if not contexts:
            shared = self.g.constant(table[0])[:count]
            columns = vectors.op("Einsum", shared, equation="bnv,nvr->bnr")
        else:
            each = np.concatenate([table[:1], table[:1] + table[1:]])  # with no context, and with each
            own = self.g.constant(each).op("Gather", context)[:, :count]
            columns = vectors.op("Einsum", own, equation="bnv,bnvr->bnr")
        # Sums of s neighbors, mapped to D channels, are a convolution of width and stride s.
        up = self.weight("matrix.up.weight", self.width, MATRIX_RANK)
        weight = np.repeat(up[:, :, None], self.stride, axis=2)  # (D, r) -> (D, r, s)
        return self._merge(columns.transpose(0, 2, 1), weight)

    def _merge(self, x: Value, weight: Array, *bias: Array) -> Value:
        """Map each s neighbors of (B, C, N) to a token (B, T, D), by (D, C, s) and (D,)."""
        stride = self.stride
        return x.op("Conv", weight, *bias, pads=[0, stride - 1], strides=[stride]).transpose(0, 2, 1)

    def _ends(self, letters: Value, real: Value | None) -> Value:
        """The terms of `EndMatrix` for letters (B, N): (B, N, D)."""
        filled = letters.equals(letters) if real is None else real
        tables = self.weight("ends.table", 2, self.config.ends * self.vocabulary, self.width)
        first, second = self._placed(self.g.where(filled, letters + 1, 0), filled, tables, self.config.ends)
        return first + second

    def _placed(self, place: Value, filled: Value, tables: Array, reach: int) -> list[Value]:
        """Rows of tables (S, R·M, D) by numbers from 1 to M and R distances to either end; zeros beyond."""
        count, found = filled.to("int64"), []
        left = count.op("CumSum", np.array(1))
        right = count.sum(1, keep=True) - left + 1
        for table, distance in zip(tables, (left, right), strict=False):
            row = (distance - 1) * (len(table) // reach) + place
            found.append(self._rows(self.g.where((place > 0) & (distance <= reach), row, 0), table))
        return found

    def _rows(self, place: Value, table: Array) -> Value:
        """Rows of a table by their number from 1, zeros for 0."""
        return self.g.constant(_with_zeros(table)).op("Gather", place)

    def _kmer_places(self, letters: Value, real: Value | None, longest: int) -> Iterator[Value]:
        """Number the k-mers that begin at letters (B, N), for k from 1: from 1, and 0 for none."""
        codes = letters - FIRST_LETTER
        if real is not None:
            codes = self.g.where(real, codes, -1)
        following = codes.pad(1, 0, longest - 1, -1, rank=2)
        index, known = codes, codes > -1
        for ahead in range(longest):
            if ahead:
                letter = following[:, ahead : letters.size(1) + ahead]
                known = known & (letter > -1)
                index = index * self.letters + letter
            yield self.g.where(known, index + 1, 0)

    def _kmers(self, letters: Value, real: Value | None) -> Value:
        """The terms of `KmerEmbedding` for the k-mers that begin at letters (B, N): (B, N, D)."""
        added = []
        for k, place in enumerate(self._kmer_places(letters, real, self.config.words), start=1):
            if k > 1:
                table = self.weight(f"words.tables.{k - 2}", self.letters**k, self.width)
                added.append(self._rows(place, np.float32(len(table) ** 0.5) * table))
        return added[0] if len(added) == 1 else self.g.op("Sum", *added)

    def _linear(self, config: LinearConfig, logits: Value, letters: Value, real: Value | None) -> Value:
        """Scaled logits (B, K) and those of `LinearPart`."""
        classes, added = self.config.classes, []
        filled = letters.equals(letters) if real is None else real
        longest = max(config.words, *config.placed)
        for k, place in enumerate(self._kmer_places(letters, real, longest), start=1):
            size = self.letters**k
            if k <= config.words:
                added.append(self._rows(place, self.weight(f"linear.counts.{k - 1}", size, classes)))
            if k in config.placed:
                name = f"linear.places.{config.placed.index(k)}"
                tables = self.weight(name, config.sides, config.reach, size, classes)
                tables = tables.reshape(config.sides, -1, classes)
                added += self._placed(place, filled, tables, config.reach)
        if config.steps:
            table = self.weight("linear.steps", self.letters + 1, config.steps, classes)
            codes = self.g.where(filled, letters - FIRST_LETTER, -1)[:, :, None]
            kinds = codes.equals(np.arange(self.letters)).to("int64").sum(1)
            number = self.g.concat(kinds, filled.to("int64").sum(1, keep=True), axis=1)
            row = number.op("Min", config.steps) + np.arange(self.letters + 1) * config.steps
            added.append(self._rows(self.g.where(number > 0, row, 0), table.reshape(-1, classes)))
        scaled = logits * self.weight("linear.scale", 1) + self.weight("linear.bias", classes)
        return self.g.op("Sum", scaled, *(one.sum(1) for one in added))

    def _sum_over_strides(self, vectors: Value) -> Value:
        """As `seqray.models.attention.sum_over_strides`: the average over neighbors times their number."""
        stride = self.stride
        if stride == 1:
            return vectors
        settings: dict[str, Any] = {"kernel_shape": [stride], "strides": [stride], "pads": [0, stride - 1]}
        turned = vectors.transpose(0, 2, 1)
        mean = turned.op("AveragePool", **settings, ceil_mode=0, count_include_pad=1)
        return (mean * float(stride)).transpose(0, 2, 1)

    def _stem(self, stem: StemConfig, vectors: Value, real: Value | None, gain: Value | None) -> Value:
        """Embedded letters (B, N, V) to vectors (B, T, D), by way of (B, channels, N)."""
        present = None if real is None else real[:, None].to("float32")  # (B, 1, N)
        width, branch = self.width, self.width // len(stem.kernels)

        def hide_padding(x: Value) -> Value:
            return x if present is None else x * present

        x = vectors.transpose(0, 2, 1)
        detected = [
            self.convolution(x, f"embedding.detectors.{i}", branch, self.vocabulary, kernel)
            for i, kernel in enumerate(stem.kernels)
        ]
        x = self.activation(self.g.concat(*detected, axis=1))
        for i in range(stem.depth):
            name = f"embedding.residual.{i}"
            x = x + self.activation(self.convolution(hide_padding(x), name, width, width, RESIDUAL_KERNEL))
        if gain is not None:
            x = x * gain.transpose(0, 2, 1)
        # A linear map of s neighbors is a convolution of width and stride s.
        weight = self.weight("embedding.merge.weight", width, stem.stride * width)
        weight = weight.reshape(width, stem.stride, width).transpose(0, 2, 1)  # (D, s·D) -> (D, D, s)
        return self._merge(hide_padding(x), weight, self.weight("embedding.merge.bias", width))

    def _composition(self, letters: Value, real: Value | None) -> Value:
        """The vectors (B, D) that are added to CLS, as of `seqray.models.sequence.Composition`."""
        size = self.letters
        real = letters.equals(letters) if real is None else real
        known = self.g.where(real, (letters - (FIRST_LETTER - 1)).op("Max", 0), 0)
        known = known.pad(1, 0, max(alphabet.COMPOSITION_GAPS), 0, rank=2)
        table = np.concatenate([np.zeros((1, size)), np.eye(size)])  # nothing at index 0
        shown = self.g.constant(table).op("Gather", known)  # (B, N + 3, A)
        first = shown[:, : letters.size(1)]
        features = []
        for part in self.config.composition:
            if part == "whole":
                features.append(_shares(self.g, first.sum(1), size, alphabet.WHOLE_FACTOR))
            elif part == "ends":
                left = real.to("int64").op("CumSum", np.array(1))
                right = left[:, -1:] - left + 1
                limits = np.array(alphabet.COMPOSITION_ENDS)[:, None]
                sides = (distance[:, None] <= limits for distance in (left, right))
                near = self.g.concat(*sides, axis=1).to("float32")  # (B, 6, N)
                factors = np.array(2 * alphabet.END_FACTORS, dtype=float)[:, None]
                shares = _shares(self.g, near @ first, size, factors)
                features.append(shares.reshape(0, 2 * len(alphabet.END_FACTORS) * size))
            else:
                turned, pairs = first.transpose(0, 2, 1), []
                for gap in alphabet.COMPOSITION_GAPS:
                    counts = turned @ shown[:, gap : first.size(1) + gap]
                    pairs.append(_shares(self.g, counts.reshape(0, size**2), size**2, alphabet.PAIR_FACTOR))
                features.append(self.g.concat(*pairs, axis=1))
        count = alphabet.composition_size(size, self.config.composition)
        joined = self.g.concat(*features, axis=1)
        hidden = self.activation(self.map("composition.up", joined, 2 * self.width, count))
        return self.map("composition.down", hidden, self.width, 2 * self.width)


def _shares(g: Graph, counts: Value, size: int, factor: float | npt.NDArray[np.floating]) -> Value:
    """Scaled shares of counts (..., size)."""
    total = counts.sum(-1, keep=True)
    shares = counts * float(size) / total.op("Max", 1.0)
    return (shares.op("Sqrt") - (total > 0.0).to("float32")) * factor


def _with_zeros(table: Array) -> Array:
    """The same rows after one of zeros, for what has no vector."""
    return np.concatenate([np.zeros_like(table[:1]), table])


# --- A locator


class LocatorGraph(NetworkGraph):
    """A member of `seqray.models.locator.LocatorTransformer`, for any number of whole tokens."""

    def network(self, letters: Value, tracks: Value | None) -> Value:
        """Smoothed logits (B, L, K) of letters (B, L), 0 to 3 for ACGT and above for unknown, and tracks.

        Tracks (B, G, L) are bytes, 255 stands for 1; zeros where no genes are known.
        """
        config = self.config
        locator = config.locator or LocatorConfig()
        channels, classes = 4 + len(locator.tracks), config.classes
        known = letters.to("int64")[:, None].equals(np.arange(4)[:, None]).to("float32")  # (B, 4, L)
        x = known if tracks is None else self.g.concat(known, tracks.to("float32") / 255.0, axis=1)
        embedded = x
        x = self.activation(self.convolution(x, "stem.detect", locator.stem, channels, DETECTOR_WIDTH))
        shape = self.width, locator.stem, MERGER_WIDTH
        x = self.convolution(x, "stem.merge", *shape, stride=LETTERS_PER_TOKEN).transpose(0, 2, 1)
        place = self.g.op("Range", 0.0, x.op("Shape")[1].to("float32"), 1.0)[:, None, None]
        angles = place * frequencies(self.width // config.heads)  # (T, 1, E/2)
        rotation, near = (angles.op("Cos"), angles.op("Sin")), self._near(x, locator.window)
        for number in range(config.layers):
            name = f"blocks.{number}"
            normed = self.norm(f"{name}.attention_norm", x, self.width)
            x = x + self._attention(f"{name}.attention", normed, rotation, near, locator.window)
            x = self.feed_forward(name, x)
        x = self.norm("norm", x, self.width)
        # The head also predicts the tracks of each letter, which are for training.
        rows, width = LETTERS_PER_TOKEN, classes + len(locator.tracks)
        weight = self.weight("head.weight", rows * width, self.width).reshape(rows, width, -1)[:, :classes]
        bias = self.weight("head.bias", rows * width).reshape(rows, width)[:, :classes]
        logits = x.linear(weight.reshape(rows * classes, -1), bias.reshape(-1)).reshape(0, -1, classes)
        if locator.no_gene_ahead:
            logits = logits + self._without_gene(embedded, locator) * np.array(locator.no_gene_ahead)
        self.check_all_read()
        return self._smooth(logits, locator)

    def _near(self, x: Value, window: int) -> Value:
        """Whether the queries of each block of W tokens attend to keys: (n, 1, W, 3W)."""
        count = x.op("Shape")[1]
        start = self.g.op("Range", 0, count, window)[:, None, None, None]
        query, key = np.arange(window)[:, None], np.arange(-window, 2 * window)
        place = start + key
        apart = np.abs(query - key) <= window
        return (place >= 0) & (place < count) & apart

    def _attention(
        self, name: str, x: Value, rotation: tuple[Value, Value], near: Value, window: int
    ) -> Value:
        """As `WindowedAttention`: each block of W queries, and the keys of it and of its two neighbors."""
        heads, width = self.config.heads, self.width // self.config.heads
        qkv = self.map(f"{name}.qkv", x, 3 * self.width, self.width).reshape(0, 0, 3 * heads, width)
        turned = self.rotate(qkv[:, :, : 2 * heads], *rotation)
        rows = self.g.concat(turned, qkv[:, :, 2 * heads :], axis=2)  # (B, T, 3H, E)
        blocks = rows.pad(1, window, -x.size(1) % window + window, rank=4)
        blocks = blocks.reshape(0, -1, window, 3 * heads * width).reshape(0, 0, 0, 3, heads, width)
        around = self.g.concat(blocks[:, :-2], blocks[:, 1:-1], blocks[:, 2:], axis=2)  # (B, n, 3W, 3, H, E)
        q = blocks[:, 1:-1, :, 0].transpose(0, 1, 3, 2, 4) * width**-0.5  # (B, n, H, W, E)
        scores = q @ around[:, :, :, 1].transpose(0, 1, 3, 4, 2)
        weights = self.g.where(near, scores, _MASKED_SCORE).op("Softmax", axis=-1)
        output = (weights @ around[:, :, :, 2].transpose(0, 1, 3, 2, 4)).transpose(0, 1, 3, 2, 4)
        joined = output.reshape(0, -1, 1, self.width)[:, :, 0][:, : x.size(1)]
        return self.map(f"{name}.out", joined, self.width, self.width)

    def _without_gene(self, embedded: Value, locator: LocatorConfig) -> Value:
        """Letters where genes are known and none begins soon ahead, (B, L, 1), as in the locator."""
        known, ahead = (embedded[:, 4 + locator.tracks.index(name)] for name in ("known", "to-start"))
        known = known.pad(1, 0, self.config.letters_read, rank=2)[:, self.config.letters_read :]
        return (known * ahead.equals(0.0).to("float32"))[:, :, None]

    def _smooth(self, logits: Value, locator: LocatorConfig) -> Value:
        """As `Smoothing`; where torch has log1p and expm1, inverse tangent and tangent are as exact."""
        if not locator.smoothing and not locator.region:
            return logits
        part = (-logits.op("Abs")).op("Exp")
        rows = logits.op("Max", 0.0) + (part / (part + 2.0)).op("Atanh") * 2.0  # -log(1 - p)
        rows = rows.transpose(0, 2, 1)
        kernel, distance = _epanechnikov(locator.smoothing)
        kernel = kernel / (kernel * np.exp(-0.5 * (distance / SITE_WIDTH) ** 2)).sum()
        here = self._weighted_sum(rows, kernel)
        log_here, log_none = _log_of_any(here), -here
        if locator.region:
            near = self._weighted_sum(rows, _epanechnikov(locator.region)[0] / (2.5066 * SITE_WIDTH))
            both = log_here - near
            highest = log_none.op("Max", both)
            log_none = highest + ((log_none - highest).op("Exp") + (both - highest).op("Exp")).op("Log")
            log_here = log_here + _log_of_any(near)
        return (log_here - log_none).transpose(0, 2, 1)

    def _weighted_sum(self, rows: Value, kernel: npt.NDArray[np.floating]) -> Value:
        """Sum around each letter of (B, K, L), above 0."""
        weight = np.repeat(kernel[None, None], self.config.classes, axis=0)
        summed = rows.op("Conv", weight, pads=[len(kernel) // 2] * 2, group=self.config.classes)
        return summed.op("Max", _TINY)


def _epanechnikov(reach: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    distance = np.arange(-reach, reach + 1)
    return 1 - (distance / (reach + 1)) ** 2, distance


def _log_of_any(rate: Value) -> Value:
    """log(1 - exp(-rate))."""
    tangent = (rate * 0.5).op("Tanh")
    return (tangent * 2.0 / (tangent + 1.0)).op("Max", _TINY).op("Log")
