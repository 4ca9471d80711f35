"""A forward pass that keeps attention, and gradients."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import singledispatch
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.explanations.layers import (
    KEPT_BYTES,
    AttentionCall,
    AttentionLayer,
    ColumnLayer,
    RowLayer,
    SequenceLayer,
    StoredLayer,
    Trace,
    WindowedLayer,
    attend_and_average,
)
from seqray.explanations.options import STEPS
from seqray.models.alignment import AxialTransformer
from seqray.models.attention import MultiHeadAttention, WindowedAttention, fused_attention
from seqray.models.axial import ColumnAttention, RowAttention
from seqray.models.build import BackboneClassifier
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import SequenceTransformer
from seqray.models.tokenizers import FIRST_LETTER

# --- Watch a forward pass: what each attention layer read and, with gradients, the output of its heads

LAYERS: dict[type[nn.Module], Callable[[Any, AttentionCall], AttentionLayer]] = {
    MultiHeadAttention: SequenceLayer.of_call,
    ColumnAttention: ColumnLayer.of_call,
    RowAttention: RowLayer.of_call,
    WindowedAttention: WindowedLayer.of_call,
}
"""How an attention layer is described: from the module and what was seen of its call."""


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


def embedding_of(network: nn.Module) -> nn.Module:
    """The table that turns the tokens of a network into vectors."""
    if isinstance(network, BackboneClassifier):
        return network.encoder.get_input_embeddings()
    return next(module for module in network.modules() if isinstance(module, nn.Embedding))


@singledispatch
def trace(
    network: nn.Module,
    tokens: Tensor,
    mask: Tensor | None = None,
    *,
    gradients: bool = False,
    attention: bool = True,
    embedded: Tensor | None = None,
) -> Trace[Any]:
    """Run a network and keep what its attention layers read.

    Parameters
    ----------
    network
        Of sequences, on a backbone (in evaluation mode), of alignments, or a locator; left in the mode in
        which it was found.
    tokens
        (B, L) int64, CLS first, on the device of the network; (B, R, C) for alignments; codes of letters
        (B, L) for a locator, and ``site``, the letter whose scores are traced.
    mask
        (B, L) bool, True at real tokens; None where nothing is padded. Two masks, (B, R) of the rows and
        (B, C) of the columns, for alignments; none for a backbone; gene tracks (B, T, L) for a locator.
    gradients
        Record the graph from the embedded tokens on, for `torch.autograd.grad`.
    attention
        Keep the attention layers.
    embedded
        (B, N, width) to put in place of the embedded tokens; not for alignments.

    Raises
    ------
    RuntimeError
        If a layer of the network attended without being seen.
    """
    raise TypeError(f"{type(network).__name__} can't be traced")


@trace.register(SequenceTransformer)
def _trace_sequence(
    network: SequenceTransformer,
    tokens: Tensor,
    mask: Tensor | None = None,
    *,
    gradients: bool = False,
    attention: bool = True,
    embedded: Tensor | None = None,
) -> Trace[Any]:
    starts: list[Tensor] = []

    def run() -> Tensor:
        x, real, rotation = network.embed(tokens, mask)
        states, _ = network.read_states(x, real, rotation)
        if network.pooling.cls_only:
            starts.append(_at_cls(x, *x.shape[:2]))
        else:
            starts.append(network.pooling.shares(states.detach(), real))
        return network.head(network.pooling(states, real))

    watched = _Watch(network, embedding_of(network), gradients, embedded, attention=attention)
    return Trace(watched.run(run), watched.layers(), watched.vectors, starts[0])


@trace.register(AxialTransformer)
def _trace_alignment(
    network: AxialTransformer,
    tokens: Tensor,
    row_mask: Tensor | None = None,
    column_mask: Tensor | None = None,
    *,
    gradients: bool = False,
) -> Trace[Any]:
    watched = _Watch(network, network.embedding, gradients)
    logits = watched.run(lambda: network.head(network.states(tokens, row_mask, column_mask)[:, 0, 0]))
    return Trace(logits, watched.layers(), watched.vectors, _at_cls(logits, *tokens.shape))


@trace.register(BackboneClassifier)
def _trace_backbone(
    network: BackboneClassifier,
    tokens: Tensor,
    *,
    gradients: bool = False,
    attention: bool = True,
    embedded: Tensor | None = None,
) -> Trace[Any]:
    """Exchange the vectors of the tokens inside the encoder, which still reads the tokens.

    Some encoders scale by the tokens, or count positions by their padding, and answer differently to
    ``inputs_embeds``.
    """
    pooling, layers = network.pooling_weights(tokens), []

    def run() -> Tensor:
        states, steps = network.encode(tokens, return_attention=attention)
        layers.extend(StoredLayer(step.weights) for step in steps)
        return network.classify_states(states, tokens)

    watched = _Watch(network, embedding_of(network), gradients, embedded)
    return Trace(watched.run(run), tuple(layers), watched.vectors, pooling)


@trace.register(LocatorTransformer)
def _trace_locator(
    network: LocatorTransformer,
    letters: Tensor,
    tracks: Tensor | None = None,
    *,
    site: int,
    gradients: bool = False,
    attention: bool = True,
    embedded: Tensor | None = None,
) -> Trace[Any]:
    """Trace the scores of the letter ``site``; ``embedded`` (B, L, 4 + T) replaces letters and tracks."""
    vectors = network.embed(letters, tracks) if embedded is None else embedded
    vectors = vectors.detach().requires_grad_(gradients)
    watched = _Watch(network, None, gradients, attention=attention)
    logits = watched.run(lambda: network.scores(network.locate(vectors))[:, site])
    start = vectors.new_zeros(len(letters), letters.shape[1] // network.stem.stride)
    tokens = (site + network.smoothing.distance) // network.stem.stride
    start.index_add_(1, tokens, network.smoothing.shares().expand(len(letters), -1))
    return Trace(logits, watched.layers(), vectors, start)


def _at_cls(like: Tensor, *shape: int) -> Tensor:
    start = torch.zeros(shape, device=like.device)
    start.flatten(1)[:, 0] = 1.0
    return start


class _Watch:
    """Hooks on the embedding of a network, if it has one, and on its attention layers, for one pass."""

    def __init__(
        self,
        network: nn.Module,
        embedding: nn.Module | None,
        gradients: bool,
        embedded: Tensor | None = None,
        attention: bool = True,
    ) -> None:
        self.network, self.embedding, self.embedded = network, embedding, embedded
        self.gradients = gradients
        self.attentions = list(_attentions(network)) if attention else []
        self.calls: list[tuple[nn.Module, AttentionCall]] = []
        self.vectors: Tensor | None = None

    def run(self, forward: Callable[[], Tensor]) -> Tensor:
        with ExitStack() as stack:
            stack.enter_context(evaluating(self.network))
            stack.enter_context(torch.set_grad_enabled(self.gradients))
            if self.embedding is not None:
                stack.callback(self.embedding.register_forward_hook(self._see_embedding).remove)
            for attention in self.attentions:
                hook = attention.register_forward_pre_hook(self._see_call, with_kwargs=True)
                stack.callback(hook.remove)
                if isinstance(attention, MultiHeadAttention):
                    stack.callback(attention.qkv.register_forward_hook(self._see_projection).remove)
                    if not self.gradients:
                        attention.attend = self._attend
                        stack.callback(delattr, attention, "attend")
                if self.gradients:
                    output = attention.get_submodule(
                        "attention.out" if hasattr(attention, "attention") else "out"
                    )
                    stack.callback(output.register_forward_pre_hook(self._see_heads).remove)
            return forward()

    def layers(self) -> tuple[AttentionLayer, ...]:
        seen = [call for _, call in self.calls if call.heads is not None or not self.gradients]
        if len(seen) != len(self.attentions):
            raise RuntimeError(f"saw {len(seen)} of {len(self.attentions)} attention layers")
        return tuple(LAYERS[type(module)](module, call) for module, call in self.calls)

    def _see_call(self, module: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        bound = inspect.signature(module.forward).bind(*arguments, **named)
        self.calls.append((module, AttentionCall(bound.arguments)))

    def _see_projection(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> None:
        if output.nbytes <= KEPT_BYTES:
            self.calls[-1][1].projected = output.detach()

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        size = 4 * len(q) * q.shape[2] * k.shape[2]
        if q.dtype != torch.float32 or q.device.type != "cpu" or size > KEPT_BYTES:
            return fused_attention(q, k, v, mask)
        heads, self.calls[-1][1].mean = attend_and_average(q, k, v, mask)
        return heads

    def _see_heads(self, _: nn.Module, arguments: tuple[Any, ...]) -> None:
        self.calls[-1][1].heads = arguments[0]

    def _see_embedding(self, _: nn.Module, __: tuple[Any, ...], output: Tensor) -> Tensor:
        start = output if self.embedded is None else self.embedded
        if self.attentions and not self.gradients:
            return start
        self.vectors = start.detach().requires_grad_(self.gradients)
        return self.vectors.clone()  # an encoder may write into what its embedding gives


def _attentions(module: nn.Module) -> Iterator[nn.Module]:
    """Attention layers, those within another one left out."""
    for child in module.children():
        if type(child) in LAYERS:
            yield child
        else:
            yield from _attentions(child)


# --- Signed scores from gradients: input times gradient, and integrated gradients

Target = Callable[[Tensor], Tensor]
"""Logits (B, K) to the quantity explained (B,)."""


def input_x_gradient(
    network: nn.Module, tokens: Tensor, target: Target, letter_tokens: Tensor | None = None
) -> Tensor:
    """Gradient times (token minus the mean letter): first-order effect of the letter.

    Parameters
    ----------
    network
        Of sequences, or on a backbone; left in the mode in which it was found.
    tokens
        (B, L) int64, CLS first; padded for a backbone only.
    letter_tokens
        (V,) tokens of a backbone that encode letters, over which the mean is taken.

    Returns
    -------
    Tensor
        (B, L), 0 at special and unknown tokens.
    """
    slope, embedded = input_gradient(network, tokens, target)
    start, known = _mean_letters(network, tokens, embedded, letter_tokens)
    return _attribute(tokens, embedded - start, slope, known)


def integrated_gradients(
    network: nn.Module,
    tokens: Tensor,
    target: Target,
    letter_tokens: Tensor | None = None,
    steps: int = STEPS,
) -> Tensor:
    """Gradients averaged on the straight way from the mean letter to the sequence.

    The scores of a record sum to target(sequence) - target(mean letters), but for the error of the midpoint
    rule with that many steps.

    The parameters and the result are those of `input_x_gradient`; the gradient is taken at ``steps`` points.

    References
    ----------
    Sundararajan et al. 2017, Axiomatic Attribution for Deep Networks, equation 3.
    """
    end = trace(network, tokens, attention=False).embedded
    start, known = _mean_letters(network, tokens, end, letter_tokens)
    slope = mean_slope(lambda between: input_gradient(network, tokens, target, between)[0], start, end, steps)
    return _attribute(tokens, end - start, slope, known)


def mean_slope(slope: Callable[[Tensor], Tensor], start: Tensor, end: Tensor, steps: int) -> Tensor:
    """Mean of the gradient on the straight way between two points, by the midpoint rule.

    ``slope`` maps a point to the gradient there, which is taken at ``steps`` points.
    """
    total = torch.zeros_like(end)
    for step in range(steps):
        total += slope(start + (step + 0.5) / steps * (end - start))
    return total / steps


def input_gradient(
    network: nn.Module, tokens: Tensor, target: Target, embedded: Tensor | None = None, **named: Any
) -> tuple[Tensor, Tensor]:
    """Gradient of the target with respect to the embedded tokens, and those tokens: (B, N, width) each.

    ``embedded`` and what else has a name are as in `trace`.
    """
    traced = trace(network, tokens, gradients=True, attention=False, embedded=embedded, **named)
    [slope] = torch.autograd.grad(target(traced.logits).sum(), traced.embedded)
    return slope, traced.embedded.detach()


@torch.no_grad()
def _mean_letters(
    network: nn.Module, tokens: Tensor, embedded: Tensor, letter_tokens: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The embedded tokens with their letters at the mean letter, and which tokens are letters (B, N)."""
    table = embedding_of(network)
    if letter_tokens is not None:
        known = torch.isin(tokens, letter_tokens)
        return torch.where(known[..., None], table(letter_tokens - 1).mean(dim=0), embedded), known
    weight = table.weight
    assert isinstance(weight, Tensor)
    known = tokens[:, 1:] >= FIRST_LETTER  # an ambiguous letter has no effect of its own
    return weight[FIRST_LETTER:].mean(dim=0).expand_as(embedded), known


def _attribute(tokens: Tensor, change: Tensor, slope: Tensor, known: Tensor) -> Tensor:
    effect = (change * slope).sum(dim=-1) * known
    return F.pad(effect, (tokens.shape[1] - effect.shape[1], 0))  # CLS, which is not embedded, has none
