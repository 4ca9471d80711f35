"""The floor inside: a linear model of k-mers and places, added to the networks where it helps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.sparse import block_diag, csr_array, diags_array, eye_array, hstack, kron
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from seqray.calibration.fit import FOLDS, fit_temperature, prior_targets
from seqray.core.alphabet import (
    ALPHABETS,
    Alphabet,
    CodeStack,
    kmer_counts,
    kmer_indices,
    kmer_starts,
    stack_codes,
)
from seqray.core.arrays import Floats, Ints
from seqray.core.model_config import LinearConfig, ModelConfig
from seqray.core.run_config import RunConfig
from seqray.homology.split import grouped_folds
from seqray.metrics.baselines import ENDS
from seqray.modelfile.file import build_network
from seqray.models.alignment import AlignmentLinearPart, helix_profile, letters_of
from seqray.models.sequence import Network
from seqray.training.data import Examples, validation_order
from seqray.training.data_facts import is_near_one_length

REACH = 60  # letters from either end whose place counts, of sequences of any length
MAX_REACH = 300  # of sequences of one length, or nearly: a table has some ten thousand weights at most
LONG = 512  # letters; in longer sequences each place is too rarely like another to learn it by itself
PENALTIES = (10.0, 3.0, 1.0)  # of the squared weights, the first of equally good ones
OF_ALIGNMENTS = 4, 2, 24  # longest k-mers of bases and of residues, and letters from either end
PENALTY_OF_ALIGNMENTS = 100.0  # of features of which each has a variance of 1
MIN_SPREAD = 1e-6  # a feature that varies less, by rounding, has no effect
SHARES = (0.5, 0.25, 0.75, 0.0, 1.0)  # of the linear part in the sum, the first of equally good ones
DOUBT = 2.0  # nats over all held-out examples that a share of 0 or 1 must gain over one half; others less


# --- Features: numbers of k-mers, and their places


def choose_linear(lengths: Ints, alphabet: Alphabet) -> LinearConfig:
    """What to count, by the lengths of the sequences."""
    longest, bases = int(lengths.max()), alphabet.is_nucleotide
    words, steps = (5, 0) if bases else (2, 0) if is_long(lengths) else (3, min(REACH, longest))
    if lengths.min() == longest:
        placed = tuple(k for k in ((1, 3) if bases else (1,)) if k <= longest)
        return LinearConfig(words=words, placed=placed, reach=min(longest, MAX_REACH), steps=steps)
    usual = int(np.quantile(lengths, 0.95))  # a single long sequence adds no places
    reach = min(usual, MAX_REACH) if is_near_one_length(lengths) else min(REACH, longest)
    return LinearConfig(words=words, reach=reach, sides=2, steps=steps)


def is_long(lengths: Ints) -> bool:
    """Whether more than a few sequences are longer than `LONG`, and lengths differ."""
    return bool(np.quantile(lengths, 0.95) > LONG) and not is_near_one_length(lengths)


def count_features(windows: Sequence[np.ndarray], config: LinearConfig, letters: int) -> list[csr_array]:
    """Numbers of k-mers in letter codes of N sequences, one sparse (N, M) for each table of `LinearPart`."""
    stack = stack_codes(list(windows))
    counts = [_kmers(stack, k, letters) for k in range(1, config.words + 1)]
    sides = range(config.sides)
    places = [_kmers(stack, k, letters, config.reach, side) for k in config.placed for side in sides]
    numbers = np.column_stack((kmer_counts(stack, 1, letters), stack.lengths))
    steps = numbers[:, :, None] > np.arange(config.steps)  # whether there are 1, 2, 3 or more of each kind
    return [*counts, *places, csr_array(steps.reshape(len(stack), -1), dtype=np.float64)]


def scaled_features(
    examples: Examples, model: ModelConfig
) -> tuple[LinearConfig, list[int], csr_array | Floats, Floats, csr_array]:
    """What a linear part reads: settings, sizes of tables, and values (N, F) to fit.

    Their center (E,) and basis (E, F) lead from weights of values to those of the entries of the tables.
    """
    if model.reads_alignments:
        shares, config = alignment_features(examples, model)
        center, spread = shares.mean(axis=0), shares.std(axis=0)
        basis = csr_array(diags_array(1 / np.where(spread < MIN_SPREAD, 1, spread)))
        return config, [], (shares - center) @ basis, center, basis
    alphabet, windows = ALPHABETS[model.alphabet], examples.windows()
    lengths = np.array([len(one) for one in windows])
    config = choose_linear(lengths, alphabet)
    parts = count_features(windows, config, len(alphabet.letters))
    sizes, counts = [one[:1].toarray().size for one in parts], csr_array(hstack(parts, format="csr"))
    basis = basis_of(sizes, config, is_long(lengths))
    scale = 1 / np.maximum(abs(counts @ basis).max(axis=0).toarray().ravel(), 1)
    if config.sides == 2:  # one letter has a part in several weights
        scale[sum(sizes[: config.words]) : len(scale) - sizes[-1]] *= 0.5
    basis = csr_array(basis @ diags_array(scale))
    return config, sizes, csr_array(counts @ basis), np.zeros(sum(sizes)), basis


def basis_of(sizes: Sequence[int], config: LinearConfig, long: bool) -> csr_array:
    """Which entries of the tables share a weight (E, F): of different lengths those of an end do.

    Those of each place have weights, too, unless sequences are ``long``: a signal then has no fixed place.
    """
    places = np.eye(config.reach)
    if config.sides == 2:
        near = np.arange(config.reach)[:, None] < np.array([n for n in ENDS if n <= config.reach])
        places = near if long else np.hstack((near, places))
    blocks = [eye_array(sum(sizes[: config.words]))]
    blocks += [kron(places, eye_array(size // config.reach)) for size in sizes[config.words : -1]]
    return csr_array(block_diag([*blocks, eye_array(sizes[-1])], format="csr"))


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


def alignment_features(examples: Examples, model: ModelConfig) -> tuple[Floats, LinearConfig]:
    """What the linear part of a model of alignments reads of them: (N, F)."""
    of_bases, of_residues, reach = OF_ALIGNMENTS
    words = of_bases if ALPHABETS[model.alphabet].is_nucleotide else of_residues
    config = LinearConfig(words=words, reach=min(reach, model.max_length), sides=2)
    part = AlignmentLinearPart(len(ALPHABETS[model.alphabet].letters), config, model.classes, model.helices)
    values = np.zeros((len(examples.labels), len(part.weight)))
    for _, _, rows in validation_order(examples.lengths):
        batch = examples.tokens(rows, None, None)
        inputs = letters_of(batch.tokens, *batch.masks)
        profile = helix_profile(*inputs) if model.helices else None
        values[rows] = part.features(*inputs, profile).double().numpy()
    return values, config


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


def fit_linear(examples: Examples, held: Ints, groups: Ints, raw: Floats, settings: RunConfig) -> LinearFit:
    """Fit a linear model to all examples, and find its share in the sum with the networks.

    ``held`` (H,) are indices of the examples that the networks held out, ``groups`` (H,) those of relatives
    among them, and ``raw`` (H, K) the mean log-probabilities of the networks for them. The linear model
    scores each of them by a copy that lacks its fold of groups. A share far from one half has to predict
    better by some of `DOUBT`: the held-out examples also chose the epochs, so that the networks look better
    than they are. All classes weigh the same if the networks weigh theirs.
    """
    balanced, of_alignments = settings.optimizer.class_weights != "none", settings.model.reads_alignments
    labels, classes = examples.labels, raw.shape[1]
    config, sizes, values, center, basis = scaled_features(examples, settings.model)
    penalties = (PENALTY_OF_ALIGNMENTS,) if of_alignments else PENALTIES
    truth = labels[held]
    count = min(FOLDS, len(np.unique(groups)), int(np.bincount(truth).max()))
    folds = grouped_folds(truth, groups, count) if count > 1 else np.zeros(len(held), dtype=np.int64)

    def scores_of(penalty: float) -> Floats:
        scores = np.zeros_like(raw, dtype=np.float64)
        for number in np.unique(folds):
            out = held[folds == number]
            rest = np.setdiff1d(np.arange(len(labels)), out)
            weights, bias = _fit(values[rest], labels[rest], penalty, classes, balanced)
            scores[folds == number] = values[out] @ weights + bias
        return scores

    tried = {penalty: scores_of(penalty) for penalty in penalties}
    penalty = min(penalties, key=lambda penalty: _loss(tried[penalty], truth))
    of_raw, of_scores = (fit_temperature(one, truth) for one in (raw, tried[penalty]))
    networks, linear = raw / of_raw, tried[penalty] / of_scores
    sums = {share: (1 - share) * networks + share * linear for share in SHARES}
    share = min(SHARES, key=lambda x: len(truth) * _loss(sums[x], truth) + DOUBT * 2 * abs(x - 0.5))
    weights, bias = _fit(values, labels, penalty, classes, balanced)
    weights, bias = share / of_scores * np.asarray(basis @ weights), share / of_scores * bias
    tensors = tables_of(weights, sizes, config) if sizes else {"weight": weights}
    tensors |= {"bias": bias - center @ weights, "scale": np.array([(1 - share) / of_raw])}
    logits = {"networks": networks, "linear": linear, "together": sums[share]}
    return LinearFit(config, tensors, share, logits)


def _fit(
    values: csr_array | Floats, labels: Ints, penalty: float, classes: int, balanced: bool
) -> tuple[Floats, Floats]:
    """Weights (F, K) and bias (K,) of a logistic regression; of two classes, each gets half."""
    weigh = "balanced" if balanced else None
    with threadpool_limits(1, "blas"):  # more wait for each other over vectors of thousands of weights
        fitted = LogisticRegression(C=1 / penalty, max_iter=1000, class_weight=weigh).fit(values, labels)
    weights, bias = fitted.coef_.T, fitted.intercept_
    if classes == 2:
        weights, bias = weights * [[-0.5, 0.5]], bias[0] * np.array([-0.5, 0.5])
    return weights, bias


def _loss(logits: Floats, labels: Ints) -> float:
    """Cross-entropy to `prior_targets` at the best temperature."""
    log_p = log_softmax(logits / fit_temperature(logits, labels), axis=1)
    return float(-(prior_targets(labels, logits.shape[1]) * log_p).sum(axis=1).mean())
