"""Whether windows are cut around another place than the site of a model: shift a few, and count calls."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqray.core import Codes
from seqray.inference.sequences import score_ragged
from seqray.modelfile import TrainedModel

STEP = 5  # letters between the shifts that are tried first; models tolerate two
SEARCHED, TESTED = 24, 128  # windows to find a shift with, and others to test it on
MIN_WINDOWS = 50
MAX_P_VALUE = 1e-4
MIN_GAIN = 0.05  # share of the windows that the shift must add to the calls
_SEED = 20_240_229


@dataclass(frozen=True, slots=True)
class ShiftedSite:
    """Windows that are called more often when shifted.

    ``site`` is the 0-based place in the windows where the sites seem to lie. Of the windows tested,
    ``before`` were called positive as they are, and ``after`` when shifted.
    """

    site: int
    windows: int
    before: int
    after: int


def find_shifted_site(model: TrainedModel, windows: Sequence[Codes]) -> ShiftedSite | None:
    """Find the place of sites in windows that were cut around another one; None if it is the model's.

    A window that is shifted by s letters loses s letters at one end and gets those of another window at the
    other. Some windows choose the shift with the highest mean probability of the positive class, in steps of
    `STEP` letters and then of one, up to a third of the window. Others test this shift alone: windows that
    only the shift calls against those that only it does not call, by a one-sided sign test. About 600 windows
    of 81 letters are computed, or 1,200 of 251.

    Parameters
    ----------
    model
        With a site (`Card.site`).
    windows
        Letter codes of records; those of another length than the model's window are ignored.
    """
    card = model.card
    whole = [codes for codes in windows if len(codes) == card.window]
    if card.site is None or model.is_locator or len(whole) < MIN_WINDOWS:
        return None
    rng = np.random.default_rng(_SEED)
    rows = np.stack([whole[i] for i in rng.permutation(len(whole))[: SEARCHED + TESTED]])
    ends = np.roll(rows, 1, axis=0)
    searched, tested = slice(SEARCHED), slice(SEARCHED, None)
    shift = _best_shift(model, rows[searched], ends[searched])
    if not shift:
        return None
    before, after = (_called(model, _shifted(rows[tested], ends[tested], s)) for s in (0, shift))
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    if gained - lost < MIN_GAIN * len(before) or _sign_test(gained, lost) > MAX_P_VALUE:
        return None
    return ShiftedSite(card.site + shift, len(before), int(before.sum()), int(after.sum()))


def _best_shift(model: TrainedModel, rows: Codes, ends: Codes) -> int:
    """Shift with the highest mean probability; 0 where no other is higher."""
    width = model.card.window
    farthest = width // 3 // STEP * STEP
    means = {0: _positive(model, rows).mean()}

    def best(shifts: Sequence[int]) -> int:
        for shift in shifts:
            if shift not in means and 0 <= (model.card.site or 0) + shift < width:
                means[shift] = _positive(model, _shifted(rows, ends, shift)).mean()
        return max(means, key=lambda shift: (means[shift], -abs(shift)))

    near = best(range(-farthest, farthest + 1, STEP))
    return best(range(near - STEP // 2, near + STEP // 2 + 1)) if near else 0


def _shifted(rows: Codes, ends: Codes, shift: int) -> Codes:
    """Windows whose letters come from ``shift`` places later; letters of ``ends`` fill the gap."""
    places = np.arange(rows.shape[1]) + shift
    inside = (places >= 0) & (places < rows.shape[1])
    return np.where(inside, np.take(rows, places, axis=1, mode="clip"), ends)


def _positive(model: TrainedModel, rows: Codes) -> np.ndarray:
    return score_ragged(model, list(rows), "auto", "fp32")[:, model.card.positive_index]


def _called(model: TrainedModel, rows: Codes) -> np.ndarray:
    return _positive(model, rows) >= model.card.threshold


def _sign_test(more: int, fewer: int) -> float:
    """Probability that so many of all changes, or more, are of the first kind if both are as likely."""
    n = more + fewer
    return sum(math.comb(n, k) for k in range(more, n + 1)) / 2**n
