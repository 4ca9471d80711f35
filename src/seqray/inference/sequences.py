"""From records to predictions: a score depends on the record alone, on a CPU to the last bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from seqray.calibration.conformal import coverage_cutoffs, label_sets
from seqray.calibration.domain import flag_sequences
from seqray.core import errors
from seqray.core.arrays import Bools, Codes, Floats, Ints, log_probabilities
from seqray.core.card import Card
from seqray.core.errors import ConfigError, InputError
from seqray.core.host import as_guest, one_thread
from seqray.core.model_config import ModelConfig
from seqray.core.records import SequenceRecord
from seqray.core.results import Prediction, SkippedRecord
from seqray.core.text import truncate
from seqray.io.records import OnSkip, describe_record
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import Prefilter
from seqray.models.tokenizers import context_index, pad_arrays, size_buckets

if TYPE_CHECKING:
    import torch

Dtype = Literal["fp32", "bf16"]
BatchSize = int | Literal["auto"]
TRUNCATED = "truncated"  # flag of a record of which the model reads a part, see `Card.truncate`


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictOptions:
    """How records are computed and called."""

    # records computed at once on a GPU; ``auto`` keeps the largest activation in its fast range, as it is
    # always done on the CPU
    batch_size: BatchSize = "auto"
    dtype: Dtype = "fp32"  # ``bf16`` is faster on processors that support it and moves logits by about 0.01
    # probability at or above which the positive class is called; the card's where None. For models of two
    # classes
    threshold: float | None = None
    # share of the positive class among these records, where it differs from the calibration data: see
    # `reweight`
    prior: float | None = None
    # share of records of each class whose set of classes, `Prediction.label_set`, shall hold their true
    # class: see `seqray.calibration.conformal`. The prior changes no set. No sets where None
    coverage: float | None = None
    # of alignments: most rows to read, the query counted; 1 is the query alone. The model's number if None
    rows: int | None = None

    def __post_init__(self) -> None:
        errors.use_python_numbers(self)
        for name in ("threshold", "prior", "coverage"):
            errors.require_number(getattr(self, name), name)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ConfigError(
                f"the threshold is {self.threshold:g}", remedy="give a probability between 0 and 1"
            )
        if self.prior is not None and not 0 < self.prior < 1:
            raise ConfigError(f"the prior is {self.prior:g}", remedy="give a share above 0 and below 1")
        if self.batch_size != "auto":
            errors.require_number(self.batch_size, "batch_size", whole=True, least=1)
        errors.require_number(self.rows, "rows", whole=True, least=1)


# --- Records to predictions


@as_guest
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
    errors.require_type(model, TrainedModel, "load it by seqray.load_model")
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
    records: Iterable[SequenceRecord], model: TrainedModel, source: str, on_skip: OnSkip | None = None
) -> Iterator[SequenceRecord]:
    """Yield whole records of a file; one that can't be read is for ``on_skip``, else an InputError."""
    remedy = "give other forms to seqray.predict, seqray.scan or seqray.explain"
    for record in records:
        errors.require_type(record, SequenceRecord, remedy)
        try:
            _check_record(record, model)
        except InputError as error:
            if on_skip is None:
                where = describe_record(source, record.id)
                raise InputError(error.what, where=where, remedy=error.remedy) from None
            on_skip(SkippedRecord(record.id, error.what))
            continue
        yield record


def _check_record(record: SequenceRecord, model: TrainedModel) -> None:
    """Raise InputError for a record that is too long or too short."""
    card = model.card
    if len(record) > card.window and card.truncate == "none":
        skip, cut = errors.setting("skip_unusable", True), errors.setting("truncate", "ends")
        advice = f"find sites in longer sequences with 'seqray scan', or leave them out by {skip}"
        if card.site is None:
            advice = f"leave all that are longer out by {skip}, or read their ends alone by {cut}"
        raise InputError(
            f"has {len(record)} letters, model '{card.name}' reads at most {card.window}",
            remedy=errors.advise("truncate", advice, "shorten it"),
        )
    if len(record) == 0:
        raise InputError("has no letters")
    model.tokenizer.check(truncate(record.sequence, card.window, card.truncate))


def sequence_flags(model: TrainedModel, sequence: str) -> tuple[str, ...]:
    """The flags that `predict_records` gives a sequence."""
    read = Read("", model.read_codes(sequence), len(sequence), len(sequence) > model.card.window)
    return flags_of([read], model)[0]


def known_context(model: TrainedModel, context: str | None) -> str | None:
    """The model's name of a context; None if the model doesn't know it."""
    settings = model.card.model
    if context is None or not settings.contexts:
        return None
    try:
        return settings.contexts[context_index(settings, context)]
    except ConfigError:
        return None


# --- Letter codes to probabilities

CHUNK_RECORDS, CHUNK_LETTERS = 4096, 1 << 23  # read and scored at once: bounds memory
# fp32 is fastest where a layer's tensors stay in the processor's cache together (measured: 4 to 12 MiB
# apiece). A GPU has no such limit and is faster with large batches.
ACTIVATION_BYTES = {"cpu": 6 << 20, "cuda": 512 << 20}
# From this many sequences of one length on, a batch of their own is faster than one with padding.
MIN_SAME_LENGTH_BATCH = 16

Batch = tuple[Sequence[Any], list[Prediction]]
"""Records that were read and scored together, and what was predicted for each."""


def score_codes(
    model: TrainedModel, codes: Codes, *, batch_size: BatchSize = "auto", dtype: Dtype = "fp32"
) -> Floats:
    """Probabilities (N, K) of many sequences (N, W) of one length: the fast path of a scan."""
    count, length = codes.shape
    tokenizer, device = model.tokenizer, model.device
    size = chosen_batch(batch_size, device) or micro_batch(model.card.model, length, device)
    parts = [slice(start, start + size) for start in range(0, count, size)]
    return score_parts(
        model, count, parts, lambda part: (tokenizer.encode_codes(pad_batch(codes[part], size)), ()), dtype
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

    return score_parts(model, len(codes), batches, lambda rows: pad_arrays([tokens[i] for i in rows]), dtype)


def score_parts(
    model: TrainedModel,
    count: int,
    parts: Sequence[Any],
    encode: Callable[[Any], tuple[Ints, Sequence[Bools | None]]],
    dtype: Dtype,
) -> Floats:
    """Calibrated probabilities (N, K) of parts at a time; ``encode`` gives the tokens and masks of one."""
    probabilities = np.empty((count, model.card.model.classes))

    def compute(rows: Any) -> None:
        tokens, masks = encode(rows)
        with nullcontext() if model.engine else compute_precision(model.device, dtype):
            logits = model.logits(tokens, *masks).astype(np.float64)
        target = probabilities[rows]
        probabilities[rows] = softmax(logits)[: len(target)]

    if model.engine:
        map_threads(compute, parts, model.threads)
    else:
        map_batches(compute, parts, model.device)
    return model.card.calibrate(probabilities) if count else probabilities


def chosen_batch(batch_size: BatchSize, device: torch.device) -> int | None:
    """Size of the batches; None, always on the CPU, where the work decides: the last digits depend on it."""
    return None if batch_size == "auto" or device.type == "cpu" else batch_size


def pad_batch(codes: Codes, size: int) -> Codes:
    """Repeat rows until their number is one of a few, for which kernels are compiled and kept."""
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


# --- Probabilities to calls, sets and flags


class Read(NamedTuple):
    """What a model reads of a record: letter codes (n,), the length of all, and whether more is left out."""

    id: str
    codes: Codes
    length: int
    is_cut: bool


def prediction_builder(
    model: TrainedModel, options: PredictOptions
) -> Callable[[Sequence[Read], Floats], list[Prediction]]:
    """Make a function from what was read of N records, and probabilities (N, K), to predictions."""
    card, prior = model.card, options.prior
    if options.threshold is not None and len(card.classes) > 2:
        raise ConfigError(
            f"model '{card.name}' has {len(card.classes)} classes and takes no threshold",
            remedy="the class of highest probability is called",
        )
    if prior is not None and not 0 < card.prevalence < 1:
        raise ConfigError(f"model '{card.name}' records no prevalence to re-weight from")
    threshold = card.threshold if options.threshold is None else options.threshold
    cutoffs = None if options.coverage is None else coverage_cutoffs(card, options.coverage)

    def build(records: Sequence[Read], probabilities: Floats) -> list[Prediction]:
        sets: Sequence[tuple[str, ...] | None] = [None] * len(records)
        if cutoffs is not None:
            sets = label_sets(probabilities, cutoffs, card.classes)
        if prior is not None:
            probabilities = reweight(probabilities, card.positive_index, card.prevalence, prior)
        labels = called_labels(probabilities, card, threshold)
        flags = flags_of(records, model)
        columns = zip(records, labels, probabilities.tolist(), flags, sets, strict=True)
        return [
            Prediction(read.id, read.length, label, tuple(row), reasons, label_set)
            for read, label, row, reasons, label_set in columns
        ]

    return build


def softmax(logits: Floats) -> Floats:
    """Over the last axis. scipy's takes half a second to import, and ``predict`` needs nothing else of it."""
    odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return odds / odds.sum(axis=-1, keepdims=True)


def reweight(probabilities: Floats, positive: int, prevalence: float, prior: float) -> Floats:
    """Probabilities (N, K) for data with another share of positives; other classes keep their ratios.

    Log-odds move by logit(prior) - logit(prevalence) (Saerens et al. 2002, Adjusting the outputs, section 2).
    """
    weights = np.full(probabilities.shape[1], (1 - prior) / (1 - prevalence))
    weights[positive] = prior / prevalence
    weighted = probabilities * weights
    return weighted / weighted.sum(axis=1, keepdims=True)


def called_labels(probabilities: Floats, card: Card, threshold: float) -> list[str]:
    """Name the class called for each row (N, K); of two, the positive one from the threshold on."""
    if len(card.classes) > 2:
        return [card.classes[i] for i in probabilities.argmax(axis=1)]
    other = card.classes[1 - card.positive_index]
    called = probabilities[:, card.positive_index] >= threshold
    return [card.positive if positive else other for positive in called]


def flags_of(records: Sequence[Read], model: TrainedModel) -> list[tuple[str, ...]]:
    """Reasons for caution: ``ambiguous=N``, those of the domain (or ``short``), and ``truncated``."""
    codes = [read.codes for read in records]
    if model.card.domain:
        reasons = flag_sequences(model.card.domain, codes)
    else:
        reasons = [("short",) if len(letters) < model.card.window else () for letters in codes]
    flags = []
    for read, others in zip(records, reasons, strict=True):
        unknown = int((read.codes == model.alphabet.unknown).sum())
        first, last = (f"ambiguous={unknown}",) * bool(unknown), (TRUNCATED,) * read.is_cut
        flags.append((*first, *others, *last))
    return flags


# --- Batches computed at the same time, each in one thread

Part = TypeVar("Part")
Result = TypeVar("Result")


def map_batches(
    compute: Callable[[Part], Result], parts: Sequence[Part], device: torch.device
) -> list[Result]:
    """Results of all parts, in their order; on the CPU, ``compute`` runs in as many threads as torch has."""
    import torch

    workers = torch.get_num_threads() if device.type == "cpu" else 1
    with one_thread() if device.type == "cpu" else nullcontext():
        return map_threads(compute, parts, workers, partial(torch.set_num_threads, 1))


def map_threads(
    compute: Callable[[Part], Result],
    parts: Sequence[Part],
    threads: int,
    initializer: Callable[[], object] | None = None,
) -> list[Result]:
    """Results of all parts, in their order; ``initializer`` is called once in each of the threads."""
    workers = min(threads, len(parts))
    if workers <= 1:
        return [compute(part) for part in parts]
    with ThreadPoolExecutor(workers, initializer=initializer) as pool:
        return list(pool.map(compute, parts))


@contextmanager
def compute_precision(device: torch.device, dtype: Dtype) -> Iterator[None]:
    """Let torch compute in bf16, or in float32, never TF32 of a GPU; in one thread on the CPU."""
    import torch

    from seqray.models.attention import keep_freed_memory

    if device.type == "cpu":
        keep_freed_memory()
    with ExitStack() as stack:
        stack.enter_context(one_thread() if device.type == "cpu" else nullcontext())
        if dtype == "bf16":
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
        elif device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
        yield


# --- Windows that pass a prefilter, and windows scored by one member of a model after the other

_STRAND_PART, _WINDOW_PART = 1 << 14, 1 << 10  # windows that a thread computes at once: of few, all get some


def prefilter_log_odds(model: TrainedModel, codes: Codes) -> Floats:
    """Log-odds (L - W + 1,) by the first network of a prefilter for every window of a strand (L,)."""
    assert isinstance(model.prefilter, Prefilter)
    first, context = model.prefilter.networks[0], model.context_number
    read = _STRAND_PART + first.window - 1
    compute = lambda start: first.log_odds(codes[start : start + read], context)  # noqa: E731
    return _join(model, compute, len(codes) - first.window + 1, _STRAND_PART)


def second_log_odds(model: TrainedModel, windows: Codes) -> Floats:
    """As `prefilter_log_odds`, of its second network for windows from anywhere: (N, W) to (N,)."""
    assert isinstance(model.prefilter, Prefilter)
    second, context = model.prefilter.networks[1], model.context_number
    compute = lambda start: second.window_log_odds(windows[start : start + _WINDOW_PART], context)  # noqa: E731
    return _join(model, compute, len(windows), _WINDOW_PART)


def _join(
    model: TrainedModel, compute: Callable[[int], npt.NDArray[np.floating]], count: int, part: int
) -> Floats:
    """Compute the answers of a number of windows, a part from each start on, by the threads of the model."""
    answers = np.empty(count)

    def fill(start: int) -> None:
        answers[start : start + part] = compute(start)

    if model.engine:
        threads = model.threads
    else:
        import torch  # which models of other engines do without

        threads = torch.get_num_threads()  # also where the model is on a GPU
    with threadpool_limits(1, "blas"):  # each part in one thread
        map_threads(fill, range(0, count, part), threads)
    return answers


def cascade_log_odds(
    model: TrainedModel,
    codes: Codes,
    cutoffs: Sequence[float] = (),
    *,
    second: float | None = None,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
) -> Floats:
    """Log-odds (N, M) of the positive class after the first 1 to M members, calibrated.

    A window below a member's ``cutoffs``, or ``second`` of the prefilter, repeats its last answer.
    """
    count, members, positive = len(codes), model.card.members, model.card.positive_index
    summed = np.zeros((count, model.card.model.classes))
    answers, rest = np.empty((count, members)), np.arange(count)
    if second is not None:
        answers[:] = second_log_odds(model, codes)[:, None]
        rest = rest[answers[:, 0] >= second]
    for number in range(members):
        scores = score_codes(model.member(number), codes[rest], batch_size=batch_size, dtype=dtype)
        summed[rest] += log_probabilities(scores)
        share = model.card.calibrate(softmax(summed[rest] / (number + 1)))[:, positive]
        answers[rest, number:] = (log_probabilities(share) - log_probabilities(1 - share))[:, None]
        if number < len(cutoffs):
            rest = rest[answers[rest, number] >= cutoffs[number]]
    return answers
