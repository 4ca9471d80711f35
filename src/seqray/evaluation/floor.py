"""What a model has to beat: logistic regression on words, and rules that look at one trivial feature.

Fitted on training data where there are some; else cross-validated on the records that are evaluated, whole
groups held out, so that no record is judged by a fit that saw it or a relative.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seqray.calibration import choose_threshold
from seqray.core import Alphabet, Floats, InputError, LabelledSequence
from seqray.core.results import Answers
from seqray.homology import grouped_folds
from seqray.metrics import KmerPositionalBaseline

FOLDS = 5
# 8,000 three-letter words of protein at each position would be too many to fit.
WORDS = {"protein": ((1, 2), (1,))}
DEFAULT_WORDS = ((2, 3, 4, 5), (1, 3))
RULES = ("majority", "gc", "length")

Scorer = Callable[[Sequence[str], np.ndarray, Sequence[str]], Floats]
"""(training sequences, their class indices, sequences) -> (N, K) probabilities."""


def floors(
    examples: Sequence[LabelledSequence],
    train: Sequence[LabelledSequence],
    classes: Sequence[str],
    positive: str,
    alphabet: Alphabet,
    groups: Sequence[object] | np.ndarray,
    seed: int = 0,
) -> list[Answers]:
    """Fit the floor and the rules, and let them answer.

    Parameters
    ----------
    examples
        N records to answer.
    train
        What to fit on, of these classes; where empty, ``examples`` in folds.
    classes, positive
        Names [K], and the one that is called by a threshold where there are two.
    groups
        (N,) keys of ``examples``, for the folds.
    seed
        Of the folds.

    Returns
    -------
    list of Answers
        ``floor``, ``majority``, ``gc`` (nucleotides) and ``length``; the last two where the feature varies.

    Raises
    ------
    InputError
        Where there are too few groups for two folds, or training data of another class.
    """
    for example in train:
        if example.label not in classes:
            wrong = f"has the label '{example.label}', which is none of {', '.join(classes)}"
            raise InputError(wrong, where=example.where)
    sequences = [example.sequence for example in examples]
    folds = None if train else _folds(examples, groups, seed)
    fitted = f"fitted on {len(train)} training records"
    if folds is not None:
        fitted = f"cross-validated by groups in {folds.max() + 1} folds"
    found = []
    for name, (words, scorer) in _scorers(alphabet).items():
        if name in FEATURES and not _varies([*(e.sequence for e in train), *sequences], name):
            continue
        if name == "majority":  # in folds the shares would differ a little, and so rank
            scores = _answered(scorer, examples, train or examples, classes, None)
            note = f"{words}, of {'training' if train else 'these'} records"
        else:
            scores, note = _answered(scorer, examples, train, classes, folds), f"{words}, {fitted}"
        found.append(called(name, note, scores, classes, positive))
    return found


def called(
    source: str,
    note: str,
    scores: Floats,
    classes: Sequence[str],
    positive: str,
    threshold: float | None = None,
) -> Answers:
    """Turn probabilities (N, K) into answers.

    Of two classes the positive one is called from a threshold on: by default that of the highest expected
    Matthews correlation if the probabilities are right, as of seqray's models. No label has a say in it.
    """
    if len(classes) != 2:
        return Answers(source, note, scores, scores.argmax(axis=1))
    k = list(classes).index(positive)
    limit = choose_threshold(scores[:, k]) if threshold is None else threshold
    calls = np.where(scores[:, k] >= limit, k, 1 - k)
    return Answers(source, note, scores, calls, threshold=limit)


def _folds(
    examples: Sequence[LabelledSequence], groups: Sequence[object] | np.ndarray, seed: int
) -> np.ndarray:
    labels, keys = [example.label for example in examples], list(groups)
    return grouped_folds(labels, keys, fold_count(labels, keys), seed)  # type: ignore[arg-type]


def fold_count(labels: Sequence[str], groups: Sequence[object]) -> int:
    """Folds that there can be: five at most, no more than groups or members of the largest class."""
    return min(FOLDS, len(set(groups)), max(Counter(labels).values(), default=0))


def _answered(
    scorer: Scorer,
    examples: Sequence[LabelledSequence],
    train: Sequence[LabelledSequence],
    classes: Sequence[str],
    folds: np.ndarray | None,
) -> Floats:
    index = {name: k for k, name in enumerate(classes)}
    sequences = [example.sequence for example in examples]
    if folds is None:
        labels = np.array([index[example.label] for example in train])
        return _all_classes(scorer, [e.sequence for e in train], labels, sequences, len(classes))
    labels, scores = np.array([index[e.label] for e in examples]), np.zeros((len(examples), len(classes)))
    for fold in np.unique(folds):
        held_out, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        scores[held_out] = _all_classes(
            scorer, [sequences[i] for i in rest], labels[rest], [sequences[i] for i in held_out], len(classes)
        )
    return scores


def _all_classes(
    scorer: Scorer, known: Sequence[str], labels: np.ndarray, asked: Sequence[str], size: int
) -> Floats:
    """Probabilities over all classes, 0 for one without an example; nothing to learn gives that class."""
    present = np.unique(labels)
    scores = np.zeros((len(asked), size))
    if len(present) == 1:
        scores[:, present[0]] = 1.0
    else:
        scores[:, present] = scorer(known, labels, asked)
    return scores


# ------------------------------------------------------------------------------------------- classifiers


def _lengths(sequences: Sequence[str]) -> Floats:
    return np.array([len(sequence) for sequence in sequences], dtype=np.float64)


def _gc(sequences: Sequence[str]) -> Floats:
    return np.array([(s.count("G") + s.count("C")) / max(1, len(s)) for s in sequences], dtype=np.float64)


FEATURES: dict[str, Callable[[Sequence[str]], Floats]] = {"gc": _gc, "length": _lengths}


def _scorers(alphabet: Alphabet) -> dict[str, tuple[str, Scorer]]:
    found: dict[str, tuple[str, Scorer]] = {
        "floor": ("logistic regression on words and on words at positions", _word_scorer(alphabet)),
        "majority": ("the shares of the classes for every record", _shares),
        "gc": ("logistic regression on the share of G and C", _feature_scorer("gc")),
        "length": ("logistic regression on the length", _feature_scorer("length")),
    }
    return found if alphabet.is_nucleotide else {name: one for name, one in found.items() if name != "gc"}


def _word_scorer(alphabet: Alphabet) -> Scorer:
    kmers, positional = WORDS.get(alphabet.name, DEFAULT_WORDS)

    def score(known: Sequence[str], labels: np.ndarray, asked: Sequence[str]) -> Floats:
        model = KmerPositionalBaseline(kmers, positional, alphabet=alphabet.name)
        return model.fit(known, labels).predict_proba(asked)

    return score


def _shares(known: Sequence[str], labels: np.ndarray, asked: Sequence[str]) -> Floats:
    _, counts = np.unique(labels, return_counts=True)
    return np.tile(counts / counts.sum(), (len(asked), 1))


def _feature_scorer(name: str) -> Scorer:
    def score(known: Sequence[str], labels: np.ndarray, asked: Sequence[str]) -> Floats:
        model = make_pipeline(StandardScaler(), LogisticRegression())
        model.fit(FEATURES[name](known)[:, None], labels)
        return model.predict_proba(FEATURES[name](asked)[:, None])

    return score


def _varies(sequences: Sequence[str], feature: str) -> bool:
    values = FEATURES[feature](sequences)
    return bool(len(values) and values.min() < values.max())
