"""Windows that pass a prefilter, and windows scored by one member of a model after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from seqray.core.arrays import Codes, Floats, log_probabilities
from seqray.inference.sequences import BatchSize, Dtype, map_threads, score_codes, softmax
from seqray.modelfile.model import TrainedModel
from seqray.models.prefilter import Prefilter

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
    """Log-odds of the positive class after each member of a model; windows out of reach are given up.

    Where the first n members give less than the n-th of ``cutoffs``, the others do not read the window; no
    member does where the second network of the prefilter gives less than ``second``. Gives shape (N, M): From
    the mean log-probabilities of the first 1 to M members, calibrated. Where a window was given up, the
    answer until then is repeated.
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
