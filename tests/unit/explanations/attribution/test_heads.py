"""Figures of heads: closed forms of even attention, and a network rebuilt without a head."""

import copy
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from seqray.core.alphabet import DNA
from seqray.core.model_config import ModelConfig
from seqray.core.records import SequenceRecord
from seqray.explanations.options import ExplainOptions
from seqray.explanations.sequences import heads
from seqray.explanations.targets import ensemble_score, sequence_targets
from seqray.modelfile.model import TrainedModel
from seqray.modelfile.networks import build_model


@pytest.fixture
def model(tiny_model):
    """Two layers of two heads, 8 wide, two members."""
    config = ModelConfig(d_model=8, heads=2, layers=2, dropout=0.0, max_length=20)
    torch.manual_seed(1)
    members = tuple(build_model(config) for _ in range(2))
    return TrainedModel(replace(tiny_model.card, model=config, members=2), members)


CODES = np.random.default_rng(0).integers(0, 4, (9, 20)).astype(np.uint8)


def figures(model, codes=CODES):
    records = [SequenceRecord(f"r{i}", DNA.decode(row)) for i, row in enumerate(codes)]
    return heads(model, records, ExplainOptions(target=model.card.classes[0]))


def test_every_head_of_every_member_once(model):
    found = figures(model)
    assert [(h.member, h.layer, h.head) for h in found] == [
        (m, layer, h) for m in (1, 2) for layer in (1, 2) for h in (1, 2)
    ]
    assert all(0 <= h.entropy <= 1 and 0 <= h.cls_mass <= 1 for h in found)
    assert [math.isnan(h.distance) for h in found] == [h.layer == 2 for h in found]
    assert figures(model, []) == ()


def test_even_attention(model):
    for network in model.networks:
        for block in network.blocks:
            block.attention.qkv.weight[:16] = 0  # queries and keys
            block.attention.qkv.bias[:16] = 0
    found = figures(model)
    letters = np.arange(20)
    for head in found:
        assert head.entropy == pytest.approx(1, abs=1e-5)
        assert head.cls_mass == pytest.approx(1 / 21, rel=1e-5)
        if head.layer == 1:
            assert head.distance == pytest.approx(np.abs(letters[:, None] - letters).mean(), rel=1e-5)


def test_importance_is_what_the_answer_loses_without_the_columns_of_the_head(model):
    found = {(h.member, h.layer, h.head): h for h in figures(model)}
    for member, network in enumerate(model.networks, start=1):
        one = TrainedModel(replace(model.card, members=1), (network,))
        maimed = copy.deepcopy(network)
        maimed.blocks[1].attention.out.weight[:, 4:] = 0
        other = TrainedModel(replace(model.card, members=1), (maimed,))
        without, whole = (ensemble_score(sequence_targets(m, 0), CODES) for m in (other, one))
        change = (without - whole).mean()
        assert found[member, 2, 2].importance == pytest.approx(change, abs=1e-5)


def test_groups_weigh_by_their_records(model):
    parts = [figures(model, codes) for codes in (CODES[:2, :12], CODES[2:])]
    records = [DNA.decode(row) for row in (*CODES[:2, :12], *CODES[2:])]
    together = heads(
        model,
        [SequenceRecord(str(i), letters) for i, letters in enumerate(records)],
        ExplainOptions(target=model.card.classes[0]),
    )
    for whole, short, long in zip(together, *parts, strict=True):
        assert whole.entropy == pytest.approx((2 * short.entropy + 7 * long.entropy) / 9, rel=1e-5)
        assert whole.importance == pytest.approx((2 * short.importance + 7 * long.importance) / 9, abs=1e-6)
