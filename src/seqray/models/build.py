"""Networks from their settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from seqray.core.alphabet import ALPHABETS
from seqray.core.errors import ConfigError
from seqray.core.model_config import BackboneConfig, ModelConfig
from seqray.models.alignment import GAP_TOKENS, AxialTransformer
from seqray.models.batches import AttentionStep, Dropout, ModelOutput
from seqray.models.layers import SPECIAL_TOKENS, ClassificationHead
from seqray.models.locator import LocatorTransformer
from seqray.models.sequence import SequenceTransformer
from seqray.models.tokenizers import PAD

# --- A classifier on a pretrained encoder


class BackboneClassifier(nn.Module):
    """Tokens (B, L) to logits (B, K): an encoder's final states, pooled, under a head.

    Its parameters, and so what is optimized, counted and saved, are those that are trained: the head, and of
    the encoder what asks for gradients. The rest of the encoder moves along between devices and is not saved.
    Dropout within the encoder is on while training, unless it is frozen. The encoder is a module of
    transformers: ``input_ids`` and ``attention_mask`` to ``last_hidden_state`` (B, L, D); ``pad`` is its own
    id of padding, ``special`` are tokens that represent no letters.
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
        self.head = ClassificationHead(config.backbone.width, config)

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


# --- From settings to a network, by an explicit table

Network = SequenceTransformer | AxialTransformer | LocatorTransformer

NETWORKS: Mapping[str, Callable[[ModelConfig], Network]] = {
    "sequence": lambda config: SequenceTransformer(config, vocabulary_size(config)),
    "alignment": lambda config: AxialTransformer(config, vocabulary_size(config)),
    "locator": LocatorTransformer,
}


def vocabulary_size(config: ModelConfig) -> int:
    """Number of distinct tokens: special ones, letters or k-mers, and gaps in alignments."""
    letters = len(ALPHABETS[config.alphabet].letters) ** config.k
    return SPECIAL_TOKENS + letters + (GAP_TOKENS if config.reads_alignments else 0)


def build_network(config: ModelConfig) -> Network:
    """Make the network of a kind with fresh weights (seed torch beforehand for repeatable ones).

    Raises ConfigError for a classifier on a backbone, which `seqray.modelfile.build_network` makes.
    """
    if config.kind not in NETWORKS:
        raise ConfigError(f"'model.kind' is {config.kind}", remedy=f"choose {' or '.join(NETWORKS)}")
    return NETWORKS[config.kind](config)


def build_model(config: ModelConfig) -> SequenceTransformer:
    """`build_network` for code that reads single sequences. Raises ConfigError for a model of alignments."""
    network = build_network(config)
    if not isinstance(network, SequenceTransformer):
        raise ConfigError(f"'model.kind' is {config.kind}", remedy="choose a model that reads sequences")
    return network


def count_parameters(model: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in model.parameters())
