"""Small tasks for the training tests: made sequences, small networks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from seqray.core.records import LabeledSequence
from seqray.core.run_config import RunConfig
from seqray.core.serialization import from_mapping


@pytest.fixture(autouse=True)
def _one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def motif_task() -> Callable[..., list[LabeledSequence]]:
    """Random sequences; those of class ``promoter`` carry TATAAT near the middle."""

    def make(count: int, length: int = 40, seed: int = 0) -> list[LabeledSequence]:
        rng = np.random.default_rng(seed)
        examples = []
        for i in range(count):
            letters = rng.choice(list("ACGT"), length)
            if i % 2:
                start = length // 2 + rng.integers(-5, 0)
                letters[start : start + 6] = list("TATAAT")
            label = ("background", "promoter")[i % 2]
            examples.append(LabeledSequence("".join(letters), label, f"s{i}"))
        return examples

    return make


@pytest.fixture
def make_config() -> Callable[..., RunConfig]:
    """Settings of a small network for windows of 40 letters; keywords replace whole settings of sections."""

    def make(**sections: Any) -> RunConfig:
        base: dict[str, Any] = {
            "model": {"d_model": 16, "layers": 1, "heads": 2, "max_length": 64},
            "data": {"window": 40},
            "optimizer": {"batch_size": 32, "learning_rate": 3e-3},
            "trainer": {"max_epochs": 2, "accelerator": "cpu", "precision": "32-true"},
        }
        for name, value in sections.items():
            base[name] = base.get(name, {}) | value if isinstance(value, dict) else value
        return from_mapping(RunConfig, base)

    return make
