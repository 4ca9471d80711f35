"""Classify records: a trained model and sequences no longer than its window give predictions.

The score of a record is a function of the record alone: batches are cut by length and padding is masked,
so neighbours, order and batch size change no probability by more than float32 rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from seqray.calibration import Domain, bent, coverage_cutoffs, label_sets
from seqray.core import Card, ConfigError, Floats, InputError, ModelConfig, SequenceRecord
from seqray.core.results import Prediction
from seqray.io.sequences import describe_record
from seqray.modelfile import TrainedModel
from seqray.models import collate, keep_freed_memory, length_buckets

Precision = Literal["fp32", "bf16"]
BatchSize = int | Literal["auto"]

CHUNK_RECORDS, CHUNK_LETTERS = 4096, 1 << 23  # read and answered at once: bounds memory
# fp32 is fastest where a layer's tensors stay in the processor's cache together (measured: 4 to 12 MiB
# apiece). A GPU has no such edge and wants large batches.
ACTIVATION_BYTES = {"cpu": 12 << 20, "cuda": 512 << 20}
# From this many sequences of one length on, a batch of their own is faster than one with padding.
ENOUGH_OF_ONE_LENGTH = 16


def predict_records(
    model: TrainedModel,
    records: Iterable[SequenceRecord],
    *,
    batch_size: BatchSize = "auto",
    threshold: float | None = None,
    prior: float | None = None,
    coverage: float | None = None,
    precision: Precision = "fp32",
    device: torch.device | str | None = None,
    source: str = "",
) -> Iterator[Prediction]:
    """Classify each record, in order, reading some thousand at a time.

    Parameters
    ----------
    model
        See `seqray.load_model`.
    records
        Each no longer than the model's window.
    batch_size
        Sequences computed at once; ``auto`` keeps the largest activation in the processor's fast range.
    threshold
        Probability of the positive class at and above which it is called; the card's where None. For
        models of two classes.
    prior
        Share of the positive class among these records, where it differs from the calibration data: see
        `reweight`.
    coverage
        Share of records of each class whose set of classes, `Prediction.label_set`, shall hold their true
        class: see `seqray.calibration.conformal.Conformal`. The prior changes no set. No sets where None.
    precision
        ``bf16`` is faster on processors that have it and moves logits by about 0.01.
    device
        Where to compute; where the model is by default.
    source
        Name of the file, for errors.

    Raises
    ------
    ConfigError
        For a threshold, prior or coverage that can't be used with this model.
    InputError
        For a record longer than the window or too short for one token.
    """
    check_settings(model.card, threshold, prior, batch_size)
    if device is not None:
        model.to(device)
    answer = answerer(model, threshold, prior, coverage)

    def answers() -> Iterator[Prediction]:
        for chunk in _chunks(checked_records(records, model, source)):
            codes = [model.alphabet.encode(record.sequence) for record in chunk]
            probabilities = score_ragged(model, codes, batch_size, precision)
            yield from answer([record.id for record in chunk], codes, probabilities)

    return answers()


Answerer = Callable[[Sequence[str], Sequence[npt.NDArray[np.uint8]], Floats], Iterator[Prediction]]


def answerer(
    model: TrainedModel, threshold: float | None, prior: float | None, coverage: float | None
) -> Answerer:
    """From ids, letter codes and calibrated probabilities (N, K) to predictions; see `predict_records`."""
    card = model.card
    limit = card.threshold if threshold is None else threshold
    domain = Domain.from_mapping(card.domain) if card.domain else None
    cutoffs = None if coverage is None else coverage_cutoffs(card, coverage)

    def answer(
        ids: Sequence[str], codes: Sequence[npt.NDArray[np.uint8]], probabilities: Floats
    ) -> Iterator[Prediction]:
        sets = _sets(probabilities, cutoffs, card)
        if prior is not None:
            probabilities = reweight(probabilities, card.positive_index, card.prevalence, prior)
        labels = called_labels(probabilities, card, limit)
        flags = _flags(codes, model, domain)
        rows = zip(ids, codes, labels, probabilities.tolist(), flags, sets, strict=True)
        for identifier, letters, label, row, reasons, label_set in rows:
            yield Prediction(identifier, len(letters), label, tuple(row), reasons, label_set)

    return answer


def score_codes(
    model: TrainedModel,
    codes: npt.NDArray[np.uint8],
    *,
    batch_size: BatchSize = "auto",
    precision: Precision = "fp32",
) -> Floats:
    """Probabilities of many sequences of one length: the fast path of a scan.

    Parameters
    ----------
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
    size = micro_batch(model.card.model, length, device) if batch_size == "auto" else batch_size
    with arithmetic(device, precision):
        for start in range(0, count, size):
            part = codes[start : start + size]
            tokens = torch.from_numpy(tokenizer.encode_codes(filled_up(part, size)))
            probabilities[start : start + size] = _probabilities(model, tokens.to(device))[: len(part)]
    return bent(probabilities, model.card)


def filled_up(codes: npt.NDArray[np.uint8], size: int) -> npt.NDArray[np.uint8]:
    """Repeat rows until the number of rows is one of a few.

    Kernels are compiled and kept for each batch size that they meet: the odd remainders of a genome scan
    would cost seconds and a gigabyte. Rows don't see each other, so the answer stays the same.
    """
    steps = (step for power in range(3, size.bit_length()) for step in (1 << power, 3 << (power - 1)))
    wanted = next((step for step in steps if len(codes) <= step <= size), size)
    return codes if len(codes) == wanted else np.resize(codes, (wanted, codes.shape[1]))


def reweight(probabilities: Floats, positive: int, prevalence: float, prior: float) -> Floats:
    """Probabilities for data in which the positive class is more or less common than in calibration.

    The log-odds of the positive class against the rest move by logit(prior) - logit(prevalence); the other
    classes keep their ratios.

    Parameters
    ----------
    probabilities
        (N, K).
    positive
        Column of the positive class.
    prevalence
        Its share in the calibration data.
    prior
        Its share in the data at hand.

    References
    ----------
    Saerens et al. 2002, Adjusting the outputs of a classifier to new a priori probabilities.
    """
    weights = np.full(probabilities.shape[1], (1 - prior) / (1 - prevalence))
    weights[positive] = prior / prevalence
    weighted = probabilities * weights
    return weighted / weighted.sum(axis=1, keepdims=True)


def micro_batch(config: ModelConfig, letters: int, device: torch.device | str = "cpu") -> int:
    """Number of sequences of that length whose largest activation stays below the limit of the device."""
    limit = ACTIVATION_BYTES.get(torch.device(device).type, ACTIVATION_BYTES["cuda"])
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


def check_settings(card: Card, threshold: float | None, prior: float | None, batch_size: BatchSize) -> None:
    if threshold is not None and not 0 <= threshold <= 1:
        raise ConfigError(f"the threshold is {threshold:g}", remedy="give a probability between 0 and 1")
    if threshold is not None and len(card.classes) > 2:
        raise ConfigError(
            f"model '{card.name}' has {len(card.classes)} classes and takes no threshold",
            remedy="the class of highest probability is called",
        )
    if prior is not None and not 0 < prior < 1:
        raise ConfigError(f"the prior is {prior:g}", remedy="give a share above 0 and below 1")
    if prior is not None and not 0 < card.prevalence < 1:
        raise ConfigError(f"model '{card.name}' records no prevalence to re-weight from")
    if batch_size != "auto" and batch_size < 1:
        raise ConfigError(f"the batch size is {batch_size}", remedy="give 1 or more, or 'auto'")


def checked_records(
    records: Iterable[SequenceRecord], model: TrainedModel, source: str
) -> Iterator[SequenceRecord]:
    """Pass records on that the model can read, and refuse those that it can't."""
    card, tokenizer = model.card, model.tokenizer
    for record in records:
        where = describe_record(source, record.id) if source else f"record '{record.id}'"
        if len(record) > card.window:
            raise InputError(
                f"has {len(record)} letters, model '{card.name}' reads at most {card.window}",
                where=where,
                remedy=f"cut it to {card.window} letters"
                if card.site is None
                else "find sites in longer sequences with 'seqray scan'",
            )
        if len(record) == 0:
            raise InputError("has no letters", where=where)
        try:
            tokenizer.check(record.sequence)
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


def score_ragged(
    model: TrainedModel, codes: Sequence[npt.NDArray[np.uint8]], batch_size: BatchSize, precision: Precision
) -> Floats:
    """Probabilities (N, K) of sequences of any lengths, in their order."""
    tokenizer, device, config = model.tokenizer, model.device, model.card.model
    tokens = [tokenizer.encode_codes(one) for one in codes]
    probabilities = np.empty((len(codes), config.classes))
    with arithmetic(device, precision):
        for group in _one_length_or_rest(np.array([len(one) for one in codes])):
            lengths = np.array([len(tokens[i]) for i in group])
            if batch_size == "auto":
                # Activations grow a little slower than tokens, so the shortest sequence gives a safe rate.
                shortest = min(len(codes[i]) for i in group)
                size = micro_batch(config, shortest, device)
                buckets = length_buckets(lengths, size, size * int(lengths.min()))
            else:
                buckets = length_buckets(lengths, batch_size, batch_size * int(lengths.max()))
            for bucket in buckets:
                rows = group[bucket]
                batch = collate([tokens[i] for i in rows]).to(device)
                probabilities[rows] = _probabilities(model, batch.tokens, batch.mask)
    return bent(probabilities, model.card)


def _one_length_or_rest(lengths: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    """Indices of sequences that share a length with enough others, per length; then all the others."""
    values, group, counts = np.unique(lengths, return_inverse=True, return_counts=True)
    common = counts >= ENOUGH_OF_ONE_LENGTH
    groups = [np.flatnonzero(group == i) for i in range(len(values)) if common[i]]
    rest = np.flatnonzero(~common[group])
    return [*groups, rest] if len(rest) else groups


def _probabilities(model: TrainedModel, tokens: Tensor, mask: Tensor | None = None) -> Floats:
    return torch.softmax(model.logits(tokens, mask).double(), dim=-1).cpu().numpy()


def _sets(probabilities: Floats, cutoffs: Floats | None, card: Card) -> Sequence[tuple[str, ...] | None]:
    return (
        [None] * len(probabilities) if cutoffs is None else label_sets(probabilities, cutoffs, card.classes)
    )


@contextmanager
def arithmetic(device: torch.device, precision: Precision) -> Iterator[None]:
    """Autocast to bf16, or float32 that is float32: a GPU's convolutions would round to TF32 by default."""
    if device.type == "cpu":
        keep_freed_memory()
    with ExitStack() as stack:
        if precision == "bf16":
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
        elif device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
        yield


def called_labels(probabilities: Floats, card: Card, threshold: float) -> list[str]:
    """Name the class called for each row of (N, K) probabilities."""
    if len(card.classes) > 2:
        return [card.classes[i] for i in probabilities.argmax(axis=1)]
    other = card.classes[1 - card.positive_index]
    called = probabilities[:, card.positive_index] >= threshold
    return [card.positive if positive else other for positive in called]


def _flags(
    codes: Sequence[npt.NDArray[np.uint8]], model: TrainedModel, domain: Domain | None
) -> list[tuple[str, ...]]:
    """Reasons for caution: ``ambiguous=N`` and what the model's domain says, or ``short`` without one."""
    if domain:
        reasons = domain.flags_of(codes)
    else:
        reasons = [("short",) if len(one) < model.card.window else () for one in codes]
    unknown = [int((one == model.alphabet.unknown).sum()) for one in codes]
    return [(f"ambiguous={n}", *others) if n else others for n, others in zip(unknown, reasons, strict=True)]
