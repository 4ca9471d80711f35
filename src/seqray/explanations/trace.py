"""A forward pass that keeps what each attention layer read and, with gradients, the output of its heads.

Hooks are set on a `twin` of the network, so that a pass disturbs no other one, in this thread or another.
"""

from __future__ import annotations

import copy
import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import singledispatchmethod
from typing import Any, NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from seqray.core.errors import ConfigError, require_type
from seqray.core.host import own_settings
from seqray.core.text import counted
from seqray.models.alignment import AxialTransformer
from seqray.models.attention import (
    SAFE_SUMS,
    MultiHeadAttention,
    Rotation,
    WindowedAttention,
    attention_weights,
    scaled_dot_product,
)
from seqray.models.axial import ColumnAttention, RowAttention
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import BackboneClassifier, Network, OwnNetwork, SequenceTransformer

CHUNK_BYTES = 3 << 20  # of the weights at a time: they stay in the processor's cache
LINE_BYTES = 8 << 20  # the same for the lines of an alignment
KEPT_BYTES = 8 << 20  # of what is kept of a layer; for longer sequences it is computed again
MIN_QUERIES = 8

Index = tuple[int | slice, slice]
Module = TypeVar("Module", bound=nn.Module)

# --- Attention layers, as rollout reads them: their weights, and where the queries and keys are


class WeightBlock(NamedTuple):
    """Attention weights of some queries."""

    terms: Tensor  # (n, H, q, k), the weights times the sums; (1, H, q, k) where all n lines share them
    sums: Tensor | None  # (n, H, q) of the rows of the terms; None where they are 1
    queries: Index  # where the n·q queries and the n·k keys are in `AttentionLayer.lines` of the tokens
    keys: Index
    values: Tensor | None  # (n, H, k, E) of the keys; None where the network does not show them

    @property
    def weights(self) -> Tensor:
        """The weights, of the shape of the terms; each row sums to 1."""
        return self.terms if self.sums is None else self.terms / self.sums[..., None]


class AttentionLayer(ABC):
    """One attention layer of a forward pass, made of its module and the arguments of the call."""

    one_line = True
    """Whether the tokens of a record are one line (B, T), not a grid, and all rows are known to sum to 1."""

    tokens: tuple[int, ...]
    """Shape of the tokens, (B, T) or (B, R, C); nothing where queries and keys are different ones."""
    heads: Tensor | None = None
    """Output of the heads, side by side, before the output matrix: what gradients are taken of."""

    @abstractmethod
    def blocks(self) -> Iterator[WeightBlock]:
        """Yield the weights of some queries at a time, without gradients."""

    @abstractmethod
    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        """Gradient by the weights of a block, (n, H, q, k), from the slope: that by `heads`."""

    def lines(self, tokens: Tensor) -> Tensor:
        """View (B, ..., D) so that attention runs along the axis before the last index of a block."""
        return tokens

    def read(self, slope: Tensor) -> Tensor:
        """Which tokens' outputs a number is read from, bool, by its slope: that by `heads`."""
        result = torch.zeros(self.tokens, dtype=torch.bool, device=slope.device)
        for block in self.blocks():
            self.lines(result)[block.queries] = self.weight_gradient(slope, block).any(-1).any(1)
        return result

    def added_norm(self) -> Callable[[WeightBlock], Tensor]:
        """As `SequenceLayer.added_norm`."""
        what = "value-rollout needs the values of each head, which this network or backbone hides"
        remedy = "use rollout or grad-rollout; layers of nn.MultiheadAttention show them"
        raise ConfigError(what, remedy=remedy)


class SequenceLayer(AttentionLayer):
    """A layer in which the tokens (B, T, D) of a record attend to each other along one line."""

    def __init__(
        self,
        attention: Any,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        first_query_only: bool = False,
        **_: bool,
    ) -> None:
        self.attention, self.x, self.mask, self.rotation = attention, x, mask, rotation
        self.cls_only, self.tokens = first_query_only, tuple(x.shape[:-1])
        self.projected: Tensor | None = None

    def states(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, Lq, E), keys and values (B, H, T, E), as the layer computes them."""
        if self.projected is not None:
            return self.attention.split_heads(self.projected, self.rotation)
        return self.attention.project(self.x.detach(), self.rotation, first_query_only=self.cls_only)

    def attended(self, queries: Index) -> Tensor | None:
        """Which keys some queries of some records attend to, bool, to fit (n, H, q, T); None for all."""
        return None if self.mask is None else self.mask[queries[0], None, None, :]

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """Cut the records and their queries so that the weights of one block stay small."""
        q, k, v = (part.float() for part in self.states())
        most = max(MIN_QUERIES, CHUNK_BYTES // (4 * k.shape[1:3].numel()))
        for some in _cuts(len(q), max(1, most // q.shape[2])):
            for rows in _cuts(q.shape[2], most):
                # No name holds the block, so that the next one takes the same memory, which is in the cache.
                yield WeightBlock(
                    *_softmax_terms(q[some, :, rows], k[some], self.attended((some, rows))),
                    (some, rows),
                    (some, slice(None)),
                    v[some],
                )

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        slope = slope.float().unflatten(-1, (self.attention.heads, -1))  # (B, Lq, H, E)
        return _slope_of_weights(slope[block.queries], block)

    def added_norm(self) -> Callable[[WeightBlock], Tensor]:
        """Norm of what each key adds to the output of each query, output matrix included: (B, q, T).

        ‖Σ_h A_h[q, k] u_h[k]‖ with u_h[k] = v_h[k] W_O,h, by way of the products u_h[k] · u_g[k].
        """
        with torch.no_grad():
            v = self.states()[2].float()
        columns = self.attention.out.weight.detach().float().unflatten(1, (-1, self.attention.head_width))
        return norm_of_sum(torch.einsum("bhte,dhe->bhtd", v, columns))  # columns (D, H, E)


def norm_of_sum(added: Tensor) -> Callable[[WeightBlock], Tensor]:
    """Norm of the sum over heads of weights times what each key adds, (B, H, T, D), for blocks of records."""
    added = added.detach()
    gram = torch.einsum("bhtd,bgtd->bhgt", added, added)

    def norm(block: WeightBlock) -> Tensor:
        squared = torch.einsum("bhct,bgct,bhgt->bct", block.weights, block.weights, gram[block.keys[0]])
        return squared.clamp(min=0).sqrt()

    return norm


class WindowedLayer(SequenceLayer):
    """A layer in which each token attends to those within a window around it."""

    def states(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.attention.project(self.x.detach(), self.rotation)

    def attended(self, queries: Index) -> Tensor:
        key = torch.arange(self.x.shape[1], device=self.x.device)
        return (key[queries[1], None] - key).abs() <= self.attention.window


class AxialLayer(AttentionLayer):
    """A step of attention along columns or rows (B, R, C, D); its heads are in the order of its lines."""

    one_line = False

    def __init__(
        self,
        module: ColumnAttention | RowAttention,
        x: Tensor,
        row_mask: Tensor | None = None,
        column_mask: Tensor | None = None,
        rotation: Rotation | None = None,
        **_: bool,
    ) -> None:
        self.module, self.x, self.rotation, self.tokens = module, x, rotation, tuple(x.shape[:-1])
        self.row_mask, self.column_mask = row_mask, column_mask

    def lines(self, tokens: Tensor) -> Tensor:
        return tokens if isinstance(self.module, RowAttention) else tokens.transpose(1, 2)

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """Take some lines of one alignment at a time."""
        attention = self.module.attention
        real = self.column_mask if isinstance(self.module, RowAttention) else self.row_mask
        for b, cells in enumerate(self.lines(self.x.detach())):  # (N, L, D)
            mask, shared = None if real is None else real[b], self._shared_weights(b)
            step = max(1, LINE_BYTES // (4 * attention.heads * cells.shape[1] ** 2))
            for start in range(0, len(cells), step):
                lines = slice(start, min(start + step, len(cells)))
                q, k, v = attention.project(cells[lines], self.rotation)
                weights = scaled_dot_product(q, k, v, mask)[1] if shared is None else shared
                yield WeightBlock(weights, None, (b, lines), (b, lines), v)

    def _shared_weights(self, b: int) -> Tensor | None:
        """(1, H, C, C) weights that all rows of an alignment share where they are tied."""
        if not isinstance(self.module, RowAttention) or not self.module.tied:
            return None
        rows = None if self.row_mask is None else self.row_mask[b : b + 1]
        columns = None if self.column_mask is None else self.column_mask[b]
        folded = self.module.fold(self.x.detach()[b : b + 1], rows, self.rotation)
        return scaled_dot_product(*folded, columns)[1]

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        lines, (_, N, L) = slope.unflatten(0, (len(self.x), -1)), self.lines(self.x).shape[:3]
        lines = F.pad(lines, (0, 0, 0, L - lines.shape[2], 0, N - lines.shape[1]))  # where CLS is alone
        heads = lines.unflatten(-1, (-1, self.module.attention.head_width))  # (B, N, L, H, E)
        return _slope_of_weights(heads[block.queries], block)


class StoredLayer(AttentionLayer):
    """A layer that holds weights (B, H, Lq, L), or (B, H, N, L, L) of N lines of a grid, 1 if shared.

    ``checked`` is false from outside. ``added`` (B, H, L, D) is what a head adds of each key.
    """

    def __init__(
        self,
        weights: Tensor,
        added: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        columns: bool = False,
        checked: bool = True,
    ) -> None:
        self.weights = self.heads = weights  # gradients are taken of the weights themselves
        self.added, self.mask, self.columns, self.one_line = added, mask, columns, checked
        self.tokens = (len(weights), weights.shape[-1]) if weights.shape[-2] == weights.shape[-1] else ()

    def lines(self, tokens: Tensor) -> Tensor:
        return tokens.transpose(1, 2) if self.columns else tokens

    @torch.no_grad()
    def blocks(self) -> Iterator[WeightBlock]:
        """All weights at once, or those of one grid."""
        every = slice(None)
        if self.weights.dim() == 5:
            places = [(b, every) for b in range(len(self.weights))]
        else:
            places = [(every, slice(self.weights.shape[2]))]  # CLS alone, or all tokens
        for queries in places:
            weights = self._part(self.weights.detach(), queries)
            weights = weights if weights.dtype == torch.float64 else weights.float()
            if self.mask is not None:
                weights = weights * self.lines(self.mask)[queries[0]][:, None, None]
            yield WeightBlock(weights, None, queries, (queries[0], every), None)

    def _part(self, weights: Tensor, index: Index) -> Tensor:
        """What belongs to the queries, lines first: (n, H, q, k)."""
        return weights[index[0]] if weights.dim() == 4 else weights[index[0]].transpose(0, 1)

    def weight_gradient(self, slope: Tensor, block: WeightBlock) -> Tensor:
        return self._part(slope, block.queries)

    def added_norm(self) -> Callable[[WeightBlock], Tensor]:
        return super().added_norm() if self.added is None else norm_of_sum(self.added)


LAYERS: dict[type[nn.Module], Callable[..., AttentionLayer]] = {
    MultiHeadAttention: SequenceLayer,
    WindowedAttention: lambda module, x, rotation, **_: WindowedLayer(module, x, rotation=rotation),
    ColumnAttention: AxialLayer,
    RowAttention: AxialLayer,
}
"""How an attention layer is described: by its module and the arguments of the call."""


def _cuts(length: int, most: int) -> Iterator[slice]:
    """As few cuts as may be, of the same size."""
    step = math.ceil(length / math.ceil(length / most))
    return (slice(start, min(start + step, length)) for start in range(0, length, step))


def _softmax_terms(q: Tensor, k: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Exponentials of the scores and their row sums; the weights where a sum nears the limits of float32."""
    q = q / math.sqrt(q.shape[-1])
    terms = q @ k.mT
    if mask is not None:
        terms.masked_fill_(~mask, float("-inf"))
    sums = terms.exp_().sum(dim=-1)
    low, high = (float(value) for value in torch.aminmax(sums))
    if SAFE_SUMS[0] < low and high < SAFE_SUMS[1]:
        return terms, sums
    return attention_weights(q @ k.mT, mask), None


def _slope_of_weights(slope: Tensor, block: WeightBlock) -> Tensor:
    """dy/dA[h, q, k] = dy/dO[h, q] · v[h, k], as O = A V: slope (n, q, H, E) to (n, H, q, k)."""
    assert isinstance(block.values, Tensor)
    return slope.transpose(1, 2) @ block.values.mT


# --- The attention of any network of torch, seen while it runs


class AttentionWatch(TorchFunctionMode):
    """While entered, attention of this thread is computed by weights, which are kept in ``seen``.

    Others compute by `torch.nn.MultiheadAttention` or `scaled_dot_product_attention`.
    """

    def __init__(self, gradients: bool = False) -> None:
        super().__init__()
        self.gradients, self.paused = gradients, False  # within a layer that is watched itself
        self.seen: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.scaled_dot_product_attention and not self.paused:
            return self._attend(*args, **(kwargs or {}))
        if func is F.multi_head_attention_forward:
            return self._attend_by_heads(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _keep(self, weights: Tensor, heads: int, added: Tensor | None = None) -> Tensor:
        """Keep weights (..., Lq, L), and give them back in their shape, on the way to the output."""
        kept = weights.reshape(-1, heads, *weights.shape[-2:])
        if self.gradients and not kept.requires_grad:
            kept = kept.detach().requires_grad_()
        self.seen.append(StoredLayer(kept, added, checked=False))
        return kept.reshape(weights.shape)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, *rest: Any, **options: Any) -> Tensor:
        """`scaled_dot_product_attention`: with unit vectors for values, its output is the weights."""
        units = torch.eye(key.shape[-2], dtype=value.dtype, device=value.device)
        units = units.expand(*value.shape[:-2], -1, -1)
        options |= dict(zip(("attn_mask", "dropout_p", "is_causal"), rest, strict=False)) | {"dropout_p": 0.0}
        weights = F.scaled_dot_product_attention(query, key, units, **options)
        weights = self._keep(weights, weights.shape[1] if weights.dim() > 3 else 1)
        if options.get("enable_gqa"):
            value = value.repeat_interleave(weights.shape[-3] // value.shape[-3], dim=-3)
        return weights @ value

    def _attend_by_heads(
        self, query: Tensor, key: Tensor, value: Tensor, width: int, heads: int, *rest: Any, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """`multi_head_attention_forward`, whose own weights are not on the way to its output."""
        named = {"need_weights": True, "average_attn_weights": True} | options
        shown = named | {"need_weights": True, "average_attn_weights": False}
        given, weights = F.multi_head_attention_forward(query, key, value, width, heads, *rest, **shown)
        assert isinstance(weights, Tensor)
        joint, joint_bias, _, _, _, _, out, out_bias = rest
        if weights.shape[-1] != len(value):  # a key of its own (`add_bias_kv`) is no token
            self._keep(weights, heads)
            return given, weights.mean(dim=-3) if named["average_attn_weights"] else weights
        if not named["need_weights"]:
            weights = weights.nan_to_num(0.0)  # as the fused kernel answers a query without keys
        matrix = options["v_proj_weight"] if options.get("use_separate_proj_weight") else joint.chunk(3)[2]
        values = F.linear(value, matrix, None if joint_bias is None else joint_bias.chunk(3)[2])
        values = values.unflatten(-1, (heads, -1)).movedim(0, -2)  # (L, B, D) -> (B, H, L, E)
        added = torch.einsum("...hte,dhe->...htd", values.detach(), out.detach().unflatten(1, (heads, -1)))
        weights = self._keep(weights, heads, added.reshape(-1, *added.shape[-3:]))
        joined = (weights @ values).movedim(-2, 0).flatten(-2)
        answer = F.linear(joined, out, out_bias)
        if not named["need_weights"]:
            return answer, None
        return answer, weights.mean(dim=-3) if named["average_attn_weights"] else weights


# --- A forward pass, and what was seen of it


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A forward pass."""

    logits: Tensor  # (B, K); for any module its ``logits``, or else its first output
    layers: tuple[Any, ...]  # attention layers, first layer first
    # (B, N, width) of all tokens but CLS, before the stem or the positions; (B, R, C, D) of alignments and
    # (B, L, E) of backbones, of all tokens; of any module its input
    embedded: Tensor
    # share of each token in what the head reads: (B, T), or (B, R, C) for alignments, sums to 1; of any
    # module the first token, and whether that is all, or None where no gradients of logits (B, K) tell
    start: Tensor
    complete: bool | None = True
    read: Tensor | None = None  # the tokens (B, T) that the logits are read from, where gradients tell

    def __repr__(self) -> str:
        shapes = f"logits {tuple(self.logits.shape)}, embedded {tuple(self.embedded.shape)}"
        return f"Trace({counted(len(self.layers), 'attention layer')}, {shapes})"


def trace(
    network: nn.Module,
    tokens: Tensor | Mapping[str, Any],
    *masks: Any,
    gradients: bool = False,
    attention: bool = True,
    embedded: Tensor | None = None,
    site: int = 0,
    **named: Any,
) -> Trace:
    """Run a network without dropout and keep what its attention layers read; the network is not touched.

    Parameters
    ----------
    network
        Of sequences, on a backbone, of alignments, or a locator; or any module whose layers attend by
        `torch.nn.MultiheadAttention`, `torch.nn.functional.scaled_dot_product_attention` or the layers of
        seqray, or that takes ``output_attentions`` as the models of transformers do.
    tokens
        (B, L) int64, CLS first, on the device of the network; (B, R, C) for alignments; codes of letters
        (B, L) for a locator; for any module its first argument, or a mapping of the names of arguments to
        what is given for them.
    *masks
        (B, L) bool, True at real tokens; nothing where nothing is padded. Two masks, (B, R) of the rows and
        (B, C) of the columns, for alignments; none for a backbone; gene tracks (B, T, L) for a locator; the
        further arguments of any module.
    gradients
        Record the graph from the embedded tokens on, for `torch.autograd.grad`.
    attention
        Keep the attention layers.
    embedded
        (B, N, width) to put in place of the embedded tokens; not for alignments.
    site
        Of a locator: the letter whose scores are traced.
    **named
        Further arguments of the network, by name.

    Returns
    -------
    Trace
        ``logits``, what the network gives: logits (B, K), or the first output of any module; ``layers``, the
        attention of each layer, for `rollout`, `grad_rollout` and `value_rollout`.

    Raises
    ------
    ConfigError
        If no attention of a module was seen, or some between different tokens.
    """
    require_type(network, nn.Module, "give the network itself, a module of torch")
    with own_settings(types=isinstance(network, Network)), torch.set_grad_enabled(gradients):
        watched = _Pass(twin(network), gradients, attention, embedded, site)
        given = map(_recordable, (tokens, *masks))
        logits, start = watched.run(watched.network, *given, **_recordable(named))
        known = watched.known or (isinstance(tokens, Tensor) and _tokens_read(network))
        read = None if known else _tokens_with_gradients(logits, watched.layers)
        complete = True if known else None if read is None else not read[:, 1:].any()
    assert isinstance(watched.embedded, Tensor)
    return Trace(logits, tuple(watched.layers), watched.embedded, start, complete, read)


def _tokens_read(network: nn.Module) -> Callable[[Tensor], Tensor] | None:
    """How a network of the user's says which tokens its answer is read from, if it does."""
    own = network.module if isinstance(network, OwnNetwork) else network
    return getattr(own, "tokens_read", None)


def _tokens_with_gradients(logits: Tensor, layers: Sequence[AttentionLayer]) -> Tensor | None:
    """Which tokens (B, T) the logits (B, K) are read from, as gradients tell; None if they don't."""
    if not layers or not logits.requires_grad or logits.dim() != 2:
        return None
    heads: Any = layers[-1].heads
    [slope] = torch.autograd.grad(logits[:, 0].sum(), heads, retain_graph=True, allow_unused=True)
    return None if slope is None else layers[-1].read(slope).flatten(1)


def twin(module: Module, configs: dict[int, Any] | None = None) -> Module:
    """Copy of a network with the same weights, in evaluation mode, whose hooks and settings are its own."""
    configs = {} if configs is None else configs
    copied = object.__new__(type(module))
    parts: dict[str, Any] = dict(vars(module))
    for name, value in vars(module).items():
        if "_hooks" in name and isinstance(value, dict):
            parts[name] = value.copy()
        elif name in ("_parameters", "_buffers"):
            parts[name] = _recordable(value)
        elif name == "config":
            parts[name] = configs.setdefault(id(value), copy.copy(value))
        elif name == "_held":  # of `BackboneClassifier`: no registered part
            parts[name] = tuple(twin(held, configs) for held in value)
    children = module._modules.items()
    parts["_modules"] = {name: None if child is None else twin(child, configs) for name, child in children}
    vars(copied).update(parts, training=False)
    return copied


def embedding_of(network: Any) -> nn.Module:
    """The table that turns the tokens of a network into vectors."""
    if isinstance(network, BackboneClassifier):
        return network.encoder.get_input_embeddings()
    if not (tables := [module for module in network.modules() if isinstance(module, nn.Embedding)]):
        what = f"network '{network.config.network}' has no nn.Embedding"
        raise ConfigError(what, remedy="use ism or occlusion")
    return tables[0]


def _recordable(given: Any) -> Any:
    """A tensor, or a mapping of some, that autograd can keep, as it can't those made in inference mode."""
    if isinstance(given, Mapping):
        return {name: _recordable(value) for name, value in given.items()}
    return given.clone() if isinstance(given, Tensor) and given.is_inference() else given


class _Pass:
    """Hooks on the attention layers and the embedding of a network, and what they saw of one pass."""

    def __init__(
        self, network: nn.Module, gradients: bool, attention: bool, embedded: Tensor | None, site: int
    ) -> None:
        self.network, self.gradients, self.attention, self.site = network, gradients, attention, site
        self.embedded, self.watch = embedded, AttentionWatch(gradients)
        self.layers = self.watch.seen
        self.known = isinstance(network, Network) and not isinstance(network, OwnNetwork)
        if attention:
            self._watch_attentions(network)
        if isinstance(network, Network) and not isinstance(network, LocatorTransformer):
            table = network.embedding if isinstance(network, AxialTransformer) else embedding_of(network)
            table.register_forward_hook(self._exchange_embedding)

    @singledispatchmethod
    def run(self, network: nn.Module, tokens: Any, *others: Any, **more: Any) -> tuple[Tensor, Tensor]:
        """Logits, and the share of each token in what the head reads; of any module, the first token."""
        inputs, named = ((), {**tokens, **more}) if isinstance(tokens, Mapping) else ((tokens, *others), more)
        with self.watch if self.attention else nullcontext():
            output = network(*inputs, **named)
        if not self.attention:
            return output.logits, output.logits
        layers, argument = self.layers, "output_attentions"  # of the models of transformers
        offered = argument in inspect.signature(network.forward).parameters
        if not layers and (offered or hasattr(getattr(network, "config", None), argument)):
            output = network(*inputs, **named, output_attentions=True)
            layers += [StoredLayer(weights, checked=False) for weights in output.attentions or ()]
        if not layers:
            remedy = "give its weights to seqray.rollout, or load a model of transformers as 'eager'"
            name = type(network).__name__
            if isinstance(network, OwnNetwork):
                name, remedy = f"network '{network.config.network}'", "use ism or input-x-gradient"
            raise ConfigError(f"no attention was seen in {name}", remedy=remedy)
        shapes = {layer.tokens for layer in layers}
        if len(shapes) > 1 or () in shapes:
            remedy = "trace the part of the network whose tokens attend to each other"
            raise ConfigError("attention between different tokens was seen", remedy=remedy)
        if self.embedded is None:
            values = [tokens, *named.values()]
            self.embedded = next(value for value in values if isinstance(value, Tensor))
        if not isinstance(output, Tensor):
            output = output.logits if hasattr(output, "logits") else output[0]
        start = first_token(output.detach(), *layers[0].tokens)
        if (read := _tokens_read(network)) and isinstance(tokens, Tensor):
            shares = read(tokens).to(start)
            start = shares / shares.sum(dim=-1, keepdim=True)
        return output, start

    @run.register
    def _(
        self, network: SequenceTransformer, tokens: Tensor, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        x, real, rotation = network.embed(tokens, mask)
        at_cls = first_token(x, *x.shape[:2])
        states, _ = network.read_states(x, real, rotation)
        start = at_cls if network.pooling.cls_only else network.pooling.shares(states.detach(), real)
        return network.answer(states, real, tokens, mask).logits, start

    @run.register
    def _(self, network: AxialTransformer, tokens: Tensor, *masks: Tensor | None) -> tuple[Tensor, Tensor]:
        x, context = network.embed(tokens, *masks)
        for block in network.blocks:
            x, _ = block(x, context)
        logits = network.answer(x, context, tokens, *masks).logits
        return logits, first_token(logits, *tokens.shape)

    @run.register
    def _(self, network: BackboneClassifier, tokens: Tensor) -> tuple[Tensor, Tensor]:
        # The vectors are exchanged inside the encoder, which still reads the tokens: some encoders scale by
        # them, or count positions by their padding, and answer differently to ``inputs_embeds``.
        pooling = network.pooling_weights(tokens)
        states, steps = network.encode(tokens, return_attention=self.attention)
        self.layers += [StoredLayer(step.weights) for step in steps]
        return network.classify_states(states, tokens), pooling

    @run.register
    def _(
        self, network: LocatorTransformer, letters: Tensor, tracks: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        vectors = network.embed(letters, tracks) if self.embedded is None else self.embedded
        self.embedded = vectors.detach().requires_grad_(self.gradients)
        logits = network.scores(network.locate(self.embedded))[:, self.site]
        start = vectors.new_zeros(len(letters), letters.shape[1] // network.stem.stride)
        tokens = (self.site + network.smoothing.distance) // network.stem.stride
        start.index_add_(1, tokens, network.smoothing.shares().expand(len(letters), -1))
        return logits, start

    def _watch_attentions(self, module: nn.Module) -> None:
        """Watch the attention layers, those within another one left out."""
        if type(module) not in LAYERS:
            for child in module.children():
                self._watch_attentions(child)
            return
        module.register_forward_pre_hook(self._see_call, with_kwargs=True)
        module.register_forward_hook(lambda *_: setattr(self.watch, "paused", False))
        if isinstance(module, MultiHeadAttention):
            module.qkv.register_forward_hook(self._see_projection)
        if self.gradients:
            output = module.get_submodule("attention.out" if hasattr(module, "attention") else "out")
            output.register_forward_pre_hook(self._see_heads)

    def _see_call(self, module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        layer: Any = LAYERS[type(module)](module, *arguments, **named)
        if not self.known:
            layer.x = layer.x.detach().clone()  # which others may write into later
        self.layers.append(layer)
        self.watch.paused = True

    def _see_projection(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> None:
        if output.nbytes <= KEPT_BYTES:
            self.layers[-1].projected = output.detach()

    def _see_heads(self, _: nn.Module, arguments: tuple[Any, ...]) -> Tensor:
        heads = arguments[0] if arguments[0].requires_grad else arguments[0].detach().requires_grad_()
        self.layers[-1].heads = heads
        return heads

    def _exchange_embedding(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        vectors = output if self.embedded is None else self.embedded
        self.embedded = vectors.detach().requires_grad_(self.gradients)
        return self.embedded.clone()  # an encoder may write into what its embedding gives


def first_token(like: Tensor, *shape: int) -> Tensor:
    start = like.new_zeros(shape, dtype=torch.promote_types(like.dtype, torch.float32))
    start.flatten(1)[:, 0] = 1.0
    return start
