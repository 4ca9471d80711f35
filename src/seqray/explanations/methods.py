"""The table of methods: what each computes, for sequences and for alignments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from seqray.core.arrays import Codes, Floats
from seqray.core.explanation import AlignmentScores
from seqray.explanations import alignment_scores, locator_scores, rollout_scores, sequence_scores
from seqray.explanations.options import MethodSettings
from seqray.explanations.targets import (
    AlignmentTarget,
    AttributionTarget,
    LetterTarget,
    LocatorTarget,
    loss_of_letters,
)
from seqray.modelfile.model import TrainedModel


@dataclass(frozen=True, slots=True)
class Method:
    """One way to score letters, or the columns and rows of an alignment.

    Attributes
    ----------
    name, signed
        As on the command line, and whether a score below 0 is evidence against the class; if not, scores are
        shares that sum to 1.
    predicts
        Whether it changes letters and predicts again, so that it sees all that a model reads.
    of_sequences
        (target, codes, settings) to scores (N, n): network and class explained, letter codes (N, n) of
        records of one length, and the settings of the method.
    of_calls
        The same for stretches around a call of a locator.
    of_alignment
        (target, settings) to scores of the columns (C,), of the rows (R,) and of the cells (R, C), if any.
        None for a method that is for sequences only.

    Examples
    --------
    >>> from seqray.explanations.methods import METHODS
    >>> [method.name for method in METHODS.values() if not method.signed]
    ['rollout', 'grad-rollout', 'value-rollout']
    >>> [method.name for method in METHODS.values() if method.of_alignment]
    ['rollout', 'grad-rollout', 'occlusion']
    """

    name: str
    signed: bool
    of_sequences: Callable[[AttributionTarget, Codes, MethodSettings], Floats]
    of_calls: Callable[[LocatorTarget, Codes, MethodSettings], Floats]
    of_alignment: Callable[[AlignmentTarget, MethodSettings], tuple[Floats, Floats, Floats | None]] | None = (
        None
    )
    predicts: bool = False

    def score(self, target: LetterTarget, codes: Codes, settings: MethodSettings) -> Floats:
        """Scores (N, n) of the letters of records of one length, codes (N, n)."""
        if isinstance(target, LocatorTarget):
            return self.of_calls(target, codes, settings)
        return self.of_sequences(target, codes, settings)


_letters, _calls, _cells = sequence_scores, locator_scores, alignment_scores
METHODS = {
    method.name: method
    for method in (
        Method(
            "rollout",
            signed=False,
            of_sequences=rollout_scores.rollout_shares,
            of_calls=rollout_scores.rollout_shares,
            of_alignment=_cells.rollout_shares,
        ),
        Method(
            "grad-rollout",
            signed=False,
            of_sequences=rollout_scores.grad_rollout_shares,
            of_calls=rollout_scores.grad_rollout_shares,
            of_alignment=_cells.grad_rollout_shares,
        ),
        Method(
            "value-rollout",
            signed=False,
            of_sequences=rollout_scores.value_rollout_shares,
            of_calls=rollout_scores.value_rollout_shares,
        ),
        Method(
            "input-x-gradient",
            signed=True,
            of_sequences=_letters.input_x_gradient,
            of_calls=_calls.input_x_gradient,
        ),
        Method(
            "integrated-gradients",
            signed=True,
            of_sequences=_letters.integrated_gradients,
            of_calls=_calls.integrated_gradients,
        ),
        Method(
            "ism",
            signed=True,
            of_sequences=_letters.ism_scores,
            of_calls=_letters.ism_scores,
            predicts=True,
        ),
        Method(
            "occlusion",
            signed=True,
            of_sequences=_letters.occlusion_scores,
            of_calls=_letters.occlusion_scores,
            of_alignment=_cells.occlusion_scores,
            predicts=True,
        ),
    )
}
ALIGNMENT_METHODS = {name: method for name, method in METHODS.items() if method.of_alignment}


def check_methods(model: TrainedModel, names: Iterable[str]) -> None:
    """Refuse methods that this kind of model does not support, by a `ConfigError`."""
    if "value-rollout" in names:
        rollout_scores.check_values(model)


def member_effects(targets: Sequence[LetterTarget], codes: Codes) -> Floats:
    """Effects of all substitutions by each member: (M, N, n, A), changes of the log-odds.

    Parameters
    ----------
    targets, codes
        See `ensemble_score`.
    """
    return np.stack([sequence_scores.effects(target, codes) for target in targets])


@torch.inference_mode(False)
@torch.enable_grad()  # also where the caller computes without gradients
def member_scores(
    targets: Sequence[LetterTarget],
    codes: Codes,
    method: str,
    settings: MethodSettings,
    known_effects: Floats | None = None,
) -> Floats:
    """Scores of all letters by each member.

    Parameters
    ----------
    targets, codes
        See `ensemble_score`.
    method, settings
        A name in `METHODS`, and its settings.
    known_effects
        Of `member_effects`, which in-silico mutagenesis then takes instead of computing them.

    Returns
    -------
    array of float64, shape (M, N, n)
    """
    if method == "ism" and known_effects is not None:
        return loss_of_letters(known_effects)
    return np.stack([METHODS[method].score(target, codes, settings) for target in targets])


@torch.inference_mode(False)
@torch.enable_grad()
def score_alignment(targets: list[AlignmentTarget], name: str, settings: MethodSettings) -> AlignmentScores:
    """Score an alignment by one method: the mean over the members of a model.

    Parameters
    ----------
    targets
        One for each member.
    name, settings
        A name in `ALIGNMENT_METHODS`, and its settings.
    """
    compute = METHODS[name].of_alignment
    if compute is None:
        raise ValueError(f"method '{name}' does not explain alignments")
    columns, rows, grids = zip(*(compute(target, settings) for target in targets), strict=True)
    grid = None if grids[0] is None else np.mean(grids, axis=0)
    return AlignmentScores(name, METHODS[name].signed, np.mean(columns, axis=0), np.mean(rows, axis=0), grid)
