"""Writes a model as an ONNX file for other programs, after a comparison with torch."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from seqray.core.card import Card, card_to_json
from seqray.core.errors import ConfigError, InputError, ModelFileError, missing_package
from seqray.core.model_config import LETTERS_PER_TOKEN
from seqray.io.files import write_file
from seqray.modelfile.model import SELF_TEST_TOLERANCE, TrainedModel
from seqray.models.tokenizers import CLS, FIRST_LETTER, PAD, UNK, make_tokenizer, pad_arrays

if TYPE_CHECKING:
    import onnx

Inputs = dict[str, npt.NDArray[Any]]

_CHECKED_LENGTHS = 64  # from a few letters to the window
_LONG_STRAND = 4500  # tokens, more than a scan reads at once


def require_graph(card: Card) -> None:
    """Refuse models of alignments and backbones, which can't be converted, by the card alone."""
    if not card.model.is_plain and not card.model.is_locator:
        kind = "uses a backbone" if card.model.backbone else "reads alignments"
        raise ConfigError(
            f"model '{card.name}' {kind} and cannot be converted to ONNX",
            remedy="use torch, or a model of genomes or sequences",
        )


def build_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """As `seqray.inference.onnx_networks.make_graph`; ConfigError where ``onnx`` is not installed."""
    require_graph(model.card)
    try:
        from seqray.inference.onnx_networks import make_graph
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise missing_package("onnx", "onnx") from None
    return make_graph(model, masked=masked)


def export_onnx(model: TrainedModel, path: str | Path) -> float:
    """Write one graph with all members and the calibration, and return how near it is to torch.

    The same model gives the same bytes; nothing is written where the logits differ. The metadata of the file
    hold the card as ``seqray_card``, the sha256 of the model file as ``seqray_model_sha256``, and as
    ``seqray_tokens`` how letters become tokens.
    """
    if Path(path).suffix != ".onnx":
        raise InputError("does not end in .onnx", where=str(path), remedy="use .onnx")
    graph = build_graph(model)
    metadata = {
        "seqray_card": card_to_json(model.card),
        "seqray_model_sha256": model.sha256,
        "seqray_tokens": json.dumps(_reading_rules(model), sort_keys=True),
    }
    for key, value in metadata.items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    content = graph.SerializeToString(deterministic=True)
    difference = check_graph(model, content)
    write_file(path, content)
    return difference


def _reading_rules(model: TrainedModel) -> dict[str, object]:
    """How letters become the inputs of the graph."""
    settings, letters = model.card.model, model.alphabet.letters
    if model.is_locator:
        return {
            "letters": letters,
            "unknown": model.alphabet.unknown,
            "tracks": settings.tracks,
            "multiple": LETTERS_PER_TOKEN,
            "radius": settings.radius,
        }
    beyond = make_tokenizer(settings).vocab_size
    return {
        "tokenizer": settings.tokenizer,
        "k": settings.k,
        "letters": letters,
        "first_letter": FIRST_LETTER,
        "CLS": CLS,
        "PAD": PAD,
        "UNK": UNK,
        "contexts": {name: beyond + i for i, name in enumerate(settings.contexts)},
    }


def check_graph(model: TrainedModel, content: bytes) -> float:
    """Largest difference of a logit from torch, in the self-test and in sequences of many lengths."""
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise missing_package("onnxruntime", "onnx") from None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    largest = 0.0
    answer = model.site_logits if model.is_locator else model.logits
    for inputs in _stretches(model) if model.is_locator else _padded_batches(model):
        expected = answer(*inputs.values())
        [logits] = session.run(["logits"], inputs)
        difference = np.abs(np.asarray(logits) - expected)
        if not (difference <= SELF_TEST_TOLERANCE * (1 + np.abs(expected))).all():
            raise ModelFileError(
                f"model '{model.card.name}' can't be exported: the graph differs by {difference.max():.3g}"
            )
        largest = max(largest, float(difference.max()))
    return largest


def _stretches(model: TrainedModel) -> Iterator[Inputs]:
    """Letters and tracks of strands: of one token, about one window of attention, and more than a chunk."""
    rng, settings = np.random.default_rng(0), model.card.model
    block = LETTERS_PER_TOKEN * (settings.locator.window if settings.locator else 1)
    for tokens in (1, block // 4 - 1, block // 4, block // 4 + 1, 1000, _LONG_STRAND):
        shape = (2, LETTERS_PER_TOKEN * max(tokens, 1))
        letters = rng.integers(0, len(model.alphabet.letters) + 1, shape).astype(np.uint8)
        inputs: Inputs = {"letters": letters}
        if count := len(settings.tracks):
            tracks = rng.integers(0, 256, (2, count, shape[1]))
            tracks[:, :, : shape[1] // 2] *= rng.integers(0, 2, (2, count, 1))  # whole tracks are 0
            inputs["tracks"] = tracks.astype(np.uint8)
        yield inputs


def _padded_batches(model: TrainedModel) -> Iterator[Inputs]:
    """Tokens and masks: each sequence of the self-test alone, and all of them with shorter ones, padded."""
    sequences = [str(s) for s in model.card.self_test.get("sequences", ())]
    contexts = [*model.card.self_test.get("contexts", ()), *[None] * len(sequences)][: len(sequences)]
    rng = np.random.default_rng(0)
    lengths = np.unique(np.linspace(model.card.model.k, model.card.window, _CHECKED_LENGTHS).astype(int))
    rows = [model.with_context(c).tokenizer.encode(s) for s, c in zip(sequences, contexts, strict=True)]
    plain, count = model.with_context(None).tokenizer, len(model.alphabet.letters)
    drawn = [plain.encode_codes(rng.integers(0, count + 1, n).astype(np.uint8)) for n in lengths]
    for batch in (*([row] for row in rows), rows + drawn):
        tokens, (mask,) = pad_arrays(batch)
        yield {"tokens": tokens, "mask": np.ones(tokens.shape, dtype=bool) if mask is None else mask}
