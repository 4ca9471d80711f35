"""A trained model: its card, its networks, its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Self, get_args

import numpy as np
import numpy.typing as npt

from seqray.core.alphabet import ALPHABETS, Alphabet
from seqray.core.arrays import Bools, Codes, Ints
from seqray.core.card import Card, headline_metric
from seqray.core.errors import ConfigError
from seqray.core.model_config import ModelConfig
from seqray.core.text import Truncation, counted, first_and_more, truncate
from seqray.models.tokenizers import Tokenizer, context_index, make_tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from seqray.modelfile.networks import Network, SequenceNetwork
    from seqray.models.locator import LocatorTransformer
    from seqray.models.prefilter import Prefilter


def build_tokenizer(config: ModelConfig, context: str | None = None) -> Tokenizer:
    """Make the tokenizer for sequences of one context or of none.

    Raises ConfigError for a context that the settings don't name, or a backbone that can't be used.
    """
    if config.backbone is None:
        return make_tokenizer(config, context)
    if context is not None:
        raise ConfigError(f"the context '{context}' is given, but the model has no contexts")
    from seqray.modelfile.backbones import load_tokenizer

    return load_tokenizer(config.backbone, config.alphabet)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model ready to classify."""

    card: Card  # what it is, and its calibration
    networks: tuple[Network, ...]  # the members, in evaluation mode, without gradients
    sha256: str = ""  # of the file; empty for a model that was never saved
    # what the sequences are, of the names in ``card.model.contexts``; None where nothing is known
    context: str | None = None
    prefilter: Prefilter | None = None  # which windows a scan need not score; None for a model without one

    def __post_init__(self) -> None:
        for network in self.networks:
            network.eval().requires_grad_(False)

    def __repr__(self) -> str:
        facts = self._facts()
        return (
            f"{type(self).__name__} '{facts['model']}': {facts['purpose']}\n"
            f"  reads {facts['reads']}; {facts['networks']}\n"
            f"  classes: {facts['classes']}; measured: {facts['measured']}"
        )

    def _repr_html_(self) -> str:
        """The same as a table, for notebooks."""
        rows = (f"<tr><th>{name}</th><td>{escape(text)}</td></tr>" for name, text in self._facts().items())
        return f"<table>{''.join(rows)}</table>"

    def _facts(self) -> dict[str, str]:
        card, weights = self.card, self.card.training.get("parameters")
        letters = card.model.alphabet if card.model.alphabet == "protein" else card.model.alphabet.upper()
        windows = f"{card.model.kind}s of {letters}, {card.window} letters at a time"
        return {
            "model": card.name,
            "purpose": card.summary or "no summary",
            "reads": f"genomes of {letters}" if self.is_locator else windows,
            "networks": counted(card.members, "network") + (f" of {weights:,} weights" if weights else ""),
            "classes": first_and_more(card.classes, 12),
            "measured": headline_metric(card),
            "file": f"sha256 {self.sha256[:12]}" if self.sha256 else "not saved",
        }

    @property
    def alphabet(self) -> Alphabet:
        """The letters that the model reads."""
        return ALPHABETS[self.card.model.alphabet]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Turns letters into the tokens of the networks. Raises ConfigError for a model of alignments."""
        self.check_reads_sequences()
        return build_tokenizer(self.card.model, self.context)

    @property
    def context_number(self) -> int:
        """Place of the context among those that the model knows, from 1; 0 for none."""
        return self.card.model.contexts.index(self.context) + 1 if self.context else 0

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.networks[0].parameters()).device

    @property
    def engine(self) -> str:
        """Name and version of what computes, if that is not torch."""
        return ""

    @property
    def is_locator(self) -> bool:
        """Whether the model scores every position of a strand."""
        return self.card.model.is_locator

    @property
    def sequence_networks(self) -> tuple[SequenceNetwork, ...]:
        """The members of a model of sequences. Raises ConfigError for a model of alignments."""
        from seqray.modelfile.networks import SequenceNetwork

        self.check_reads_sequences()
        return tuple(one for one in self.networks if isinstance(one, SequenceNetwork))

    @property
    def locators(self) -> tuple[LocatorTransformer, ...]:
        """The members of a locator. Raises ConfigError for a model of another kind."""
        from seqray.models.locator import LocatorTransformer

        if not self.is_locator:
            raise ConfigError(
                f"model '{self.card.name}' reads {self.card.model.kind}s",
                remedy="give a locator, such as 'bacteria-genome'",
            )
        return tuple(one for one in self.networks if isinstance(one, LocatorTransformer))

    def check_reads_sequences(self) -> None:
        """Refuse a model of alignments, or a locator. Raises ConfigError, naming the model."""
        if self.is_locator:
            remedy = "only 'seqray scan' and 'seqray explain' take locators"
            raise ConfigError(f"model '{self.card.name}' is a locator", remedy=remedy)
        if not self.card.model.reads_sequences:
            raise ConfigError(
                f"model '{self.card.name}' reads {self.card.model.kind}s",
                remedy="give a model that reads sequences",
            )

    def member(self, number: int) -> Self:
        """Return one member, counted from 0, as a model, calibrated by the temperature alone."""
        card = replace(self.card, members=1, isotonic=None, prefilter=None, self_test={})
        return replace(self, card=card, networks=self.networks[number : number + 1], prefilter=None)

    def to(self, device: torch.device | str) -> TrainedModel:
        """Move the networks to a device, in place; returns the model itself."""
        for network in self.networks:
            network.to(device)
        return self

    def with_context(self, name: str | None) -> TrainedModel:
        """Return the same model for sequences of one context, such as a species; None for unknown ones.

        Raises ConfigError for a context that the model doesn't know, see
        `seqray.models.tokenizers.context_index`.
        """
        settings = self.card.model
        full = None if name is None else settings.contexts[context_index(settings, name)]
        return replace(self, context=full)

    def with_truncation(self, rule: Truncation | None) -> TrainedModel:
        """Return the same model with another rule for sequences longer than its window; None changes nothing.

        Raises ConfigError for an unknown rule, for a model that does not read sequences, and for one whose
        windows are cut around a site.
        """
        if rule is None:
            return self
        if rule not in (rules := get_args(Truncation)):
            raise ConfigError(f"unknown rule '{rule}'", remedy=f"known are {', '.join(rules)}")
        self.check_reads_sequences()
        if self.card.site is not None and rule != "none":
            raise ConfigError(
                f"model '{self.card.name}' reads windows around a site: cut anywhere else, they say nothing",
                remedy="find sites in longer sequences with 'seqray scan'",
            )
        return replace(self, card=replace(self.card, truncate=rule))

    def read_codes(self, sequence: str, where: str = "") -> Codes:
        """Letter codes of what the networks read of a sequence, (n,) with at most as many as the window.

        ``where`` is the record, for the error of an unknown letter.
        """
        return self.alphabet.encode(truncate(sequence, self.card.window, self.card.truncate), where)

    def arrays(self) -> tuple[Mapping[str, npt.NDArray[np.floating]], ...]:
        """Weights of each member, by the names of its state dict."""
        return tuple(
            {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
            for network in self.networks
        )

    def locate(self, letters: Tensor, tracks: Tensor | None = None) -> Tensor:
        """Return calibrated logits along a strand: the mean over members, divided by the temperature.

        `letters`: (B, L) codes; L is a multiple of 4; `tracks`: (B, T, L) uint8, the gene tracks that the
        model names; None where no genes are known. Gives (B, L, K) float32; its logistic is the score of each
        class of site at each letter.
        """
        import torch

        with torch.inference_mode():
            embedded = self.locators[0].embed(letters, tracks)  # which all members read alike
            members = [net.scores(net.locate(embedded)) for net in self.locators]
            return torch.stack(members).mean(dim=0) / self.card.temperature

    def logits(self, tokens: Tensor, *masks: Tensor | None) -> Tensor:
        """Return calibrated logits: the mean over members of log-probabilities, divided by the temperature.

        `tokens`: (B, L) int64 with CLS first, or (B, R, C) of alignments, on the device of the model;
        `masks`: (B, L) bool, True at real tokens, or those of rows (B, R) and columns (B, C); None where
        nothing is padded. Gives (B, K) float32; its softmax is the calibrated probability.
        """
        import torch

        with torch.inference_mode():
            members = []
            for network in self.networks:
                members.append(torch.log_softmax(network(tokens, *masks).logits.float(), dim=-1))
            return torch.stack(members).mean(dim=0) / self.card.temperature

    def array_logits(self, tokens: Ints, mask: Bools | None = None) -> npt.NDArray[np.float32]:
        """As `logits`, from arrays to an array; ``tokens`` may be those (B, R, C) of alignments."""
        import torch

        arrays = (tokens,) if mask is None else (tokens, mask)
        return self.logits(*(torch.from_numpy(one).to(self.device) for one in arrays)).cpu().numpy()
