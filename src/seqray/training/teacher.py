"""Knowledge distillation: the student also learns the probabilities of a trained model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import softmax

from seqray.calibration import apply_isotonic
from seqray.core import ConfigError, Example, RunConfig
from seqray.modelfile import TrainedModel
from seqray.training.encode import encode
from seqray.training.partitions import Partition
from seqray.training.validation import model_logits


def check_teacher(teacher: TrainedModel, config: RunConfig, classes: Sequence[str]) -> None:
    """Raise ConfigError for a teacher that does not fit the student.

    The teacher must read the same letters, windows at least as long, and predict the same classes.
    """
    if config.data.subclasses:
        raise ConfigError(
            "a teacher knows classes, not their subclasses", remedy="leave 'data.subclasses' out"
        )
    card = teacher.card
    differing = {
        "alphabet": (card.model.alphabet, config.model.alphabet),
        "classes": (", ".join(card.classes), ", ".join(classes)),
    }
    for what, (theirs, ours) in differing.items():
        if theirs != ours:
            raise ConfigError(f"the teacher '{card.name}' has the {what} {theirs}, the data {ours}")
    if card.model.max_length < config.data.window:
        raise ConfigError(
            f"the teacher '{card.name}' reads {card.model.max_length} letters, 'data.window' is "
            f"{config.data.window}"
        )


def distillation_targets(
    teacher: TrainedModel, data: Sequence[Example], parts: Partition, config: RunConfig
) -> np.ndarray:
    """Mix the teacher's calibrated probabilities with the labels: float32 (N, K) for the training part.

    The teacher reads the unchanged windows, without the student's shifts or masks.
    Source: Hinton et al. 2015, Distilling the knowledge in a neural network.
    """
    share = config.optimizer.teacher
    known = encode(data, parts.labels, parts.train, replace(config, model=teacher.card.model))
    probabilities = apply_isotonic(softmax(model_logits(teacher, known), axis=1), teacher.card)
    labels = np.eye(len(parts.classes))[known.labels]
    return (share * probabilities + (1 - share) * labels).astype(np.float32)
