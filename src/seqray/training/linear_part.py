"""The floor inside: a linear model of k-mers and places, added to the networks where it helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import csr_array, hstack
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression

from seqray.calibration.fit import FOLDS, fit_temperature, prior_targets
from seqray.core.alphabet import Alphabet, CodeStack, kmer_counts, kmer_indices, kmer_starts, stack_codes
from seqray.core.arrays import Floats, Ints
from seqray.core.model_config import LinearConfig
from seqray.homology.split import grouped_folds
from seqray.modelfile.file import build_network
from seqray.models.sequence import Network
from seqray.training.data_facts import is_near_one_length

REACH = 60  # letters from either end whose place counts, of sequences of any length
MAX_REACH = 300  # of sequences of one length, or nearly: a table has some ten thousand weights at most
PENALTIES = (10.0, 3.0, 1.0)  # of the squared weights, the first of equally good ones
SHARES = (0.5, 0.25, 0.75, 0.0, 1.0)  # of the linear part in the sum, the first of equally good ones
DOUBT = 2.0  # nats over all held-out examples that a share of 0 or 1 must gain over one half; others less


# --- Features: numbers of k-mers, and their places


def choose_linear(lengths: Ints, alphabet: Alphabet) -> LinearConfig:
    """What to count, by the lengths of the sequences."""
    longest, bases = int(lengths.max()), alphabet.is_nucleotide
    words, steps = (5, 0) if bases else (3, min(REACH, longest))
    if lengths.min() == longest:
        placed = tuple(k for k in ((1, 3) if bases else (1,)) if k <= longest)
        return LinearConfig(words=words, placed=placed, reach=min(longest, MAX_REACH), steps=steps)
    usual = int(np.quantile(lengths, 0.95))  # a single long sequence adds no places
    reach = min(usual, MAX_REACH) if is_near_one_length(lengths) else min(REACH, longest)
    return LinearConfig(words=words, reach=reach, sides=2, steps=steps)


def count_features(windows: Sequence[np.ndarray], config: LinearConfig, letters: int) -> list[csr_array]:
    """Numbers of k-mers in letter codes of N sequences, one sparse (N, M) for each table of `LinearPart`."""
    stack = stack_codes(list(windows))
    counts = [_kmers(stack, k, letters) for k in range(1, config.words + 1)]
    sides = range(config.sides)
    places = [_kmers(stack, k, letters, config.reach, side) for k in config.placed for side in sides]
    numbers = np.column_stack((kmer_counts(stack, 1, letters), stack.lengths))
    steps = numbers[:, :, None] > np.arange(config.steps)  # whether there are 1, 2, 3 or more of each kind
    return [*counts, *places, csr_array(steps.reshape(len(stack), -1), dtype=np.float64)]


def tables_of(weights: Floats, sizes: Sequence[int], config: LinearConfig) -> dict[str, Floats]:
    """Weights (F, K) of the features of `count_features` as the tensors of `LinearPart`, by their names."""
    parts = np.split(weights, np.cumsum(sizes)[:-1])
    counts, placed = parts[: config.words], parts[config.words :]
    found = {f"counts.{i}": part for i, part in enumerate(counts)}
    for i in range(len(config.placed)):
        tables = placed[i * config.sides : (i + 1) * config.sides]
        found[f"places.{i}"] = np.stack([one.reshape(config.reach, -1, one.shape[1]) for one in tables])
    if config.steps:
        found["steps"] = np.cumsum(parts[-1].reshape(-1, config.steps, weights.shape[1]), axis=1)
    return found


def _kmers(stack: CodeStack, k: int, letters: int, reach: int = 0, side: int = 0) -> csr_array:
    """Numbers of k-mers, sparse (N, A**k); with ``reach`` at each place counted from an end."""
    start, owner, place = kmer_starts(stack, k, letters)
    if side:
        place = stack.lengths[owner] - 1 - place
    inside = place < reach if reach else np.ones(len(start), dtype=bool)
    row = place[inside] if reach else 0
    column = row * letters**k + kmer_indices(stack, start[inside], k, letters)
    shape = (len(stack), max(reach, 1) * letters**k)
    return csr_array((np.ones(len(column)), (owner[inside], column)), shape=shape)


# --- The linear model, its scores of held-out examples, and its share in the sum


@dataclass(frozen=True)
class LinearFit:
    """A linear part, and what it is worth on held-out examples.

    ``share`` is that of the linear part in the sum; ``logits`` (H, K) are those of the networks alone, of the
    linear part alone, and of the sum.
    """

    config: LinearConfig
    tensors: dict[str, Floats]
    share: float
    logits: dict[str, Floats]

    def joined(self, network: Network) -> Network:
        """The network with the linear part."""
        joined = build_network(replace(network.config, linear=self.config))
        joined.load_state_dict(
            network.state_dict()
            | {f"linear.{name}": torch.tensor(x, dtype=torch.float32) for name, x in self.tensors.items()}
        )
        return joined.eval()


def fit_linear(
    windows: Sequence[np.ndarray], labels: Ints, held: Ints, groups: Ints, raw: Floats, alphabet: Alphabet
) -> LinearFit:
    """Fit a linear model to all windows, and find its share in the sum with the networks.

    ``held`` (H,) are indices of the windows that the networks held out, ``groups`` (H,) those of relatives
    among them, and ``raw`` (H, K) the mean log-probabilities of the networks for them. The linear model
    scores each of them by a copy that lacks its fold of groups. A share far from one half has to predict
    better by some of `DOUBT`: the held-out examples also chose the epochs, so that the networks look better
    than they are.
    """
    config = choose_linear(np.array([len(one) for one in windows]), alphabet)
    features = count_features(windows, config, len(alphabet.letters))
    values, truth, classes = csr_array(hstack(features, format="csr")), labels[held], raw.shape[1]
    scale = 1 / np.maximum(abs(values).max(axis=0).toarray().ravel(), 1)
    values = csr_array(values * scale)
    count = min(FOLDS, len(np.unique(groups)), int(np.bincount(truth).max()))
    folds = grouped_folds(truth, groups, count) if count > 1 else np.zeros(len(held), dtype=np.int64)

    def scores_of(penalty: float) -> Floats:
        scores = np.zeros_like(raw, dtype=np.float64)
        for number in np.unique(folds):
            out = held[folds == number]
            rest = np.setdiff1d(np.arange(len(labels)), out)
            weights, bias = _fit(values[rest], labels[rest], penalty, classes)
            scores[folds == number] = values[out] @ weights + bias
        return scores

    tried = {penalty: scores_of(penalty) for penalty in PENALTIES}
    penalty = min(PENALTIES, key=lambda penalty: _loss(tried[penalty], truth))
    of_raw, of_scores = (fit_temperature(one, truth) for one in (raw, tried[penalty]))
    networks, linear = raw / of_raw, tried[penalty] / of_scores
    sums = {share: (1 - share) * networks + share * linear for share in SHARES}
    share = min(SHARES, key=lambda x: len(truth) * _loss(sums[x], truth) + DOUBT * 2 * abs(x - 0.5))
    weights, bias = _fit(values, labels, penalty, classes)
    weights = share / of_scores * weights * scale[:, None]
    tensors = tables_of(weights, [one[:1].toarray().size for one in features], config)
    tensors |= {"bias": share / of_scores * bias, "scale": np.array([(1 - share) / of_raw])}
    logits = {"networks": networks, "linear": linear, "together": sums[share]}
    return LinearFit(config, tensors, share, logits)


def _fit(values: csr_array, labels: Ints, penalty: float, classes: int) -> tuple[Floats, Floats]:
    """Weights (F, K) and bias (K,) of a logistic regression; of two classes, each gets half."""
    fitted = LogisticRegression(C=1 / penalty, max_iter=1000).fit(values, labels)
    weights, bias = fitted.coef_.T, fitted.intercept_
    if classes == 2:
        weights, bias = weights * [[-0.5, 0.5]], bias[0] * np.array([-0.5, 0.5])
    return weights, bias


def _loss(logits: Floats, labels: Ints) -> float:
    """Cross-entropy to `prior_targets` at the best temperature."""
    log_p = log_softmax(logits / fit_temperature(logits, labels), axis=1)
    return float(-(prior_targets(labels, logits.shape[1]) * log_p).sum(axis=1).mean())
