"""Results of an audit: figures, histograms, and findings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SEVERITIES = ("leak", "shortcut", "caution", "note")
"""From worst to mildest: the order in which findings are reported."""

ALARMING = ("leak", "shortcut")


@dataclass(frozen=True, slots=True)
class AuditFigure:
    """One number of an audit.

    Attributes
    ----------
    section
        What it belongs to: ``counts``, ``copies``, ``rules`` and so on.
    split
        Part of the data it was measured on; ``test to train`` compares two parts.
    label
        Class it was measured on, ``*`` for all of them.
    quantity
        Its name.
    value
        The number; shares lie between 0 and 1.
    low, high
        95 % bootstrap interval; NaN if there is none.
    """

    section: str
    split: str
    label: str
    quantity: str
    value: float
    low: float = math.nan
    high: float = math.nan


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem or fact to consider before training.

    Attributes
    ----------
    severity
        One of `SEVERITIES`.
    kind
        Short name of the rule that fired, as in docs/concepts/audit.md.
    what
        One sentence with figures: what was found.
    effect
        Its effect on the measured performance.
    remedy
        What to do about it.
    """

    severity: str
    kind: str
    what: str
    effect: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts of a quantity in bins, of one class in one part of the data.

    Attributes
    ----------
    quantity, split, label
        As in `AuditFigure`.
    edges, counts
        Edges of the bins, one more than there are bins; sequences in each, the last includes its upper edge.
    """

    quantity: str
    split: str
    label: str
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of an audit.

    Attributes
    ----------
    figures, histograms
        What was measured.
    findings
        Worst first.
    settings
        What the figures depend on, such as the length of the words: name and value.
    """

    figures: Sequence[AuditFigure]
    histograms: Sequence[Histogram]
    findings: Sequence[Finding]
    settings: Mapping[str, str]

    @property
    def alarming(self) -> bool:
        """Whether a leak or a shortcut was found."""
        return any(finding.severity in ALARMING for finding in self.findings)
