"""From the evidence to figures with intervals, and to a sentence that says what they mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from seqray.core import Floats, counted, format_interval
from seqray.core.results import Check, Curve, Faithfulness
from seqray.explanations.checks.faithfulness import KINDS, SHARES, Evidence, areas
from seqray.metrics import bootstrap_samples, percentile_interval, ratio

_SHARE = "share_of_reference"
RESAMPLES = 1000
MIN_RELIABLE_RECORDS = 20
MIN_RECORDS = 6
"""Fewer have no verdict and no interval: with all records on one side a sign test would still say chance."""
MIN_AGREEMENT = 0.3
"""Below this rank correlation, members disagree."""
MAX_RANDOM_CORRELATION = 0.5
"""At or above this rank correlation with random weights, a ranking reflects the architecture."""


def conclude(
    evidence: Evidence, reference: str, target: str, seed: int = 0, *, deed: str = "replacing the letters"
) -> Faithfulness:
    """Summarize the evidence.

    Parameters
    ----------
    evidence, reference
        Evidence of all records, and the method that the gains of others are compared with.
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
    ratios = _ratios_of_checks(evidence, reference)
    steps = {
        (*key, str(step)): _mean_of(column)
        for key, values in evidence.curves.items()
        for step, column in enumerate(values.T)
    }
    estimates = _bootstrap({**ratios, **steps}, count, seed)
    checks = [Check(*key, *estimates[key], ratio.records) for key, ratio in ratios.items()]
    curves = [
        Curve(*key, SHARES, *np.array([estimates[*key, str(step)] for step in range(len(SHARES))]).T)
        for key in evidence.curves
    ]
    verdicts = {method: _verdict(method, checks, target, count, deed) for method in evidence.methods}
    return Faithfulness(tuple(checks), tuple(curves), verdicts)


class _Ratio(NamedTuple):
    """A figure over records as the ratio of two sums: what each record adds to them, (N,)."""

    above: Floats
    below: Floats
    records: int


def _mean_of(values: Floats) -> _Ratio:
    """The mean over records (N,), those without a figure left out."""
    known = np.isfinite(values)
    return _Ratio(np.where(known, values, 0.0), known.astype(np.float64), int(known.sum()))


def _ratios_of_checks(evidence: Evidence, reference: str) -> dict[tuple[str, str, str], _Ratio]:
    """(method, measure, against) to the figure."""
    gains = {method: _gains(evidence, method) for method in evidence.methods}
    ratios = {}
    for method, by_kind in gains.items():
        for kind in KINDS:
            ratios[method, f"{kind}_gain", "random"] = _mean_of(by_kind[kind])
        if method != reference:
            both, best = (gains[m]["deletion"] + gains[m]["insertion"] for m in (method, reference))
            ratios[method, _SHARE, reference] = _Ratio(both, best, len(both))
    return ratios | {key: _mean_of(values) for key, values in evidence.agreement.items()}


def _gains(evidence: Evidence, method: str) -> dict[str, Floats]:
    """Area between the method's curve and the random one, positive where the method does better: (N,)."""
    below = {kind: areas(evidence.curves[method, kind] - evidence.curves["random", kind]) for kind in KINDS}
    return {"deletion": -below["deletion"], "insertion": below["insertion"]}


def _bootstrap(
    ratios: dict[tuple[str, str, str], _Ratio], count: int, seed: int
) -> dict[tuple[str, str, str], tuple[float, float, float]]:
    """Each figure with its interval; nan without records, and for a share of gains that may be 0 or less."""
    samples = bootstrap_samples(
        lambda w: {key: ratio(w @ r.above, np.maximum(w @ r.below, 0)) for key, r in ratios.items()},
        np.arange(count),
        RESAMPLES,
        seed,
        one_by_one=True,
    )
    estimates = {}
    for key, (value, draws) in samples.items():
        low, high = percentile_interval(draws) if count >= MIN_RECORDS else (np.nan, np.nan)
        undefined = key[1] == _SHARE and np.isnan(draws).any()
        estimates[key] = (np.nan,) * 3 if undefined else (value, low, high)
    return estimates


def _verdict(method: str, checks: list[Check], target: str, count: int, deed: str) -> str:
    figures = {(c.measure, c.against): c for c in checks if c.method == method}
    deletion, insertion = (figures[f"{kind}_gain", "random"] for kind in KINDS)
    wins = [check.low > 0 for check in (deletion, insertion)]
    few = count < MIN_RECORDS
    if few:
        judgment = "is not judged"
    elif all(wins):
        judgment = "beats random rankings"
    elif any(wins):
        judgment = f"beats random rankings in {'deletion' if wins[0] else 'insertion'} only"
    elif max(deletion.high, insertion.high) < 0:
        judgment = "is worse than random rankings"
    else:
        judgment = "does not beat random rankings"
    text = (
        f"{method} {judgment} on {counted(count, 'record')}: {deed} that it ranks first lowers the log-odds "
        f"of {target} by {_figure(deletion)} more than random order does, putting them back first raises it "
        f"by {_figure(insertion)} more (mean over the curve{'' if few else ', 95 % interval'})."
    )
    return " ".join([text, *_remarks(figures, count)])


def _figure(check: Check) -> str:
    return f"{check.value:.2f}{format_interval(check.low, check.high, '.2f')}"


def _remarks(figures: dict[tuple[str, str], Check], count: int) -> list[str]:
    remarks = []
    for (name, against), check in figures.items():
        if name == _SHARE and np.isfinite(check.value):
            remarks.append(f"That is {100 * check.value:.0f} % of what {against} gains.")
        if name == "stability" and np.isfinite(check.value):
            how = "agree" if check.value >= MIN_AGREEMENT else "disagree"
            remarks.append(f"Members {how}: their rankings have a correlation of {check.value:.2f}.")
        if name == "randomised_weights" and check.value >= MAX_RANDOM_CORRELATION:
            remarks.append(
                "Caution: with random weights the ranking stays much the same (rank correlation "
                f"{check.value:.2f}), so it owes more to the network's shape than to what was learned."
            )
    if count < MIN_RECORDS:
        remarks.append(f"At least {MIN_RECORDS} records are needed to tell this from chance.")
    elif count < MIN_RELIABLE_RECORDS:
        remarks.append(f"Caution: {count} records are few for a verdict.")
    return remarks
