"""From raw logits to probabilities that mean something: temperature, shift or map, threshold, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit, logsumexp, softmax

from seqray.calibration.conformal import fit_ranks
from seqray.core.arrays import log_probabilities
from seqray.core.card import Card
from seqray.core.card_parts import RisingMap
from seqray.core.errors import ConfigError, InputError
from seqray.core.run_config import CalibrationMethod
from seqray.core.text import round_number
from seqray.metrics.classification import calibration_error, matthews

TEMPERATURES = (0.25, 10.0)  # outside, the held-out data are too few or too easy
FOLDS = 5  # of the figures on held-out data
SHIFTS = (-10.0, 10.0)  # log-odds
PRIOR = 0.25  # examples of each class beside those of one class
ISOTONIC_FORMAT = 2  # a seqray that reads cards of format 1 only would give other probabilities
_SEED = 20_240_229
MAX_KNOTS = 100
LEAST_CALLED = 1 / 3  # of the examples expected of a class
COMMON = 0.1  # share of a class that is never called without a word
_DECIMALS = 9  # of log-odds: scores that differ by less are one score


def prior_targets(labels: np.ndarray, classes: int) -> np.ndarray:
    """What to fit probabilities to in place of labels (N,): (N, K), as if `PRIOR` of each class were added.

    Few examples then ask for no certainty. Source: Platt 1999, section 2.2 (why less: docs/decisions/0033).
    """
    counts = np.bincount(labels, minlength=classes)[labels][:, None]
    return (PRIOR + counts * np.eye(classes)[labels]) / (counts + PRIOR * classes)


def fit_temperature(logits: ArrayLike, labels: ArrayLike) -> float:
    """Find T, 0.25 to 10, for which softmax(logits (N, K) / T) has least cross-entropy to `prior_targets`.

    It has one optimum in 1/T. Source: Guo et al. 2017, On calibration of modern neural networks, 4.2.
    """
    z, y = np.asarray(logits, dtype=np.float64), np.asarray(labels).astype(np.int64)
    true = (prior_targets(y, z.shape[1]) * z).sum(axis=1)

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(logsumexp(z * scale, axis=1) - true * scale))

    bounds = (float(np.log(TEMPERATURES[0])), float(np.log(TEMPERATURES[1])))
    best: Any = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(best.x))


def fit_platt(log_odds: ArrayLike, positive: ArrayLike) -> tuple[float, float]:
    """Find T, 0.25 to 10, and b, -10 to 10, of sigmoid(log-odds / T + b), by the same cross-entropy.

    It is convex in (1/T, b). Source: Platt 1999, Probabilistic outputs for support vector machines, 2.2.
    """
    x, y = np.asarray(log_odds, dtype=np.float64), np.asarray(positive).astype(np.int64)
    target = prior_targets(y, 2)[:, 1]

    def loss(line: np.ndarray) -> tuple[float, np.ndarray]:
        z = line[0] * x + line[1]
        error = expit(z) - target
        return float(np.mean(np.logaddexp(0, z) - target * z)), np.array([np.mean(error * x), np.mean(error)])

    bounds = [(1 / TEMPERATURES[1], 1 / TEMPERATURES[0]), SHIFTS]
    best = minimize(loss, (1.0, 0.0), jac=True, bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
    return float(1 / best.x[0]), float(best.x[1])


def fit_isotonic(log_odds: ArrayLike, positive: ArrayLike, max_knots: int = MAX_KNOTS) -> RisingMap:
    """Fit a map to log-odds (N,) and which are positive (N,): a knot for each block of equal values.

    A share of 0 or 1 gets half an example against it. Source: Oron and Flournoy 2017.
    """
    from sklearn.isotonic import IsotonicRegression  # slow to import

    x, y = np.asarray(log_odds, dtype=np.float64), np.asarray(positive, dtype=np.float64)
    x = np.round(x, _DECIMALS)  # scikit-learn silently pools what is closer than 1e-15
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(x, y).predict(x)
    block = np.concatenate(([0], np.cumsum(np.diff(fitted) > 1e-12)))
    size = np.bincount(block)
    if len(size) > max_knots:
        middle = np.cumsum(size) - size / 2
        merged = np.minimum((middle * max_knots / size.sum()).astype(np.int64), max_knots - 1)
        block = np.unique(merged, return_inverse=True)[1][block]
        size = np.bincount(block)
    if len(size) < 2:
        raise InputError(
            "the scores don't rank the positive class above the rest, so no isotonic map fits",
            remedy="see that the labels are not swapped, and that the model is meant for such sequences",
        )
    center, share = np.bincount(block, x) / size, np.bincount(block, y) / size
    if share[0] <= 0:
        share[0] = min(0.5 / (size[0] + 1), share[1] / 2)
    if share[-1] >= 1:
        share[-1] = 1 - min(0.5 / (size[-1] + 1), (1 - share[-2]) / 2)
    knots = []
    for values in (logit(share), center):
        rounded = np.round(values, 6)  # what a card needs, as long as no two knots become one
        knots.append(rounded if (np.diff(rounded) > 0).all() else values)
    return RisingMap(*knots)


def choose_method(raw: np.ndarray, labels: np.ndarray, positive: int) -> CalibrationMethod:
    """``platt`` where the shift lowers the BIC (Schwarz 1978) of log-probabilities (N, K)."""
    if raw.shape[1] != 2:
        return "temperature"
    without, shifted = (
        log_loss(Calibration.fit(raw, labels, positive, method).probabilities(raw), labels)
        for method in ("temperature", "platt")
    )
    count = len(labels)
    return "platt" if 2 * count * (without - shifted) > np.log(count) else "temperature"


def choose_threshold(probabilities: ArrayLike) -> float:
    """Find the threshold with the highest Matthews correlation to expect, if probabilities (N,) are right.

    Labels would move it by more than the gain (docs/decisions/0008). Each class is called at least a little.
    """
    p = np.sort(np.asarray(probabilities, dtype=np.float64))[::-1]
    if p.ndim != 1 or len(p) == 0:
        raise InputError(f"probabilities have shape {np.shape(probabilities)}, not (N,)")
    cut = np.flatnonzero(p[:-1] > p[1:])  # calls are the first cut + 1 examples
    called, tp = cut + 1.0, np.cumsum(p)[cut]
    positives, n = float(p.sum()), float(len(p))
    if not len(cut) or not 0 < positives < n:
        return 0.5
    mcc = matthews(tp, called - tp, n - positives - called + tp, positives - tp)
    enough = (called >= LEAST_CALLED * positives) & (n - called >= LEAST_CALLED * (n - positives))
    mcc = np.where(enough, mcc, -1) if enough.any() else mcc
    places = (p[cut] + p[cut + 1]) / 2
    best = places[mcc >= mcc.max() - 1e-12]
    return float(best[np.argmin(np.abs(best - 0.5))])


@dataclass(frozen=True, eq=False)
class Calibration:
    """What turns mean log-probabilities of the members into probabilities."""

    positive: int  # column of the positive class
    temperature: float = 1.0  # divides the log-probabilities
    # then maps the log-odds of the positive class, for two classes only; None for no map. A shift is a map of
    # one knot
    isotonic: RisingMap | None = None

    @classmethod
    def of(cls, card: Card) -> Calibration:
        """That of a model."""
        return cls(card.positive_index, card.temperature, card.isotonic)

    @classmethod
    def fit(
        cls, raw: np.ndarray, labels: np.ndarray, positive: int, method: CalibrationMethod
    ) -> Calibration:
        """Fit to log-probabilities (N, K) and class indices (N,); ``temperature`` alone is for K > 2."""
        if method == "auto":
            method = choose_method(raw, labels, positive)
        if method == "temperature":
            return cls(positive, fit_temperature(raw, labels))
        if raw.shape[1] != 2:
            raise ConfigError(
                f"{method} calibration is for two classes, the model has {raw.shape[1]}",
                remedy="use the method temperature",
            )
        log_odds, truth = raw[:, positive] - raw[:, 1 - positive], labels == positive
        if method == "platt":
            temperature, shift = fit_platt(log_odds, truth)
            return cls(positive, temperature, RisingMap(np.array([shift]), np.zeros(1)))
        temperature = fit_temperature(raw, labels)
        return cls(positive, temperature, fit_isotonic(log_odds / temperature, truth))

    def probabilities(self, raw: np.ndarray) -> np.ndarray:
        """Turn log-probabilities (N, K) into calibrated probabilities (N, K)."""
        p = softmax(raw / self.temperature, axis=1)
        return p if self.isotonic is None else self.isotonic.of_probabilities(p, self.positive)

    @property
    def method(self) -> CalibrationMethod:
        """By which it was fitted."""
        if self.isotonic is None:
            return "temperature"
        return "platt" if len(self.isotonic.after) == 1 else "isotonic"

    def at_bounds(self) -> list[str]:
        """Names of temperature and shift if they are at an end of their range: limited, not fitted."""
        cut = {"temperature": np.isclose(self.temperature, TEMPERATURES, rtol=1e-3).any()}
        if self.isotonic is not None and self.method == "platt":
            cut["shift"] = np.isclose(self.isotonic.after[0], SHIFTS, rtol=1e-3).any()
        return [name for name, limited in cut.items() if limited]

    def convert(self, probability: float, before: Calibration) -> float:
        """Probability that two-class scores now get where ``before`` gave them ``probability``."""
        if not 0 < probability < 1:
            return probability
        log_odds = np.asarray(logit(probability))
        if before.isotonic is not None:
            log_odds = before.isotonic.inverse(log_odds)
        log_odds = log_odds * before.temperature / self.temperature
        return float(expit(log_odds if self.isotonic is None else self.isotonic(log_odds)))


def cross_fitted(
    raw: np.ndarray, labels: np.ndarray, groups: np.ndarray, positive: int, method: CalibrationMethod
) -> np.ndarray | None:
    """Probabilities (N, K) by a calibration fitted without the example's group; None if there are too few."""
    _, group = np.unique(groups, return_inverse=True)
    count = int(group.max()) + 1
    fold = (np.random.default_rng(_SEED).permutation(count) % min(FOLDS, count))[group]
    p = np.empty_like(raw, dtype=np.float64)
    for number in range(min(FOLDS, count)):
        out = fold == number
        if len(np.unique(labels[~out])) < raw.shape[1]:
            return None
        try:
            p[out] = Calibration.fit(raw[~out], labels[~out], positive, method).probabilities(raw[out])
        except InputError:
            return None
    return p


def log_loss(probabilities: np.ndarray, labels: np.ndarray) -> float:
    """Mean of -ln p of the true class, unbounded: unlike ECE it does not reward a constant prediction."""
    own = probabilities[np.arange(len(labels)), labels]
    return float(-np.mean(log_probabilities(own)))


def calibrated_card(
    card: Card,
    raw: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    method: CalibrationMethod = "temperature",
    before: Calibration | None = None,
) -> tuple[Card, dict[str, Any]]:
    """Fit all calibration values on the card from held-out log-probabilities (N, K), means of the members."""
    positive = card.positive_index
    found = Calibration.fit(raw, labels, positive, method)
    p = found.probabilities(raw)
    fair = cross_fitted(raw, labels, groups, positive, method)
    judged = p if fair is None else fair
    old = (before or Calibration(positive)).probabilities(raw)
    ece, shares = (
        calibration_error(judged, labels, positive),
        np.unique(labels, return_counts=True)[1] / len(labels),
    )
    threshold, calls = choose_threshold(p[:, positive]), p.argmax(axis=1)
    if len(card.classes) == 2:
        calls = np.where(p[:, positive] >= threshold, positive, 1 - positive)
    facts = {
        "method": found.method if method == "auto" else method,
        "examples": len(labels),
        "groups": len(np.unique(groups)),
        "figures": "of the examples fitted to" if fair is None else f"cross-fitted, {FOLDS} folds of groups",
        "ece_before": round_number(calibration_error(old, labels, positive)),
        "ece_after": round_number(ece),
        "log_loss_before": round_number(log_loss(old, labels)),
        "log_loss_after": round_number(log_loss(judged, labels)),
        "log_loss_of_shares": round_number(float(-np.sum(shares * np.log(shares)))),
        "at_bounds": found.at_bounds(),
        "never_called": [
            name
            for k, name in enumerate(card.classes)
            if np.mean(labels == k) >= COMMON and not (calls == k).any()
        ],
    }
    card = replace(
        card,
        format=ISOTONIC_FORMAT if found.isotonic else 1,
        prefilter=None,  # which is of the probabilities before
        temperature=found.temperature,
        isotonic=found.isotonic,
        threshold=threshold,
        prevalence=float(np.mean(labels == positive)),
        ece=ece,
        conformal=fit_ranks(p, labels, card.classes),
    )
    return card, facts


def calibration_shortfalls(facts: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a calibration could not reach, by the facts of `calibrated_card`."""
    if facts["log_loss_after"] >= facts["log_loss_of_shares"]:
        yield (
            "the probabilities are no better than the share of each class, whose log loss is "
            f"{facts['log_loss_of_shares']:.3f}: the order of the scores may still be right"
        )
    if never := facts.get("never_called"):
        yield f"no example is called {' or '.join(never)}, which a tenth of them or more are"
    if facts["at_bounds"]:
        yield (
            f"the calibration reached the limit of its range: {' and '.join(facts['at_bounds'])}; "
            "these sequences are too few, too easy or too hard to determine it"
        )
