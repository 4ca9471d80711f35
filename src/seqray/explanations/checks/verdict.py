"""From the evidence to figures with intervals, and to a sentence that says what they mean."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from seqray.core import Floats, format_interval
from seqray.core.results import Check, Curve, Faithfulness
from seqray.explanations.checks.faithfulness import KINDS, SHARES, Evidence, areas, methods_in

RESAMPLES = 1000
FEW_RECORDS = 20
FEWEST_RECORDS = 6
"""Below this no verdict and no interval: with all records on one side a sign test would still say chance."""
KEPT_LIMIT = 0.5
"""Rank correlation with random weights from which on a ranking is said to come from the architecture."""


def conclude(
    evidence: Evidence, reference: str, target: str, seed: int = 0, *, deed: str = "replacing the letters"
) -> Faithfulness:
    """Sum the evidence up.

    Parameters
    ----------
    evidence
        Of all records.
    reference
        Method that the gains of others are compared with.
    target
        Name of the class explained, for the sentences.
    seed
        Of the bootstrap over records.
    deed
        What was done in the order of the ranks, for the sentences.

    Returns
    -------
    Faithfulness
        Without figures for no record at all, without intervals for fewer than six.
    """
    if not evidence.curves:
        return Faithfulness((), (), {})
    count = len(evidence.curves["random", "deletion"])
    draws = np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
    gains = {method: _gains(evidence, method) for method in methods_in(evidence)}
    checks: list[Check] = []
    for method, by_kind in gains.items():
        for kind in KINDS:
            checks.append(_check(method, f"{kind}_gain", "random", by_kind[kind], draws))
        if method != reference:
            both, best = (gains[m]["deletion"] + gains[m]["insertion"] for m in (method, reference))
            value, low, high = _ratio_interval(both, best, draws)
            checks.append(Check(method, "share_of_reference", reference, value, low, high, count))
    for (method, name, against), values in evidence.agreement.items():
        checks.append(_check(method, name, against, values, draws))
    lines = tuple(
        Curve(method, kind, SHARES, *_mean_interval(values, draws))
        for (method, kind), values in evidence.curves.items()
    )
    verdicts = {method: _verdict(method, checks, target, count, deed) for method in gains}
    return Faithfulness(tuple(checks), lines, verdicts)


def _gains(evidence: Evidence, method: str) -> dict[str, Floats]:
    """Area between the method's curve and the random one, positive where the method does better: (N,)."""
    below = {kind: areas(evidence.curves[method, kind] - evidence.curves["random", kind]) for kind in KINDS}
    return {"deletion": -below["deletion"], "insertion": below["insertion"]}


def _mean_interval(values: Floats, draws: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    """Mean over records (N, ...), those without a figure left out, and its 95 % bootstrap interval."""
    if len(values) < FEWEST_RECORDS:
        unknown = np.full(values.shape[1:], np.nan)
        return _mean(values), unknown, unknown
    means = np.array([_mean(values[draw]) for draw in draws])
    low, high = np.nanquantile(means, (0.025, 0.975), axis=0)
    return _mean(values), np.asarray(low), np.asarray(high)


def _mean(values: Floats) -> Floats:
    """Mean over records (N, ...) that have a figure; nan, without a warning, where none has."""
    known = np.isfinite(values)
    count = known.sum(axis=0)
    return np.where(count > 0, np.where(known, values, 0.0).sum(axis=0) / np.maximum(count, 1), np.nan)


def _check(method: str, measure: str, against: str, values: Floats, draws: npt.NDArray[np.int64]) -> Check:
    """One figure of each record (N,), nan where it has none, as a check."""
    known = int(np.isfinite(values).sum())
    value, low, high = _mean_interval(values, draws) if known else (np.nan,) * 3
    return Check(method, measure, against, float(value), float(low), float(high), known)


def _ratio_interval(above: Floats, below: Floats, draws: npt.NDArray[np.int64]) -> tuple[float, float, float]:
    """Ratio of two sums over records with its interval; nan where the lower one is not above 0."""
    lower = below[draws].sum(axis=1)
    if below.sum() <= 0 or (lower <= 0).any():
        return np.nan, np.nan, np.nan
    low, high = np.quantile(above[draws].sum(axis=1) / lower, (0.025, 0.975))
    if len(above) < FEWEST_RECORDS:
        low = high = np.nan
    return float(above.sum() / below.sum()), float(low), float(high)


def _verdict(method: str, checks: list[Check], target: str, count: int, deed: str) -> str:
    figures = {(c.measure, c.against): c for c in checks if c.method == method}
    deletion, insertion = (figures[f"{kind}_gain", "random"] for kind in KINDS)
    wins = [check.low > 0 for check in (deletion, insertion)]
    few = count < FEWEST_RECORDS
    if few:
        judgement = "is not judged"
    elif all(wins):
        judgement = "beats random rankings"
    elif any(wins):
        judgement = f"beats random rankings in {'deletion' if wins[0] else 'insertion'} only"
    elif max(deletion.high, insertion.high) < 0:
        judgement = "is worse than random rankings"
    else:
        judgement = "does not beat random rankings"
    records = f"{count} record{'s' if count != 1 else ''}"
    text = (
        f"{method} {judgement} on {records}: {deed} that it ranks first lowers the log-odds "
        f"of {target} by {_figure(deletion)} more than random order does, putting them back first raises it "
        f"by {_figure(insertion)} more (mean over the curve{'' if few else ', 95 % interval'})."
    )
    return " ".join([text, *_remarks(figures, count)])


def _figure(check: Check) -> str:
    return f"{check.value:.2f}{format_interval(check.low, check.high, '.2f')}"


def _remarks(figures: dict[tuple[str, str], Check], count: int) -> list[str]:
    remarks = []
    for (name, against), check in figures.items():
        if name == "share_of_reference" and np.isfinite(check.value):
            remarks.append(f"That is {100 * check.value:.0f} % of what {against} gains.")
        if name == "stability" and np.isfinite(check.value):
            remarks.append(f"Members agree with a rank correlation of {check.value:.2f}.")
        if name == "randomised_weights" and check.value >= KEPT_LIMIT:
            remarks.append(
                "Caution: with random weights the ranking stays much the same (rank correlation "
                f"{check.value:.2f}), so it owes more to the network's shape than to what was learned."
            )
    if count < FEWEST_RECORDS:
        remarks.append(f"Whether that is more than chance, {FEWEST_RECORDS} records or more can tell.")
    elif count < FEW_RECORDS:
        remarks.append(f"Caution: {count} records are few for a verdict.")
    return remarks
