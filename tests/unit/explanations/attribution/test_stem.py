"""Tokens of a stem back to letters: against changing the letters one by one."""

import pytest
import torch

from seqray.core.model_config import ModelConfig, StemConfig
from seqray.explanations.targets import letter_changes, spread_by_sensitivity
from seqray.modelfile.networks import build_model

STEMS = [
    StemConfig(kernels=(3, 7), stride=3, depth=1),
    StemConfig(kernels=(5,), stride=1),
    StemConfig(kernels=(1,), stride=4),
]


def make(stem, count):
    torch.manual_seed(count)
    network = build_model(ModelConfig(d_model=16, layers=1, heads=2, max_length=60, stem=stem)).eval()
    tokens = torch.randint(4, 8, (3, 1 + count))
    tokens[:, 0] = 1
    return network.embedding, tokens


@torch.no_grad()
def one_by_one(stem, tokens):
    """Norm of the change of each token (B, T) for each letter: (B, T, N)."""
    vectors = stem.letters(tokens[:, 1:])
    whole, _ = stem.read(vectors, None)
    changes = []
    for place in range(vectors.shape[1]):
        changed = vectors.clone()
        changed[:, place] = stem.letters.weight[4:].mean(0)
        changes.append((stem.read(changed, None)[0] - whole).norm(dim=-1))
    return torch.stack(changes, -1)


@pytest.mark.parametrize("config", STEMS, ids=str)
@pytest.mark.parametrize("count", [1, 2, 5, 12, 40])
def test_many_letters_at_once_tell_the_same_as_one_by_one(config, count):
    stem, tokens = make(config, count)
    expected = one_by_one(stem, tokens)
    vectors = stem.letters(tokens[:, 1:])
    mean = stem.letters.weight[4:].mean(0).expand_as(vectors)
    with torch.no_grad():
        read = lambda changed: stem.read(changed, None)[0]  # noqa: E731
        changes, places = letter_changes(read, vectors, mean, stem.field, stem.stride)
    found = torch.zeros_like(expected)
    for token in range(changes.shape[1]):
        for weight, place in zip(changes[:, token].T, places[token].tolist(), strict=True):
            if 0 <= place < count:
                found[:, token, place] += weight
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    relevance = torch.rand(3, 1 + changes.shape[1])
    shares = expected / expected.sum(-1, keepdim=True)
    body = torch.einsum("bt,btn->bn", relevance[:, 1:], shares)
    torch.testing.assert_close(
        spread_by_sensitivity(relevance, stem, tokens), torch.cat((relevance[:, :1], body), 1)
    )


def test_a_token_that_no_letter_changes_spreads_over_its_stride():
    stem, tokens = make(STEMS[0], 7)
    with torch.no_grad():
        stem.merge.weight.zero_()
    relevance = torch.tensor([[0.5, 0.3, 0.6, 0.2]]).expand(3, -1)
    expected = torch.tensor([0.5, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2]).expand(3, -1)
    torch.testing.assert_close(spread_by_sensitivity(relevance, stem, tokens), expected)
