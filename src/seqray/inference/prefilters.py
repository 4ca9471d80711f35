"""Windows that pass a prefilter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from seqray.calibration.isotonic import apply_isotonic
from seqray.core.arrays import Codes, Floats, log_probabilities
from seqray.inference.engines import EngineModel
from seqray.inference.predictions import BatchSize, Dtype, map_threads
from seqray.inference.sequences import score_codes, softmax
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import Prefilter

# --- Answers of a prefilter: of its first network along a strand, and of its second for single windows

_STRAND_PART, _WINDOW_PART = 1 << 14, 1 << 10  # windows that a thread computes at once: of few, all get some


def prefilter_log_odds(model: TrainedModel, codes: Codes) -> Floats:
    """What the first network of a prefilter answers for every window of a strand, by all threads.

    Parameters
    ----------
    model
        With a prefilter, in its context.
    codes
        (L,) letter codes of a strand, L at least the window W.

    Returns
    -------
    array of float64, shape (L - W + 1,)
        Log-odds of the positive class, as the model would calibrate them. They depend neither on the number
        of threads nor on where a strand is cut.
    """
    first = _networks_of(model)[0]

    def compute(start: int) -> npt.NDArray[np.floating]:
        part = codes[start : start + _STRAND_PART + first.window - 1]
        return first.log_odds(part, model.context_number)

    return _join(model, compute, len(codes) - first.window + 1, _STRAND_PART)


def second_log_odds(model: TrainedModel, windows: Codes) -> Floats:
    """What the second network of a prefilter answers for windows from anywhere, by all threads.

    Parameters
    ----------
    model
        With a prefilter of two networks, in its context.
    windows
        (N, W) letter codes.

    Returns
    -------
    array of float64, shape (N,)
        As from `prefilter_log_odds`.
    """
    second = _networks_of(model)[1]

    def compute(start: int) -> npt.NDArray[np.floating]:
        return second.window_log_odds(windows[start : start + _WINDOW_PART], model.context_number)

    return _join(model, compute, len(windows), _WINDOW_PART)


def _networks_of(model: TrainedModel) -> tuple[Prefilter, ...]:
    if model.prefilter is None:
        raise ValueError(f"model '{model.card.name}' has no prefilter")
    return model.prefilter.networks


def _join(
    model: TrainedModel, compute: Callable[[int], npt.NDArray[np.floating]], count: int, part: int
) -> Floats:
    """Compute the answers of a number of windows, a part from each start on."""
    answers = np.empty(count)

    def fill(start: int) -> None:
        answers[start : start + part] = compute(start)

    with threadpool_limits(1, "blas"):  # each part in one thread
        map_threads(fill, range(0, count, part), _count_threads(model))
    return answers


def _count_threads(model: TrainedModel) -> int:
    """As many as the model has on the CPU, also where it is on a GPU."""
    if isinstance(model, EngineModel):
        return model.threads
    import torch  # which models of other engines do without

    return torch.get_num_threads()


# --- Score windows by one network after the other, and give up those that are out of reach


def cascade_log_odds(
    model: TrainedModel,
    codes: Codes,
    cutoffs: Sequence[float] = (),
    *,
    second: float | None = None,
    batch_size: BatchSize = "auto",
    dtype: Dtype = "fp32",
) -> Floats:
    """Log-odds of the positive class after each member of a model.

    Parameters
    ----------
    model, codes, batch_size, dtype
        As in `score_codes`.
    cutoffs
        Where the first n members give less than the n-th, the others do not read the window.
    second
        Where the second network of the prefilter gives less, no member reads the window.

    Returns
    -------
    array of float64, shape (N, M)
        From the mean log-probabilities of the first 1 to M members, calibrated. Where a window was given up,
        the answer until then is repeated.
    """
    count, members, positive = len(codes), model.card.members, model.card.positive_index
    summed = np.zeros((count, model.card.model.classes))
    answers, rest = np.empty((count, members)), np.arange(count)
    if second is not None:
        answers[:] = second_log_odds(model, codes)[:, None]
        rest = rest[answers[:, 0] >= second]
    for number in range(members):
        found = score_codes(model.member(number), codes[rest], batch_size=batch_size, dtype=dtype)
        summed[rest] += log_probabilities(found)
        mean = softmax(summed[rest] / (number + 1))
        answers[rest, number:] = _log_odds(apply_isotonic(mean, model.card)[:, positive])[:, None]
        if number < len(cutoffs):
            rest = rest[answers[rest, number] >= cutoffs[number]]
    return answers


def _log_odds(probabilities: Floats) -> Floats:
    return log_probabilities(probabilities) - log_probabilities(1 - probabilities)
