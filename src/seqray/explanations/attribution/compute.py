"""Scores of many records of one length by several methods, for each member and for their mean."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqray.core import Codes, Floats
from seqray.explanations.attribution.methods import METHODS, AttributionTarget, effects
from seqray.explanations.attribution.mutagenesis import loss_of_letters
from seqray.explanations.options import MethodSettings
from seqray.modelfile import SequenceNetwork, TrainedModel


def member_effects(model: TrainedModel, codes: Codes, target: int) -> Floats:
    """Effects of all substitutions by each member: (M, N, n, A)."""
    return np.stack(
        [effects(AttributionTarget(model, network, target), codes) for network in model.sequence_networks]
    )


def member_scores(
    model: TrainedModel,
    codes: Codes,
    target: int,
    method: str,
    settings: MethodSettings,
    networks: Sequence[SequenceNetwork] | None = None,
    known_effects: Floats | None = None,
) -> Floats:
    """Scores of all letters by each member: (N, n) codes to (M, N, n).

    Parameters
    ----------
    networks
        In place of the model's own.
    known_effects
        Of `member_effects`, which in-silico mutagenesis then takes instead of computing them.
    """
    if method == "ism" and known_effects is not None:
        return loss_of_letters(known_effects)
    compute = METHODS[method].compute
    chosen = model.sequence_networks if networks is None else networks
    return np.stack(
        [compute(AttributionTarget(model, network, target), codes, settings) for network in chosen]
    )


def mean_scores(
    model: TrainedModel, codes: Codes, target: int, method: str, settings: MethodSettings
) -> Floats:
    """Mean over the members of `member_scores`: (N, n)."""
    return member_scores(model, codes, target, method, settings).mean(axis=0)
