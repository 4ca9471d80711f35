"""What simple rules reach."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from seqray.core.alphabet import Alphabet
from seqray.core.arrays import Bools, Floats, Ints, number_by_appearance
from seqray.core.results import AuditFigure, Histogram
from seqray.datasets.audit.content import SequenceFeatures, histogram, letter_counts
from seqray.datasets.audit.dataset import EVERY_CLASS, UNRELATED, WHOLE, AuditSet, Bootstrap, Validation
from seqray.homology.kmers import KmerTable, merge_groups, named_groups
from seqray.homology.similarity import best_matches, homology_groups
from seqray.metrics.classification import auroc, matthews

if TYPE_CHECKING:
    from sklearn.base import ClassifierMixin


# --- Metrics of linear baselines: on the given split, on its part without relatives, and on grouped folds

SECTION = "baselines"
MAX_CLASSES = 50  # with more of them a fit takes too long
KMER, WEIGHTS = "kmer_logistic", "position_weights"


def baselines_for(data: AuditSet) -> dict[str, ClassifierMixin]:
    """Baselines that can be fitted: k-mers and positions; for two classes of one length also the matrix.

    Empty for more than `MAX_CLASSES`.
    """
    if len(data.classes) > MAX_CLASSES:
        return {}
    from seqray.metrics.baselines import PositionWeightMatrix, default_baseline

    found: dict[str, ClassifierMixin] = {KMER: default_baseline(data.alphabet, max_iter=300)}
    if len(data.classes) == 2 and len({len(s) for s in data.sequences}) == 1:
        found[WEIGHTS] = PositionWeightMatrix(alphabet=data.alphabet.name)
    return found


def sample_rows(data: AuditSet, most: int, seed: int) -> Bools:
    """Choose at most ``most`` rows of each split at random: bool (N,)."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(data), dtype=bool)
    for split in data.parts:
        rows = data.rows(split)
        chosen[rng.choice(rows, most, replace=False) if len(rows) > most else rows] = True
    return chosen


def baseline_figures(
    data: AuditSet, validation: Validation, chosen: Bools, related: Bools | None, bootstrap: Bootstrap
) -> list[AuditFigure]:
    """Measure the baselines: MCC and AUROC of each class against the rest.

    ``chosen`` (N,) are rows to use; the others are neither trained nor tested on. If ``related`` (N,), rows
    with a relative in training, is given, the figures without them are added as ``unrelated``.
    """
    from seqray.metrics.baselines import held_out_probabilities

    pairs = [(train[chosen[train]], rows[chosen[rows]]) for train, rows in validation.pairs]
    rows = np.concatenate([test for _, test in pairs])
    figures = []
    for name, model in baselines_for(data).items():
        probabilities = np.concatenate(
            [
                held_out_probabilities(
                    model, data.take(train), data.labels[train], data.take(test), len(data.classes)
                )
                for train, test in pairs
            ]
        )
        figures += _measured(data, name, validation.name, rows, probabilities, bootstrap)
        if related is not None:
            fresh = ~related[rows]
            if len(np.unique(data.labels[rows[fresh]])) == len(data.classes):
                figures += _measured(data, name, UNRELATED, rows[fresh], probabilities[fresh], bootstrap)
    return figures


def _measured(
    data: AuditSet, baseline: str, split: str, rows: Ints, probabilities: Floats, bootstrap: Bootstrap
) -> list[AuditFigure]:
    calls = probabilities.argmax(axis=1)
    figures = [AuditFigure(SECTION, split, EVERY_CLASS, f"{baseline}_n", len(rows))]
    for label, name in data.target_classes():
        prefix = AuditFigure(SECTION, split, name, baseline, math.nan)
        truth = data.labels[rows] == label
        if not truth.any():  # a class too rare for folds
            continue
        figures += bootstrap.figures(prefix, rows, truth, probabilities[:, label], calls == label)
    return figures


# --- Metrics of trivial rules: one feature, with a threshold or a small table learned on the training par

Form = Literal["rising", "falling", "shares"]
"""Of a score: a number in either direction, or the share of the class in a bin or category."""
RULES_SECTION = "rules"
BINS = 16
MARGIN = 0.02  # AUROC by which bins must beat a threshold


@dataclass(frozen=True, slots=True, eq=False)
class Feature:
    """One number or one category for each sequence, named as in docs/concepts/audit.md.

    The (N,) values are floats, or codes from 0 for a categorical feature, whose values have no order.
    """

    name: str
    values: np.ndarray
    categorical: bool = False


def rule_features(data: AuditSet, features: SequenceFeatures) -> list[Feature]:
    """List the features that differ between sequences."""
    found = [
        Feature("length", features.length.astype(np.float64)),
        Feature("ambiguous", features.ambiguous.astype(np.float64)),
        Feature("first_letter", features.first, True),
        Feature("last_letter", features.last, True),
        Feature("letter_case", features.lower),
        Feature("first_capital", features.first_capital),
    ]
    if data.alphabet.is_nucleotide:
        found.insert(1, Feature("gc", features.gc))
    else:
        found.append(
            Feature("initial_m", (features.first == data.alphabet.letters.index("M")).astype(np.float64))
        )
    if any(data.contexts):
        found.append(Feature("context", number_by_appearance(data.contexts), True))
    return [feature for feature in found if len(np.unique(feature.values)) > 1]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A score computed from a feature, and the threshold at or above which it calls the class.

    Attributes
    ----------
    edges
        Borders between the bins; None for a category, or for a threshold rule, whose score is the value
        itself times the sign in ``table``.
    table
        Share of the class in each bin or category of the training part; 1 or -1 for a threshold rule.
    threshold
        Lowest score that is called.
    """

    edges: Floats | None
    table: Floats
    threshold: float = math.nan

    def scores(self, feature: Feature, rows: Ints) -> Floats:
        """Scores of rows: (len(rows),)."""
        values = feature.values[rows]
        if feature.categorical:
            return self.table[values.astype(np.int64)]
        if self.edges is None:
            return values * self.table[0]
        return self.table[np.searchsorted(self.edges, values, "right")]


def choose_form(feature: Feature, labels: Bools, rows: Ints) -> Form:
    """The kind of score that does best on training rows; ``labels`` (N,) are True for the class.

    The score of a number is the number itself, in the direction that does better, or, if that ranks the
    rows clearly better, the share of the class in each of `BINS` bins; the score of a category is the share
    of the class in it. Shares are judged on the half of the rows from which they are not learned: many bins
    fit few rows well by chance.
    """
    if feature.categorical:
        return "shares"
    rising = auroc(labels[rows], feature.values[rows])
    mixed = np.random.default_rng(0).permutation(rows)
    halves = mixed[::2], mixed[1::2]
    binned = [
        auroc(labels[other], learn_rule(feature, labels, half, "shares").scores(feature, other))
        for half, other in (halves, halves[::-1])
        if len(half)
    ]
    if np.mean(binned) > max(rising, 1 - rising) + MARGIN:
        return "shares"
    return "rising" if rising >= 0.5 else "falling"


def learn_rule(feature: Feature, labels: Bools, rows: Ints, form: Form) -> Rule:
    """Learn a rule of one form from training rows; ``labels`` (N,) are True for the class.

    Notes
    -----
    Shares are drawn towards that of all rows by one pseudo-example. The threshold has the highest MCC on the
    training rows.
    """
    y, values = labels[rows], feature.values[rows]
    if form != "shares":
        rule = Rule(None, np.array([1.0 if form == "rising" else -1.0]))
    elif feature.categorical:
        rule = Rule(None, _class_shares(values.astype(np.int64), y, int(feature.values.max()) + 1))
    else:
        edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
        rule = Rule(edges, _class_shares(np.searchsorted(edges, values, "right"), y, len(edges) + 1))
    return replace(rule, threshold=best_threshold(y, rule.scores(feature, rows)))


def _class_shares(codes: Ints, labels: Bools, size: int) -> Floats:
    overall = float(labels.mean())
    return (np.bincount(codes, labels, size) + overall) / (np.bincount(codes, minlength=size) + 1)


def best_threshold(labels: Bools, scores: Floats) -> float:
    """Threshold of the highest MCC."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(labels[order], dtype=np.float64)
    ends = np.flatnonzero(np.concatenate((ranked[1:] != ranked[:-1], [True])))  # last row of each score
    tp, called, n, p = hits[ends], ends + 1.0, float(len(labels)), float(labels.sum())
    mcc = matthews(tp, called - tp, n - p - called + tp, p - tp)
    return float(ranked[ends[np.argmax(mcc)]])


def rule_figures(
    data: AuditSet, features: SequenceFeatures, validation: Validation, bootstrap: Bootstrap
) -> list[AuditFigure]:
    """Measure every rule: MCC and AUROC of each class against the rest.

    Of two classes the figures are those of the second; they hold for the first as well.
    """
    figures = []
    rows = validation.tested
    for label, name in data.target_classes():
        truth = data.labels == label
        if not validation.covers(truth):
            continue
        for feature in rule_features(data, features):
            # All folds take the form that most of them choose: the scores of others have another scale.
            forms: list[Form] = [choose_form(feature, truth, train) for train, _ in validation.pairs]
            form = max(forms, key=forms.count)
            scores, calls = [], []
            for train, test in validation.pairs:
                rule = learn_rule(feature, truth, train, form)
                scores.append(rule.scores(feature, test))
                calls.append(scores[-1] >= rule.threshold)
            prefix = AuditFigure(RULES_SECTION, validation.name, name, feature.name, math.nan)
            figures += bootstrap.figures(
                prefix, rows, truth[rows], np.concatenate(scores), np.concatenate(calls)
            )
    return figures


# --- Relatives within a class and across splits: shared k-mers, identities, and named groups that leak

RELATIVES_SECTION = "relatives"
MAX_NUCLEOTIDE_KMER = 40
MAX_PROTEIN_KMER = 10
MAX_SHARED_BY_CHANCE = 0.001  # expected number of k-mers that a sequence shares with all the others
IDENTITY = 0.8
MAX_ALIGNED_LETTERS = 4_000_000  # in about a minute; the time grows with the square
LEVELS = (0.8, 0.9, 0.99)
QUANTILES = {"median": 0.5, "q90": 0.9, "q99": 0.99, "max": 1.0}
MAX_ALIGNED_SEQUENCES = 2000  # of the test part, with training
MAX_ALIGNMENT_CELLS = 1e8  # for all of them; of longer sequences fewer are sampled
MIN_ALIGNED_SEQUENCES = 50


# ------------------------------------------------------------------------------------- length of k-mers


def word_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Choose the length of the k-mers that relatives share.

    Half the lower quartile of the lengths, at most 40 nucleotides or 10 residues; but never so short that
    more than 1 sequence in 1000 would share a k-mer with any other by chance. Chance follows from the
    composition: if two letters are equal with probability q, k-mers are equal with q**k.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    half = int(np.quantile(lengths, 0.25, method="lower")) // 2
    longest = MAX_NUCLEOTIDE_KMER if alphabet.is_nucleotide else MAX_PROTEIN_KMER
    return max(min(half, longest), chance_length(sequences, alphabet), 1)


def chance_length(sequences: Sequence[str], alphabet: Alphabet) -> int:
    """Shortest k-mer of which a sequence shares at most `MAX_SHARED_BY_CHANCE` with all the others."""
    counts = letter_counts(sequences, alphabet).sum(axis=0).astype(np.float64)
    total = counts.sum()
    match = float(((counts / total) ** 2).sum()) if total else 1.0
    if match >= 1:  # a single letter: every k-mer of it is shared, whatever its length
        return 1
    strands = 2 if alphabet.is_nucleotide else 1
    pairs = strands * total * total / len(sequences)  # k-mers of one sequence times k-mers of all
    return max(1, math.ceil(math.log(max(pairs, 1.0) / MAX_SHARED_BY_CHANCE) / -math.log(match)))


# ----------------------------------------------------------------------------------------------- groups


def relative_groups(data: AuditSet, table: KmerTable) -> Ints:
    """Group relatives, directly or through others: int64 (N,).

    Relatives share a k-mer of the table, are at least `IDENTITY` identical by alignment, or belong to one
    named group. Above `MAX_ALIGNED_LETTERS` nothing is aligned.
    """
    groupings = [table.groups(), named_groups(data.groups)]
    if _is_aligned(data):
        groupings.append(homology_groups(data.sequences, IDENTITY, data.alphabet))
    return merge_groups(*groupings)


def describe_relatives(data: AuditSet, k: int) -> str:
    """What `relative_groups` keeps together, in words."""
    alike = [f"{100 * IDENTITY:.0f} % identity"] if _is_aligned(data) else []
    named = ["a named group"] if any(group is not None for group in data.groups) else []
    return " or ".join([f"a shared {k}-mer", *alike, *named])


def _is_aligned(data: AuditSet) -> bool:
    return sum(map(len, data.sequences)) <= MAX_ALIGNED_LETTERS


# ---------------------------------------------------------------------------------------------- figures


def relative_figures(data: AuditSet, table: KmerTable) -> Iterator[AuditFigure]:
    """Count sequences that share a k-mer within a split or class, across splits, and between named groups."""
    for split in data.parts:
        rows = data.rows(split)
        in_class = table.sharing_within(rows, data.labels)
        for label, name in data.labels_and_all():
            found = table.sharing_within(rows) if label is None else in_class[data.labels[rows] == label]
            yield from _sharing(split, name, found)
    for one, other in data.pairs_of_parts():
        rows = data.rows(one)
        found = table.sharing_across(rows, data.rows(other))
        for label, name in data.labels_and_all():
            chosen = found if label is None else found[data.labels[rows] == label]
            yield from _sharing(f"{one} to {other}", name, chosen)
    yield from _named_group_figures(data, table)


def _sharing(split: str, name: str, found: Bools) -> Iterator[AuditFigure]:
    yield AuditFigure(RELATIVES_SECTION, split, name, "sharing", int(found.sum()))
    yield AuditFigure(RELATIVES_SECTION, split, name, "sharing_share", found.sum() / max(len(found), 1))


def _named_group_figures(data: AuditSet, table: KmerTable) -> Iterator[AuditFigure]:
    """Named groups on both sides of a split, and sequences that share a k-mer with another named group."""
    named = named_groups(data.groups)
    if named.max(initial=-1) < 0:
        return
    yield AuditFigure("groups", "all", "*", "groups", int(named.max()) + 1)
    for one, other in data.pairs_of_parts():
        mine, theirs = named[data.rows(one)], named[data.rows(other)]
        both = np.isin(mine, theirs) & (mine >= 0)
        pair = f"{one} to {other}"
        yield AuditFigure("groups", pair, "*", "on_both_sides", len(np.unique(mine[both])))
        yield AuditFigure("groups", pair, "*", "sequences", int(both.sum()))
    yield AuditFigure("groups", "all", "*", "sharing_between", int(table.sharing_between(named).sum()))


def identity_figures(
    data: AuditSet, validation: Validation | None, seed: int
) -> tuple[list[AuditFigure], list[Histogram]]:
    """Identity of test sequences to the most similar training sequence.

    The first pair of training and test rows is measured. ``seed`` is that of the sample, if there are too
    many test rows.
    """
    if validation is None:
        return [], []
    train, rows = validation.pairs[0]
    rows = _sampled_rows(data, rows, seed)
    best, _ = best_matches(data.take(train), data.take(rows), data.alphabet)
    pair = f"{data.held_out} to train" if data.held_out else f"{WHOLE}, random fold to the others"
    figures = [AuditFigure("identity", pair, "*", "aligned", len(rows))]
    for label, name in data.labels_and_all():
        values = best if label is None else best[data.labels[rows] == label]
        figures += _identity_summary(pair, name, values)
    edges = np.linspace(0.0, 1.0, 21)
    histograms = [
        histogram("identity", pair, name, best[data.labels[rows] == label], edges)
        for label, name in data.largest_classes()
    ]
    return figures, histograms


def _sampled_rows(data: AuditSet, rows: Ints, seed: int) -> Ints:
    """At most as many rows as can be aligned in reasonable time."""
    longest = max(len(data.sequences[row]) for row in rows.tolist())
    most = min(MAX_ALIGNED_SEQUENCES, max(MIN_ALIGNED_SEQUENCES, int(MAX_ALIGNMENT_CELLS / longest**2)))
    if len(rows) <= most:
        return rows
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


def _identity_summary(pair: str, name: str, values: Floats) -> Iterator[AuditFigure]:
    if len(values):
        for quantity, p in QUANTILES.items():
            yield AuditFigure("identity", pair, name, quantity, float(np.quantile(values, p)))
        for level in LEVELS:
            share = float(np.mean(values >= level))
            yield AuditFigure("identity", pair, name, f"at_least_{level:g}", share)
