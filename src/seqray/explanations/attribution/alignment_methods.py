"""The ways to explain a call on an alignment, by name: scores of its cells, columns and rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from seqray.core import Floats
from seqray.core.msa import pairs_from_maps
from seqray.core.results import AlignmentScores
from seqray.explanations.attribution.axial_rollout import (
    axial_grad_rollout,
    axial_rollout,
    tied_maps,
    without_cls,
)
from seqray.explanations.attribution.axial_trace import trace_alignment
from seqray.explanations.attribution.hiding import AlignmentTarget, leave_rows_out, occlude_columns
from seqray.explanations.options import COLUMN_BLOCK, MethodSettings
from seqray.inference import compute_precision

Compute = Callable[[AlignmentTarget, MethodSettings], tuple[Floats, Floats, Floats | None]]
"""To scores of the columns (C,), of the rows (R,), and of the cells (R, C), if any."""


def _rollout(question: AlignmentTarget, settings: MethodSettings) -> tuple[Floats, Floats, Floats]:
    return _profiles(_traced_grid(question, settings, gradients=False))


def _grad_rollout(question: AlignmentTarget, settings: MethodSettings) -> tuple[Floats, Floats, Floats]:
    return _profiles(_traced_grid(question, settings, gradients=True))


def _traced_grid(question: AlignmentTarget, settings: MethodSettings, *, gradients: bool) -> Floats:
    """(R, C) shares of the cells, CLS taken out."""
    with compute_precision(question.model.device, "fp32"):
        traced = trace_alignment(question.network, _tensor(question), gradients=gradients)
        if gradients:
            grid = axial_grad_rollout(traced, question.of_logits(traced.logits), residual=settings.residual)
        else:
            grid = axial_rollout(traced, residual=settings.residual)
    return without_cls(grid)[0].double().cpu().numpy()


def _profiles(grid: Floats) -> tuple[Floats, Floats, Floats]:
    return grid.sum(axis=0), grid.sum(axis=1), grid


def _occlusion(question: AlignmentTarget, settings: MethodSettings) -> tuple[Floats, Floats, None]:
    return occlude_columns(question, settings.block or COLUMN_BLOCK), leave_rows_out(question), None


@dataclass(frozen=True, slots=True)
class AlignmentMethod:
    """One way to score alignments.

    Attributes
    ----------
    name
        As on the command line.
    signed
        Whether a score below 0 speaks against the class; if not, scores are shares that sum to 1.
    compute
        For one network.
    """

    name: str
    signed: bool
    compute: Compute


ALIGNMENT_METHODS = {
    method.name: method
    for method in (
        AlignmentMethod("rollout", False, _rollout),
        AlignmentMethod("grad-rollout", False, _grad_rollout),
        AlignmentMethod("occlusion", True, _occlusion),
    )
}


def score_alignment(questions: list[AlignmentTarget], name: str, settings: MethodSettings) -> AlignmentScores:
    """Scores by one method, the mean over the members of a model: a question for each of them."""
    method = ALIGNMENT_METHODS[name]
    columns, rows, grids = zip(*(method.compute(question, settings) for question in questions), strict=True)
    grid = None if grids[0] is None else np.mean(grids, axis=0)
    return AlignmentScores(name, method.signed, np.mean(columns, axis=0), np.mean(rows, axis=0), grid)


def score_pairs(questions: list[AlignmentTarget]) -> Floats:
    """Scores of the pairs of columns from the maps of row attention: (C, C), the mean over the members."""
    found = []
    for question in questions:
        with compute_precision(question.model.device, "fp32"):
            maps = tied_maps(trace_alignment(question.network, _tensor(question)))[0]
        found.append(pairs_from_maps(maps.flatten(0, 1).cpu().numpy()))
    return np.mean(found, axis=0)


def _tensor(question: AlignmentTarget) -> torch.Tensor:
    return torch.from_numpy(question.tokens)[None].to(question.model.device)
