"""The audit as a whole: labelled sequences in, figures and findings out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Alphabet, LabelledSequence
from seqray.core.results import Audit, AuditFigure
from seqray.datasets.audit.composition import Columns, composition_figures, composition_histograms
from seqray.datasets.audit.copies import copy_figures
from seqray.datasets.audit.data import AuditSet, make_set
from seqray.datasets.audit.floor import floor_figures, sampled
from seqray.datasets.audit.order import order_figures
from seqray.datasets.audit.plans import Plan, describe_relatives, folds_plan, given_plan, relative_groups
from seqray.datasets.audit.relatives import Relatives, find_relatives
from seqray.datasets.audit.rules import rule_figures
from seqray.datasets.audit.shared import chance_length, word_length
from seqray.datasets.audit.verdicts import draw_findings

SAMPLE = 16_000  # rows of each split that the baselines use
RESAMPLES = 300


def audit(
    examples: Sequence[LabelledSequence],
    alphabet: Alphabet,
    letters: Sequence[str] | None = None,
    *,
    in_file_order: bool = True,
    baselines: bool = True,
    seed: int = 0,
    sample: int = SAMPLE,
    resamples: int = RESAMPLES,
    skipped: int = 0,
) -> Audit:
    """Say what would fool a model trained on these sequences.

    Parameters
    ----------
    examples
        Labelled sequences; their splits and groups are believed, and checked.
    alphabet
        Of the sequences.
    letters
        Letters of each example as they stood in the file, before case was folded.
    in_file_order
        Whether the examples are in the order of one table, so that the order may be tested.
    baselines
        Whether to fit the linear baselines, the slowest part.
    seed
        Of folds, samples and resamples.
    sample
        Rows of each split that the baselines are fitted to and measured on, at most; drawn at random.
    resamples
        Of the bootstrap.
    skipped
        Records without letters that were left out by the reader, for the findings.

    Raises
    ------
    InputError
        For fewer than two classes.
    """
    data = make_set(examples, alphabet, letters, in_file_order)
    k = word_length(data.sequences, alphabet)
    plan, groups = given_plan(data, seed), relative_groups(data, k)
    columns = Columns(data)
    relatives = find_relatives(data, k, plan, seed)
    figures = [
        *composition_figures(data, columns, groups),
        *copy_figures(data),
        *relatives.figures,
        *order_figures(data),
    ]
    if plan is not None:
        figures += rule_figures(data, columns, plan, groups, resamples, seed)
    grouped = folds_plan(data, groups, seed) if baselines else None
    if baselines:
        figures += _floors(data, plan, grouped, groups, relatives, sample, resamples, seed)
    settings = {
        "alphabet": alphabet.name,
        "word": str(k),
        "chance_word": str(chance_length(data.sequences, alphabet)),
        "held_out": data.held_out or "",
        "given": plan.description if plan else "none: a class has too few examples",
        "relatives": describe_relatives(data, k),
        "grouped": grouped.description if grouped else "none",
        "seed": str(seed),
        "resamples": str(resamples),
        "sample": str(sample),
    }
    histograms = [*composition_histograms(data, columns), *relatives.histograms]
    return Audit(figures, histograms, draw_findings(figures, settings, skipped), settings)


def _floors(
    data: AuditSet,
    plan: Plan | None,
    grouped: Plan | None,
    groups: np.ndarray,
    relatives: Relatives,
    sample: int,
    resamples: int,
    seed: int,
) -> list[AuditFigure]:
    chosen = sampled(data, sample, seed)
    figures = []
    if plan is not None:
        related = relatives.held_out_related
        figures += floor_figures(data, plan, chosen, groups, related, resamples, seed)
    if grouped is not None:
        figures += floor_figures(data, grouped, chosen, groups, None, resamples, seed)
    return figures
