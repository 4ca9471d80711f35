"""Figures of attention heads: how sharp each is, how far it attends, and the log-odds without it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from seqray.core.arrays import Codes, Floats
from seqray.core.errors import ConfigError
from seqray.core.explanation import HeadFigures
from seqray.explanations.layers import SequenceLayer
from seqray.explanations.targets import AttributionTarget, token_batches
from seqray.explanations.trace import trace
from seqray.modelfile.model import TrainedModel
from seqray.models.attention import MultiHeadAttention
from seqray.models.sequence import SequenceTransformer


def head_figures(model: TrainedModel, groups: Sequence[tuple[Codes, int]]) -> tuple[HeadFigures, ...]:
    """Describe every head of every member.

    Entropy, distance and CLS mass are taken over the queries that the prediction uses: all, but only CLS in
    the last layer of a model whose head reads CLS alone, where distance is undefined (nan).

    Parameters
    ----------
    model
        The model.
    groups
        Letter codes (N, n) of records of one length, with the class explained.

    Raises
    ------
    ConfigError
        For a model on a backbone.
    """
    check_heads(model)
    figures = []
    for number, network in enumerate(model.sequence_networks, start=1):
        found = [
            _describe(AttributionTarget(model, network, target), codes)
            for codes, target in groups
            if len(codes)
        ]
        if not found:
            return ()
        weights = [len(codes) for codes, _ in groups if len(codes)]
        means = np.average(found, axis=0, weights=weights)  # (layers, H, 4)
        for layer, heads in enumerate(means, start=1):
            for head, values in enumerate(heads, start=1):
                figures.append(HeadFigures(number, layer, head, *(float(value) for value in values)))
    return tuple(figures)


def check_heads(model: TrainedModel) -> None:
    """Refuse a model whose heads are not accessible.

    Raises
    ------
    ConfigError
        For a model on a backbone.
    """
    if model.card.model.backbone is not None:
        raise ConfigError(
            f"model '{model.card.name}' has a backbone, whose heads can't be switched off one by one",
            remedy="leave out the figures of heads",
        )


def _describe(target: AttributionTarget, codes: Codes) -> Floats:
    """Entropy, distance, CLS mass and importance: (layers, H, 4), means over the records."""
    network = target.network
    assert isinstance(network, SequenceTransformer)
    sums: list[Floats] = []
    for _, tokens in token_batches(target.model, codes):
        layers = [_weight_figures(layer, network.embedding.stride) for layer in trace(network, tokens).layers]
        sums.append(torch.stack(layers).double().cpu().numpy() * len(tokens))  # (layers, H, 3)
    importance = _importance(target, network, codes)  # (layers, H)
    return np.concatenate([np.sum(sums, axis=0) / len(codes), importance[..., None]], axis=-1)


@torch.no_grad()
def _weight_figures(layer: SequenceLayer, stride: int) -> Tensor:
    """Entropy, distance and CLS mass of a layer's heads, means over batch and queries: (H, 3)."""
    total, queries = torch.zeros(layer.attention.heads, 3, device=layer.x.device), 0
    keys = layer.x.shape[1]
    places = torch.arange(keys, device=layer.x.device, dtype=torch.float32)
    for block in layer.blocks():
        weights, rows = block.weights, block.queries[1]
        entropy = torch.special.entr(weights).sum(dim=-1) / np.log(max(keys, 2))  # (B, H, c)
        letters = weights[..., 1:] / weights[..., 1:].sum(dim=-1, keepdim=True).clamp(min=1e-12)
        gaps = (places[rows, None] - places[1:]).abs() * stride  # (c, T - 1)
        distance = torch.einsum("bhct,ct->bhc", letters, gaps)
        if rows.start == 0:
            distance[..., 0] = 0  # CLS has no place
        total += torch.stack([x.sum(dim=(0, 2)) for x in (entropy, distance, weights[..., 0])], dim=-1)
        queries += weights.shape[0] * weights.shape[2]
    figures = total / queries
    placed = queries - len(layer.x)
    figures[:, 1] = total[:, 1] / placed if placed else torch.nan
    return figures


def _importance(target: AttributionTarget, network: SequenceTransformer, codes: Codes) -> Floats:
    """Change of the mean log-odds when the output of a head is zero: (layers, H)."""
    before = target.of_codes(codes)
    layers = [module for module in network.modules() if isinstance(module, MultiHeadAttention)]
    changes = np.empty((len(layers), layers[0].heads))
    for i, layer in enumerate(layers):
        for head in range(layer.heads):
            with _zeroed(layer, head):
                changes[i, head] = (target.of_codes(codes) - before).mean()
    return changes


@contextmanager
def _zeroed(layer: MultiHeadAttention, head: int) -> Iterator[None]:
    """Replace the output of a head by zeros."""
    columns = slice(head * layer.head_width, (head + 1) * layer.head_width)

    def zero(_: nn.Module, arguments: tuple[Tensor]) -> tuple[Tensor]:
        heads = arguments[0].clone()
        heads[..., columns] = 0
        return (heads,)

    handle = layer.out.register_forward_pre_hook(zero)
    try:
        yield
    finally:
        handle.remove()
