"""A trained model: its card, its networks, its tokenizer, its self-test."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from seqray.core.alphabet import ALPHABETS, Alphabet, decode_columns, encode_columns
from seqray.core.arrays import Bools, Codes, Ints
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError, ModelFileError
from seqray.core.model_config import ModelConfig
from seqray.core.text import Truncation, counted, first_and_more, headline_metric, round_number, truncate
from seqray.modelfile.header import read_content, read_header
from seqray.models.prefilter import PREFIX, Prefilter, read_prefilter
from seqray.models.tokenizers import AlignmentTokenizer, Tokenizer, context_index, make_tokenizer

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from seqray.models.locator import LocatorTransformer
    from seqray.models.sequence import Network, SequenceNetwork


def build_tokenizer(config: ModelConfig, context: str | None = None) -> Tokenizer:
    """Make the tokenizer for sequences of one context or of none."""
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
    # name and version of what computes, if that is not torch, and how many batches it computes at a time
    engine: str = ""
    threads: int = 1

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
        kind = "sequence" if card.model.reads_sequences else card.model.kind
        limit = f" (from a probability of {card.threshold:.3f})" if len(card.classes) == 2 else ""
        windows = f"{kind}s of {letters}, {card.window} positions at a time"
        return {
            "model": card.name,
            "purpose": card.summary or "no summary",
            "reads": f"genomes of {letters}" if self.is_locator else windows,
            "networks": counted(card.members, "network") + (f" of {weights:,} weights" if weights else ""),
            "classes": first_and_more(card.classes, 12) + limit,
            "measured": headline_metric(card.metrics, card.training),
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
    def is_locator(self) -> bool:
        """Whether the model scores every position of a strand."""
        return self.card.model.is_locator

    @property
    def sequence_networks(self) -> tuple[SequenceNetwork, ...]:
        """The members of a model of sequences. Raises ConfigError for a model of alignments."""
        from seqray.models.sequence import SequenceNetwork

        self.check_reads_sequences()
        return tuple(one for one in self.networks if isinstance(one, SequenceNetwork))

    @property
    def locators(self) -> tuple[LocatorTransformer, ...]:
        """The members of a locator. Raises ConfigError for a model of another kind."""
        from seqray.models.locator import LocatorTransformer

        if not self.is_locator:
            raise ConfigError(
                f"model '{self.card.name}' reads {self.card.model.kind}s",
                remedy="give a model for genomes, such as 'bacteria-genome'",
            )
        return tuple(one for one in self.networks if isinstance(one, LocatorTransformer))

    def check_reads_sequences(self) -> None:
        """Refuse a model of alignments, or a locator. Raises ConfigError, naming the model."""
        if self.is_locator:
            remedy = "only 'seqray scan' and 'seqray explain' take models for genomes"
            raise ConfigError(f"model '{self.card.name}' is a model for genomes", remedy=remedy)
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
        """Return the same model for sequences of one context, such as a species; None for unknown ones."""
        settings = self.card.model
        full = None if name is None else settings.contexts[context_index(settings, name)]
        return replace(self, context=full)

    def with_truncation(self, rule: Truncation | None) -> TrainedModel:
        """Return the same model with another rule for sequences that are too long; None changes nothing."""
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
        """Letter codes (n,) of what the networks read of a sequence, at most as many as the window."""
        return self.alphabet.encode(truncate(sequence, self.card.window, self.card.truncate), where)

    def arrays(self) -> tuple[Mapping[str, npt.NDArray[np.floating]], ...]:
        """Weights of each member, by the names of its state dict."""
        return tuple(
            {name: value.detach().cpu().numpy() for name, value in network.state_dict().items()}
            for network in self.networks
        )

    def locate(self, letters: Tensor, tracks: Tensor | None = None) -> Tensor:
        """Calibrated logits (B, L, K) along a strand of codes (B, L), L a multiple of 4, genes or None."""
        import torch

        with torch.inference_mode():
            embedded = self.locators[0].embed(letters, tracks)  # which all members read alike
            members = [net.scores(net.locate(embedded)) for net in self.locators]
            return torch.stack(members).mean(dim=0) / self.card.temperature

    def site_logits(
        self, codes: Codes, tracks: npt.NDArray[np.uint8] | None = None
    ) -> npt.NDArray[np.float32]:
        """As `locate`, of arrays."""
        import torch

        rows = None if tracks is None else torch.from_numpy(tracks).to(self.device)
        return self.locate(torch.from_numpy(codes).to(self.device), rows).cpu().numpy()

    def logits(self, tokens: Ints, *masks: Bools | None) -> npt.NDArray[np.float32]:
        """Calibrated logits (B, K): the mean over members of log-probabilities, divided by the temperature.

        Tokens are (B, L) with CLS first, or (B, R, C) of alignments; masks are True at real tokens, None
        where nothing is padded.
        """
        import torch

        given = [
            None if one is None else torch.as_tensor(one, device=self.device) for one in (tokens, *masks)
        ]
        with torch.inference_mode():
            members = [torch.log_softmax(net(*given).logits.float(), dim=-1) for net in self.networks]
            return (torch.stack(members).mean(dim=0) / self.card.temperature).cpu().numpy()


# --- A model whose weights stay arrays: for engines that compute without torch


@dataclass(frozen=True)
class _Cpu:
    """As ``torch.device("cpu")``, without torch."""

    type: str = "cpu"
    index: int | None = None

    def __str__(self) -> str:
        return self.type


@dataclass(frozen=True, eq=False, repr=False)
class StoredModel(TrainedModel):
    """A model without networks; ``weights`` are those of each member, by the names of its state dict."""

    weights: tuple[Mapping[str, npt.NDArray[np.floating]], ...] = field(default=(), kw_only=True)

    @property
    def device(self) -> Any:
        return super().device if self.networks else _Cpu()

    def member(self, number: int) -> Self:
        return replace(super().member(number), weights=self.weights[number : number + 1])

    def arrays(self) -> tuple[Mapping[str, npt.NDArray[np.floating]], ...]:
        return self.weights


def open_stored_model(path: str | Path) -> StoredModel:
    """Read a model file and compare its checksum; its weights are checked by what computes with them."""
    header = read_header(path)
    card = header.card
    content = read_content(header, path)
    try:
        arrays = load_arrays(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"can't be read ({str(error).splitlines()[0]})", where=str(path)) from None
    own = {name: arrays.pop(name) for name in [*arrays] if name.startswith(PREFIX)}
    prefilter = read_prefilter(card, own, str(path)) if own or card.prefilter else None
    members = tuple[dict[str, Any], ...]({} for _ in range(card.members))
    for name, value in arrays.items():
        prefix, number, rest = (*name.split(".", 2), "", "")[:3]
        if prefix != "member" or not number.isdecimal() or int(number) >= len(members):
            raise ModelFileError(f"has unknown tensors, such as '{name}'", where=str(path))
        members[int(number)][rest] = value
    sha256 = hashlib.sha256(content).hexdigest()
    return StoredModel(card, (), sha256, prefilter=prefilter, weights=members)


# --- The self-test: synthetic inputs, kept as text in the card, and what is expected of them

SELF_TEST_TOLERANCE = 1e-4  # absolute and relative: float32 on another processor stays far below
_SEED = 20_240_229
_COUNT, _COLUMNS = 4, 60
_MAX_INPUT_LENGTH = 20_000  # letters: a file must not decide how long its check takes


def make_self_test(model: TrainedModel) -> dict[str, list]:
    """Make synthetic inputs of a fixed seed, and the logits and answers of a prefilter to them."""
    texts = _draw(model.card)
    facts: dict[str, list] = {"sequences": texts}
    if model.card.model.contexts:
        facts["contexts"] = [*[None] * len(texts), model.card.model.contexts[-1]]
        texts.append(texts[-1])
    models = [model.with_context(context) for context in facts.get("contexts", [None] * len(texts))]
    pairs = [*zip(models, texts, strict=True)]
    facts["logits"] = [[round_number(x, 8) for x in _logits(*pair).tolist()] for pair in pairs]
    if model.prefilter is not None:
        facts["prefilter"] = [[round_number(x, 8) for x in _prefilter_answers(*pair)] for pair in pairs]
    return facts


def check_self_test(model: TrainedModel, where: str = "") -> float:
    """Compare logits and answers of a prefilter with those of the card; return the largest difference."""
    card, facts = model.card, model.card.self_test
    difference = limit = np.zeros(0)
    try:
        texts, contexts = facts["sequences"], facts.get("contexts", [])
        expected = np.asarray(facts["logits"], dtype=np.float64)  # (N, K), then (N, K + P)
        if (
            not 1 <= len(texts) <= _COUNT + 1
            or not all(isinstance(text, str) and _fits(card, text) for text in texts)
            or not all(context is None or context in card.model.contexts for context in contexts)
            or len(contexts) not in (0, len(texts))
            or expected.shape != (len(texts), len(card.classes))
        ):
            raise ValueError("no self-test")
        answers = []
        for text, context in zip(texts, contexts or [None] * len(texts), strict=True):
            reader = model.with_context(context)
            logits = _logits(reader, text).tolist()
            answers.append([round_number(x, 8) for x in (*logits, *_prefilter_answers(reader, text))])
        if card.prefilter:
            own = np.asarray(facts["prefilter"], dtype=np.float64).reshape(len(texts), -1)
            expected = np.hstack((expected, own))
        difference = np.abs(np.asarray(answers) - expected)
        limit = SELF_TEST_TOLERANCE * (1 + np.abs(expected))
    except (InputError, KeyError, OverflowError, TypeError, ValueError):
        raise ModelFileError("holds no usable self-test", where=where) from None
    if not (difference <= limit).all():
        raise ModelFileError(
            f"fails its self-test: answers differ from the expected ones by up to {difference.max():.3g}",
            where=where,
            remedy="copy or download it again; if it persists, report the processor and the torch version",
        )
    return float(difference.max())


def _draw(card: Card) -> list[str]:
    """Full windows, the last one with an ambiguous letter, and first a half window; or small alignments."""
    rng, alphabet = np.random.default_rng(_SEED), ALPHABETS[card.model.alphabet]
    if card.model.reads_alignments:
        texts = []
        for rows in range(1, _COUNT + 1):
            size = (min(rows, card.model.max_rows), min(card.window, _COLUMNS))
            codes = rng.integers(0, alphabet.missing + 1, size=size).astype(np.uint8)
            texts.append("\n".join(decode_columns(row, alphabet) for row in codes))
        return texts
    length = min(card.window, _MAX_INPUT_LENGTH)
    codes = rng.integers(0, len(alphabet.letters), size=(_COUNT, length)).astype(np.uint8)
    codes[-1, length // 3] = alphabet.unknown
    sequences = [alphabet.decode(row) for row in codes]
    return [sequences[0][: (length + 1) // 2], *sequences[1:]]


def _fits(card: Card, text: str) -> bool:
    """Whether an input is no larger than those that are drawn; a locator reads at least four letters."""
    rows = text.split("\n")
    most = _COUNT if card.model.reads_alignments else 1
    least = 4 if card.model.is_locator else 1
    return len(rows) <= most and all(least <= len(row) <= min(card.window, _MAX_INPUT_LENGTH) for row in rows)


def _logits(model: TrainedModel, text: str) -> npt.NDArray[np.float32]:
    """Logits (K,) of one input; of a locator, those of the middle of a sequence."""
    if model.is_locator:
        codes = model.alphabet.encode(text[: len(text) // 4 * 4])[None]
        rows = np.arange(len(model.card.model.tracks))[:, None]
        # Tracks (1, T, L) that follow from the letters let every weight count.
        tracks = ((codes[:, None].astype(np.int64) + 1) * (rows + 3) * 37 % 256).astype(np.uint8)
        return model.site_logits(codes, tracks)[0, codes.shape[1] // 2]
    if model.card.model.reads_alignments:
        lines = text.encode().split(b"\n")
        codes = encode_columns(lines, [str(i) for i in range(len(lines))], model.alphabet, "self-test")
        tokens = AlignmentTokenizer(model.alphabet).encode(codes)[None]
    else:
        tokens = np.asarray(model.tokenizer.encode(text), dtype=np.int64)[None]
    if model.engine:  # beside another row: what an engine takes for the wrong axis shows in a batch alone
        tokens = np.concatenate((tokens, np.hstack((tokens[:, :1], tokens[:, :0:-1]))))
    return model.logits(tokens)[0]


def _prefilter_answers(model: TrainedModel, text: str) -> list[float]:
    """What each network of a prefilter answers for a text, as long as a window; nothing without one."""
    if model.prefilter is None:
        return []
    codes = np.full((1, model.prefilter.window), model.alphabet.unknown, np.uint8)
    codes[0, : len(text)] = model.alphabet.encode(text)
    with np.errstate(all="ignore"):  # forged weights, whose answers are not as expected
        networks = model.prefilter.networks
        return [float(one.window_log_odds(codes, model.context_number)[0]) for one in networks]
