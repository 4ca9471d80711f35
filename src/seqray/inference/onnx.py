"""Writes a model as an ONNX file for other programs, after a comparison with torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqray.core.arrays import Bools, Ints
from seqray.core.card import Card, card_to_json
from seqray.core.errors import ConfigError, InputError, ModelFileError, missing_package
from seqray.io.files import write_file
from seqray.modelfile.model import SELF_TEST_TOLERANCE, TrainedModel
from seqray.models.tokenizers import CLS, FIRST_LETTER, PAD, UNK, make_tokenizer, pad_arrays

if TYPE_CHECKING:
    import onnx

_CHECKED_LENGTHS = 64  # from a few letters to the window


def require_graph(card: Card) -> None:
    """Refuse models of alignments, locators and backbones, which can't be converted, by the card alone."""
    if card.model.is_locator:
        remedy = "only 'seqray scan' and 'seqray explain' take locators"
        raise ConfigError(f"model '{card.name}' is a locator", remedy=remedy)
    if not card.model.is_plain:
        kind = "uses a backbone" if card.model.backbone else "reads alignments"
        raise ConfigError(
            f"model '{card.name}' {kind} and cannot be converted to ONNX",
            remedy="use torch, or a model that reads sequences",
        )


def build_graph(model: TrainedModel, *, masked: bool = True) -> onnx.ModelProto:
    """As `seqray.inference.onnx_graph.make_graph`; ConfigError where ``onnx`` is not installed."""
    require_graph(model.card)
    try:
        from seqray.inference.onnx_graph import make_graph
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise missing_package("onnx", "onnx") from None
    return make_graph(model, masked=masked)


def export_onnx(model: TrainedModel, path: str | Path) -> float:
    """Write one graph with all members and the calibration, and return how near it is to torch.

    `path`: ends in ``.onnx``. The same model gives the same bytes. Raises `ConfigError` as `require_graph`
    does, or if the package ``onnx`` or ``onnxruntime`` is not installed. Raises `InputError` if the name has
    another suffix, or the file can't be written. Raises `ModelFileError` if the logits of the graph differ
    from those of the model. Nothing is written.

    Notes
    -----
    The metadata of the file hold the card as ``seqray_card``, the sha256 of the model file as
    ``seqray_model_sha256``, and as ``seqray_tokens`` how letters become tokens.
    """
    if Path(path).suffix != ".onnx":
        raise InputError("does not end in .onnx", where=str(path), remedy="use .onnx")
    graph, settings = build_graph(model), model.card.model
    beyond = make_tokenizer(settings).vocab_size
    tokens = {
        "tokenizer": settings.tokenizer,
        "k": settings.k,
        "letters": model.alphabet.letters,
        "first_letter": FIRST_LETTER,
        "CLS": CLS,
        "PAD": PAD,
        "UNK": UNK,
        "contexts": {name: beyond + i for i, name in enumerate(settings.contexts)},
    }
    metadata = {
        "seqray_card": card_to_json(model.card),
        "seqray_model_sha256": model.sha256,
        "seqray_tokens": json.dumps(tokens, sort_keys=True),
    }
    for key, value in metadata.items():
        entry = graph.metadata_props.add()
        entry.key, entry.value = key, value
    content = graph.SerializeToString(deterministic=True)
    difference = check_graph(model, content)
    write_file(path, content)
    return difference


def check_graph(model: TrainedModel, content: bytes) -> float:
    """Compare a graph with torch: the card's self-test, and a padded batch of sequences of many lengths.

    The result is the largest absolute difference of a logit.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError:
        raise missing_package("onnxruntime", "onnx") from None
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    largest = 0.0
    for tokens, mask in _check_batches(model):
        expected = model.logits(tokens, mask)
        [logits] = session.run(["logits"], {"tokens": tokens, "mask": mask})
        difference = np.abs(np.asarray(logits) - expected)
        if not (difference <= SELF_TEST_TOLERANCE * (1 + np.abs(expected))).all():
            raise ModelFileError(
                f"model '{model.card.name}' can't be exported: the graph differs by {difference.max():.3g}"
            )
        largest = max(largest, float(difference.max()))
    return largest


def _check_batches(model: TrainedModel) -> list[tuple[Ints, Bools]]:
    """Tokens and masks: each sequence of the self-test alone, and all of them with shorter ones, padded."""
    sequences = [str(s) for s in model.card.self_test.get("sequences", ())]
    contexts = [*model.card.self_test.get("contexts", ()), *[None] * len(sequences)][: len(sequences)]
    rng = np.random.default_rng(0)
    lengths = np.unique(np.linspace(model.card.model.k, model.card.window, _CHECKED_LENGTHS).astype(int))
    rows = [model.with_context(c).tokenizer.encode(s) for s, c in zip(sequences, contexts, strict=True)]
    plain, count = model.with_context(None).tokenizer, len(model.alphabet.letters)
    drawn = [plain.encode_codes(rng.integers(0, count + 1, n).astype(np.uint8)) for n in lengths]
    padded = [pad_arrays(batch) for batch in (*([row] for row in rows), rows + drawn)]
    return [
        (tokens, np.ones(tokens.shape, dtype=bool) if mask is None else mask) for tokens, (mask,) in padded
    ]
