"""Scores of the columns, rows and cells of an alignment by each method."""

from __future__ import annotations

from torch import Tensor

from seqray.core.arrays import Floats
from seqray.explanations.layers import without_cls
from seqray.explanations.options import COLUMN_BLOCK, MethodSettings
from seqray.explanations.rollout import grad_rollout, rollout
from seqray.explanations.targets import AlignmentTarget, leave_rows_out, occlude_columns
from seqray.explanations.trace import trace
from seqray.inference.predictions import compute_precision

Profiles = tuple[Floats, Floats, Floats | None]
"""Scores of the columns (C,), of the rows (R,), and of the cells (R, C), if any."""


def rollout_shares(target: AlignmentTarget, settings: MethodSettings) -> Profiles:
    """Shares by `rollout`, CLS taken out."""
    with compute_precision(target.model.device, "fp32"):
        return _profiles(rollout(trace(target.network, target.batch), residual=settings.residual))


def grad_rollout_shares(target: AlignmentTarget, settings: MethodSettings) -> Profiles:
    """Shares by `grad_rollout`, CLS taken out."""
    with compute_precision(target.model.device, "fp32"):
        traced = trace(target.network, target.batch, gradients=True)
        return _profiles(grad_rollout(traced, target.of_logits(traced.logits), residual=settings.residual))


def occlusion_scores(target: AlignmentTarget, settings: MethodSettings) -> Profiles:
    """Falls of the log-odds without columns, and without rows."""
    return occlude_columns(target, settings.block or COLUMN_BLOCK), leave_rows_out(target), None


def _profiles(relevance: Tensor) -> Profiles:
    grid = without_cls(relevance)[0].double().cpu().numpy()
    return grid.sum(axis=0), grid.sum(axis=1), grid
