"""The logits of an alignment depend on that alignment alone, and on its rows as a set."""

import functools

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from networks import random_network
from seqray.core.alphabet import RNA
from seqray.core.model_config import ModelConfig, StemConfig
from seqray.models.alignment import AxialTransformer
from seqray.models.batches import collate
from seqray.models.tokenizers import AlignmentTokenizer

TOLERANCE = 1e-5
TOKENIZER = AlignmentTokenizer(RNA)


@functools.cache
def network(tied: bool, positions: str = "sinusoidal") -> AxialTransformer:
    stem = StemConfig(kernels=(3, 5), depth=1) if tied else None  # with and without
    shape = {"d_model": 16, "layers": 2, "heads": 2, "stem": stem, "positions": positions}
    shape |= {"ends": 3, "helices": True} if tied else {}
    config = ModelConfig(kind="alignment", alphabet="rna", tied=tied, **shape)
    return random_network(config, seed=3)


def tokens(rows: int, columns: int, seed: int) -> np.ndarray:
    return TOKENIZER.encode(np.random.default_rng(seed).integers(0, 7, (rows, columns)).astype(np.uint8))


shapes = st.tuples(st.integers(1, 9), st.integers(1, 12), st.integers(0, 99))


@pytest.mark.parametrize("gradients", [True, False])
@pytest.mark.parametrize("tied", [True, False])
@settings(max_examples=25)
@given(shapes, st.lists(shapes, min_size=1, max_size=3))
def test_others_in_the_batch_and_padding_change_nothing(gradients, tied, shape, others):
    one = tokens(*shape)
    alone, together = (collate(batch) for batch in ([one], [one, *(tokens(*s) for s in others)]))
    with torch.set_grad_enabled(gradients):
        expected = network(tied)(alone.tokens, *alone.masks).logits
        logits = network(tied)(together.tokens, *together.masks).logits
    torch.testing.assert_close(logits[:1], expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "learned"])
@pytest.mark.parametrize("tied", [True, False])
@settings(max_examples=15)
@given(shapes, st.integers(0, 5), st.integers(0, 6), st.integers(0, 9))
def test_what_stands_in_padding_changes_nothing(positions, tied, shape, rows, columns, fill):
    one = torch.from_numpy(tokens(*shape))[None]
    wide = torch.full((1, one.shape[1] + rows, one.shape[2] + columns), fill)
    wide[:, : one.shape[1], : one.shape[2]] = one
    real = [torch.arange(n)[None] < real for n, real in zip(wide.shape[1:], one.shape[1:], strict=True)]
    with torch.no_grad():
        expected = network(tied, positions)(one).logits
        logits = network(tied, positions)(wide, *real).logits
        explicit = network(tied, positions)(wide, *real, return_attention=True).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=TOLERANCE)
    torch.testing.assert_close(explicit, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("tied", [True, False])
@settings(max_examples=25)
@given(shapes, st.randoms(use_true_random=False))
def test_rows_below_the_query_have_no_order(tied, shape, random):
    one = tokens(*shape)
    order = list(range(1, len(one)))
    random.shuffle(order)
    with torch.no_grad():
        expected = network(tied)(torch.from_numpy(one)[None]).logits
        logits = network(tied)(torch.from_numpy(one[[0, *order]])[None]).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("tied", [True, False])
def test_the_query_and_the_columns_have_an_order(tied):
    one = torch.from_numpy(tokens(4, 9, 0))[None]
    with torch.no_grad():
        expected = network(tied)(one).logits
        other_query = network(tied)(one[:, [1, 0, 2, 3]]).logits
        other_columns = network(tied)(one[:, :, [0, 2, 1, *range(3, 10)]]).logits
    assert (other_query - expected).abs().max() > 1e-3
    assert (other_columns - expected).abs().max() > 1e-3


@pytest.mark.parametrize("tied", [True, False])
def test_gaps_missing_data_and_unknown_letters_are_told_apart(tied):
    codes = np.random.default_rng(0).integers(0, 4, (3, 6)).astype(np.uint8)
    logits = []
    for code in (0, 4, 5, 6):
        codes[1, 2] = code
        with torch.no_grad():
            logits.append(network(tied)(torch.from_numpy(TOKENIZER.encode(codes))[None]).logits)
    assert all((a - b).abs().max() > 1e-4 for i, a in enumerate(logits) for b in logits[:i])
