"""Classify records: a trained model and sequences no longer than its window give predictions.

The score of a record is a function of the record alone: batches are cut by length and padding is masked,
so neighbors and order change no probability by more than float32 rounding. On the CPU, the number of threads
and the batch size that is asked for change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from seqray.calibration.isotonic import apply_isotonic
from seqray.core.arrays import Bools, Codes, Floats, Ints
from seqray.core.errors import InputError, advise, require_type, setting
from seqray.core.model_config import ModelConfig
from seqray.core.records import SequenceRecord, require_record
from seqray.core.results import Prediction
from seqray.core.text import truncate
from seqray.inference.engines import EngineModel
from seqray.inference.predictions import (
    BatchSize,
    Dtype,
    PredictOptions,
    Read,
    compute_precision,
    flags_of,
    map_batches,
    map_threads,
    prediction_builder,
    softmax,
)
from seqray.io.records import describe_record
from seqray.modelfile.model import TrainedModel
from seqray.models.tokenizers import pad_arrays, size_buckets

if TYPE_CHECKING:
    import torch

CHUNK_RECORDS, CHUNK_LETTERS = 4096, 1 << 23  # read and scored at once: bounds memory
# fp32 is fastest where a layer's tensors stay in the processor's cache together (measured: 4 to 12 MiB
# apiece). A GPU has no such limit and is faster with large batches.
ACTIVATION_BYTES = {"cpu": 6 << 20, "cuda": 512 << 20}
# From this many sequences of one length on, a batch of their own is faster than one with padding.
MIN_SAME_LENGTH_BATCH = 16

Batch = tuple[Sequence[Any], list[Prediction]]
"""Records that were read and scored together, and what was predicted for each."""


# --- Records to predictions


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
    if device is not None:
        model.to(device)
    batches = predict_batches(model, records, options or PredictOptions(**settings), source)
    return (prediction for _, predictions in batches for prediction in predictions)


def predict_batches(
    model: TrainedModel, records: Iterable[SequenceRecord], options: PredictOptions, source: str = ""
) -> Iterator[Batch]:
    """As `predict_records`, in the batches that are read at once."""
    build = prediction_builder(model, options)  # refuses options before anything is read

    def answer(batch: Sequence[SequenceRecord]) -> Batch:
        codes = [model.read_codes(one.sequence, describe_record(source, one.id)) for one in batch]
        scores = score_ragged(model, codes, options.batch_size, options.dtype)
        pairs = zip(batch, codes, strict=True)
        reads = [Read(one.id, letters, len(one), len(one) != len(letters)) for one, letters in pairs]
        return batch, build(reads, scores)

    return map(answer, _batches(checked_records(records, model, source)))


def _batches(records: Iterable[SequenceRecord]) -> Iterator[list[SequenceRecord]]:
    batch: list[SequenceRecord] = []
    letters = 0
    for record in records:
        batch.append(record)
        letters += len(record)
        if len(batch) == CHUNK_RECORDS or letters >= CHUNK_LETTERS:
            yield batch
            batch, letters = [], 0
    if batch:
        yield batch


def checked_records(
    records: Iterable[SequenceRecord], model: TrainedModel, source: str
) -> Iterator[SequenceRecord]:
    """Yield the records, whole; raise InputError for one that the model can't read.

    ``source`` is the name of the file, for messages; empty if unknown.
    """
    card, tokenizer = model.card, model.tokenizer
    for record in map(require_record, records):
        where = describe_record(source, record.id)
        if len(record) > card.window and card.truncate == "none":
            what = f"has {len(record)} letters, model '{card.name}' reads at most {card.window}"
            cut = f"cut all that are longer by {setting('truncate', 'ends')}"
            remedy = advise("truncate", cut, "shorten it")
            if card.site is not None:
                remedy = "find sites in longer sequences with 'seqray scan'"
            raise InputError(what, where=where, remedy=remedy)
        if len(record) == 0:
            raise InputError("has no letters", where=where)
        try:
            tokenizer.check(truncate(record.sequence, card.window, card.truncate))
        except InputError as error:
            raise InputError(error.what, where=where, remedy=error.remedy) from None
        yield record


def sequence_flags(model: TrainedModel) -> Callable[[str], tuple[str, ...]]:
    """Make a function from a sequence to the flags that `predict_records` gives it."""
    domain, window = model.card.domain, model.card.window

    def flags(sequence: str) -> tuple[str, ...]:
        read = Read("", model.read_codes(sequence), len(sequence), len(sequence) > window)
        return flags_of([read], model, domain)[0]

    return flags


# --- Letter codes to probabilities


def score_codes(
    model: TrainedModel, codes: Codes, *, batch_size: BatchSize = "auto", dtype: Dtype = "fp32"
) -> Floats:
    """Probabilities of many sequences of one length: the fast path of a scan.

    `codes`: (N, W) letter codes of the model's alphabet, N may be 0; a strided view costs nothing extra.
    Gives shape (N, K): Calibrated probabilities, rows sum to 1.
    """
    count, length = codes.shape
    tokenizer, device = model.tokenizer, model.device
    size = chosen_batch(batch_size, device) or micro_batch(model.card.model, length, device)
    parts = [slice(start, start + size) for start in range(0, count, size)]
    return _score(
        model, count, parts, lambda part: (tokenizer.encode_codes(pad_batch(codes[part], size)), None), dtype
    )


def score_ragged(model: TrainedModel, codes: Sequence[Codes], batch_size: BatchSize, dtype: Dtype) -> Floats:
    """Calibrated probabilities (N, K) of N sequences of any lengths, in their order."""
    device, config = model.device, model.card.model
    tokens = [model.tokenizer.encode_codes(one) for one in codes]
    size = chosen_batch(batch_size, device)
    # Indices of sequences that share a length with enough others, per length; then all the others.
    values, group, counts = np.unique([len(one) for one in codes], return_inverse=True, return_counts=True)
    common = counts >= MIN_SAME_LENGTH_BATCH
    groups = [np.flatnonzero(group == i) for i in range(len(values)) if common[i]]
    groups += [rest] if len(rest := np.flatnonzero(~common[group])) else []
    batches: list[Ints] = []
    for rows in groups:
        lengths = np.array([len(tokens[i]) for i in rows])
        if size is None:
            # Activations grow a little slower than tokens, so the shortest sequence gives a safe rate.
            most = micro_batch(config, min(len(codes[i]) for i in rows.tolist()), device)
            buckets = size_buckets(lengths, most, most * int(lengths.min()))
        else:
            buckets = size_buckets(lengths, size, size * int(lengths.max()))
        batches += [rows[bucket] for bucket in buckets]

    def encode(rows: Ints) -> tuple[Ints, Bools | None]:
        padded, [mask] = pad_arrays([tokens[i] for i in rows])
        return padded, mask

    return _score(model, len(codes), batches, encode, dtype)


def _score(
    model: TrainedModel,
    count: int,
    parts: Sequence[Any],
    encode: Callable[[Any], tuple[Ints, Bools | None]],
    dtype: Dtype,
) -> Floats:
    """Compute parts of the rows, several at a time; ``encode`` gives tokens and mask, and may add rows."""
    probabilities = np.empty((count, model.card.model.classes))
    elsewhere = isinstance(model, EngineModel)

    def compute(rows: Any) -> None:
        tokens, mask = encode(rows)
        with nullcontext() if elsewhere else compute_precision(model.device, dtype):
            logits = model.array_logits(tokens, mask).astype(np.float64)
        target = probabilities[rows]
        probabilities[rows] = softmax(logits)[: len(target)]

    if elsewhere:
        map_threads(compute, parts, model.threads)
    else:
        map_batches(compute, parts, model.device)
    return apply_isotonic(probabilities, model.card) if count else probabilities


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
    """Number of sequences of so many letters whose largest activation stays below the limit of the device."""
    kind = device.split(":")[0] if isinstance(device, str) else device.type
    limit = ACTIVATION_BYTES.get(kind, ACTIVATION_BYTES["cuda"])
    if config.backbone is not None:  # at most a token a letter, 4 D wide inside
        largest = (letters + 2) * 4 * config.backbone.width
    else:
        stride = config.stem.stride if config.stem else 1
        tokens = 1 + math.ceil(letters / stride)
        head_width = config.d_model // config.heads
        qkv = (config.heads + 2 * (config.kv_heads or config.heads)) * head_width
        # The letters of a stem are filled up to whole tokens.
        stem = (tokens - 1) * stride * config.d_model if config.stem else 0
        largest = max(tokens * max(config.d_ff or 4 * config.d_model, qkv), stem)
    return max(1, limit // (4 * largest))
