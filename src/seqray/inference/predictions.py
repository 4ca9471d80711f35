"""From calibrated probabilities to predictions, and batches side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from seqray.calibration.conformal import coverage_cutoffs, label_sets
from seqray.calibration.domain import flag_sequences
from seqray.core.arrays import Codes, Floats
from seqray.core.card import Card
from seqray.core.card_parts import Domain
from seqray.core.errors import ConfigError, require_number
from seqray.core.results import Prediction
from seqray.modelfile.model import TrainedModel

if TYPE_CHECKING:
    import torch

Dtype = Literal["fp32", "bf16"]
BatchSize = int | Literal["auto"]
TRUNCATED = "truncated"
"""Flag of a record of which the model reads a part, see `Card.truncate`."""


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
        for name in ("threshold", "prior", "coverage"):
            require_number(getattr(self, name), name)
        if self.threshold is not None and not 0 <= self.threshold <= 1:
            raise ConfigError(
                f"the threshold is {self.threshold:g}", remedy="give a probability between 0 and 1"
            )
        if self.prior is not None and not 0 < self.prior < 1:
            raise ConfigError(f"the prior is {self.prior:g}", remedy="give a share above 0 and below 1")
        if self.batch_size != "auto":
            require_number(self.batch_size, "batch_size", whole=True, least=1)
        require_number(self.rows, "rows", whole=True, least=1)


class Read(NamedTuple):
    """What a model reads of a record: letter codes (n,), the length of all, and whether more is left out."""

    id: str
    codes: Codes
    length: int
    is_cut: bool


def prediction_builder(
    model: TrainedModel, options: PredictOptions
) -> Callable[[Sequence[Read], Floats], list[Prediction]]:
    """Make a function from what was read of N records, and calibrated probabilities (N, K), to predictions.

    Raises ConfigError for options that the model does not support.
    """
    card, prior = model.card, options.prior
    if options.threshold is not None and len(card.classes) > 2:
        raise ConfigError(
            f"model '{card.name}' has {len(card.classes)} classes and takes no threshold",
            remedy="the class of highest probability is called",
        )
    if prior is not None and not 0 < card.prevalence < 1:
        raise ConfigError(f"model '{card.name}' records no prevalence to re-weight from")
    threshold = card.threshold if options.threshold is None else options.threshold
    domain = card.domain
    cutoffs = None if options.coverage is None else coverage_cutoffs(card, options.coverage)

    def build(records: Sequence[Read], probabilities: Floats) -> list[Prediction]:
        sets: Sequence[tuple[str, ...] | None] = [None] * len(records)
        if cutoffs is not None:
            sets = label_sets(probabilities, cutoffs, card.classes)
        if prior is not None:
            probabilities = reweight(probabilities, card.positive_index, card.prevalence, prior)
        labels = called_labels(probabilities, card, threshold)
        flags = flags_of(records, model, domain)
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
    """Probabilities (N, K) for data in which the positive class is more or less common than in calibration.

    The log-odds of the positive class against the rest move by logit(prior) - logit(prevalence); the other
    classes keep their ratios. Source: Saerens et al. 2002, Adjusting the outputs of a classifier to new a
    priori probabilities.
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


def flags_of(records: Sequence[Read], model: TrainedModel, domain: Domain | None) -> list[tuple[str, ...]]:
    """Reasons for caution: ``ambiguous=N``, those of the domain (or ``short``), and ``truncated``."""
    codes = [read.codes for read in records]
    if domain:
        reasons = flag_sequences(domain, codes)
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
    """Results of all parts, in their order; on the CPU, as many at a time as torch has threads.

    ``compute`` is called in any thread, and enters what it needs of torch, such as `compute_precision`.
    """
    import torch

    workers = torch.get_num_threads() if device.type == "cpu" else 1
    with _one_thread(device):
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
def _one_thread(device: torch.device) -> Iterator[None]:
    """Let torch compute in one thread, on the CPU."""
    import torch

    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def compute_precision(device: torch.device, dtype: Dtype) -> Iterator[None]:
    """Let torch compute in bf16, or in float32 that is float32; in one thread on the CPU.

    A GPU's convolutions would round to TF32 by default.
    """
    import torch

    from seqray.models.attention import keep_freed_memory

    if device.type == "cpu":
        keep_freed_memory()
    with ExitStack() as stack:
        stack.enter_context(_one_thread(device))
        if dtype == "bf16":
            stack.enter_context(torch.autocast(device.type, dtype=torch.bfloat16))
        elif device.type == "cuda":
            stack.enter_context(torch.backends.cudnn.flags(enabled=True, allow_tf32=False))
        yield
