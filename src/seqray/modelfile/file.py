"""One safetensors file: the weights of up to five networks and their card. Never a pickle.

Tensors are called ``member.<i>.<name in the state dict>``. The card is JSON under the metadata key
``seqray_card``; it carries the sha256 of itself and the tensors, and a self-test: a few synthetic sequences
with the logits that they must give. The same content gives the same bytes.
"""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors, save as serialize
from torch import Tensor

from seqray.core import (
    ALPHABETS,
    Alphabet,
    Card,
    ConfigError,
    ModelFileError,
    card_to_json,
    decode_columns,
    encode_columns,
    missing_code,
)
from seqray.io import open_output
from seqray.modelfile.backbones import BACKBONE_VARIABLE
from seqray.modelfile.header import CARD_KEY, CHECKSUM_KEY, Header, read_card, read_header
from seqray.modelfile.networks import Network, SequenceNetwork, build_network
from seqray.modelfile.tokenization import tokenizer_for
from seqray.models import AxialTransformer
from seqray.models.tokenizers import AlignmentTokenizer, Tokenizer, context_index

__all__ = ["TrainedModel", "load_model_file", "read_card", "save_model"]

SELF_TEST_TOLERANCE = 1e-4  # absolute and relative: float32 on another processor stays far below
_SELF_TEST_SEED = 20_240_229
_SELF_TEST_COLUMNS = 60


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model ready to classify.

    Attributes
    ----------
    card
        What it is, and its calibration.
    networks
        The members, in evaluation mode, without gradients.
    sha256
        Of the file; empty for a model that was never saved.
    context
        What the sequences are, of the names in ``card.model.contexts``; None where nothing is known.
    """

    card: Card
    networks: tuple[Network, ...]
    sha256: str = ""
    context: str | None = None

    def __post_init__(self) -> None:
        for network in self.networks:
            network.eval().requires_grad_(False)

    @property
    def alphabet(self) -> Alphabet:
        """The letters that the model reads."""
        return ALPHABETS[self.card.model.alphabet]

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """Turns letters into the tokens of the networks.

        Raises
        ------
        ConfigError
            For a model of alignments.
        """
        self.check_reads_sequences()
        return tokenizer_for(self.card.model, self.context)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.networks[0].parameters()).device

    @property
    def readers(self) -> tuple[SequenceNetwork, ...]:
        """The members of a model of sequences.

        Raises
        ------
        ConfigError
            For a model of alignments.
        """
        self.check_reads_sequences()
        return tuple(one for one in self.networks if not isinstance(one, AxialTransformer))

    def check_reads_sequences(self) -> None:
        """Refuse a model of alignments.

        Raises
        ------
        ConfigError
            Naming the model.
        """
        if self.card.model.kind == "alignment":
            raise ConfigError(
                f"model '{self.card.name}' reads alignments", remedy="give a model that reads sequences"
            )

    def to(self, device: torch.device | str) -> TrainedModel:
        """Move the networks to a device, in place; returns the model itself."""
        for network in self.networks:
            network.to(device)
        return self

    def with_context(self, name: str | None) -> TrainedModel:
        """Return the same model for sequences of one context, such as a species; None for unknown ones.

        Raises
        ------
        ConfigError
            For a context that the model doesn't know, see `seqray.models.tokenizers.context_index`.
        """
        known = self.card.model
        full = None if name is None else known.contexts[context_index(known, name)]
        return replace(self, context=full)

    @torch.inference_mode()
    def logits(self, tokens: Tensor, *masks: Tensor | None) -> Tensor:
        """Return calibrated logits: the mean over members of log-probabilities, divided by the temperature.

        Parameters
        ----------
        tokens
            (B, L) int64 with CLS first, or (B, R, C) of alignments, on the device of the model.
        masks
            (B, L) bool, True at real tokens, or those of rows (B, R) and columns (B, C); None where nothing
            is padded.

        Returns
        -------
        Tensor
            (B, K) float32; its softmax is the calibrated probability.
        """
        members = [torch.log_softmax(net(tokens, *masks).logits.float(), dim=-1) for net in self.networks]
        return torch.stack(members).mean(dim=0) / self.card.temperature


def make_self_test(model: TrainedModel, count: int = 4) -> dict[str, list]:
    """Make synthetic sequences and the logits that the model gives for them.

    The letters are drawn at random from a fixed seed: full windows, one of them with an ambiguous letter, and
    a half window. A model that knows contexts gets the last sequence once more, in the last of them. A model
    of alignments gets alignments, a line a row.
    """
    rng = np.random.default_rng(_SELF_TEST_SEED)
    alphabet, window = model.alphabet, model.card.window
    if model.card.model.kind == "alignment":
        texts = [_made_alignment(model, rows, rng) for rows in range(1, count + 1)]
        return {"sequences": texts, "logits": _logits_of(model, texts)}
    codes = rng.integers(0, len(alphabet.letters), size=(count, window)).astype(np.uint8)
    codes[-1, window // 3] = alphabet.unknown
    sequences = [alphabet.decode(row) for row in codes]
    sequences[0] = sequences[0][: (window + 1) // 2]
    if not model.card.model.contexts:
        return {"sequences": sequences, "logits": _logits_of(model, sequences)}
    sequences.append(sequences[-1])
    contexts = [*[None] * count, model.card.model.contexts[-1]]
    logits = _logits_of(model, sequences, contexts)
    return {"sequences": sequences, "contexts": contexts, "logits": logits}


def _made_alignment(model: TrainedModel, rows: int, rng: np.random.Generator) -> str:
    """Letters, gaps and missing data at random: rows of up to 60 columns, a line each."""
    size = (min(rows, model.card.model.max_rows), min(model.card.window, _SELF_TEST_COLUMNS))
    codes = rng.integers(0, missing_code(model.alphabet) + 1, size=size).astype(np.uint8)
    return "\n".join(decode_columns(row, model.alphabet) for row in codes)


def _logits_of(
    model: TrainedModel, sequences: Sequence[str], contexts: Sequence[str | None] = ()
) -> list[list[float]]:
    rows = []
    for sequence, context in itertools.zip_longest(sequences, contexts):
        if model.card.model.kind == "alignment":
            lines = sequence.encode().split(b"\n")
            codes = encode_columns(lines, [str(i) for i in range(len(lines))], model.alphabet, "self-test")
            encoded = AlignmentTokenizer(model.alphabet).encode(codes)
        else:
            encoded = model.with_context(context).tokenizer.encode(sequence)
        tokens = torch.from_numpy(np.asarray(encoded, dtype=np.int64))
        logits = model.logits(tokens[None].to(model.device))[0]
        rows.append([float(f"{value:.8g}") for value in logits.tolist()])
    return rows


def save_model(path: str | Path, networks: Sequence[Network], card: Card) -> Card:
    """Write a model file, by way of a temporary file beside it.

    Parameters
    ----------
    path
        Ends in ``.safetensors``.
    networks
        The members, as many as the card says.
    card
        Its self-test is made anew.

    Returns
    -------
    Card
        The card as written.

    Raises
    ------
    ModelFileError
        Where the networks don't fit the card, hold a number that is not finite, or the name ends otherwise.
    InputError
        Where the file can't be written.
    """
    if Path(path).suffix != ".safetensors":
        raise ModelFileError("a model file ends in .safetensors", where=str(path))
    if len(networks) != card.members:
        raise ModelFileError(f"the card says {card.members} members, {len(networks)} were given")
    copies = tuple(copy.deepcopy(network).cpu() for network in networks)  # the caller's stay as they are
    card = replace(card, self_test=make_self_test(TrainedModel(card, copies)))
    content = _file_bytes(networks, card)
    with open_output(path) as handle:
        handle.write(content)
    return card


def _file_bytes(networks: Sequence[Network], card: Card) -> bytes:
    tensors = _named_tensors(networks)
    card_json = card_to_json(card)
    draft = serialize(tensors)
    data = memoryview(draft)[8 + int.from_bytes(draft[:8], "little") :]
    signed = json.loads(card_json) | {CHECKSUM_KEY: _checksum(card_json, data)}
    # One metadata key only: safetensors writes several in no fixed order.
    return serialize(tensors, {CARD_KEY: json.dumps(signed, sort_keys=True, separators=(",", ":"))})


def _named_tensors(networks: Sequence[Network]) -> dict[str, Tensor]:
    tensors = {}
    for i, network in enumerate(networks):
        for name, value in sorted(network.state_dict().items()):
            if not bool(torch.isfinite(value).all()):
                raise ModelFileError(f"member {i} can't be saved: '{name}' holds a number that is not finite")
            tensors[f"member.{i}.{name}"] = value.detach().cpu().contiguous().clone()
    return tensors


def _checksum(card_json: str, data: bytes | memoryview) -> str:
    digest = hashlib.sha256(card_json.encode())
    digest.update(data)
    return digest.hexdigest()


def load_model_file(path: str | Path, backbone: str | Path | None = None) -> TrainedModel:
    """Load a model file onto the CPU and check it.

    Nothing in the file runs and no network is asked. The random state of torch is left as it was.

    Parameters
    ----------
    path
        The file.
    backbone
        Where the directory lies now that a model with a backbone stands on; by default what the environment
        variable ``SEQRAY_BACKBONE`` names, else where it lay in training.

    Raises
    ------
    ModelFileError
        For a file that is missing, foreign (a pickle is refused unread), damaged, of a newer format, with
        tensors that don't fit the card, or that fails its self-test.
    ConfigError
        For a backbone that is missing or another one, or given to a model that stands on none.
    """
    header = _with_backbone(read_header(path), backbone)
    content = Path(path).read_bytes()
    if _checksum(header.card_json, memoryview(content)[header.data_start :]) != header.checksum:
        raise ModelFileError(
            "is damaged: its checksum does not match", where=str(path), remedy="copy or download it again"
        )
    networks = _build_members(header, content, str(path))
    model = TrainedModel(header.card, networks, hashlib.sha256(content).hexdigest())
    check_self_test(model, str(path))
    return model


def _with_backbone(header: Header, place: str | Path | None) -> Header:
    """Put the place of a backbone's directory into the card, where it isn't the recorded one."""
    model = header.card.model
    if model.backbone is None:
        if place is not None:
            raise ConfigError(f"model '{header.card.name}' stands on no backbone", remedy="leave it out")
        return header
    place = place or os.environ.get(BACKBONE_VARIABLE) or model.backbone.path
    known = replace(model.backbone, path=str(Path(place).resolve()))
    return replace(header, card=replace(header.card, model=replace(model, backbone=known)))


def _build_members(header: Header, content: bytes, where: str) -> tuple[Network, ...]:
    try:
        tensors = load_tensors(content)
    except (SafetensorError, ValueError, RuntimeError) as error:
        raise ModelFileError(f"can't be read ({str(error).splitlines()[0]})", where=where) from None
    with torch.random.fork_rng(devices=[]):
        networks = tuple(build_network(header.card.model) for _ in range(header.card.members))
    states = [network.state_dict() for network in networks]
    expected = {
        f"member.{i}.{name}": value for i, state in enumerate(states) for name, value in state.items()
    }
    _compare(expected, tensors, where)
    for i, network in enumerate(networks):
        prefix = f"member.{i}."
        network.load_state_dict(
            {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
        )
    return networks


def _compare(expected: Mapping[str, Tensor], found: Mapping[str, Tensor], where: str) -> None:
    """Refuse missing, extra and misshapen tensors."""
    missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    if missing:
        raise ModelFileError(f"lacks {len(missing)} tensors, such as '{min(missing)}'", where=where)
    if extra:
        raise ModelFileError(f"has {len(extra)} unknown tensors, such as '{min(extra)}'", where=where)
    for name, value in expected.items():
        if value.shape != found[name].shape:
            shapes = f"{tuple(found[name].shape)} where the card asks for {tuple(value.shape)}"
            raise ModelFileError(f"tensor '{name}' is {shapes}", where=where)


def check_self_test(model: TrainedModel, where: str = "") -> float:
    """Compare the logits of the self-test with those that the card expects.

    Returns
    -------
    float
        Largest absolute difference.

    Raises
    ------
    ModelFileError
        Where one differs by more than 1e-4 + 1e-4 times its size, or the card holds no self-test.
    """
    try:
        sequences = [str(s) for s in model.card.self_test["sequences"]]
        expected = np.asarray(model.card.self_test["logits"], dtype=np.float64)
        contexts = model.card.self_test.get("contexts", ())
        if not sequences or expected.shape != (len(sequences), len(model.card.classes)):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ModelFileError("holds no usable self-test", where=where) from None
    difference = np.abs(np.asarray(_logits_of(model, sequences, contexts)) - expected)
    if not (difference <= SELF_TEST_TOLERANCE * (1 + np.abs(expected))).all():
        raise ModelFileError(
            f"fails its self-test: logits differ from the expected ones by up to {difference.max():.3g}",
            where=where,
            remedy="copy or download it again; if it persists, report the processor and the torch version",
        )
    return float(difference.max())
