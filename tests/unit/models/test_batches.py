"""Padding, masks and buckets of similar length."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, strategies as st

from seqray.models.batches import collate
from seqray.models.tokenizers import size_buckets


def test_a_letter_that_equals_padding_is_still_real():
    """The mask comes from lengths: a PAD token within a sequence is not taken for padding."""
    batch = collate([np.array([1, 0, 5]), np.array([1, 5])])
    assert batch.masks[0] is not None
    assert batch.masks[0].tolist() == [[True, True, True], [True, True, False]]


@given(
    lengths=st.lists(st.integers(1, 50), max_size=60),
    batch_size=st.integers(1, 20),
    max_tokens=st.integers(1, 200),
)
def test_buckets_hold_everything_once_within_the_limits(lengths, batch_size, max_tokens):
    buckets = [bucket.tolist() for bucket in size_buckets(lengths, batch_size, max_tokens)]
    order = [index for bucket in buckets for index in bucket]
    assert order == sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    for bucket in buckets:
        widest = max(lengths[index] for index in bucket)
        assert 1 <= len(bucket) <= batch_size
        assert len(bucket) * widest <= max_tokens or len(bucket) == 1
    for bucket, following in itertools.pairwise(buckets):  # none is split without need
        size = len(bucket) + 1
        assert size > batch_size or size * lengths[following[0]] > max_tokens
