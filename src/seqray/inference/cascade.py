"""Score windows by one network after the other, and give up those that are out of reach."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.calibration import apply_isotonic
from seqray.core import Codes, Floats, log_probabilities
from seqray.inference.predictions import BatchSize, Dtype
from seqray.inference.prefilters import second_log_odds
from seqray.inference.sequences import score_codes, softmax
from seqray.modelfile import TrainedModel


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
