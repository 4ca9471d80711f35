"""The networks of sequences: a transformer, and a classifier on a pretrained encoder."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from seqray.core.alphabet import (
    COMPOSITION_ENDS,
    COMPOSITION_GAPS,
    END_FACTORS,
    PAIR_FACTOR,
    WHOLE_FACTOR,
    composition_size,
)
from seqray.core.errors import ConfigError
from seqray.core.model_config import MATRIX_RANK, BackboneConfig, ModelConfig
from seqray.models import attention, layers
from seqray.models.alignment import AxialTransformer
from seqray.models.batches import AttentionStep, Dropout, ModelOutput
from seqray.models.locator import LocatorTransformer
from seqray.models.tokenizers import PAD

# --- The composition of a sequence, computed from its tokens and added to CLS


class Composition(nn.Module):
    """Shares of letters and of pairs of letters, through a feed-forward layer of twice the width.

    A share p of m is read as c (√(m p) - 1), whose variance is even.
    """

    def __init__(
        self, letters: int, parts: tuple[str, ...], d_model: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        self.letters, self.parts = letters, parts
        self.activation, self.dropout = layers.ACTIVATIONS[activation], Dropout(dropout)
        self.up = attention.Linear(composition_size(letters, parts), 2 * d_model)
        self.down = attention.Linear(2 * d_model, d_model)

    def forward(self, letters: Tensor, real: Tensor) -> Tensor:
        """Letters (B, N) int64 and their bool mask to (B, D).

        Padding comes last. Padding and letters below 0 are not counted.
        """
        features = self.features(letters, real).to(self.up.weight.dtype)
        return self.down(self.dropout(self.activation(self.up(self.dropout(features)))))

    def features(self, letters: Tensor, real: Tensor) -> Tensor:
        """Scaled shares (B, F) of letters, in the order of ``parts``, float32."""
        with torch.autocast(letters.device.type, enabled=False):  # counts must be exact
            known = torch.where(real, 1 + letters.clamp(min=-1), 0)
            table = F.pad(torch.eye(self.letters, device=letters.device), (0, 0, 1, 0))
            shown = F.embedding(F.pad(known, (0, max(COMPOSITION_GAPS))), table)  # (B, N + 3, A)
            first = shown[:, : letters.shape[1]]
            return torch.cat([self._part(part, shown, first, real) for part in self.parts], dim=1)

    def _part(self, part: str, shown: Tensor, first: Tensor, real: Tensor) -> Tensor:
        if part == "whole":
            return WHOLE_FACTOR * scaled_shares(first.sum(dim=1))
        if part == "ends":
            left = real.cumsum(dim=1)
            right = left[:, -1:] - left + 1
            limits = torch.tensor(COMPOSITION_ENDS, device=real.device)[:, None]
            near = torch.cat((left[:, None] <= limits, right[:, None] <= limits), dim=1)  # (B, 6, N)
            factors = torch.tensor(2 * END_FACTORS, device=real.device)[:, None]
            return (factors * scaled_shares(near.float() @ first)).flatten(1)
        count = first.shape[1]
        pairs = [first.mT @ shown[:, gap : gap + count] for gap in COMPOSITION_GAPS]  # (B, A, A) each
        return PAIR_FACTOR * torch.cat([scaled_shares(one.flatten(1)) for one in pairs], dim=1)


def scaled_shares(counts: Tensor) -> Tensor:
    """√(m p) - 1 of counts (..., m) with shares p; 0 where nothing was counted."""
    total = counts.sum(dim=-1, keepdim=True)
    return (counts.shape[-1] * counts / total.clamp(min=1)).sqrt() - (total > 0).float()


# --- The transformer classifier of one sequence


class SequenceTransformer(layers.Transformer):
    """Tokens (B, L), CLS first, to logits (B, K) by pre-norm blocks, see `seqray.models.layers.Pooling`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        stem, width, vocabulary = config.stem, config.d_model, self.vocabulary
        self.cls = nn.Parameter(torch.randn(width) * 0.02)
        self.contexts: nn.Parameter | None = (
            nn.Parameter(torch.zeros(len(config.contexts), width)) if config.contexts else None
        )
        self.embedding: layers.TokenEmbedding | layers.ConvolutionalStem = (
            layers.ConvolutionalStem(vocabulary, width, stem, config.activation)
            if stem
            else layers.TokenEmbedding(vocabulary, width)
        )
        contexts = {"none": None, "shared": 0, "context": len(config.contexts)}
        gained, letters = contexts[config.position_gain], vocabulary if stem else width
        self.gain = None if gained is None else attention.PositionGain(gained, config.max_length, width)
        known = contexts[config.position_matrix]
        self.matrix = (
            None
            if known is None
            else attention.PositionMatrix(known, config.max_length, letters, MATRIX_RANK, width)
        )
        self.ends = attention.EndMatrix(config.ends, vocabulary, width) if config.ends else None
        self.words = (
            layers.KmerEmbedding(vocabulary - layers.SPECIAL_TOKENS, config.words, width)
            if config.words
            else None
        )
        self.composition = (
            Composition(
                vocabulary - layers.SPECIAL_TOKENS,
                config.composition,
                width,
                config.activation,
                config.dropout,
            )
            if config.composition
            else None
        )
        self.linear = (
            layers.LinearPart(vocabulary - layers.SPECIAL_TOKENS, config.linear, config.classes)
            if config.linear
            else None
        )
        longest = 1 + math.ceil(config.max_length / self.embedding.stride)
        self.positions = attention.LearnedPositions(longest, width) if config.positions == "learned" else None
        self.add_blocks(layers.Block)

    def embed(
        self, tokens: Tensor, mask: Tensor | None = None, coordinates: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, attention.Rotation | None]:
        """Vectors (B, T, D) with CLS first, their mask and rotation; T = 1 + ceil((L - 1) / stride).

        Of tokens (B, L), index 0 is CLS, or ``vocabulary + i`` for a sequence of the i-th context. The mask
        (B, L) is True at real ones; None if nothing is padded, which is faster. Coordinates (B, L) or (L,)
        are the real-valued position of each token, 0, 1, 2, .. by default; with a stem, a token takes that of
        the first letter that it merges.
        """
        attention.check_axes(tokens, "(B, L)")
        x, letter_mask = self.embedding(
            tokens[:, 1:], None if mask is None else mask[:, 1:], self.position_terms(tokens)
        )
        letters, real = self.letters_of(tokens, mask)
        if self.ends is not None:
            x = x + attention.sum_over_strides(
                self.ends(letters + layers.SPECIAL_TOKENS, real), self.embedding.stride
            ).to(x.dtype)
        if self.words is not None:
            words = self.words(letters, real)
            x = x + attention.sum_over_strides(words, self.embedding.stride).to(x.dtype)
        cls = self.cls.to(x.dtype).expand(x.shape[0], 1, -1)
        if self.composition is not None:
            cls = cls + self.composition(letters, real)[:, None].to(x.dtype)
        x = torch.cat((cls, x), dim=1)  # (B, T, D)
        if mask is not None and letter_mask is not None:
            mask = torch.cat((mask[:, :1], letter_mask), dim=1)
        if coordinates is None:
            coordinates = torch.arange(x.shape[1], device=x.device, dtype=torch.float32)  # (T,)
        else:
            merged = coordinates[..., 1 :: self.embedding.stride]
            coordinates = torch.cat((coordinates[..., :1], merged), dim=-1)
        if self.contexts is not None:
            table = F.pad(self.contexts, (0, 0, 1, 0))
            x = x + F.embedding(self._context(tokens), table)[:, None].to(x.dtype)
        if self.positions is not None:
            x = x + self.positions(x.shape[1]).to(x.dtype)
        elif self.config.positions == "sinusoidal":
            x = x + attention.sinusoidal(coordinates, self.config.d_model).to(x.dtype)
        return self.dropout(x), mask, self.rotation(coordinates)

    def answer(
        self, states: Tensor, real: Tensor | None, *inputs: Any, steps: tuple[AttentionStep, ...] = ()
    ) -> ModelOutput:
        """As in `Transformer`, with the logits of the linear part of the tokens (B, L)."""
        output = super().answer(states, real, steps=steps)
        return self.linear.added_to(output, *self.letters_of(*inputs)) if self.linear else output

    def letters_of(self, tokens: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """Letters of tokens (B, 1 + N), from 0, below 0 if unknown, and which are no padding."""
        real = torch.ones_like(tokens, dtype=torch.bool) if mask is None else mask
        return tokens[:, 1:] - layers.SPECIAL_TOKENS, real[:, 1:]

    def position_terms(self, tokens: Tensor) -> attention.PositionTerms | None:
        """Position terms of the letters of tokens (B, 1 + N); None if position has no effect."""
        if self.gain is None and self.matrix is None:
            return None
        context, letters = self._context(tokens), tokens.shape[1] - 1
        if not self.training and bool((context == context[:1]).all()):
            context = context[:1]  # one row for all: far less to gather
        return attention.PositionTerms(
            None if self.gain is None else self.gain(context, letters),
            None if self.matrix is None else self.matrix(context, letters),
            None if self.matrix is None else self.matrix.up.weight,
        )

    def _context(self, tokens: Tensor) -> Tensor:
        """Number of the context that the token in front names, from 1, 0 for none: (B, L) -> (B,)."""
        return (tokens[:, 0] - self.vocabulary + 1).clamp(min=0)


# --- A classifier on a pretrained encoder


class BackboneClassifier(nn.Module):
    """Tokens (B, L) to logits (B, K): the final states of an encoder of transformers, pooled, under a head.

    Its parameters are those that are trained; ``pad`` and ``special`` are tokens of the encoder.
    """

    special: Tensor

    def __init__(self, config: ModelConfig, encoder: nn.Module, pad: int, special: Sequence[int]) -> None:
        super().__init__()
        assert isinstance(config.backbone, BackboneConfig)
        self.config, self.settings, self.pad = config, config.backbone, pad
        # Within a tuple torch doesn't take it for a part: frozen weights are in no state and no optimizer.
        self._held: tuple[Any] = (encoder,)
        trained = ((name, value) for name, value in encoder.named_parameters() if value.requires_grad)
        self.adapters = nn.ParameterDict({name.replace(".", "/"): value for name, value in trained})
        self.register_buffer("special", torch.tensor(special, dtype=torch.int64), persistent=False)
        self.dropout = Dropout(config.dropout)
        self.head = layers.ClassificationHead(config.backbone.width, config)

    @property
    def encoder(self) -> Any:
        """The encoder, with its adapters if any."""
        return self._held[0]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> BackboneClassifier:
        super()._apply(fn, recurse)
        self.encoder._apply(fn)  # after the shared parameters, which then stay as they are
        return self

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, *, return_attention: bool = False
    ) -> ModelOutput:
        """Logits of tokens (B, L), padded with 0, so that the mask is not needed; attention on request."""
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.settings.tuning != "frozen"):
            states, attention = self.encode(tokens, return_attention=return_attention)
        return self.head.answer(self._pool(states, tokens), attention)

    def encode(
        self, tokens: Tensor, *, return_attention: bool = False
    ) -> tuple[Tensor, tuple[AttentionStep, ...]]:
        """Final states (B, L, D) and, on request, the attention of each layer, first layer first."""
        # Lightning sets the mode of registered parts one by one, so that of the encoder is settled here.
        mode = self.training and self.settings.tuning != "frozen"
        if self.encoder.training != mode:
            self.encoder.train(mode)
        real = tokens != PAD
        inputs = {"input_ids": torch.where(real, tokens - 1, self.pad), "attention_mask": real.long()}
        if not return_attention:
            return self.encoder(**inputs).last_hidden_state, ()
        before = self.encoder.config._attn_implementation
        self.encoder.set_attn_implementation("eager")  # fused kernels keep no weights
        try:
            output = self.encoder(**inputs, output_attentions=True)
        finally:
            self.encoder.set_attn_implementation(before)
        steps = tuple(AttentionStep("sequence", weights, real) for weights in output.attentions)
        return output.last_hidden_state, steps

    def classify_states(self, states: Tensor, tokens: Tensor) -> Tensor:
        """Logits (B, K) of final states (B, L, D)."""
        return self.head(self._pool(states, tokens))

    def _pool(self, states: Tensor, tokens: Tensor) -> Tensor:
        """What the head reads: (B, D)."""
        return self.dropout((self.pooling_weights(tokens)[:, None] @ states.float())[:, 0])

    def pooling_weights(self, tokens: Tensor) -> Tensor:
        """Share of each token's final state in what the head reads: float32 (B, L), rows sum to 1."""
        if self.settings.pooling == "cls":
            chosen = torch.zeros_like(tokens, dtype=torch.float32)
            chosen[:, 0] = 1.0
            return chosen
        letters = ((tokens != PAD) & ~torch.isin(tokens, self.special)).float()
        return letters / letters.sum(dim=1, keepdim=True).clamp(min=1.0)

    def with_random_weights(self) -> BackboneClassifier:
        """The same shape with random weights, for comparison."""
        encoder = type(self.encoder)(self.encoder.config).eval().requires_grad_(False)
        other = BackboneClassifier(self.config, encoder, self.pad, self.special.tolist())
        return other.to(self.special.device).eval()


class OwnNetwork(nn.Module):
    """Tokens (B, L) to logits (B, K) by a module of the user's, see `seqray.register_network`."""

    def __init__(self, config: ModelConfig, module: nn.Module) -> None:
        super().__init__()
        self.config, self.module = config, module
        for part in module.modules():
            if isinstance(part, nn.TransformerEncoder):  # nested tensors fail in bfloat16
                part.enable_nested_tensor = part.use_nested_tensor = False

    def forward(
        self, tokens: Tensor, mask: Tensor | None = None, *, return_attention: bool = False
    ) -> ModelOutput:
        """Logits; the module knows padding as 0."""
        logits = self.module(tokens if mask is None else tokens.masked_fill(~mask, PAD))
        shape = (len(tokens), self.config.classes)
        found = tuple(getattr(logits, "shape", ())) or type(logits).__name__
        if found != shape:
            what = f"the network '{self.config.network}' returns {found} for tokens {tuple(tokens.shape)}"
            raise ConfigError(what, remedy=f"return logits (B, K), here {shape}")
        return ModelOutput(logits)


SequenceNetwork = SequenceTransformer | BackboneClassifier | OwnNetwork
"""What reads single sequences."""
Network = SequenceNetwork | AxialTransformer | LocatorTransformer
"""Any network of a model."""
