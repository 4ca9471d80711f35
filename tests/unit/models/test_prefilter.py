"""The prefilter along a strand against a convolution of torch, window by window."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings, strategies as st

from seqray.models.prefilter import KERNEL, NARROW, STRIDE, WIDE, Prefilter, prefilter_shapes

WINDOW, LETTERS, CONTEXTS = 22, 4, 2


def make(window=WINDOW, seed=0, size=NARROW):
    rng = np.random.default_rng(seed)
    shapes = prefilter_shapes(window, LETTERS, CONTEXTS, size)
    return Prefilter(
        {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in shapes.items()}, window
    )


def by_convolution(prefilter, codes, context):
    """One window, by torch's convolution of one-hot letters."""
    w = {name: torch.from_numpy(value) for name, value in prefilter.weights.items()}
    one_hot = F.one_hot(torch.from_numpy(codes.astype(np.int64)), LETTERS + 1)[:, :LETTERS].float()
    found = F.conv1d(one_hot.T[None], w["convolution"].permute(2, 1, 0), w["convolution_bias"], stride=STRIDE)
    gained = F.relu(found)[0].T * w["gain"][context]  # (J, C)
    hidden = F.relu(torch.einsum("jc,jch->h", gained, w["first"]) + w["first_bias"][context])
    hidden = F.relu(hidden @ w["second"] + w["second_bias"])
    return float(hidden @ w["out"] + w["out_bias"][context])


@pytest.mark.parametrize("size", [NARROW, WIDE])
@pytest.mark.parametrize("window", [KERNEL, WINDOW, 81])
def test_every_window_gets_what_a_convolution_gives(window, size):
    prefilter = make(window, size=size)
    codes = np.random.default_rng(1).integers(0, LETTERS + 1, window + 30).astype(np.uint8)
    for context in range(CONTEXTS + 1):
        expected = [by_convolution(prefilter, codes[i : i + window], context) for i in range(31)]
        assert prefilter.log_odds(codes, context) == pytest.approx(expected, rel=1e-4, abs=1e-4)


@settings(max_examples=25, deadline=None)
@given(length=st.integers(WINDOW, 9000), cut=st.integers(0, 9000), seed=st.integers(0, 99))
def test_where_a_strand_is_cut_changes_nothing(length, cut, seed):
    prefilter = make(seed=seed)
    codes = np.random.default_rng(seed).integers(0, LETTERS + 1, length).astype(np.uint8)
    cut = cut % (length - WINDOW + 1)
    whole = prefilter.log_odds(codes, 1)
    assert whole.shape == (length - WINDOW + 1,)
    assert (prefilter.log_odds(codes[cut:], 1) == whole[cut:]).all()  # to the last bit


@given(count=st.integers(1, 2000), seed=st.integers(0, 99))
def test_a_window_has_the_same_answer_in_a_strand_and_alone(count, seed):
    prefilter = make(seed=seed, size=(WIDE, NARROW)[seed % 2])
    codes = np.random.default_rng(seed).integers(0, LETTERS + 1, count + WINDOW - 1).astype(np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(codes, WINDOW)
    order = np.random.default_rng(seed).permutation(count)
    assert (prefilter.window_log_odds(windows[order], 2) == prefilter.log_odds(codes, 2)[order]).all()
