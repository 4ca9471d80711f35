"""Results of evaluations: plain, immutable values."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from seqray.core.arrays import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Scores and calls of one classifier for N records.

    Attributes
    ----------
    source, note
        ``model``, ``against``, ``floor`` or the name of a rule, and its description.
    scores
        (N, K) a score per class; probabilities that sum to 1 where ``probabilities`` is true.
    calls
        (N,) index of the class called.
    probabilities
        False for scores of another kind: they rank and call, but have no calibration.
    threshold
        On the score of the positive class; None if the calls don't follow from one.
    """

    source: str
    note: str
    scores: Floats
    calls: npt.NDArray[np.int64]
    probabilities: bool = True
    threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of merit, or a difference of two, with its 95 % interval from a bootstrap over groups.

    Attributes
    ----------
    subset
        ``all``, or ``context:<name>``, or ``similarity:<range>``.
    source
        Whose figure: see `Answers`; ``model-floor`` for a difference.
    label
        The class that counts as positive; with more than two classes also ``all`` (a figure of the whole
        confusion table or of all probabilities) and ``macro`` (mean over the classes).
    metric
        Its name.
    value, low, high
        nan if undefined, the interval also where there are fewer than two groups.
    p
        Of a difference: two-sided, that it is 0; nan otherwise.
    n, positives, groups
        Records, those of the class among them (0 for ``all`` and ``macro``), and groups drawn from.
    """

    subset: str
    source: str
    label: str
    metric: str
    value: float
    low: float
    high: float
    p: float
    n: int
    positives: int
    groups: int


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """How well predictions agree with labels.

    Attributes
    ----------
    classes, positive
        Names [K] in the order of the scores, and the class that the figures of two classes are about.
    labels
        (N,) class index of each record.
    answers
        The model first, then those it is compared with.
    figures
        All figures, those of all records first.
    split
        Name of the part of the data.
    subsets
        Number of records of each further subset.
    grouping
        What was drawn whole in the bootstrap, as text.
    draws, seed
        Of the bootstrap.
    notes
        Remarks on the figures.
    mcnemar
        Of each source that the model is compared with: records that the model alone and that the source alone
        calls right, and the exact p-value of McNemar's test.
    """

    classes: tuple[str, ...]
    positive: str
    labels: npt.NDArray[np.int64]
    answers: tuple[Answers, ...]
    figures: tuple[Figure, ...]
    split: str
    subsets: dict[str, int]
    grouping: str
    draws: int
    seed: int
    notes: tuple[str, ...] = ()
    mcnemar: dict[str, tuple[int, int, float]] = field(default_factory=dict)

    def figure(self, metric: str, source: str = "model", label: str = "", subset: str = "all") -> Figure:
        """Find one figure; raises `KeyError` if there is none.

        Parameters
        ----------
        metric
            Name of the metric.
        source
            Source of the scores, see `Answers`.
        label
            Class; by default the positive class of two, or ``all`` of more.
        subset
            ``all`` or the name of a subset.
        """
        wanted = (subset, source, label or (self.positive if len(self.classes) == 2 else "all"), metric)
        for figure in self.figures:
            if (figure.subset, figure.source, figure.label, figure.metric) == wanted:
                return figure
        raise KeyError(wanted)

    def confusion(self, source: str = "model") -> npt.NDArray[np.int64]:
        """Count records by (true class, class called): (K, K)."""
        [calls] = [answers.calls for answers in self.answers if answers.source == source]
        size = len(self.classes)
        return np.bincount(self.labels * size + calls, minlength=size * size).reshape(size, size)
