"""What the checks of every kind of model share: a network of random weights, and the name of the class."""

from __future__ import annotations

import torch

from seqray.explanations.attribution import CALLED, wanted_class
from seqray.modelfile import Network, TrainedModel, build_network
from seqray.models import BackboneClassifier

_SEED = 20_261_121


def randomized_network(model: TrainedModel) -> Network:
    """A network of the model's shape with random weights."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(_SEED)  # a GPU's generator is left alone
        if isinstance(model.networks[0], BackboneClassifier):
            return model.networks[0].with_random_weights()
        return build_network(model.card.model).to(model.device).requires_grad_(False).eval()


def target_name(model: TrainedModel, target: str | None) -> str:
    """The class explained, for a sentence."""
    wanted = wanted_class(model.card, target)
    return "the called class" if wanted == CALLED else wanted
