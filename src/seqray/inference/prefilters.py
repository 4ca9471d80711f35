"""Answers of a prefilter along a strand."""

from __future__ import annotations

import numpy as np
from threadpoolctl import threadpool_limits

from seqray.core import Codes, Floats
from seqray.inference.engines import EngineModel
from seqray.inference.parallel import map_threads
from seqray.modelfile import TrainedModel

_WINDOWS_A_PART = 1 << 14


def prefilter_log_odds(model: TrainedModel, codes: Codes) -> Floats:
    """What the prefilter of a model answers for every window of a strand, by all threads.

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
    prefilter, context = model.prefilter, model.context_number
    if prefilter is None:
        raise ValueError(f"model '{model.card.name}' has no prefilter")
    answers = np.empty(len(codes) - prefilter.window + 1)

    def compute(start: int) -> None:
        part = codes[start : start + _WINDOWS_A_PART + prefilter.window - 1]
        answers[start : start + _WINDOWS_A_PART] = prefilter.log_odds(part, context)

    with threadpool_limits(1, "blas"):  # each part in one thread
        map_threads(compute, range(0, len(answers), _WINDOWS_A_PART), _count_threads(model))
    return answers


def _count_threads(model: TrainedModel) -> int:
    """As many as the model has on the CPU, also where it is on a GPU."""
    if isinstance(model, EngineModel):
        return model.threads
    import torch  # which models of other engines do without

    return torch.get_num_threads()
