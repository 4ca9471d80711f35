"""What the head reads, against values on paper; padding and CLS have no part in it."""

from __future__ import annotations

import pytest
import torch

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.models.layers import Pooling

NAN = float("nan")
STATES = torch.tensor(  # CLS, then letters 1 to 5; the second sequence has two
    [
        [[9.0, 9.0], [1.0, 5.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [5.0, 1.0]],
        [[8.0, 8.0], [6.0, 0.0], [4.0, 2.0], [NAN, NAN], [NAN, NAN], [NAN, NAN]],
    ]
).nan_to_num(1e6)
MASK = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])


def pooling(*parts, **settings):
    return Pooling(ModelConfig(pooling=parts, **settings))


@pytest.mark.parametrize(
    ("parts", "settings", "expected"),
    [
        (("cls",), {}, [[9.0, 9.0], [8.0, 8.0]]),
        (("mean",), {}, [[3.0, 3.0], [5.0, 1.0]]),
        (("max",), {}, [[5.0, 5.0], [6.0, 2.0]]),
        (("ends",), {"ends": 2}, [[1.5, 4.5, 4.5, 1.5], [5.0, 1.0, 5.0, 1.0]]),
        (("ends",), {"ends": 3, "stem": StemConfig(stride=3)}, [[1.0, 5.0, 5.0, 1.0], [6.0, 0.0, 4.0, 2.0]]),
        (("mean", "cls"), {}, [[3.0, 3.0, 9.0, 9.0], [5.0, 1.0, 8.0, 8.0]]),
    ],
)
def test_parts(parts, settings, expected):
    torch.testing.assert_close(pooling(*parts, **settings)(STATES, MASK), torch.tensor(expected))


def test_shares_are_the_mean_over_the_vectors():
    found = pooling("cls", "mean", "max")(STATES, MASK), pooling("cls", "mean", "max").shares(STATES, MASK)
    assert found[0].shape == (2, 6)
    first = [1 / 3, (1 / 5 + 1 / 2) / 3, 1 / 15, 1 / 15, 1 / 15, (1 / 5 + 1 / 2) / 3]
    second = [1 / 3, (1 / 2 + 1 / 2) / 3, (1 / 2 + 1 / 2) / 3, 0.0, 0.0, 0.0]
    torch.testing.assert_close(found[1], torch.tensor([first, second]))
