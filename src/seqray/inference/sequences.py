"""Classify records: a trained model and sequences no longer than its window give predictions.

The score of a record is a function of the record alone: batches are cut by length and padding is masked,
so neighbors and order change no probability by more than float32 rounding. On the CPU, the number of threads
and the batch size that is asked for change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from seqray.calibration.domain import Domain
from seqray.calibration.isotonic import apply_isotonic
from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.errors import InputError, require_type
from seqray.core.model_config import ModelConfig
from seqray.core.records import SequenceRecord, require_record
from seqray.core.results import Prediction
from seqray.core.text import truncate
from seqray.inference.engines import EngineModel
from seqray.inference.predictions import (
    BatchSize,
    Dtype,
    PredictOptions,
    compute_precision,
    flag_codes,
    map_batches,
    map_threads,
    prediction_builder,
)
from seqray.io.records import describe_record
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import pad_arrays, size_buckets

if TYPE_CHECKING:
    import torch

Part = TypeVar("Part")


TRUNCATED = "truncated"
"""Flag of a record of which the model reads a part, see `Card.truncate`."""
CHUNK_RECORDS, CHUNK_LETTERS = 4096, 1 << 23  # read and scored at once: bounds memory
# fp32 is fastest where a layer's tensors stay in the processor's cache together (measured: 4 to 12 MiB
# apiece). A GPU has no such limit and is faster with large batches.
ACTIVATION_BYTES = {"cpu": 6 << 20, "cuda": 512 << 20}
# From this many sequences of one length on, a batch of their own is faster than one with padding.
MIN_SAME_LENGTH_BATCH = 16


def predict_records(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    options: PredictOptions | None = None,
    *,
    device: torch.device | str | None = None,
    source: str = "",
    **settings: Any,
) -> Iterator[Prediction]:
    """Classify each record, in order, reading some thousand at a time.

    Parameters
    ----------
    model
        See `seqray.load_model`.
    records
        Longer ones are cut by the rule of the card, see `Card.truncate`, and get the flag ``truncated``.
    options
        How to compute and call.
    device
        Where to compute; where the model is by default.
    source
        Name of the file, for errors.
    **settings
        Fields of `PredictOptions`, in place of ``options``.

    Raises
    ------
    ConfigError
        For a threshold, prior or coverage that can't be used with this model.
    InputError
        For a record too short for one token, or longer than the window if the card has no rule to cut it.
    """
    require_type(model, TrainedModel, "load it by seqray.load_model")
    chosen = options or PredictOptions(**settings)
    if device is not None:
        model.to(device)

    def score(codes: Sequence[Codes]) -> Floats:
        return score_ragged(model, codes, chosen.batch_size, chosen.dtype)

    build = prediction_builder(model, chosen)

    def answer(chunk: Sequence[SequenceRecord]) -> Iterator[Prediction]:
        codes = [model.read_codes(one.sequence, describe_record(source, one.id)) for one in chunk]
        named = [(one.id, read) for one, read in zip(chunk, codes, strict=True)]
        return map(_with_whole_length, chunk, build(named, score(codes)))

    chunks = _chunks(checked_records(records, model, source))
    return (prediction for chunk in chunks for prediction in answer(chunk))


def _with_whole_length(record: SequenceRecord, prediction: Prediction) -> Prediction:
    """Give the length of a record that was cut, and flag it."""
    if prediction.length == len(record):
        return prediction
    return replace(prediction, length=len(record), flags=(*prediction.flags, TRUNCATED))


def sequence_flags(model: TrainedModel) -> Callable[[str], tuple[str, ...]]:
    """Make a function from a sequence to the flags that `predict_records` gives it."""
    domain, window = Domain.of(model.card), model.card.window

    def flags_of(sequence: str) -> tuple[str, ...]:
        [flags] = flag_codes([model.read_codes(sequence)], model, domain)
        return (*flags, TRUNCATED) if len(sequence) > window else flags

    return flags_of


def score_codes(
    model: TrainedModel,
    codes: Codes,
    *,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
) -> Floats:
    """Probabilities of many sequences of one length: the fast path of a scan.

    Parameters
    ----------
    model, batch_size, dtype
        Model of sequences; the others as in `PredictOptions`.
    codes
        (N, W) letter codes of the model's alphabet, N may be 0; a strided view costs nothing extra.

    Returns
    -------
    array of float64, shape (N, K)
        Calibrated probabilities, rows sum to 1.
    """
    tokenizer, device = model.tokenizer, model.device
    count, length = codes.shape
    probabilities = np.empty((count, model.card.model.classes))
    if count == 0:
        return probabilities
    size = chosen_batch(batch_size, device) or micro_batch(model.card.model, length, device)

    def compute(start: int) -> None:
        part = codes[start : start + size]
        tokens = tokenizer.encode_codes(pad_batch(part, size))
        probabilities[start : start + size] = _probabilities(model, tokens, None, dtype)[: len(part)]

    _map(model, compute, range(0, count, size))
    return apply_isotonic(probabilities, model.card)


def chosen_batch(batch_size: BatchSize, device: torch.device) -> int | None:
    """Size of the batches, or None where the work decides.

    So it is on the CPU, whatever was asked for: the last digits of a result depend on the size of its batch,
    and must not depend on a setting.
    """
    return None if batch_size == "auto" or device.type == "cpu" else batch_size


def pad_batch(codes: Codes, size: int) -> Codes:
    """Repeat rows until their number is one of a few.

    Kernels are compiled and kept for each batch size: the odd remainders of a genome scan would cost seconds
    and a gigabyte. Rows are computed independently, so their results stay the same.
    """
    steps = (step for power in range(3, size.bit_length()) for step in (1 << power, 3 << (power - 1)))
    wanted = next((step for step in steps if len(codes) <= step <= size), size)
    return codes if len(codes) == wanted else np.resize(codes, (wanted, codes.shape[1]))


def micro_batch(config: ModelConfig, letters: int, device: torch.device | str = "cpu") -> int:
    """Number of sequences whose largest activation stays below the limit of the device.

    Parameters
    ----------
    config
        Widths of the network.
    letters
        Length of the sequences.
    device
        Determines the limit.
    """
    kind = device.split(":")[0] if isinstance(device, str) else device.type
    limit = ACTIVATION_BYTES.get(kind, ACTIVATION_BYTES["cuda"])
    return max(1, limit // _activation_bytes(config, letters))


def _activation_bytes(config: ModelConfig, letters: int) -> int:
    """Size of the largest float32 tensor that one sequence makes on its way."""
    if config.backbone is not None:
        return 4 * (letters + 2) * 4 * config.backbone.width  # at most a token a letter, 4 D wide inside
    stride = config.stem.stride if config.stem else 1
    tokens = 1 + math.ceil(letters / stride)
    head_width = config.d_model // config.heads
    qkv = (config.heads + 2 * (config.kv_heads or config.heads)) * head_width
    widest = tokens * max(config.d_ff or 4 * config.d_model, qkv)
    stem = (tokens - 1) * stride * config.d_model if config.stem else 0  # letters, filled up to whole tokens
    return 4 * max(widest, stem)


def checked_records(
    records: Iterable[SequenceRecord], model: TrainedModel, source: str
) -> Iterator[SequenceRecord]:
    """Yield the records, whole; raise InputError for one that the model can't read.

    Parameters
    ----------
    records, model
        Records to check, and the model that limits letters and length.
    source
        Name of the file, for messages; empty if unknown.
    """
    card, tokenizer = model.card, model.tokenizer
    for record in map(require_record, records):
        where = describe_record(source, record.id)
        if len(record) > card.window and card.truncate == "none":
            raise InputError(
                f"has {len(record)} letters, model '{card.name}' reads at most {card.window}",
                where=where,
                remedy="cut all that are longer by truncate='ends'"
                if card.site is None
                else "find sites in longer sequences with 'seqray scan'",
            )
        if len(record) == 0:
            raise InputError("has no letters", where=where)
        try:
            tokenizer.check(truncate(record.sequence, card.window, card.truncate))
        except InputError as error:
            raise InputError(error.what, where=where, remedy=error.remedy) from None
        yield record


def _chunks(records: Iterable[SequenceRecord]) -> Iterator[list[SequenceRecord]]:
    chunk: list[SequenceRecord] = []
    letters = 0
    for record in records:
        chunk.append(record)
        letters += len(record)
        if len(chunk) == CHUNK_RECORDS or letters >= CHUNK_LETTERS:
            yield chunk
            chunk, letters = [], 0
    if chunk:
        yield chunk


def score_ragged(model: TrainedModel, codes: Sequence[Codes], batch_size: BatchSize, dtype: Dtype) -> Floats:
    """Probabilities (N, K) of sequences of any lengths, in their order.

    Parameters
    ----------
    model, codes
        Model with its device, and N arrays of letter codes.
    batch_size, dtype
        As in `PredictOptions`.
    """
    tokenizer, device, config = model.tokenizer, model.device, model.card.model
    tokens = [tokenizer.encode_codes(one) for one in codes]
    probabilities = np.empty((len(codes), config.classes))
    size = chosen_batch(batch_size, device)
    batches: list[Ints] = []
    for group in _one_length_or_rest(np.array([len(one) for one in codes])):
        lengths = np.array([len(tokens[i]) for i in group])
        if size is None:
            # Activations grow a little slower than tokens, so the shortest sequence gives a safe rate.
            most = micro_batch(config, min(len(codes[i]) for i in group), device)
            buckets = size_buckets(lengths, most, most * int(lengths.min()))
        else:
            buckets = size_buckets(lengths, size, size * int(lengths.max()))
        batches += [group[bucket] for bucket in buckets]

    def compute(rows: Ints) -> None:
        padded, masks = pad_arrays([tokens[i] for i in rows])
        probabilities[rows] = _probabilities(model, padded, masks[0], dtype)

    _map(model, compute, batches)
    return apply_isotonic(probabilities, model.card)


def _one_length_or_rest(lengths: Ints) -> list[Ints]:
    """Indices of sequences that share a length with enough others, per length; then all the others."""
    values, group, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    common = counts >= MIN_SAME_LENGTH_BATCH
    groups = [np.flatnonzero(group == i) for i in range(len(values)) if common[i]]
    rest = np.flatnonzero(~common[group])
    return [*groups, rest] if len(rest) else groups


def _map(model: TrainedModel, compute: Callable[[Part], None], parts: Sequence[Part]) -> None:
    """Compute the parts, several at a time, by the threads of the engine."""
    if isinstance(model, EngineModel):
        map_threads(compute, parts, model.threads)
    else:
        map_batches(compute, parts, model.device)


def _probabilities(
    model: TrainedModel, tokens: Ints, mask: Bools | None = None, dtype: Dtype = "fp32"
) -> Floats:
    """Softmax of the logits: (B, K) float64."""
    with nullcontext() if isinstance(model, EngineModel) else compute_precision(model.device, dtype):
        logits = model.array_logits(tokens, mask).astype(np.float64)
    return softmax(logits)


def softmax(logits: Floats) -> Floats:
    """Over the last axis."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)
