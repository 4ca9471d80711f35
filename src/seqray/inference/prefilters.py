"""Answers of a prefilter: of its first network along a strand, and of its second for single windows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from seqray.core import Codes, Floats
from seqray.inference.engines import EngineModel
from seqray.inference.parallel import map_threads
from seqray.modelfile import TrainedModel
from seqray.models import Prefilter

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
