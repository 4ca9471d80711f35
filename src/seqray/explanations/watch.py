"""The attention weights of any network of torch, seen while it runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode


class SeenAttention(NamedTuple):
    """One call of attention."""

    weights: Tensor  # (B, H, Lq, L), part of the graph of the output
    added: Tensor | None  # (B, H, L, D) values times the output matrix of each head; None where unknown


class AttentionWatch(TorchFunctionMode):
    """While it is entered, attention of this thread is computed by weights, which are kept in ``seen``.

    It sees `torch.nn.MultiheadAttention`, which layers of `torch.nn` use, and
    `torch.nn.functional.scaled_dot_product_attention`, which most other networks use. The network stays as it
    is, and threads do not see each other. With ``gradients`` the weights ask for them.
    """

    def __init__(self, gradients: bool = False) -> None:
        super().__init__()
        self.gradients = gradients
        self.seen: list[SeenAttention] = []

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func is F.scaled_dot_product_attention:
            return self._attend(*args, **(kwargs or {}))
        if func is F.multi_head_attention_forward:
            return self._attend_by_heads(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _keep(self, weights: Tensor, heads: int, added: Tensor | None = None) -> Tensor:
        """Keep weights (..., Lq, L), and give them back in their shape, on the way to the output."""
        kept = weights.reshape(-1, heads, *weights.shape[-2:])
        if self.gradients and not kept.requires_grad:
            kept = kept.detach().requires_grad_()
        self.seen.append(SeenAttention(kept, added))
        return kept.reshape(weights.shape)

    def _attend(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        **options: Any,
    ) -> Tensor:
        """`scaled_dot_product_attention`: with unit vectors for values, its output is the weights."""
        units = torch.eye(key.shape[-2], dtype=value.dtype, device=value.device)
        units = units.expand(*value.shape[:-2], -1, -1)
        options |= {"attn_mask": attn_mask, "is_causal": is_causal}
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
