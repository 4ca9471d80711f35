"""Watch a forward pass: what goes into each attention layer, and what its heads give.

The network runs as it always does, on its fused kernels and in evaluation mode; no attention weight is
stored. Explanations recompute the weights that they need from queries and keys, some rows at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from seqray.models import MultiHeadAttention


@dataclass(frozen=True, slots=True, eq=False)
class AttentionTrace:
    """One attention layer of a forward pass.

    Attributes
    ----------
    attention
        The layer.
    x
        (B, T, D) what it read.
    mask
        (B, T) bool, True at real tokens; None where nothing is padded.
    rotation
        Of rotary positions, or None.
    cls_only
        Whether it answered the query of CLS alone.
    heads
        (B, Lq, D) what its heads gave, side by side, before the output matrix; Lq is T, or 1 with
        ``cls_only``. None without gradients, which alone need it.
    """

    attention: MultiHeadAttention
    x: Tensor
    mask: Tensor | None
    rotation: tuple[Tensor, Tensor] | None
    cls_only: bool
    heads: Tensor | None

    def project(self) -> tuple[Tensor, Tensor, Tensor]:
        """Queries (B, H, Lq, E), keys and values (B, H, T, E), without gradients."""
        with torch.no_grad():
            return self.attention.project(self.x.detach(), self.rotation, first_query_only=self.cls_only)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """A forward pass: logits (B, K), attention layers from first to last, and the embedded tokens.

    ``embedded`` (B, N, width) are the vectors of all tokens but CLS, before the stem or the positions; None
    without gradients.
    """

    logits: Tensor
    layers: tuple[AttentionTrace, ...]
    embedded: Tensor | None


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Switch dropout off for a while; every part is left in the mode in which it was found."""
    modes = {module: module.training for module in network.modules()}
    network.eval()
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def embedding_of(network: nn.Module) -> nn.Embedding:
    """The table that turns the tokens of a network into vectors."""
    return next(module for module in network.modules() if isinstance(module, nn.Embedding))


def trace(
    network: nn.Module,
    tokens: Tensor,
    mask: Tensor | None = None,
    *,
    gradients: bool = False,
    embedded: Tensor | None = None,
) -> Trace:
    """Run a network and keep what its attention layers read.

    Parameters
    ----------
    network
        For example a `SequenceTransformer`; left in the mode in which it was found.
    tokens
        (B, L) int64, CLS first, on the device of the network.
    mask
        (B, L) bool, True at real tokens; None where nothing is padded.
    gradients
        Record the graph from the embedded tokens on, for `torch.autograd.grad`.
    embedded
        (B, N, width) to put in place of the embedded tokens.

    Raises
    ------
    RuntimeError
        Where a layer of the network attended without being seen.
    """
    read: list[tuple[MultiHeadAttention, tuple[Any, ...]]] = []
    given: list[tuple[bool, Tensor | None]] = []
    vectors: list[Tensor | None] = []

    def see_input(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        assert isinstance(module, MultiHeadAttention)
        read.append((module, arguments))

    def see_heads(_: nn.Module, arguments: tuple[Any, ...]) -> None:
        heads: Tensor = arguments[0]
        given.append((heads.shape[1] < read[-1][1][0].shape[1], heads if gradients else None))

    def see_embedding(_: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        start = output if embedded is None else embedded
        start = start.detach().requires_grad_(gradients)
        vectors.append(start if gradients else None)
        return start

    attentions = [module for module in network.modules() if isinstance(module, MultiHeadAttention)]
    with ExitStack() as stack:
        stack.enter_context(evaluating(network))
        stack.enter_context(torch.set_grad_enabled(gradients))
        handles = [embedding_of(network).register_forward_hook(see_embedding)]
        for attention in attentions:
            handles.append(attention.register_forward_pre_hook(see_input))
            handles.append(attention.out.register_forward_pre_hook(see_heads))
        for handle in handles:
            stack.callback(handle.remove)
        logits = network(tokens, mask).logits
    if not len(read) == len(given) == len(attentions) or len(vectors) != 1:
        raise RuntimeError(f"saw {len(read)} of {len(attentions)} attention layers")
    layers = []
    for (attention, arguments), (cls_only, heads) in zip(read, given, strict=True):
        key_mask, rotation = (*arguments[1:], None, None)[:2]
        layers.append(AttentionTrace(attention, arguments[0], key_mask, rotation, cls_only, heads))
    return Trace(logits, tuple(layers), vectors[0])
